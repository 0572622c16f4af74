"""What is told beside the ratings of two-player results: where one number for each agent does not fit, and what does.

Nash averaging and the maximal lottery (`arena.tournaments.ratings.equilibrium`), the share of cycles, the clone test,
and the pairs that surprise most. All but the lottery, which counts votes, allow for who had which seat.

>>> from arena.tournaments.ratings import Results, rate
>>> beats = [("rock", "scissors"), ("scissors", "paper"), ("paper", "rock")]
>>> results = Results.of([("RPS", *pair, "first", seed) for pair in beats for seed in range(20)])
>>> told = beside(results, rate(results))
>>> told.nash.round(3).tolist(), round(told.cycle, 3), round(told.cycle_noise, 1)
([0.333, 0.333, 0.333], 1.0, 0.3)
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.ratings.davidson import ELO, Cells, Prior, fit
from arena.tournaments.ratings.equilibrium import equilibrium
from arena.tournaments.ratings.newton import newton
from arena.tournaments.ratings.pairs import Ratings, Results
from arena.tournaments.ratings.sandwich import renumbered

__all__ = ["Beside", "Residual", "beside", "cycle_share"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

COPIES = 5
"""How many more of an agent the clone test adds."""
_RESIDUALS = 20
_SIMULATED = 400_000  # pairs in all simulated tournaments together
_FEW = 20  # clusters, below which their scatter is not estimated
_ALIKE = 0.25  # least design effect: players who repeat themselves scatter not at all, which proves nothing
_LEAST = 1e-12  # chance that is told from none; anchors may be a hundred thousand points apart
_FREE = 0.02  # share of its variance that a pair must have beyond what the ratings took from it


class Residual(NamedTuple):
    """A pair whose games differ from what the ratings say of them."""

    first: int
    """Index into `Results.players`."""
    second: int
    games: int
    expected: float
    """Score of the first, 0 to 1."""
    seen: float
    z: float
    """The difference in standard errors; 0 where the pair's games alone made the ratings."""


class Beside(NamedTuple):
    """What is told beside the ratings; arrays are in the order of `Results.players`."""

    nash: Floats
    """Weight in the equilibrium of the game of choosing an agent for its expected score (Nash averaging)."""
    skill: Floats
    """Expected score against that equilibrium: 0.5 for all that are in it, less for the others."""
    lottery: Floats
    """Weight in the maximal lottery: the same game for margins, games won less games lost between the two."""
    cycle: float
    """Share of what is seen between pairs that no one number for each agent can tell, 0 to 1."""
    cycle_noise: float
    """What chance alone gives of it, on average, if the ratings are the whole truth."""
    clones: Floats
    """How far the others' ratings move against each other, at most, in Elo, if this agent is there five more times."""
    residuals: tuple[Residual, ...]
    """The most surprising pairs first."""


class _Pairs(NamedTuple):
    """What is known of every pair that met, `a` < `b`; scores are `a`'s."""

    a: Ints
    b: Ints
    games: Floats
    margin: Floats
    """Games won less games lost."""
    expected: Floats
    """Points in all, in the seats that they had."""
    seen: Floats
    variance: Floats
    """Of the points seen, if games are independent."""
    neutral: Floats
    """Expected score where no seat is worth anything."""
    tie: Floats
    """exp(draw parameter)."""
    of_cell: Ints
    """The pair of each cell."""


