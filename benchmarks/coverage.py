"""How often 95 % intervals hold what they should, in simulated tournaments whose truth is known.

Beside them, in the same tournaments, stands the model of arena-rank and FastChat: Bradley-Terry in which a draw is half
a win, without seats, with the sandwich of single games. It estimates another scale where there are draws, so its
ratings and intervals are stretched to fit the truth as well as they can (a favour that no user can do it). Ranked games
and teams are turned into all their pairs for it, answers into a comparison of each two agents on each task.

Where a seed brings luck the truth is what endlessly many such games would give: luck draws ratings together, and no
table of results tells it from weaker differences of strength.
"""

import time
from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.ratings import Ratings, Results, rate
from arena.tournaments.ratings.davidson import ELO
from arena.tournaments.ratings.ranked import RankedResults, RankedTable, rate_ranked
from arena.tournaments.ratings.tasks import TaskResults, rate_tasks
from arena.tournaments.ratings.teams import TeamResults, TeamTable, rate_teams
from benchmarks.timing import Figure, Spread

__all__ = ["SCENARIOS", "Coverage", "intervals", "measure"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Random = np.random.Generator

LOW, HIGH = 0.93, 0.97
PLAYERS = 20
SPREAD = 200.0  # Elo, the standard deviation of strengths
SEAT = 80.0  # Elo that the first seat is worth
DRAW = -0.7  # draw parameter: about one game in five between equals
Z95 = 1.959963984540054
_RIDGE = 1e-5  # arena-rank's
_LEAST = 3  # simulations


class Simulated(NamedTuple):
    """A tournament: the truth in Elo, our ratings of it, and its rows (first, second, score of the first)."""

    truth: Floats
    rate: Callable[[], Ratings]
    rows: tuple[Ints, Ints, Floats]


class Coverage(NamedTuple):
    """What came of many simulations."""

    share: Spread
    """Of intervals that held the truth; its own 95 % interval, from the scatter between simulations."""
    rmse: float
    """Elo."""
    half: float
    """Mean half width of intervals, Elo."""
    simulations: int


def intervals(seconds: float) -> list[Figure]:
    """Every scenario for so many CPU seconds, both sides together."""
    return [_figure(name, *measure(name, seconds=seconds)) for name in SCENARIOS]


def measure(name: str, *, seconds: float = 0.0, simulations: int = _LEAST) -> tuple[Coverage, Coverage]:
    """Our intervals and the half-draw Bradley-Terry's, over as many simulations, or more while there are seconds."""
    ours: list[tuple[Floats, Floats]] = []
    peers: list[tuple[Floats, Floats]] = []
    start = time.process_time()
    while len(ours) < simulations or time.process_time() - start < seconds:
        made = SCENARIOS[name](np.random.default_rng([sum(map(ord, name)), len(ours)]))
        truth = made.truth - made.truth.mean()
        ratings = made.rate()
        ours.append((ratings.elo - ratings.elo.mean() - truth, ratings.half))
        elo, half = _half_draw(len(truth), *made.rows)
        stretch = float(elo @ truth / max(elo @ elo, 1e-9))
        peers.append((stretch * elo - truth, abs(stretch) * half))
    return _summed(ours), _summed(peers)


def _summed(results: list[tuple[Floats, Floats]]) -> Coverage:
    held = np.array([float((np.abs(off) <= half).mean()) for off, half in results])
    mean, error = float(held.mean()), Z95 * float(held.std(ddof=1)) / len(held) ** 0.5
    rmse = float(np.sqrt(np.mean([float((off**2).mean()) for off, _ in results])))
    half = float(np.mean([float(half.mean()) for _, half in results]))
    return Coverage(Spread(mean, mean - error, mean + error), rmse, half, len(results))


def _figure(name: str, ours: Coverage, peer: Coverage) -> Figure:
    over = f"above {HIGH:g}; " if ours.share.middle > HIGH else ""
    note = (
        f"{over}RMSE {ours.rmse:.1f} beside {peer.rmse:.1f} Elo, half widths {ours.half:.0f} beside {peer.half:.0f}, "
        f"{ours.simulations} simulations"
    )
    return Figure(name, "", ours.share.middle, peer.share.middle, ours.share, LOW, note=note)


def _half_draw(n: int, first: Ints, second: Ints, score: Floats) -> tuple[Floats, Floats]:
    """Bradley-Terry by Newton's method, and half the 95 % intervals about the mean by the sandwich of single rows."""
    x = np.zeros(n)
    center = np.eye(n) - 1 / n
    for _ in range(50):
        expected = 1 / (1 + np.exp(-(x[first] - x[second])))
        off = score - expected
        weight = expected * (1 - expected)
        square = np.zeros((n, n))
        for a, b, sign in ((first, first, 1), (second, second, 1), (first, second, -1), (second, first, -1)):
            np.add.at(square, (a, b), sign * weight)
        square += _RIDGE * np.eye(n)
        gradient = np.bincount(first, off, n) - np.bincount(second, off, n) - _RIDGE * x
        step = np.linalg.solve(square, gradient)
        x = x + step / max(1.0, float(np.abs(step).max()) / 2)
        if np.abs(step).max() < 1e-9:
            break
    meat = np.zeros((n, n))
    for a, b, sign in ((first, first, 1), (second, second, 1), (first, second, -1), (second, first, -1)):
        np.add.at(meat, (a, b), sign * off**2)
    bread = center @ np.linalg.inv(square)
    variance = np.diag(bread @ meat @ bread.T)
    return ELO * (center @ x), ELO * Z95 * np.sqrt(np.maximum(variance, 0.0))


def _strengths(rng: Random) -> Floats:
    return rng.normal(0, SPREAD, PLAYERS)


def _duels(
    rng: Random, first: Ints, second: Ints, cluster: Ints | None = None, luck: Floats | float = 0.0
) -> Simulated:
    """Games of two by Davidson's model; `luck`: Elo of the first seat beyond its usual worth, game by game."""
    truth = _strengths(rng)
    bounds = np.cumsum(_davidson(truth[first] - truth[second] + SEAT + luck), axis=0)
    outcome = (rng.random(len(first)) > bounds[:2]).sum(axis=0)
    own = np.arange(len(first)) if cluster is None else cluster
    names = tuple([f"p{k}" for k in range(PLAYERS)])
    results = Results(names, ("g",), np.zeros(len(first), dtype=np.int64), first, second, outcome, own)
    return Simulated(truth, lambda: rate(results), (first, second, 1 - outcome / 2))


def _davidson(edge: Floats) -> Floats:
    """P(first wins, draw, second wins), shape (3, games), of the first's edge in Elo."""
    weights = np.exp(np.stack([edge / ELO / 2, np.full(edge.shape, DRAW), -edge / ELO / 2]))
    return np.asarray(weights / weights.sum(axis=0), dtype=np.float64)


def _endless(truth: Floats, luck: float) -> Floats:
    """What endlessly many games of all pairs in both seats would give, where a seed brings so much luck."""
    first, second = np.array([(a, b) for a in range(PLAYERS) for b in range(PLAYERS) if a != b]).T
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    edge = (truth[first] - truth[second])[:, None] + SEAT + luck * nodes
    chance = _davidson(edge) @ weights / weights.sum()
    games = len(first)
    outcome = np.repeat(np.arange(3), games)
    names = tuple([f"p{k}" for k in range(PLAYERS)])
    first, second, game = np.tile(first, 3), np.tile(second, 3), np.zeros(3 * games, dtype=np.int64)
    every = Results(names, ("g",), game, first, second, outcome, np.arange(3 * games), times=1e6 * chance.ravel())
    return rate(every, "fisher").elo


def _opponents(rng: Random, first: Ints) -> Ints:
    return np.asarray((first + rng.integers(1, PLAYERS, len(first))) % PLAYERS, dtype=np.int64)


def balanced(rng: Random, games: int = 2000) -> Simulated:
    """Random opponents, each seat as often as the other."""
    first = np.repeat(np.arange(PLAYERS), games // PLAYERS)
    return _duels(rng, first, _opponents(rng, first))


def unbalanced(rng: Random) -> Simulated:
    """Half of the players sit first nine times in ten."""
    a = np.repeat(np.arange(PLAYERS), 100)
    b = _opponents(rng, a)
    eager = (a < PLAYERS // 2).astype(np.int64) - (b < PLAYERS // 2)
    swap = rng.random(len(a)) < np.array([0.5, 0.1, 0.9])[eager]
    return _duels(rng, np.where(swap, b, a), np.where(swap, a, b))


def skewed(rng: Random) -> Simulated:
    """Some pairs have a hundred times the games of others."""
    pairs = np.array(list(combinations(range(PLAYERS), 2)))
    weight = np.exp(rng.normal(0, 1.5, len(pairs)))
    chosen = pairs[rng.choice(len(pairs), 2000, p=weight / weight.sum())]
    chosen = rng.permuted(chosen, axis=1)
    return _duels(rng, chosen[:, 0], chosen[:, 1])


def paired(rng: Random) -> Simulated:
    """Two games on each seed with seats swapped; the seed favours the first seat by 400 Elo (standard deviation)."""
    a = np.repeat(np.arange(PLAYERS), 50)
    b = _opponents(rng, a)
    first, second = np.stack([a, b], axis=1).ravel(), np.stack([b, a], axis=1).ravel()
    made = _duels(rng, first, second, np.arange(2000) // 2, np.repeat(rng.normal(0, 400, 1000), 2))
    return made._replace(truth=_endless(made.truth, 400.0))


def few(rng: Random) -> Simulated:
    """20 games a player."""
    return balanced(rng, 200)


def ranked(rng: Random) -> Simulated:
    """500 games of four by Plackett-Luce, with seats that are worth something; whole rankings."""
    truth, seats = _strengths(rng), np.array([60.0, 20.0, -20.0, -60.0])
    agents = np.argsort(rng.random((500, PLAYERS)), axis=1)[:, :4]
    value = (truth[agents] + seats) / ELO + rng.gumbel(size=(500, 4))
    ranks = np.argsort(np.argsort(-value, axis=1), axis=1)
    game, cluster = np.zeros(500, dtype=np.int64), np.arange(500)
    names = tuple([f"p{k}" for k in range(PLAYERS)])
    results = RankedResults(names, ("g",), (RankedTable(game, agents, ranks, cluster),))
    pairs = np.array(list(combinations(range(4), 2))).T
    first, second = agents[:, pairs[0]].ravel(), agents[:, pairs[1]].ravel()
    score = (ranks[:, pairs[0]] < ranks[:, pairs[1]]).astype(np.float64).ravel()
    return Simulated(truth, lambda: rate_ranked(results), (first, second, score))


def teams(rng: Random) -> Simulated:
    """1,000 games of two against two, the first side worth something; no draws."""
    truth = _strengths(rng)
    members = np.argsort(rng.random((1000, PLAYERS)), axis=1)[:, :4].reshape(1000, 2, 2)
    edge = (truth[members].sum(axis=2) @ np.array([1.0, -1.0]) + SEAT) / ELO
    won = (rng.random(1000) < 1 / (1 + np.exp(-edge))).astype(np.int64)
    side = np.tile([0, 1], (1000, 1))
    ranks = np.stack([1 - won, won], axis=1)
    game, cluster = np.zeros(1000, dtype=np.int64), np.arange(1000)
    names = tuple([f"p{k}" for k in range(PLAYERS)])
    results = TeamResults(names, ("g",), ("x", "y"), (TeamTable(game, members, side, ranks, cluster),))
    first, second = np.repeat(members[:, 0], 2, axis=1).ravel(), np.tile(members[:, 1], (1, 2)).ravel()
    return Simulated(truth, lambda: rate_teams(results), (first, second, np.repeat(won, 4).astype(np.float64)))


def tasks(rng: Random) -> Simulated:
    """All players answer the same 100 questions, whose difficulty has a standard deviation of 300 Elo."""
    truth, difficulty = _strengths(rng), rng.normal(0, 300, 100)
    solved = (rng.random((PLAYERS, 100)) < 1 / (1 + np.exp(-(truth[:, None] - difficulty) / ELO))).astype(np.float64)
    agent, task = np.repeat(np.arange(PLAYERS), 100), np.tile(np.arange(100), PLAYERS)
    names = tuple([f"p{k}" for k in range(PLAYERS)])
    family = np.zeros(100, dtype=np.int64)
    results = TaskResults(names, ("g",), tuple(range(100)), family, agent, task, solved.ravel())
    pairs = np.array(list(combinations(range(PLAYERS), 2))).T
    score = (1 + solved[pairs[0]] - solved[pairs[1]]) / 2
    return Simulated(
        truth, lambda: rate_tasks(results), (np.repeat(pairs[0], 100), np.repeat(pairs[1], 100), score.ravel())
    )


SCENARIOS: dict[str, Callable[[Random], Simulated]] = {
    "balanced": balanced,
    "unbalanced seats": unbalanced,
    "skewed pair counts": skewed,
    "seed-paired, opening luck 400 Elo": paired,
    "20 games a player": few,
    "4-player ranked": ranked,
    "teams of two": teams,
    "tasks on a common set": tasks,
}
