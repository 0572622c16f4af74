"""Anchors: players whose ratings are known, exactly (hard) or with a standard deviation (soft).

Without anchors only differences are known, and a group of players averages 1000. A hard anchor is not fitted: its
interval is 0, and everybody else's is relative to it. That is a trap where intervals are read as "how sure is this
player's place": all of them hold the anchor's own uncertainty and look wider, and no order has become less certain
(lm-sys/FastChat#3377 asks why). Anchor a player with many games, compare two by `Ratings.difference`, or by rank
intervals, which no single anchor changes. Several hard anchors also say what lies between them: results that
contradict them show as residuals, not as wider intervals. A soft anchor (Elo, sd) is an observation of that rating,
which the games move.

The strengths' prior pulls towards the mean of the group, wherever anchors put it; they are not pulled to 1000.
"""

from collections.abc import Mapping, Sequence
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.ratings.davidson import ELO, Belief

__all__ = ["CENTER", "Anchors", "anchored", "belief", "centering"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Anchors = Mapping[str, float | tuple[float, float]]
"""Elo, or (Elo, standard deviation), by player."""

CENTER = 1000.0
_MOST = 1e5  # Elo


def anchored(players: Sequence[str], anchors: Anchors) -> list[tuple[int, float, float]]:
    """(player, strength in natural units, its standard deviation: 0 if hard). ValueError for what cannot be meant."""
    read = []
    for name, said in anchors.items():
        elo, sd = said if isinstance(said, tuple) else (said, 0.0)
        if name not in players:
            raise ValueError(f"anchor {name!r}: allowed are {', '.join(map(repr, players))}")
        if not isfinite(elo) or abs(elo) > _MOST:
            raise ValueError(f"anchor {name!r} at {elo}: allowed are {-_MOST:.0f} to {_MOST:.0f}")
        if isinstance(said, tuple) and not 0 < sd <= _MOST:
            raise ValueError(
                f"anchor {name!r} with standard deviation {sd}: allowed are numbers above 0, to {_MOST:.0f}"
            )
        read.append((players.index(name), (elo - CENTER) / ELO, sd / ELO))
    return read


def belief(groups: Ints, plain: Belief, anchors: Sequence[tuple[int, float, float]]) -> Belief:
    """What is held before the games: `plain`, whose first parameters are strengths, each for itself, and the anchors.

    `groups` as in `Ratings`.
    """
    n = len(groups)
    if not anchors:
        return plain
    mean, start, precision = plain.mean.copy(), plain.mean.copy(), np.diag(plain.precision)
    hard = np.array([player for player, _, sd in anchors if not sd], dtype=np.int64)
    for group in {int(groups[player]) for player, _, _ in anchors}:
        own, told = np.flatnonzero(groups == group), [anchor for anchor in anchors if groups[anchor[0]] == group]
        square = np.ix_(own, own)
        precision[square] -= precision[square] @ np.full((len(own), len(own)), 1 / len(own))
        seen = np.zeros(n)
        for player, strength, sd in told:
            if sd:
                precision[player, player] += sd**-2
                seen[player] = strength * sd**-2
        start[own] = float(np.mean([strength for _, strength, _ in told]))
        mean[own] = np.linalg.solve(precision[square], seen[own]) if seen.any() else start[own]
    for player, strength, sd in anchors:
        start[player] = start[player] if sd else strength
    return Belief(mean, precision, start, np.setdiff1d(np.arange(len(mean)), hard))


def centering(groups: Ints, anchors: Sequence[tuple[int, float, float]] = ()) -> Floats:
    """The matrix that takes the mean of its group from every player; groups with an anchor stay where they are."""
    same = (groups[:, None] == groups[None, :]).astype(np.float64)
    loose = ~np.isin(groups, groups[np.array([player for player, _, _ in anchors], dtype=np.int64)])
    center: Floats = np.eye(len(groups)) - loose[:, None] * same / same.sum(axis=1, keepdims=True)
    return center