def beside(results: Results, ratings: Ratings, *, most: int = _RESIDUALS, seed: int = 0) -> Beside:
    """Work it out of two-player results and their ratings; `most`: how many surprising pairs to name.

    A score of a pair is what is seen, the seats' worth taken out, and one more game that ends as the ratings expect: so
    pairs of few games, or none, are finite. Agents of different groups are taken for equal. `seed`: of the simulation
    behind `cycle_noise`.
    """
    cells = results.cells()
    fitted = fit(cells)
    n, g = cells.players, cells.games
    seats = np.array([next(iter(ratings.seats[name].values()))[0] for name in results.games])
    draw = fitted.parameters[n + g :]
    probability = _davidson(
        (ratings.elo[cells.first] - ratings.elo[cells.second] + seats[cells.game]) / ELO, draw[cells.game]
    )
    pairs = _pairs(cells, probability, ratings.elo, draw)
    score = _scores(pairs, ratings)
    nash = equilibrium(np.round((score - score.T) / 2, 12))  # rounding errors are nobody's advantage
    design = _design(results, cells, pairs, probability)
    return Beside(
        nash,
        score @ nash,
        equilibrium(_square(n, pairs, pairs.margin)),
        _cycle(n, pairs, pairs.seen),
        _noise(cells, pairs, probability, design, seed),
        _clones(cells, fitted.parameters, ratings.groups),
        _residuals(pairs, design, np.asarray(np.linalg.inv(fitted.hessian), dtype=np.float64), most),
    )


def _davidson(d: Floats, c: Floats) -> Floats:
    """P(first wins, draw, second wins), shape (3, rows)."""
    from scipy.special import softmax

    return np.asarray(softmax(np.stack([d / 2, c, -d / 2]), axis=0), dtype=np.float64)


def _pairs(cells: Cells, probability: Floats, elo: Floats, draw: Floats) -> _Pairs:
    n, swapped = cells.players, cells.first > cells.second
    key, of_cell = np.unique(
        np.where(swapped, cells.second * n + cells.first, cells.first * n + cells.second), return_inverse=True
    )
    size, sign = len(key), np.where(swapped, -1.0, 1.0)
    games = cells.counts.sum(axis=1)
    edge = probability[0] - probability[2]

    def summed(values: Floats) -> Floats:
        return np.asarray(np.bincount(of_cell, values, size), dtype=np.float64)

    total, margin = summed(games), summed(sign * (cells.counts[:, 0] - cells.counts[:, 2]))
    tie = summed(games * np.exp(draw[cells.game])) / total
    a, b = key // n, key % n
    neutral = _davidson((elo[a] - elo[b]) / ELO, np.log(tie))
    return _Pairs(
        a,
        b,
        total,
        margin,
        (total + summed(sign * games * edge)) / 2,
        (total + margin) / 2,
        summed(games * (probability[0] + probability[2] - edge**2)) / 4,
        (1 + neutral[0] - neutral[2]) / 2,
        tie,
        of_cell.astype(np.int64),
    )


def _score(pairs: _Pairs, seen: Floats) -> Floats:
    """What `a` scores against `b` without seats, of points seen, shape (..., pairs): above 0 and below 1."""
    score = pairs.neutral + (seen - pairs.expected) / (pairs.games + 1)
    least = np.maximum(np.minimum(pairs.neutral, 1 - pairs.neutral) / (pairs.games + 1), _LEAST)
    return np.asarray(np.clip(score, least, 1 - least), dtype=np.float64)


def _scores(pairs: _Pairs, ratings: Ratings) -> Floats:
    """What every row scores against every column, shape (n, n)."""
    from scipy.special import expit

    elo, groups = ratings.elo, ratings.groups
    unmet = np.where(groups[:, None] == groups, expit((elo[:, None] - elo) / ELO), 0.5)
    met = _score(pairs, pairs.seen)
    unmet[pairs.a, pairs.b], unmet[pairs.b, pairs.a] = met, 1 - met
    return np.asarray(unmet, dtype=np.float64)


def _square(n: int, pairs: _Pairs, values: Floats) -> Floats:
    """Antisymmetric, shape (n, n)."""
    square = np.zeros((n, n))
    square[pairs.a, pairs.b], square[pairs.b, pairs.a] = values, -values
    return square


