"""Ratings of two-player results on the Elo scale, with 95 % intervals and the reasons to distrust them.

One penalised maximum-likelihood fit (`arena.tournaments.ratings.davidson`) over all games; a group of players that met
each other averages 1000, unless `anchors` say where it is. Luck that a seed gives both seats in turn draws ratings
together: they predict results of games with such luck. Usable alone:

>>> rows = [("Nim", "ann", "bob", "first", seed) for seed in range(9)] + [("Nim", "bob", "ann", "draw", 9)]
>>> table = rate(Results.of(rows))
>>> table.players, [round(elo) for elo in table.elo], table.flags
(('ann', 'bob'), [1226, 774], ((), ()))
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.ratings.anchors import CENTER, Anchors, anchored, belief, centering
from arena.tournaments.ratings.bootstrap import bootstrap, patterns
from arena.tournaments.ratings.davidson import ELO, Belief, Cells, Fit, Prior, fit
from arena.tournaments.ratings.flags import flags, groups_of, scored_of
from arena.tournaments.ratings.intervals import Method, covariance
from arena.tournaments.ratings.sandwich import Clusters, clustered
from arena.tournaments.ratings.standing import Standing, standing

__all__ = ["CENTER", "OUTCOMES", "Mean", "Method", "Ratings", "Results", "mean_returns", "rate", "t_quantile"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Outcome = Literal["first", "draw", "second"]
Seats = dict[str, dict[str, tuple[float, float]]]

OUTCOMES: tuple[Outcome, ...] = ("first", "draw", "second")
FIRST = "first seat"
Z95 = 1.959963984540054
_SAME = 1e-9  # relative difference of means that are equal but for rounding


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
        return self.indexed()[0]

    def indexed(self) -> tuple[Cells, Ints]:
        """The same, and the cell of every row."""
        sizes = len(self.players), len(self.games)
        return Cells.indexed(*sizes, self.game, self.first, self.second, self.outcome, self.counted)

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
    seats: Seats
    """By game and seat ("first seat", where there are two): Elo points that it is worth, and half of the interval."""
    method: str
    """How the intervals were made: "fisher", "clustered" or "bootstrap"."""
    standing: Standing
    """Rank intervals, P(best), P(A > B) and significance groups."""
    parameters: Floats | None = None
    """Of the model, in natural units: what a later fit of the same players and games may `start` from."""

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


def rate(
    results: Results,
    method: Method = "auto",
    prior: Prior | None = None,
    *,
    anchors: Anchors | None = None,
    start: Floats | None = None,
    replicates: int = 400,
) -> Ratings:
    """Fit all results at once.

    Intervals: from the scatter between clusters ("clustered"), from the curvature of the posterior ("fisher"), or from
    `replicates` of a "bootstrap" over clusters. "auto": clustered, but players with games in fewer than 5 clusters get
    the wider of that and the curvature's; it is called "fisher" where all are such. `anchors`: Elo, or (Elo, standard
    deviation), of players whose rating is known. `start`: `Ratings.parameters` of a similar table. Raises ValueError if
    nobody played, or for an anchor that is not there.
    """
    if not len(results.outcome):
        raise ValueError("nobody played: there is nothing to rate")
    fixed = anchored(results.players, anchors or {})
    cells, cell = results.indexed()
    groups = groups_of(cells)
    held = belief(groups, Belief.of(cells.players, cells.games, prior), fixed)
    fitted = fit(cells, start=start, belief=held)
    center = centering(groups, fixed)
    n = cells.players
    natural, chosen = _Rated(results, cells, cell, held, fitted, center).covariance(method, replicates)
    scaled = ELO**2 * natural
    half = Z95 * np.sqrt(np.maximum(np.diag(scaled), 0.0))
    elo, shown = CENTER + ELO * center @ fitted.parameters[:n], scaled[:n, :n]
    tally = _tally(results)
    return Ratings(
        results.players,
        elo,
        half[:n],
        *tally,
        groups,
        flags(scored_of(cells), groups, results.told(), [player for player, _, _ in fixed]),
        shown,
        _seats(results.games, ELO * fitted.parameters[n:], half[n:]),
        chosen,
        standing(elo, shown, groups),
        fitted.parameters,
    )


class _Rated(NamedTuple):
    """A fit, and what it was made from."""

    results: Results
    cells: Cells
    cell: Ints
    held: Belief
    fit: Fit
    center: Floats

    def covariance(self, method: Method, replicates: int) -> tuple[Floats, str]:
        """Of strengths as they are shown and of all other parameters, in natural units; and how it was found."""
        results, cells, cell = self.results, self.cells, self.cell
        clusters = Clusters.find(cells, cell, results.cluster, results.times)

        def drawn() -> Floats:
            kinds = patterns(cells, cell, results.outcome, results.cluster, results.weight, results.times)
            replica = bootstrap(self.fit, cells, self.held, kinds, replicates)
            replica -= self.fit.parameters  # what is known is exactly 0 then
            return np.asarray(np.cov(replica, rowvar=False), dtype=np.float64)

        return covariance(
            method,
            lambda: clusters.each(cells, cell),
            lambda: self.shown(self.fit.inverse()),
            lambda: self.shown(clustered(self.fit, cells, cell, results.outcome, clusters, results.weight)),
            lambda: self.shown(drawn()),
        )

    def shown(self, covariance: Floats) -> Floats:
        """About the mean of the group."""
        n = len(self.center)
        covariance[:n] = self.center @ covariance[:n]
        covariance[:, :n] = covariance[:, :n] @ self.center.T
        return (covariance + covariance.T) / 2


def _seats(games: Sequence[str], worth: Floats, half: Floats) -> Seats:
    """The first terms, one of every game."""
    return {name: {FIRST: (float(worth[k]), float(half[k]))} for k, name in enumerate(games)}


def _tally(results: Results) -> tuple[Ints, Ints, Ints]:
    """Wins, draws and losses of every player."""
    n, times = len(results.players), results.times
    by_seat = [np.bincount(results.outcome * n + player, times, 3 * n).reshape(3, n) for player in results[3:5]]
    wins, draws, losses = np.rint(by_seat[0] + by_seat[1][::-1]).astype(np.int64)
    return wins, draws, losses


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
