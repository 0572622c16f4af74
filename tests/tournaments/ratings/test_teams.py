from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from arena.tournaments.ratings import CENTER, Results, rate
from arena.tournaments.ratings.davidson import ELO, Prior
from arena.tournaments.ratings.ranked import RankedResults, RankedTable, rate_ranked
from arena.tournaments.ratings.teams import TOGETHER, Row, TeamResults, TeamTable, rate_teams

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAFIA, TOWN = 60.0, -20.0


def names(n: int) -> tuple[str, ...]:
    return tuple([f"p{k}" for k in range(n)])


def simulated(
    rng: np.random.Generator, strength: Floats, games: int, *, luck: float = 0.0, swaps: int = 1
) -> TeamResults:
    """Two mafiosi against a town of three, drawn at random; with `swaps` of 5 everybody is everything on one seed."""
    agents = np.array([rng.permutation(len(strength))[:5] for _ in range(games)])
    agents = np.concatenate([np.roll(agents, turn, axis=1) for turn in range(swaps)])
    block = np.tile(np.arange(games), swaps)
    members = np.full((len(agents), 2, 3), -1)
    members[:, 0, :2], members[:, 1] = agents[:, :2], agents[:, 2:]
    padded = np.append(strength, 0.0)[members].sum(axis=2)
    edge = (padded[:, 0] - padded[:, 1] + MAFIA - TOWN + np.tile(rng.normal(0, luck, games), swaps)) / ELO
    weights = np.exp(np.stack([edge / 2, np.full(len(edge), -0.7), -edge / 2]))
    bounds = np.cumsum(weights / weights.sum(axis=0), axis=0)
    outcome = (rng.random(len(edge)) > bounds[:2]).sum(axis=0)
    ranks = np.stack([outcome // 2, (2 - outcome) // 2], axis=1)
    side = np.tile([0, 1], (len(edge), 1))
    table = TeamTable(np.zeros(len(edge), dtype=np.int64), members, side, ranks, block)
    return TeamResults(names(len(strength)), ("g",), ("mafia", "town"), (table,))


def test_sides_of_one_player_are_the_pair_engine_scaled() -> None:
    """Three of a kind are that player's strength three times."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 5, 300)
    second = (first + rng.integers(1, 5, 300)) % 5
    outcome, cluster = rng.integers(0, 3, 300), np.arange(300) // 2
    two = rate(Results(names(5), ("g",), np.zeros(300, dtype=np.int64), first, second, outcome, cluster))
    rows: list[Row] = [
        ("g", {"white": [f"p{a}"] * 3, "black": [f"p{b}"] * 3}, ("white", "draw", "black")[o], c)
        for a, b, o, c in zip(first, second, outcome, cluster, strict=True)
    ]
    teams = rate_teams(TeamResults.of(rows, players=names(5)), prior=Prior(strength=350 / 3))
    assert 3 * (teams.elo - CENTER) == pytest.approx(two.elo - CENTER, abs=1e-6)
    assert 3 * teams.half == pytest.approx(two.half, abs=1e-6)
    assert teams.seats["g"]["white"] == pytest.approx(two.seats["g"]["first seat"], abs=1e-6)
    assert teams.seats["g"]["black"][0] == pytest.approx(-two.seats["g"]["first seat"][0], abs=1e-6)
    assert (teams.wins / 3).tolist() == two.wins.tolist(), "every member has the result of his side"


def test_sides_of_one_are_ranked_tables() -> None:
    rng = np.random.default_rng(1)
    agents = np.array([rng.permutation(6)[:4] for _ in range(120)])
    ranks, zero = rng.integers(0, 3, (120, 4)), np.zeros(120, dtype=np.int64)
    alone = RankedTable(zero, agents, ranks, np.arange(120))
    side = np.tile(np.arange(4), (120, 1))
    table = TeamTable(zero, agents[:, :, None], side, ranks, np.arange(120))
    ranked = rate_ranked(RankedResults(names(6), ("g",), (alone,)))
    teams = rate_teams(TeamResults(names(6), ("g",), tuple("wxyz"), (table,)))
    assert teams.elo == pytest.approx(ranked.elo, abs=1e-9)
    assert teams.half == pytest.approx(ranked.half, abs=1e-9)
    assert list(teams.seats["g"].values()) == [pytest.approx(worth) for worth in ranked.seats["g"].values()]


def test_agrees_with_bfgs() -> None:
    """The posterior by its definition, game by game."""
    results = simulated(np.random.default_rng(2), np.array([0.0, 100.0, -100.0, 50.0, 200.0, -50.0]), 150)
    table, prior = results.tables[0], Prior()

    def loss(x: Floats) -> float:
        padded = np.append(x[:6], 0.0)
        worth = np.exp(padded[table.members].sum(axis=2) + x[6:8])
        tie = np.exp(x[8]) * np.sqrt(worth.prod(axis=1))
        won = np.where(table.ranks[:, 0] < table.ranks[:, 1], worth[:, 0], worth[:, 1])
        seen = np.where(table.ranks[:, 0] == table.ranks[:, 1], tie, won)
        told = float(np.log(seen / (worth.sum(axis=1) + tie)).sum())
        total = float((x[:6] ** 2).sum()) / 2 / (prior.strength / ELO) ** 2
        total += float((x[6:8] ** 2).sum()) / (prior.seat / ELO) ** 2
        return float(total + (x[8] - prior.draw_mean) ** 2 / 2 / prior.draw**2 - told)

    found = minimize(loss, np.zeros(9), method="BFGS", options={"gtol": 1e-7}).x
    rated = rate_teams(results)
    assert rated.elo - CENTER == pytest.approx(ELO * (found[:6] - found[:6].mean()), abs=0.01)
    average = found[6] - found[7] + (2 - 3) * found[:6].mean()
    assert rated.seats["g"]["mafia"][0] == pytest.approx(ELO * average, abs=0.01)


def test_the_side_is_worth_what_it_is_to_the_average() -> None:
    rng = np.random.default_rng(3)
    strength = rng.normal(0, 150, 9)
    strength -= strength.mean()
    rated = rate_teams(simulated(rng, strength, 4000))
    assert np.abs(rated.elo - CENTER - strength).max() < 45
    worth, half = rated.seats["g"]["mafia"]
    assert abs(worth - (MAFIA - TOWN)) < 1.5 * half
    assert half < 20
    assert rated.seats["g"]["town"] == pytest.approx((-worth, half))


def test_everybody_as_everything_on_one_seed_takes_the_luck_away() -> None:
    results = simulated(np.random.default_rng(4), np.linspace(-150, 150, 8), 400, luck=500, swaps=5)
    together = rate_teams(results)
    alone = rate_teams(results._replace(tables=(results.tables[0]._replace(cluster=np.arange(2000)),)))
    assert together.method == alone.method == "clustered"
    assert (together.half < 0.95 * alone.half).all()


def test_more_than_two_sides_and_several_games() -> None:
    sides = {"red": ["a", "b"], "green": ["c"], "blue": ["d", "e", "f"]}
    rows: list[Row] = [("Quiz", sides, [3.0, 1.0, 1.0], 0), ("Quiz", sides, "blue", 1)]
    rows += [
        ("Quiz", {"red": ["a"], "blue": ["d"]}, "draw", 2),
        ("Spies", {"us": ["a", "c"], "them": ["b", "d"]}, "us", 3),
    ]
    rated = rate_teams(TeamResults.of(rows, players=["z"]))
    assert rated.players == ("z", "a", "b", "c", "d", "e", "f")
    assert rated.flags[0] == ("no games",)
    assert rated.wins.tolist() == [0, 2, 1, 1, 1, 1, 1]
    assert rated.draws.tolist() == [0, 1, 0, 0, 1, 0, 0]
    assert rated.losses.tolist() == [0, 1, 2, 2, 2, 1, 1]
    assert list(rated.seats["Quiz"]) == ["red of 2", "blue of 2", "red of 3", "green of 3", "blue of 3"]
    assert list(rated.seats["Spies"]) == ["us", "them"]
    assert len(set(rated.groups[1:])) == 1


def test_players_no_game_tells_apart_are_flagged() -> None:
    rows: list[Row] = [("g", {"x": ["a", "b"], "y": ["c", "d"]}, "x", k) for k in range(30)]
    rows += [("g", {"x": ["a", "c"], "y": ["d", "e"]}, "y", k) for k in range(30, 60)]
    rows += [("g", {"x": ["s", "t"], "y": ["a", "c"]}, "draw", k) for k in range(60, 90)]
    rated = rate_teams(TeamResults.of(rows))
    flagged = {name for name, words in zip(rated.players, rated.flags, strict=True) if TOGETHER in words}
    assert flagged == {"s", "t"}
    assert rated.difference("s", "t")[0] == pytest.approx(0, abs=1e-6)
    assert rated.difference("s", "t")[1] > 500, "only the prior tells them apart"


HOSTILE: dict[str, list[tuple[dict[str, list[str]], str]]] = {
    "one game": [({"x": ["a", "b"], "y": ["c"]}, "x")],
    "all draws": [({"x": ["a", "b"], "y": ["c", "d"]}, "draw"), ({"x": ["a", "c"], "y": ["b", "d"]}, "draw")] * 60,
    "undefeated": [({"x": ["a", "b"], "y": ["c", "d"]}, "x"), ({"x": ["c", "b"], "y": ["a", "d"]}, "y")] * 60,
    "one side always wins": [({"x": ["a", "b"], "y": ["c"]}, "x"), ({"x": ["a", "c"], "y": ["b"]}, "x")] * 60,
    "disconnected": [({"x": ["a", "b"], "y": ["c"]}, "x"), ({"x": ["s"], "y": ["t", "u"]}, "draw")] * 40,
    "duplicates": [({"x": ["a", "b"], "y": ["c"]}, "x")] * 5000 + [({"x": ["a", "b"], "y": ["c"]}, "y")] * 5000,
    "a player against himself": [({"x": ["a", "a"], "y": ["a"]}, "x"), ({"x": ["a", "b"], "y": ["a"]}, "draw")] * 20,
    "ten against one": [({"x": [f"p{k}" for k in range(10)], "y": ["q"]}, "y"), ({"x": ["q"], "y": ["p1"]}, "x")] * 5,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("method", ["auto", "fisher", "clustered"])
@pytest.mark.parametrize("cluster", [None, 0])
def test_hostile_results_give_finite_numbers(name: str, method: Any, cluster: int | None) -> None:
    rows = [("g", *row, number if cluster is None else cluster) for number, row in enumerate(HOSTILE[name])]
    rated = rate_teams(TeamResults.of(rows), method)
    seats = np.array([worth for game in rated.seats.values() for worth in game.values()])
    for numbers in (rated.elo, rated.half, rated.covariance, seats, rated.standing.beats):
        assert np.isfinite(numbers).all()
    assert (rated.half > 0).all(), "no certainty from nothing"
    assert np.abs(rated.elo - CENTER).max() < 3000


def test_flags() -> None:
    rows = [("g", *row, number) for number, row in enumerate(HOSTILE["undefeated"])]
    rated = rate_teams(TeamResults.of(rows))
    assert dict(zip(rated.players, rated.flags, strict=True))["a"] == ("undefeated",)
    apart = rate_teams(TeamResults.of([("g", *row, k) for k, row in enumerate(HOSTILE["disconnected"])]))
    assert all("separate group" in words for words in apart.flags)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("g", {"x": ["a"], "y": ["b"]}, "tie", 0)], "outcome 'tie': allowed are x, y, draw"),
        ([("g", {"x": ["a"], "y": ["b"]}, [1.0], 0)], "2 sides and 1 returns"),
        ([("g", {"x": ["a"], "y": ["b"]}, [1.0, np.nan], 0)], "a return is NaN"),
        ([("g", {"x": ["a"], "y": []}, "x", 0)], "a side without players"),
        ([("g", {"x": ["a", "b"]}, "x", 0)], "one side alone"),
        ([], "nobody played"),
    ],
)
def test_bad_rows(rows: list[Row], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rate_teams(TeamResults.of(rows))


def test_bad_columns() -> None:
    good = simulated(np.random.default_rng(0), np.zeros(5), 4)
    table = good.tables[0]
    for bad, message in (
        (table._replace(game=np.zeros(3, dtype=np.int64)), "3 games and 4 rows"),
        (table._replace(cluster=np.zeros(3, dtype=np.int64)), "columns of"),
        (table._replace(members=np.full((4, 2, 1), 9)), "a player's number is outside 0 to 4"),
    ):
        with pytest.raises(ValueError, match=message):
            rate_teams(good._replace(tables=(bad,)))


def covered(simulations: int, games: int, players: int = 9, **how: Any) -> tuple[float, float]:
    """The shares of true ratings, and of true differences to the first player, inside their 95 % intervals."""
    rating, difference = [], []
    for seed in range(simulations):
        rng = np.random.default_rng(seed)
        strength = rng.normal(0, 150, players)
        true = rate_teams(simulated(rng, strength, 4_000, **how)).elo if how.get("luck") else strength
        rated = rate_teams(simulated(rng, strength, games, **how))
        rating += (np.abs(rated.elo - CENTER - (true - true.mean())) <= rated.half).tolist()
        for other in range(1, players):
            found, half = rated.difference("p0", f"p{other}")
            difference.append(abs(found - (true[0] - true[other])) <= half)
    return float(np.mean(rating)), float(np.mean(difference))


SCENARIOS: dict[str, dict[str, Any]] = {
    "plain": {"games": 500},
    "few games": {"games": 60},
    "luck of the seed, everybody as everything": {"games": 100, "luck": 300.0, "swaps": 5},
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