def cycle_share(players: int, a: Ints, b: Ints, flow: Floats, games: Floats) -> Floats:
    """How much of `flow` from `a` to `b`, shape (..., pairs), no potential explains, 0 to 1, shape (...,).

    Flows are squared and weighted by games; the potential is the least-squares one of HodgeRank (Jiang, Lim, Yao & Ye,
    *Statistical ranking and combinatorial Hodge theory*, Mathematical Programming 127 (2011)). 0 where nothing flows.
    """
    weight = np.zeros((players, players))
    np.add.at(weight, (a, b), games)
    np.add.at(weight, (b, a), games)
    laplacian = np.diag(weight.sum(axis=1)) - weight
    whole = np.atleast_2d(flow)
    square = np.zeros((len(whole), players, players))
    square[:, a, b], square[:, b, a] = whole * games, -whole * games
    potential = square.sum(axis=2) @ np.linalg.pinv(laplacian, hermitian=True)
    rest = whole - (potential[:, a] - potential[:, b])
    total = (games * whole**2).sum(axis=1)
    share = np.divide((games * rest**2).sum(axis=1), total, out=np.zeros(len(whole)), where=total > 0)
    return np.asarray(np.clip(share, 0.0, 1.0), dtype=np.float64)


def _cycle(n: int, pairs: _Pairs, seen: Floats) -> float:
    """The mean share of cycles, of points seen, shape (..., pairs)."""
    return float(cycle_share(n, pairs.a, pairs.b, _strength(_score(pairs, seen), pairs.tie), pairs.games).mean())


def _strength(score: Floats, tie: Floats) -> Floats:
    """The difference of strengths at which Davidson's model expects this score: the scale on which ratings add up."""
    half = tie * (score - 0.5)
    root = (half + np.sqrt(half**2 + 4 * score * (1 - score))) / (2 * (1 - score))
    return np.asarray(2 * np.log(root), dtype=np.float64)


