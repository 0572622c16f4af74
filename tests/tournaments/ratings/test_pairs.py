import csv
import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from arena.tournaments.ratings import CENTER, OUTCOMES, Ratings, Results, mean_returns, rate, t_quantile
from arena.tournaments.ratings.davidson import ELO, Cells, Prior, fit

Floats = NDArray[np.float64]
Row = tuple[str, str, str, str, object]


def simulated(
    rng: np.random.Generator,
    strength: Floats,
    games: int,
    *,
    seats: Floats | None = None,
    draw: float = -0.7,
    paired: bool = True,
    luck: float = 0.0,
) -> Results:
    """Games between random pairs, in blocks of two with seats swapped; `luck` (Elo) is the first seat's by the seed."""
    n, kinds = len(strength), 1 if seats is None else len(seats)
    worth = (np.zeros(kinds) if seats is None else seats) / ELO
    first = rng.integers(0, n, games)
    second = (first + rng.integers(1, n, games)) % n
    game = rng.integers(0, kinds, games)
    block = np.arange(games) // 2
    if paired:
        first[1::2], second[1::2], game[1::2] = second[::2], first[::2], game[::2]
    edge = (strength[first] - strength[second]) / ELO + worth[game] + rng.normal(0, 1, games)[block] * luck / ELO
    weights = np.exp(np.stack([edge / 2, np.full(games, draw), -edge / 2]))
    bounds = np.cumsum(weights / weights.sum(axis=0), axis=0)
    outcome = (rng.random(games) > bounds[:2]).sum(axis=0)
    names = tuple([f"p{k}" for k in range(n)])
    return Results(names, tuple([f"g{k}" for k in range(kinds)]), game, first, second, outcome, block)


def picked(results: Results, rows: NDArray[np.int64]) -> Results:
    """Some of the games, in this order, as often as they are named."""
    columns = ("game", "first", "second", "outcome", "cluster")
    return results._replace(**{name: getattr(results, name)[rows] for name in columns})


def plainly(results: Results, prior: Prior) -> Floats:
    """The same posterior by its definition, game by game, maximised by BFGS: ratings and seat terms in Elo."""
    n, kinds = len(results.players), len(results.games)

    def loss(x: Floats) -> float:
        theta, seat, log_nu = x[:n], x[n : n + kinds], x[n + kinds :]
        total = float(
            (theta**2).sum() / 2 / (prior.strength / ELO) ** 2 + (seat**2).sum() / 2 / (prior.seat / ELO) ** 2
        )
        total += float(((log_nu - prior.draw_mean) ** 2).sum() / 2 / prior.draw**2)
        home = np.exp(theta[results.first] + seat[results.game])
        away = np.exp(theta[results.second])
        tie = np.exp(log_nu[results.game]) * np.sqrt(home * away)
        chosen = np.choose(results.outcome, [home, tie, away])
        return total - float(np.log(chosen / (home + tie + away)).sum())

    found = minimize(loss, np.zeros(n + 2 * kinds), method="BFGS", options={"gtol": 1e-7, "maxiter": 5000})
    elo: Floats = ELO * np.asarray(found.x[: n + kinds], dtype=np.float64)
    return elo


@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_bfgs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, kinds = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    results = simulated(rng, rng.normal(0, 250, n), 2 * int(rng.integers(1, 200)), seats=rng.normal(0, 80, kinds))
    expected = plainly(results, Prior())
    rated = rate(results)
    assert (
        rated.elo - CENTER == pytest.approx(expected[:n] - expected[:n].mean(), abs=0.01) or len(set(rated.groups)) > 1
    )
    assert [game["first seat"][0] for game in rated.seats.values()] == pytest.approx(expected[n:], abs=0.01)


def test_two_players_by_hand() -> None:
    """Without priors that bite, 3 wins to 1 are odds of three to one."""
    rows = [("g", "a", "b", "first", 0), ("g", "b", "a", "second", 0)] * 300
    rows += [("g", "a", "b", "second", 1), ("g", "b", "a", "first", 1)] * 100
    rated = rate(Results.of(rows), prior=Prior(strength=1e5))
    assert rated.difference("a", "b")[0] == pytest.approx(400 * np.log10(3), abs=0.5)
    assert rated.seats["g"]["first seat"][0] == pytest.approx(0, abs=1e-6)
    assert (rated.wins.tolist(), rated.losses.tolist()) == ([600, 200], [200, 600])


