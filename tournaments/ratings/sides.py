"""What ranked tables and teams have in common: fit rankings of sides, tally them, say what there is to say."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.ratings import likelihood
from arena.tournaments.ratings.davidson import Fit, Prior
from arena.tournaments.ratings.luce import Rankings, blocks, layout
from arena.tournaments.ratings.pairs import Method
from arena.tournaments.ratings.verdict import Likelihood, Tally, about, widened

__all__ = ["Fitted", "checked", "column", "fit", "scored", "tally", "told"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


_FEW = 5  # clusters of a player, below which their scatter says too little


class Fitted(NamedTuple):
    """A fit and its covariance, in natural units: strengths, then seat terms, then ties."""

    fit: Fit
    covariance: Floats
    method: str
    size: float

    def likelihood(self, players: int) -> Likelihood:
        """What the results say of strengths."""
        return about(self.fit.parameters, self.fit.hessian, self.covariance, self.fit.precision[:players], self.size)


def fit(players: int, terms: int, rankings: Sequence[Rankings], method: Method, prior: Prior | None) -> Fitted:
    """The posterior of all rankings at once, its covariance as in `pairs.rate`. Raises ValueError if nobody played."""
    if method not in ("auto", "fisher", "clustered"):
        raise ValueError(f"method {method!r}: allowed are auto, fisher, clustered")
    rankings = [ranking for ranking in rankings if len(ranking.table)]
    if not rankings:
        raise ValueError("nobody played: there is nothing to rate")
    plan = layout(players, terms, rankings, prior or Prior())
    choices = blocks(plan, rankings)
    fitted = likelihood.fit(choices, plan.mean, plan.precision)
    size = sum(float((ranking.weight * ranking.times).sum()) for ranking in rankings)
    curvature = likelihood.inverse(fitted.hessian)
    if method == "fisher":
        return Fitted(fitted, curvature, method, size)
    scatter = likelihood.clustered(fitted, choices)
    if method == "clustered":
        return Fitted(fitted, scatter, method, size)
    each = _clusters(players, rankings)
    few = np.flatnonzero((each > 0) & (each < _FEW))
    if len(few) == np.count_nonzero(each):
        return Fitted(fitted, widened(curvature, scatter, np.arange(len(scatter))), "fisher", size)
    return Fitted(fitted, widened(scatter, curvature, few), "clustered", size)


def tally(players: int, rankings: Sequence[Rankings]) -> Tally:
    """Sole firsts, shared firsts and the rest, of every member of every side."""
    counts = np.zeros((3, players))
    for ranking in rankings:
        first = ranking.ranks == ranking.ranks.min(axis=1, keepdims=True)
        kind = np.where(first, np.where(first.sum(axis=1, keepdims=True) > 1, 1, 0), 2)
        for member in np.moveaxis(ranking.members, 2, 0):
            place = (kind * (players + 1) + np.where(member < 0, players, member)).ravel()
            often = np.broadcast_to(ranking.times[:, None], member.shape).ravel()
            counts += np.bincount(place, often, 3 * (players + 1)).reshape(3, -1)[:, :players]
    wins, draws, losses = np.rint(counts).astype(np.int64)
    return wins, draws, losses


def scored(players: int, rankings: Sequence[Rankings]) -> Floats:
    """Shape (players, players): how often the row's side was not below the column's."""
    size = players + 1
    total = np.zeros(size * size)
    for ranking in rankings:
        members = np.where(ranking.members < 0, players, ranking.members)
        sides, most = members.shape[1:]
        for a in range(sides):
            for b in range(sides):
                ahead = (ranking.ranks[:, a] <= ranking.ranks[:, b]) * (a != b) * ranking.times
                for p in range(most):
                    for q in range(most):
                        total += np.bincount(members[:, a, p] * size + members[:, b, q], ahead, size * size)
    matrix = total.reshape(size, size)[:players, :players]
    np.fill_diagonal(matrix, 0.0)
    return matrix


def checked(players: int, ranking: Rankings) -> Rankings:
    """The same, or ValueError: columns of other lengths, players who are not on the list, nobody to beat."""
    rows = len(ranking.table)
    if any(len(values) != rows for values in ranking) or ranking.ranks.shape != ranking.members.shape[:2]:
        raise ValueError(f"columns of {sorted({len(values) for values in ranking})} rows: all must have as many")
    if ranking.members.shape[1] < 2:
        raise ValueError("one side alone: a game needs at least 2")
    if rows and not -1 <= ranking.members.min() <= ranking.members.max() < players:
        raise ValueError(f"a player's number is outside 0 to {players - 1}")
    if (ranking.members < 0).all(axis=2).any():
        raise ValueError("a side without players")
    return ranking


def column(values: Floats | None, rows: int) -> Floats:
    """Weights or times, 1 where there are none."""
    return np.ones(rows) if values is None else values.astype(np.float64)


def told(players: int, rankings: Sequence[Rankings]) -> Floats:
    """Games of every player, each as much as its weight."""
    games = np.zeros(players + 1)
    for ranking in rankings:
        counted = np.broadcast_to((ranking.weight * ranking.times)[:, None, None], ranking.members.shape)
        members = np.where(ranking.members < 0, players, ranking.members)
        games += np.bincount(members.ravel(), counted.ravel(), players + 1)
    return games[:players]


def _clusters(players: int, rankings: Sequence[Rankings]) -> Floats:
    """How many clusters every player has games in."""
    numbers = 1 + max(int(ranking.cluster.max()) for ranking in rankings)
    often, met = np.ones(numbers), []
    for ranking in rankings:
        members = np.where(ranking.members < 0, players, ranking.members)
        met.append((members * numbers + ranking.cluster[:, None, None]).ravel())
        often[ranking.cluster] = ranking.times
    both = np.unique(np.concatenate(met))
    return np.bincount(both // numbers, often[both % numbers], players + 1)[:players].astype(np.float64)
