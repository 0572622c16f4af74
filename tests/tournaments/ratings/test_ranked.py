import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from arena.tournaments.ratings import CENTER, Ratings, Results, rate
from arena.tournaments.ratings.davidson import ELO, Prior
from arena.tournaments.ratings.likelihood import _derivatives, _loss
from arena.tournaments.ratings.luce import blocks, dense, layout
from arena.tournaments.ratings.pairs import Method
from arena.tournaments.ratings.ranked import RankedResults, RankedTable, Row, _rankings, rank, rate_ranked

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FLAT = Prior(strength=1e6)


def names(n: int) -> tuple[str, ...]:
    return tuple([f"p{k}" for k in range(n)])


def simulated(
    rng: np.random.Generator,
    strength: Floats,
    tables: int,
    *,
    seats: Floats,
    luck: float = 0.0,
    step: float = 0.0,
    rotations: int = 1,
) -> RankedResults:
    """Tables of random players; `rotations` games of one seed move everybody a seat on.

    `luck` (Elo) is what a seat gets from the seed; scores are rounded to `step`, so that there are ties.
    """
    k = len(seats)
    agents = np.array([rng.permutation(len(strength))[:k] for _ in range(tables)])
    agents = np.concatenate([np.roll(agents, turn, axis=1) for turn in range(rotations)])
    block = np.tile(np.arange(tables), rotations)
    extra = np.tile(rng.normal(0, luck, (tables, k)), (rotations, 1))
    scores = (strength[agents] + seats + extra) / ELO + rng.gumbel(size=agents.shape)
    returns = np.floor(scores / step) if step else scores
    table = RankedTable(np.zeros(len(agents), dtype=np.int64), agents, rank(returns), block)
    return RankedResults(names(len(strength)), ("g",), (table,))


