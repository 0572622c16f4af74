"""What ranked tables and teams have in common: fit rankings of sides, tally them, say what there is to say."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.ratings import likelihood
from arena.tournaments.ratings.anchors import belief
from arena.tournaments.ratings.components import components
from arena.tournaments.ratings.davidson import Belief, Fit, Prior
from arena.tournaments.ratings.intervals import Method, covariance
from arena.tournaments.ratings.luce import Rankings, blocks, layout
from arena.tournaments.ratings.verdict import Tally

__all__ = ["Fitted", "checked", "column", "fit", "scored", "tally", "told"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Fitted(NamedTuple):
    """A fit and its covariance, in natural units: strengths, then seat terms, then ties."""

    fit: Fit
    covariance: Floats
    method: str


def fit(
    players: int,
    terms: int,
    rankings: Sequence[Rankings],
    method: Method,
    prior: Prior | None,
    fixed: Sequence[tuple[int, float, float]] = (),
    replicates: int = 400,
) -> Fitted:
    """The posterior of all rankings at once, its covariance as in `pairs.rate`; `fixed`: of `anchors.anchored`.

    Raises ValueError if nobody played.
    """
    rankings = [ranking for ranking in rankings if len(ranking.table)]
    if not rankings:
        raise ValueError("nobody played: there is nothing to rate")
    plan = layout(players, terms, rankings, prior or Prior())
    held = belief(components(scored(players, rankings)), Belief(plan.mean, plan.precision), fixed)
    choices = blocks(plan, rankings)
    fitted = likelihood.fit(choices, held)
    found, how = covariance(
        method,
        lambda: _clusters(players, rankings),
        fitted.inverse,
        lambda: likelihood.clustered(fitted, choices, _contrasts(players, rankings)),
        lambda: likelihood.bootstrap(fitted, choices, held, replicates),
    )
    return Fitted(fitted, found, how)


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
    often = np.ones(_numbers(rankings))
    for ranking in rankings:
        often[ranking.cluster] = ranking.times
    player, cluster = _present(players, rankings)
    return np.bincount(player, often[cluster], players + 1)[:players].astype(np.float64)


def _contrasts(players: int, rankings: Sequence[Rankings]) -> Floats:
    """Of every cluster, how many differences of strengths it tells of: of sides, and at most those of players."""
    sides = np.zeros(_numbers(rankings))
    for ranking in rankings:
        sides += np.bincount(ranking.cluster, minlength=len(sides)) * (ranking.ranks.shape[1] - 1)
    player, cluster = _present(players, rankings)
    members = np.bincount(cluster[player < players], minlength=len(sides))
    return np.maximum(np.minimum(sides, members - 1), 1.0)


def _numbers(rankings: Sequence[Rankings]) -> int:
    return 1 + max(int(ranking.cluster.max()) for ranking in rankings)


def _present(players: int, rankings: Sequence[Rankings]) -> tuple[Ints, Ints]:
    """Every player and every cluster he has games in, once; empty places are one more player."""
    numbers, met = _numbers(rankings), []
    for ranking in rankings:
        members = np.where(ranking.members < 0, players, ranking.members)
        met.append((members * numbers + ranking.cluster[:, None, None]).ravel())
    player, cluster = np.divmod(np.unique(np.concatenate(met)), numbers)
    return player, cluster