def test_the_seat_is_not_taken_for_strength() -> None:
    """b always moves first and wins by that alone; half-a-win-for-a-draw models without a seat term rank it higher."""
    rng = np.random.default_rng(1)
    mixed = simulated(rng, np.zeros(3), 3000, seats=np.array([200.0]))
    first = np.where(rng.random(3000) < 0.9, np.minimum(mixed.first, mixed.second), mixed.first)
    swapped = first != mixed.first
    second = np.where(swapped, mixed.first, mixed.second)
    edge = np.full(3000, 200 / ELO)
    weights = np.exp(np.stack([edge / 2, np.full(3000, -0.7), -edge / 2]))
    bounds = np.cumsum(weights / weights.sum(axis=0), axis=0)
    outcome = (rng.random(3000) > bounds[:2]).sum(axis=0)
    rated = rate(mixed._replace(first=first, second=second, outcome=outcome, cluster=np.arange(3000)))
    assert np.abs(rated.elo - CENTER).max() < 30
    assert rated.seats["g0"]["first seat"][0] == pytest.approx(200, abs=25)


def test_the_fit_is_the_same_whatever_the_order_and_the_start() -> None:
    rng = np.random.default_rng(5)
    results = simulated(rng, rng.normal(0, 200, 6), 500)
    shuffled = rng.permutation(500)
    other = picked(results, shuffled)
    assert rate(results).elo.tolist() == rate(other).elo.tolist()
    cells = results.cells()
    cold = fit(cells)
    warm = fit(cells, start=cold.parameters + rng.normal(0, 1, len(cold.parameters)))
    assert warm.parameters == pytest.approx(cold.parameters, abs=1e-6)
    assert fit(cells, start=cold.parameters).iterations == 0
    for far in (-30.0, 30.0):  # a full Newton step from here overshoots
        lost = fit(cells, start=np.append(np.linspace(-far, far, 6), [far, -far]))
        assert lost.parameters == pytest.approx(cold.parameters, abs=1e-6)


@pytest.mark.parametrize("games", [10, 1_000, 100_000, 1_000_000])
def test_newton_ends_soon_whatever_the_size(games: int) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        cells = simulated(rng, rng.normal(0, 200, 8), games, luck=200).cells()
        fitted = fit(cells)
        assert fitted.iterations < 12
        assert fit(cells, start=fitted.parameters + 1e-3).parameters == pytest.approx(fitted.parameters, abs=1e-7)


def test_counts_are_all_the_fit_needs() -> None:
    results = simulated(np.random.default_rng(3), np.array([0.0, 100.0, -50.0]), 300, seats=np.array([0.0, 50.0]))
    cells = results.cells()
    assert cells.counts.sum() == 300
    for game, first, second, counts in zip(cells.game, cells.first, cells.second, cells.counts, strict=True):
        mine = (results.game == game) & (results.first == first) & (results.second == second)
        assert counts.tolist() == [int((results.outcome[mine] == k).sum()) for k in range(3)]


def table(*rows: tuple[str, str, str]) -> Ratings:
    return rate(Results.of([("g", *row, number) for number, row in enumerate(rows)]))


