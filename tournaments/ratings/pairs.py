"""Ratings of two-player results on the Elo scale, with 95 % intervals and the reasons to distrust them.

One maximum-likelihood fit (`arena.tournaments.ratings.davidson`) over all games; a group of players that met each other
averages 1000. Usable alone:

>>> rows = [("Nim", "ann", "bob", "first", seed) for seed in range(9)] + [("Nim", "bob", "ann", "draw", 9)]
>>> table = rate(Results.of(rows))
>>> table.players, [round(elo) for elo in table.elo], table.flags
(('ann', 'bob'), [1226, 774], ((), ()))
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.ratings.davidson import ELO, Cells, Fit, Prior, clustered, fit
from arena.tournaments.ratings.standing import Standing, standing

__all__ = ["CENTER", "OUTCOMES", "Mean", "Ratings", "Results", "mean_returns", "rate", "t_quantile"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Outcome = Literal["first", "draw", "second"]
Method = Literal["auto", "fisher", "clustered"]

OUTCOMES: tuple[Outcome, ...] = ("first", "draw", "second")
CENTER = 1000.0
FIRST = "first seat"
Z95 = 1.959963984540054
_SAME = 1e-9  # relative difference of means that are equal but for rounding
_FEW = 50  # games of a player below which the clustered estimate is too narrow


class Results(NamedTuple):
    """Two-player results in columns; numbers index `players` and `games`."""

    players: tuple[str, ...]
    games: tuple[str, ...]
    game: Ints
    first: Ints
    second: Ints
    outcome: Ints
    """Index into `OUTCOMES`."""
    cluster: Ints
    """Games that share a seed depend on each other: they have one number."""
    weight: Floats | None = None
    """What each game tells beside the others, 0 to 1; None: all are new."""
    times: Floats | None = None
    """How many clusters like its own a row stands for, the same for all rows of a cluster; None: 1."""

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str, str, str, object]], players: Sequence[str] = ()) -> "Results":
        """From rows (game, first player, second player, "first" | "draw" | "second", cluster).

        `players`: those to list first, played or not. Raises ValueError for another outcome, or a player who
        meets himself.
        """
        listed = list(rows)
        names = tuple(dict.fromkeys([*players, *[name for row in listed for name in row[1:3]]]))
        games = tuple(dict.fromkeys([row[0] for row in listed]))
        for row in listed:
            if row[3] not in OUTCOMES:
                raise ValueError(f"outcome {row[3]!r}: allowed are {', '.join(OUTCOMES)}")
            if row[1] == row[2]:
                raise ValueError(f"{row[1]!r} cannot play against itself")
        tables = (games, names, names, OUTCOMES, tuple(dict.fromkeys([row[4] for row in listed])))
        numbers = [{name: number for number, name in enumerate(table)} for table in tables]
        columns = [np.array([numbers[k][row[k]] for row in listed], dtype=np.int64) for k in range(5)]
        return cls(names, games, columns[0], columns[1], columns[2], columns[3], columns[4])

    def cells(self) -> Cells:
        """The counts that the fit needs."""
        sizes = len(self.players), len(self.games)
        return Cells.of(*sizes, self.game, self.first, self.second, self.outcome, self.counted)

    @property
    def counted(self) -> Floats | None:
        """How many games each row is worth, weights and times together; None: one."""
        if self.weight is None or self.times is None:
            return self.times if self.weight is None else self.weight
        return self.weight * self.times

    def told(self) -> Floats:
        """How many games each player has, every one as much as its weight."""
        n, counted = len(self.players), self.counted
        return np.asarray(np.bincount(self.first, counted, n) + np.bincount(self.second, counted, n), dtype=np.float64)


class Ratings(NamedTuple):
    """A rating table, players in the order of the results."""

    players: tuple[str, ...]
    elo: Floats
    half: Floats
    """Half the width of the 95 % interval, relative to the mean of the player's group."""
    wins: Ints
    draws: Ints
    losses: Ints
    groups: Ints
    """Players with different numbers never met, not even through others: their ratings cannot be compared."""
    flags: tuple[tuple[str, ...], ...]
    """What there is to say against each number."""
    covariance: Floats
    """Of `elo`, shape (players, players)."""
    seats: dict[str, dict[str, tuple[float, float]]]
    """By game and seat ("first seat", where there are two): Elo points that it is worth, and half of the interval."""
    method: str
    """How the intervals were made: "fisher", "clustered" or "bootstrap"."""
    standing: Standing
    """Rank intervals, P(best), P(A > B) and significance groups."""

    @property
    def played(self) -> Ints:
        """Games of each player."""
        return self.wins + self.draws + self.losses

    def difference(self, a: str, b: str) -> tuple[float, float]:
        """Elo of `a` over `b`, and half of its 95 % interval."""
        i, j = self.players.index(a), self.players.index(b)
        if self.groups[i] != self.groups[j]:
            raise ValueError(f"{a!r} and {b!r} never met, not even through others")
        cov = self.covariance
        variance = float(cov[i, i] + cov[j, j] - 2 * cov[i, j])
        return float(self.elo[i] - self.elo[j]), Z95 * max(variance, 0.0) ** 0.5