def _noise(cells: Cells, pairs: _Pairs, probability: Floats, design: float, seed: int) -> float:
    """The mean share of cycles in tournaments with the same games that go by the ratings.

    Points scatter by `design` times the variance of independent games.
    """
    rng = np.random.default_rng(seed)
    size = len(pairs.a)
    times = int(np.clip(_SIMULATED // max(size, 1), 20, 400))
    games = np.rint(cells.counts.sum(axis=1)).astype(np.int64)
    sign = np.where(cells.first < cells.second, 0.5, -0.5)
    wins = rng.binomial(games, probability[0], (times, len(games)))
    losses = rng.binomial(games - wins, np.clip(probability[2] / np.maximum(1 - probability[0], 1e-300), 0, 1))
    margin = sign * (wins - losses)
    seen = np.stack([np.bincount(pairs.of_cell, row, size) for row in margin]) + pairs.games / 2
    return _cycle(cells.players, pairs, pairs.expected + design**0.5 * (seen - pairs.expected))


def _clones(cells: Cells, parameters: Floats, groups: Ints) -> Floats:
    """What the others' ratings move, at most, about their own mean, with five more of each agent.

    Copies have the original's results, and its rating by symmetry: its games count six times. Seats and draws are held
    as they are.
    """
    n, g = cells.players, cells.games
    seat, tie = parameters[n : n + g][cells.game], np.exp(parameters[n + g :])[cells.game]
    moved = np.zeros(n)
    for k in range(n):
        others = (groups == groups[k]) & (np.arange(n) != k)
        if others.sum() > 1:
            change = (_refit(cells, parameters[:n], seat, tie, k) - parameters[:n])[others]
            moved[k] = ELO * float(np.abs(change - change.mean()).max())
    return moved


def _refit(cells: Cells, start: Floats, seat: Floats, tie: Floats, copied: int) -> Floats:
    """Strengths where all that is known of one player is known six times."""
    n, a, b = cells.players, cells.first, cells.second
    often = np.where((a == copied) | (b == copied), 1.0 + COPIES, 1.0)
    games, margin = often * cells.counts.sum(axis=1), often * (cells.counts[:, 0] - cells.counts[:, 2])
    precision = np.full(n, (Prior().strength / ELO) ** -2)
    precision[copied] *= 1 + COPIES

    def loss(x: Floats) -> float:
        d = x[a] - x[b] + seat
        top = np.abs(d) / 2
        log_z = top + np.log1p(np.exp(-2 * top) + tie * np.exp(-top))
        return float((precision * x**2).sum() / 2 + (games * log_z - margin * d / 2).sum())

    def derivatives(x: Floats) -> tuple[Floats, Floats]:
        up = np.exp((x[a] - x[b] + seat) / 2)
        down = 1 / up
        z = up + down + tie
        edge = (up - down) / z
        off = (margin - games * edge) / 2
        gradient = precision * x - np.bincount(a, off, n) + np.bincount(b, off, n)
        square = np.bincount(a * n + b, games * ((up + down) / z - edge**2) / 4, n * n).reshape(n, n)
        square += square.T
        return gradient, np.diag(precision + square.sum(axis=1)) - square

    return newton(loss, derivatives, start).parameters


def _residuals(pairs: _Pairs, design: float, covariance: Floats, most: int) -> tuple[Residual, ...]:
    """Score tests of every pair: what the ratings took from it is not held against them (leverage)."""
    own = np.diag(covariance)
    known = own[pairs.a] + own[pairs.b] - 2 * covariance[pairs.a, pairs.b]
    free = 1 - pairs.variance * known
    variance = design * np.maximum(pairs.variance, _LEAST) * np.maximum(free, _FREE)
    z = np.where(free > _FREE, (pairs.seen - pairs.expected) / np.sqrt(np.maximum(variance, 1e-300)), 0.0)
    return tuple(
        [
            Residual(
                int(pairs.a[k]),
                int(pairs.b[k]),
                round(float(pairs.games[k])),
                float(pairs.expected[k] / pairs.games[k]),
                float(pairs.seen[k] / pairs.games[k]),
                float(z[k]),
            )
            for k in np.argsort(-np.abs(z), kind="stable")[:most]
        ]
    )


def _design(results: Results, cells: Cells, pairs: _Pairs, probability: Floats) -> float:
    """How much points of a pair scatter between its clusters, beside what independent games would: one figure for all.

    1 where there are few clusters; pairs of seats that are swapped on one seed have less, repeated games more.
    """
    n = cells.players
    place = np.searchsorted(
        _key(cells.game, cells.first, cells.second, n), _key(results.game, results.first, results.second, n)
    )
    pair = pairs.of_cell[place]
    sign = np.where(results.first < results.second, 0.5, -0.5)
    weight = np.ones(len(place)) if results.weight is None else results.weight
    edge = (probability[0] - probability[2])[place]
    points = weight * sign * ((results.outcome == 0) - 1.0 * (results.outcome == 2) - edge)
    chance = weight * (probability[0] + probability[2])[place] / 4 - weight * edge**2 / 4
    member = _members(pair, results.cluster)
    size = int(member.max()) + 1
    of, times = np.zeros(size, dtype=np.int64), np.zeros(size)
    of[member], times[member] = pair, 1.0 if results.times is None else results.times
    points, chance = np.bincount(member, points), np.bincount(member, chance)
    size = len(pairs.a)
    clusters = np.bincount(of, times, size)
    mean = np.bincount(of, times * points, size) / clusters
    expected = float((times * chance * (1 - 1 / clusters[of])).sum())
    if (clusters - 1).sum() < _FEW or expected <= 0:
        return 1.0
    return max(float((times * (points - mean[of]) ** 2).sum()) / expected, _ALIKE)


def _members(pair: Ints, cluster: Ints) -> Ints:
    """A number for every row: rows of one pair and cluster share it. Some numbers may have no row.

    A cluster is nearly always about one pair, and its number will do; only rows of a second pair are sorted.
    """
    cluster = renumbered(cluster)
    size = int(cluster.max()) + 1
    owner = np.zeros(size, dtype=np.int64)
    owner[cluster] = pair
    member = cluster.copy()
    other = np.flatnonzero(owner[cluster] != pair)
    member[other] = size + np.unique(pair[other] * size + cluster[other], return_inverse=True)[1]
    return member


def _key(game: Ints, first: Ints, second: Ints, players: int) -> Ints:
    return (game * players + first) * players + second