HOSTILE: dict[str, list[tuple[str, str, str]]] = {
    "one game": [("a", "b", "first")],
    "one draw": [("a", "b", "draw")],
    "undefeated": [("a", "b", "first"), ("c", "a", "second"), ("b", "c", "draw")] * 30,
    "winless": [("a", "b", "first"), ("b", "a", "second"), ("a", "c", "draw"), ("c", "b", "first")] * 30,
    "all draws": [("a", "b", "draw"), ("b", "c", "draw"), ("c", "a", "draw")] * 100,
    "first seat always wins": [("a", "b", "first"), ("b", "a", "first")] * 200,
    "a chain": [(f"p{k}", f"p{k + 1}", "first") for k in range(40)],
    "disconnected": [("a", "b", "first"), ("b", "a", "first"), ("c", "d", "first"), ("d", "c", "draw")] * 10,
    "the same row": [("a", "b", "first"), ("b", "a", "draw")] * 500,
    "one pair very often": [("a", "b", "first")] * 50_000 + [("b", "a", "first")] * 49_000 + [("b", "c", "draw")],
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("method", ["auto", "fisher", "clustered", "bootstrap"])
@pytest.mark.filterwarnings("error")
def test_hostile_results_give_finite_numbers(name: str, method: Any) -> None:
    results = Results.of([("g", *row, number) for number, row in enumerate(HOSTILE[name])])
    rated = rate(results, method, replicates=20)
    for numbers in (
        rated.elo,
        rated.half,
        rated.covariance,
        np.array([game["first seat"] for game in rated.seats.values()]),
    ):
        assert np.isfinite(numbers).all()
    assert (rated.half > 0).all(), "no certainty from nothing"
    assert np.abs(rated.elo - CENTER).max() < 3000


def test_flags() -> None:
    rated = table(*HOSTILE["undefeated"])
    assert dict(zip(rated.players, rated.flags, strict=True)) == {"a": ("undefeated",), "b": (), "c": ()}
    assert table(*HOSTILE["winless"]).flags[1] == ("winless",)
    assert set(table(*HOSTILE["all draws"]).flags) == {()}
    one_sided = table(*[("a", "b", "draw"), ("c", "d", "draw"), ("a", "c", "first"), ("d", "b", "second")] * 5)
    assert set(one_sided.flags) == {("one-sided",)}
    assert table(("a", "b", "first")).flags == (("undefeated", "few games"), ("winless", "few games"))
    assert table(*[("a", "b", "draw")] * 9).flags == (("few games",),) * 2
    assert table(*[("a", "b", "draw")] * 10).flags == ((), ())


def test_the_undefeated_are_no_more_certain_for_that() -> None:
    """arena-rank gives 3334 +- 0 here."""
    rows = [("a", "b", "first"), ("a", "c", "first")] * 100 + [("b", "c", "first"), ("b", "c", "second")] * 100
    rated = table(*rows)
    assert rated.method == "clustered"
    assert rated.half[0] > 100
    assert rated.half[0] > rated.half[1]


def test_groups_that_never_met_are_not_compared() -> None:
    rated = table(*HOSTILE["disconnected"])
    groups = dict(zip(rated.players, rated.groups.tolist(), strict=True))
    assert groups["a"] == groups["b"] != groups["c"] == groups["d"]
    assert all("separate group" in flags for flags in rated.flags)
    assert rated.elo[:2].mean() == pytest.approx(CENTER)
    assert rated.elo[2:].mean() == pytest.approx(CENTER)
    with pytest.raises(ValueError, match="'a' and 'c' never met, not even through others"):
        rated.difference("a", "c")


def test_who_has_not_played_yet() -> None:
    rated = rate(Results.of([("g", "a", "b", "first", 0), ("g", "a", "b", "second", 1)], players=["new", "a"]))
    assert rated.players == ("new", "a", "b")
    assert rated.flags == (("no games",), ("few games",), ("few games",))
    assert rated.played.tolist() == [0, 2, 2]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("g", "a", "b", "tie", 0)], "outcome 'tie': allowed are first, draw, second"),
        ([("g", "a", "b", "a", 0)], "outcome 'a'"),
        ([("g", "a", "a", "draw", 0)], "'a' cannot play against itself"),
    ],
)
def test_bad_rows(rows: list[Row], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Results.of(rows)


def test_nobody_played() -> None:
    with pytest.raises(ValueError, match="nobody played"):
        rate(Results.of([], players=["a", "b"]))


def test_usable_on_any_table() -> None:
    lines = "Nim,ann,bob,first,1\nNim,bob,ann,draw,1\nChess,ann,cat,second,2\nChess,cat,ann,first,2\n"
    rated = rate(Results.of([(*row[:4], row[4]) for row in csv.reader(lines.splitlines())]))  # type: ignore[misc]  # csv rows are lists
    assert rated.players == ("ann", "bob", "cat")
    assert set(rated.seats) == {"Nim", "Chess"}
    assert OUTCOMES == ("first", "draw", "second")


def test_pairs_of_one_seed_are_worth_more_than_their_number() -> None:
    """Where the seed favours a seat, the swapped game takes the luck away, and the clustered interval knows it."""
    rng = np.random.default_rng(8)
    results = simulated(rng, rng.normal(0, 150, 10), 6000, luck=400)
    paired = rate(results)
    alone = rate(results._replace(cluster=np.arange(6000)))
    assert (paired.method, alone.method) == ("clustered", "clustered")
    assert 0.1 < 1 - (paired.half / alone.half).mean() < 0.4


def covered(simulations: int, games: int, **how: Any) -> tuple[float, float]:
    """The shares of true ratings, and of true differences to the first player, inside their 95 % intervals.

    Luck flattens what strength does on the whole, so there the truth is what very many games would give.
    """
    rating, difference = [], []
    for seed in range(simulations):
        rng = np.random.default_rng(seed)
        strength = rng.normal(0, 200, 8)
        true = rate(simulated(rng, strength, 100_000, **how), "fisher").elo if how.get("luck") else strength
        rated = rate(simulated(rng, strength, games, **how))
        rating += (np.abs(rated.elo - CENTER - (true - true.mean())) <= rated.half).tolist()
        for other in range(1, 8):
            found, half = rated.difference("p0", f"p{other}")
            difference.append(abs(found - (true[0] - true[other])) <= half)
    return float(np.mean(rating)), float(np.mean(difference))


SCENARIOS: dict[str, dict[str, Any]] = {
    "plain": {"games": 800, "paired": False},
    "seats": {"games": 800, "seats": np.array([80.0]), "paired": False},
    "pairs": {"games": 800},
    "luck": {"games": 800, "luck": 200.0},
    "few games": {"games": 80, "paired": False},
    "several games": {"games": 1200, "seats": np.array([0.0, 100.0, -100.0])},
    "no draws": {"games": 800, "draw": -20.0},
}


def test_intervals_hold_what_they_say_roughly() -> None:
    assert all(0.9 < share < 0.99 for share in covered(25, **SCENARIOS["pairs"]))


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_intervals_hold_what_they_say(scenario: str, scale: int) -> None:
    """200 simulations of 8 players: the share's own standard error is about 0.7 %."""
    rating, difference = covered(max(200, 100 * scale), **SCENARIOS[scenario])
    print(f"{scenario}: ratings {rating:.3f}, differences {difference:.3f}")
    assert 0.93 <= rating <= 0.975
    assert 0.93 <= difference <= 0.975


def test_differences_are_those_of_the_covariance() -> None:
    rated = rate(simulated(np.random.default_rng(2), np.array([0.0, 100.0, 200.0]), 600))
    for (i, a), (j, b) in itertools.permutations(enumerate(rated.players), 2):
        found, half = rated.difference(a, b)
        assert found == pytest.approx(rated.elo[i] - rated.elo[j])
        cov = rated.covariance
        assert half == pytest.approx(1.96 * np.sqrt(cov[i, i] + cov[j, j] - 2 * cov[i, j]), rel=1e-4)


def test_cells_of_a_game_nobody_played() -> None:
    empty = np.array([], dtype=np.int64)
    fitted = fit(Cells.of(2, 1, empty, empty, empty, empty))
    assert fitted.parameters.tolist() == [0, 0, 0, Prior().draw_mean]


@pytest.mark.parametrize(("freedom", "t"), [(1, 12.706), (9, 2.262), (99, 1.984)])
def test_t(freedom: int, t: float) -> None:
    assert t_quantile(freedom) == pytest.approx(t, abs=1e-3)


def test_means() -> None:
    player, cluster = np.array([0, 0, 0, 0, 2, 2]), np.array([0, 0, 1, 1, 5, 5])
    first, none, last = mean_returns(3, player, cluster, np.array([1.0, 0.0, 1.0, 1.0, 3.0, 5.0]))
    assert first is not None
    assert (first.mean, first.games) == (0.75, 4)
    assert first.half == pytest.approx(12.706 * 0.25, abs=0.01)  # two blocks: 0.5 and 1
    assert none is None
    assert last is not None
    assert (last.mean, last.half, last.games) == (4.0, None, 2)


@pytest.mark.parametrize("value", [0.0, 0.1, -3.0])
def test_no_scatter_is_no_interval(value: float) -> None:
    blocks = np.repeat(np.arange(7), 3)
    (mean,) = mean_returns(1, np.zeros(21, dtype=np.int64), blocks, np.full(21, value))
    assert mean is not None
    assert mean.mean == pytest.approx(value)
    assert mean.half is None
    (paired,) = mean_returns(1, np.zeros(4, dtype=np.int64), np.array([0, 0, 1, 1]), np.array([1.0, -1.0, -1.0, 1.0]))
    assert paired is not None
    assert (paired.mean, paired.half) == (0, None)


@pytest.mark.parametrize(("blocks", "method"), [(4, "fisher"), (40, "clustered")])
def test_repeating_what_is_known_makes_nobody_surer(blocks: int, method: str) -> None:
    rng = np.random.default_rng(2)
    once = simulated(rng, np.array([0.0, 150.0, -80.0]), 2 * blocks)
    if method == "clustered":
        once = simulated(rng, np.array([0.0, 150.0]), 2 * blocks)
    rows = np.tile(np.arange(2 * blocks), 5)
    again = picked(once, rows)._replace(weight=np.full(len(rows), 0.2))
    one, five = rate(once), rate(again)
    assert one.method == five.method == method
    assert five.elo == pytest.approx(one.elo)
    assert five.half == pytest.approx(one.half)
    assert five.played.tolist() == (5 * one.played).tolist()
    assert rate(again._replace(weight=None), "fisher").half.max() < 0.6 * one.half.max()


def test_the_interval_of_a_mean_holds_what_it_says() -> None:
    rng = np.random.default_rng(0)
    hits = []
    for _ in range(400):
        block = np.repeat(np.arange(12), 3)
        value = rng.normal(0, 1, 12)[block] + rng.normal(0, 0.5, 36)
        (mean,) = mean_returns(1, np.zeros(36, dtype=np.int64), block, value)
        assert mean is not None
        assert mean.half is not None
        hits.append(abs(mean.mean) <= mean.half)
    assert 0.92 < np.mean(hits) < 0.98