def rate(results: Results, method: Method = "auto", prior: Prior | None = None) -> Ratings:
    """Fit all results at once.

    Intervals: from the curvature of the posterior ("fisher") where a player has under 50 games, from the scatter
    between clusters ("clustered") otherwise. Raises ValueError if nobody played.
    """
    if not len(results.outcome):
        raise ValueError("nobody played: there is nothing to rate")
    cells = results.cells()
    fitted = fit(cells, prior)
    tally, played = _tally(results), results.told()
    chosen = method if method != "auto" else "fisher" if played[played > 0].min() < _FEW else "clustered"
    covariance = _covariance(results, cells, fitted, chosen)
    groups, flags = _flags(results, cells, tally)
    center = _center(groups)
    n, g = cells.players, cells.games
    elo = CENTER + ELO * center @ fitted.parameters[:n]
    shown = ELO**2 * center @ covariance[:n, :n] @ center.T
    seat_sd = ELO * np.sqrt(np.diag(covariance)[n : n + g])
    seat = ELO * fitted.parameters[n : n + g]
    return Ratings(
        results.players,
        elo,
        Z95 * np.sqrt(np.maximum(np.diag(shown), 0.0)),
        *tally,
        groups,
        flags,
        shown,
        {name: {FIRST: (float(seat[k]), Z95 * float(seat_sd[k]))} for k, name in enumerate(results.games)},
        chosen,
        standing(elo, shown, groups),
    )


def _covariance(results: Results, cells: Cells, fitted: Fit, method: str) -> Floats:
    if method == "fisher":
        return np.asarray(np.linalg.inv(fitted.hessian), dtype=np.float64)
    return clustered(fitted, cells, *results[2:])


def _tally(results: Results) -> tuple[Ints, Ints, Ints]:
    """Wins, draws and losses of every player."""
    n, times = len(results.players), results.times

    def tallied(player: Ints, k: int) -> Ints:
        mine = results.outcome == k
        return np.rint(np.bincount(player[mine], None if times is None else times[mine], n)).astype(np.int64)

    first, second = [[tallied(player, k) for k in range(3)] for player in (results.first, results.second)]
    return first[0] + second[2], first[1] + second[1], first[2] + second[0]


def _center(groups: Ints) -> Floats:
    """The matrix that takes the mean of its group from every player."""
    same = (groups[:, None] == groups[None, :]).astype(np.float64)
    center: Floats = np.eye(len(groups)) - same / same.sum(axis=1, keepdims=True)
    return center


def _flags(results: Results, cells: Cells, tally: tuple[Ints, Ints, Ints]) -> tuple[Ints, tuple[tuple[str, ...], ...]]:
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    n = cells.players
    scored = np.zeros((n, n))
    np.add.at(scored, (cells.first, cells.second), cells.counts[:, 0] + cells.counts[:, 1])
    np.add.at(scored, (cells.second, cells.first), cells.counts[:, 2] + cells.counts[:, 1])
    graph = csr_matrix(scored)
    groups = connected_components(graph, connection="weak")[1].astype(np.int64)
    mutual = connected_components(graph, connection="strong")[1]
    wins, draws, losses = tally
    played = wins + draws + losses > 0
    inner = (wins + draws > 0) & (draws + losses > 0)
    apart = len(np.unique(groups[played])) > 1
    flags = [_said(k, tally, len(np.unique(mutual[inner & (groups == groups[k])])) > 1, apart) for k in range(n)]
    return groups, tuple(flags)


def _said(player: int, tally: tuple[Ints, Ints, Ints], one_sided: bool, apart: bool) -> tuple[str, ...]:
    """`one_sided`: some of the group never lost a point to others of it, so only the prior says how far ahead."""
    wins, draws, losses = [int(counts[player]) for counts in tally]
    if not wins + draws + losses:
        return ("no games",)
    if not draws + losses:
        said = ["undefeated"]
    elif not wins + draws:
        said = ["winless"]
    else:
        said = ["one-sided"] * one_sided
    return (*said, *["separate group"] * apart)


class Mean(NamedTuple):
    """The mean return of one player, with half of its 95 % interval (None: no block differs from another)."""

    mean: float
    half: float | None
    games: int


def mean_returns(players: int, player: Ints, cluster: Ints, value: Floats) -> list[Mean | None]:
    """The mean of every player's returns; games of one cluster count as one observation of their mean.

    Rows are (player, cluster, return). None for a player without rows. The interval is the ratio estimator's with
    Student's t; blocks that are all alike say nothing about scatter, and there is none.
    """
    means: list[Mean | None] = []
    for k in range(players):
        mine = player == k
        if not mine.any():
            means.append(None)
            continue
        _, member = np.unique(cluster[mine], return_inverse=True)
        games = np.bincount(member).astype(np.float64)
        mean = float(value[mine].mean())
        off = np.bincount(member, value[mine]) - mean * games
        half = None
        if (count := len(games)) > 1 and np.ptp(off / games) > _SAME * max(1.0, abs(mean)):
            variance = float((off**2).sum()) / games.sum() ** 2 * count / (count - 1)
            half = t_quantile(count - 1) * variance**0.5
        means.append(Mean(mean, half, int(games.sum())))
    return means


def t_quantile(freedom: int) -> float:
    """Student's t for a two-sided 95 % interval."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975))