def as_ranked(results: Results) -> RankedResults:
    """Two-player results as tables of two."""
    agents = np.stack([results.first, results.second], axis=1)
    ranks = np.stack([results.outcome // 2, (2 - results.outcome) // 2], axis=1)
    table = RankedTable(results.game, agents, ranks, results.cluster, results.weight, results.times)
    return RankedResults(results.players, results.games, (table,))


def pairs(rng: np.random.Generator, players: int, games: int, outcomes: Sequence[int] = (0, 1, 2)) -> Results:
    first = rng.integers(0, players, games)
    second = (first + rng.integers(1, players, games)) % players
    game, outcome = rng.integers(0, 2, games), rng.choice(outcomes, games)
    return Results(names(players), ("g", "h"), game, first, second, outcome, np.arange(games) // 2)


def logs(worth: Floats, tie: dict[tuple[int, int], float], ranks: Ints) -> float:
    """log P of one ranking by the definition, set by set."""
    left, total = list(range(len(worth))), 0.0
    while len(left) > 1:
        r = len(left)
        sizes = [1, *(t for (remain, t) in tie if remain == r)]
        sets = [chosen for t in sizes for chosen in itertools.combinations(left, t)]
        weight = {
            chosen: tie.get((r, len(chosen)), 1.0) * float(np.prod(worth[list(chosen)])) ** (1 / len(chosen))
            for chosen in sets
        }
        best = tuple(k for k in left if ranks[k] == ranks[left].min())
        total += float(np.log(weight[best] / sum(weight.values())))
        left = [k for k in left if k not in best]
    return total


@pytest.mark.parametrize("outcomes", [(0, 2), (0, 1, 2)])
@pytest.mark.parametrize("method", ["fisher", "clustered"])
def test_tables_of_two_are_the_pair_engine(outcomes: tuple[int, ...], method: Any) -> None:
    results = pairs(np.random.default_rng(3), 6, 400, outcomes)
    results = results._replace(times=np.repeat([1.0, 3.0], 200), weight=np.tile([1.0, 0.5], 200))
    two, many = rate(results, method), rate_ranked(as_ranked(results), method)
    assert many.elo == pytest.approx(two.elo, abs=1e-6)
    assert many.half == pytest.approx(two.half, abs=1e-6)
    for game in two.seats:
        assert many.seats[game]["first seat"] == pytest.approx(two.seats[game]["first seat"], abs=1e-6)
    for column in ("wins", "draws", "losses", "groups"):
        assert getattr(many, column).tolist() == getattr(two, column).tolist()
    assert many.flags == two.flags


@pytest.mark.parametrize("step", [0.0, 1.5])
def test_agrees_with_bfgs(step: float) -> None:
    """The posterior by its definition, game by game: strengths, seats and ties."""
    rng = np.random.default_rng(11)
    results = simulated(rng, rng.normal(0, 200, 5), 25, seats=np.array([80.0, 0.0, -80.0, 0.0]), step=step)
    table, prior = results.tables[0], Prior()
    ties = layout(5, 4, _rankings(results)[0], prior).ties
    assert bool(ties) == bool(step)

    def loss(x: Floats) -> float:
        tie = {(r, t): float(np.exp(x[9 + k])) for k, (_, r, t) in enumerate(ties)}
        total = sum(
            -logs(np.exp(x[agents] + x[5:9]), tie, ranks)
            for agents, ranks in zip(table.agents, table.ranks, strict=True)
        )
        total += float((x[:5] ** 2).sum()) / 2 / (prior.strength / ELO) ** 2
        total += float((x[5:9] ** 2).sum()) / (prior.seat / ELO) ** 2
        for k, (_, r, t) in enumerate(ties):
            sets = len(list(itertools.combinations(range(r), t)))
            total += (x[9 + k] - prior.draw_mean - np.log(r / 2 / sets)) ** 2 / 2 / prior.draw**2
        return float(total)

    found = minimize(loss, np.zeros(9 + len(ties)), method="BFGS", options={"gtol": 1e-6}).x
    rated = rate_ranked(results)
    assert rated.elo - CENTER == pytest.approx(ELO * (found[:5] - found[:5].mean()), abs=0.01)
    worth = [rated.seats["g"][f"seat {seat}"][0] for seat in range(4)]
    assert worth == pytest.approx(ELO * (found[5:9] - found[5:9].mean()) * 4 / 3, abs=0.01)


@pytest.mark.parametrize("step", [0.0, 2.0])
def test_gradient_and_hessian_are_the_loss_s(step: float) -> None:
    rng = np.random.default_rng(2)
    results = simulated(rng, rng.normal(0, 200, 6), 30, seats=np.zeros(5), step=step)
    rankings, _ = _rankings(results)
    plan = layout(6, 5, rankings, Prior())
    choices = blocks(plan, rankings)
    x = rng.normal(0, 1, len(plan.mean))
    gradient, hessian = _derivatives(choices, x, plan.mean, plan.precision)
    for k, way in enumerate(1e-5 * np.eye(len(x))):
        up, down = [_loss(choices, x + sign * way, plan.mean, plan.precision) for sign in (1, -1)]
        assert gradient[k] == pytest.approx((up - down) / 2e-5, abs=1e-4)
        ahead, _ = _derivatives(choices, x + way, plan.mean, plan.precision)
        assert hessian[k] == pytest.approx((ahead - gradient) / 1e-5, abs=1e-3)
    assert np.linalg.eigvalsh(hessian).min() > 0


@pytest.mark.oracle
def test_agrees_with_choix() -> None:
    """The same likelihood; no seats there, so here seats are known to be worth nothing."""
    choix = pytest.importorskip("choix")
    rng = np.random.default_rng(5)
    results = simulated(rng, rng.normal(0, 200, 6), 80, seats=np.zeros(4))
    table = results.tables[0]
    rankings = [agents[np.argsort(ranks)].tolist() for agents, ranks in zip(table.agents, table.ranks, strict=True)]
    prior = Prior(strength=1e5, seat=1e-5)
    ours = rate_ranked(results, prior=prior).elo - CENTER
    for theirs in (
        choix.ilsr_rankings(6, rankings, tol=1e-12, max_iter=1000),
        choix.opt_rankings(6, rankings, method="BFGS", tol=1e-10),
    ):
        assert ours == pytest.approx(ELO * (theirs - theirs.mean()), abs=0.01)
    ridge = choix.opt_rankings(6, rankings, alpha=0.5 * (ELO / 350) ** 2, method="BFGS", tol=1e-10)
    assert rate_ranked(results, prior=Prior(seat=1e-5)).elo - CENTER == pytest.approx(
        ELO * (ridge - ridge.mean()), abs=0.01
    )


def test_the_seat_is_not_taken_for_strength() -> None:
    """p0 mostly sits first, where the advantage is."""
    rng = np.random.default_rng(7)
    seats = np.array([200.0, 0.0, 0.0, -200.0])
    results = simulated(rng, np.zeros(8), 3000, seats=seats)
    table = results.tables[0]
    keep = (table.agents[:, 0] == 0) | (~(table.agents == 0).any(axis=1)) | (rng.random(3000) < 0.05)
    kept = [column[keep] for column in (table.game, table.agents, table.ranks, table.cluster)]
    rated = rate_ranked(results._replace(tables=(RankedTable(kept[0], kept[1], kept[2], kept[3]),)))
    assert np.abs(rated.elo - CENTER).max() < 40
    worth = [rated.seats["g"][f"seat {seat}"][0] for seat in range(4)]
    assert worth == pytest.approx(seats * 4 / 3, abs=30)


def test_one_winner_and_losers_alike_tell_of_the_winner_only() -> None:
    """The same as a choice of one among four; how many lose together is no sign of draws among winners."""
    rng = np.random.default_rng(1)
    strength = np.linspace(-300, 300, 6)
    results = simulated(rng, strength, 4000, seats=np.zeros(4))
    table = results.tables[0]
    only = results._replace(tables=(table._replace(ranks=(table.ranks > 0).astype(np.int64)),))
    rated = rate_ranked(only)
    assert rated.elo - CENTER == pytest.approx(strength, abs=40)
    assert (rated.draws == 0).all()

    def loss(x: Floats) -> float:
        chosen = x[table.agents[np.arange(4000), table.ranks.argmin(axis=1)]]
        told = float(chosen.sum() - np.log(np.exp(x[table.agents]).sum(axis=1)).sum())
        return float(0.5 * (ELO / 350) ** 2 * (x @ x) - told)

    found = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-6}).x
    exact = rate_ranked(only, prior=Prior(seat=1e-5)).elo - CENTER
    assert exact == pytest.approx(ELO * (found - found.mean()), abs=1)  # the tie is all but certain, not certain


def test_forfeits_are_last() -> None:
    returns = np.array([[3.0, 1.0, 1.0, -2.0], [0.0, 5.0, 5.0, 9.0]])
    assert rank(returns).tolist() == [[0, 1, 1, 2], [2, 1, 1, 0]]
    out = np.array([[True, False, False, False], [False, True, True, False]])
    assert rank(returns, out).tolist() == [[2, 0, 0, 1], [1, 2, 2, 0]]
    gone = RankedResults.of([("g", ["a", "b", "c"], [1.0, -np.inf, 0.0], 0)])
    assert gone.tables[0].ranks.tolist() == [[0, 2, 1]]
    assert dense(np.zeros((2, 3))).tolist() == [[0, 0, 0]] * 2


def test_order_and_names_do_not_matter() -> None:
    rng = np.random.default_rng(4)
    results = simulated(rng, rng.normal(0, 200, 6), 200, seats=np.array([50.0, 0.0, -50.0]), step=1.0)
    table = results.tables[0]
    rows, new = rng.permutation(200), rng.permutation(6)
    other = [column[rows] for column in (table.game, table.agents, table.ranks, table.cluster)]
    other[1] = new[other[1]]
    plain, renamed = (
        rate_ranked(results),
        rate_ranked(results._replace(tables=(RankedTable(other[0], other[1], other[2], other[3]),))),
    )
    assert renamed.elo[new] == pytest.approx(plain.elo, abs=1e-7)
    assert renamed.half[new] == pytest.approx(plain.half, abs=1e-7)


def test_times_are_clusters_repeated() -> None:
    rng = np.random.default_rng(4)
    results = simulated(rng, rng.normal(0, 200, 4), 60, seats=np.zeros(3), step=1.0, rotations=3)
    table = results.tables[0]
    times = rng.integers(1, 4, 60)
    once = table._replace(times=times[table.cluster].astype(np.float64))
    rows = np.concatenate([np.flatnonzero(table.cluster == c) for c in range(60) for _ in range(times[c])])
    cluster = np.repeat(np.arange(times.sum()), 3)
    often = RankedTable(table.game[rows], table.agents[rows], table.ranks[rows], cluster)
    methods: tuple[Method, ...] = ("fisher", "clustered", "auto")
    for method in methods:
        short = rate_ranked(results._replace(tables=(once,)), method)
        long = rate_ranked(results._replace(tables=(often,)), method)
        assert short.elo == pytest.approx(long.elo, abs=1e-6)
        assert short.half == pytest.approx(long.half, abs=1e-6)
        assert short.wins.tolist() == long.wins.tolist()
        assert short.method == long.method


def test_rotated_seats_of_one_seed_take_the_luck_away() -> None:
    rng = np.random.default_rng(8)
    results = simulated(rng, rng.normal(0, 150, 8), 800, seats=np.zeros(4), luck=400, rotations=4)
    table = results.tables[0]
    alone = results._replace(tables=(table._replace(cluster=np.arange(3200)),))
    together, apart = rate_ranked(results), rate_ranked(alone)
    assert together.method == apart.method == "clustered"
    assert 0.1 < 1 - (together.half / apart.half).mean() < 0.6


def test_several_games_and_table_sizes() -> None:
    rows: list[Row] = [("Pig", ["a", "b", "c"], [1, 0, -1], k) for k in range(5)]
    rows += [
        ("Pig", ["b", "a"], [1, 0], 9),
        ("Kuhn", ["c", "b"], [0, 0], 10),
        ("Pig", ["d", "a", "c", "b"], [4, 3, 2, 1], 11),
    ]
    rated = rate_ranked(RankedResults.of(rows, players=["z"]))
    assert rated.players == ("z", "a", "b", "c", "d")
    assert set(rated.seats) == {"Pig", "Kuhn"}
    assert list(rated.seats["Kuhn"]) == ["first seat"]
    assert next(iter(rated.seats["Pig"])) == "first seat of 2"
    assert {"seat 2 of 3", "seat 3 of 4"} < set(rated.seats["Pig"])
    assert rated.flags[0] == ("no games",)
    assert rated.played.tolist() == [0, 7, 8, 7, 1]
    assert rated.wins.tolist() == [0, 5, 1, 0, 1]
    assert rated.draws.tolist() == [0, 0, 1, 1, 0]


HOSTILE: dict[str, list[tuple[list[str], list[float]]]] = {
    "one game": [(["a", "b", "c"], [3, 2, 1])],
    "one tie": [(["a", "b", "c"], [0, 0, 0])],
    "all ties": [(list("abcd"), [0.0] * 4)] * 200,
    "ties of twenty": [(list(names(20)), [0.0] * 20)] * 3,
    "undefeated": [(["a", "b", "c"], [3, 2, 1]), (["c", "a", "b"], [1, 5, 0])] * 60,
    "winless": [(["a", "b", "c"], [3, 2, 1]), (["b", "a", "c"], [2, 1, 0])] * 60,
    "first seat always wins": [(["a", "b", "c"], [1, 0, 0]), (["b", "c", "a"], [1, 0, 0])] * 60,
    "disconnected": [(["a", "b"], [1, 0]), (["b", "a"], [1, 0]), (["c", "d", "e"], [1, 2, 3])] * 30,
    "duplicates": [(list("abc"), [1.0, 2.0, 0.0])] * 5000 + [(list("abc"), [2.0, 1.0, 0.0])] * 5000,
    "a player in several seats": [(["a", "a", "b"], [1, 2, 0]), (["b", "a", "b"], [1, 0, 2])] * 40,
    "infinite returns": [(["a", "b", "c"], [np.inf, -np.inf, 1e308])] * 3,
}


def hostile(name: str, method: Any = "auto", cluster: int | None = None) -> Ratings:
    rows = [("g", *row, number if cluster is None else cluster) for number, row in enumerate(HOSTILE[name])]
    return rate_ranked(RankedResults.of(rows), method)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("method", ["auto", "fisher", "clustered"])
@pytest.mark.parametrize("cluster", [None, 0])
def test_hostile_results_give_finite_numbers(name: str, method: Any, cluster: int | None) -> None:
    rated = hostile(name, method, cluster)
    seats = np.array([worth for game in rated.seats.values() for worth in game.values()])
    for numbers in (rated.elo, rated.half, rated.covariance, seats, rated.standing.beats):
        assert np.isfinite(numbers).all()
    assert (rated.half > 0).all(), "no certainty from nothing"
    assert np.abs(rated.elo - CENTER).max() < 3000


def test_flags() -> None:
    assert hostile("undefeated").flags == (("undefeated",), (), ())
    assert hostile("winless").flags == ((), (), ("winless",))
    assert set(hostile("all ties").flags) == {()}
    few = "few games"
    assert hostile("one game").flags == (("undefeated", few), (few,), ("winless", few))
    apart = hostile("disconnected")
    assert all("separate group" in words for words in apart.flags)
    assert apart.elo[:2].mean() == pytest.approx(CENTER)
    with pytest.raises(ValueError, match="'a' and 'c' never met"):
        apart.difference("a", "c")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("g", ["a", "b"], [1.0], 0)], "2 players and 1 returns"),
        ([("g", ["a", "b"], [1.0, np.nan], 0)], "a return is NaN: allowed are numbers"),
        ([("g", ["a", "a"], [1.0, 0.0], 0)], "a player cannot play against itself alone"),
        ([("g", ["a"], [1.0], 0)], "one side alone"),
        ([], "nobody played"),
        ([("g", [f"p{k}" for k in range(20)], [float(k >= 10) for k in range(20)], 0)], "a tie of 10 among 20"),
    ],
)
def test_bad_rows(rows: list[Row], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rate_ranked(RankedResults.of(rows))


def test_bad_columns() -> None:
    zero, two = np.zeros(1, dtype=np.int64), np.array([[0, 1]])
    good = RankedTable(zero, two, two, zero)
    for bad, message in (
        (good._replace(cluster=np.zeros(2, dtype=np.int64)), "columns of"),
        (good._replace(game=np.zeros(2, dtype=np.int64)), "2 games and 1 rows"),
        (good._replace(ranks=np.array([[0, 1, 2]])), "columns of"),
        (good._replace(agents=np.array([[0, 7]])), "a player's number is outside 0 to 1"),
        (good._replace(agents=np.array([[0, -1]])), "a side without players"),
    ):
        with pytest.raises(ValueError, match=message):
            rate_ranked(RankedResults(("a", "b"), ("g",), (bad,)))


def covered(simulations: int, tables: int, players: int = 8, **how: Any) -> tuple[float, float]:
    """The shares of true ratings, and of true differences to the first player, inside their 95 % intervals.

    Where luck or ties are not as in the model, the truth is what very many games would give.
    """
    rating, difference = [], []
    for seed in range(simulations):
        rng = np.random.default_rng(seed)
        strength = rng.normal(0, 200, players)
        true = strength
        if how.get("luck") or how.get("step"):
            true = rate_ranked(simulated(rng, strength, 8_000 // how.get("rotations", 1), **how), "fisher").elo
        rated = rate_ranked(simulated(rng, strength, tables, **how))
        rating += (np.abs(rated.elo - CENTER - (true - true.mean())) <= rated.half).tolist()
        for other in range(1, players):
            found, half = rated.difference("p0", f"p{other}")
            difference.append(abs(found - (true[0] - true[other])) <= half)
    return float(np.mean(rating)), float(np.mean(difference))


SEATS = np.array([90.0, 30.0, -30.0, -90.0])
SCENARIOS: dict[str, dict[str, Any]] = {
    "plain": {"tables": 300, "seats": SEATS},
    "few games": {"tables": 30, "seats": SEATS},
    "few games of all": {"tables": 12, "seats": np.zeros(8)},
    "few seeds, seats rotated": {"tables": 10, "seats": SEATS, "rotations": 4},
    "luck of the seed, seats rotated": {"tables": 100, "seats": SEATS, "luck": 300, "rotations": 4},
    "many ties": {"tables": 300, "seats": SEATS, "step": 1.0},
}


def test_intervals_hold_what_they_say_roughly() -> None:
    assert all(0.88 < share < 0.995 for share in covered(25, **SCENARIOS["plain"]))


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_intervals_hold_what_they_say(scenario: str, scale: int) -> None:
    rating, difference = covered(60 * scale, **SCENARIOS[scenario])
    print(f"{scenario}: ratings {rating:.3f}, differences {difference:.3f}")
    assert 0.92 <= rating <= 0.98
    assert 0.92 <= difference <= 0.98
