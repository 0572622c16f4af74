"""From a fitted model of whatever kind to a rating table: who can be compared, what there is to say, the Elo scale."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.ratings.anchors import centering
from arena.tournaments.ratings.components import components
from arena.tournaments.ratings.davidson import ELO
from arena.tournaments.ratings.flags import Flags, flags
from arena.tournaments.ratings.pairs import CENTER, Z95, Ratings, Seats
from arena.tournaments.ratings.standing import standing

__all__ = ["Tally", "flags", "groups", "offs", "rated", "worths"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Tally = tuple[Ints, Ints, Ints]
"""Wins, draws and losses of every player."""


def groups(scored: Floats) -> Ints:
    """Players with different numbers never met. `scored[i, j]`: how often i was not below j."""
    return components(scored)


def offs(names: Sequence[str], terms: Floats, parameters: Floats, covariance: Floats) -> dict[str, tuple[float, float]]:
    """What each of some terms is worth over the mean of the others, in Elo, and half of its 95 % interval.

    `terms`: shape (names, parameters), each a sum of parameters.
    """
    k = len(names)
    return worths(names, (np.eye(k) - 1 / k) * k / max(k - 1, 1) @ terms, parameters, covariance)


def worths(
    names: Sequence[str], terms: Floats, parameters: Floats, covariance: Floats
) -> dict[str, tuple[float, float]]:
    """What each of some sums of parameters is worth, in Elo, and half of its 95 % interval."""
    half = ELO * Z95 * np.sqrt(np.maximum(np.diag(terms @ covariance @ terms.T), 0.0))
    return dict(zip(names, zip((ELO * terms @ parameters).tolist(), half.tolist(), strict=True), strict=True))


def rated(
    players: tuple[str, ...],
    strength: Floats,
    covariance: Floats,
    tally: Tally,
    group: Ints,
    said: Flags,
    seats: Seats,
    method: str,
    fixed: Sequence[tuple[int, float, float]] = (),
) -> Ratings:
    """The table, of strengths and their covariance in natural units; `fixed`: of `anchors.anchored`."""
    own = centering(group, fixed)
    elo = CENTER + ELO * own @ strength
    shown = ELO**2 * own @ covariance @ own.T
    shown = (shown + shown.T) / 2
    half = Z95 * np.sqrt(np.maximum(np.diag(shown), 0.0))
    where = standing(elo, shown, group)
    return Ratings(players, elo, half, *tally, group, said, shown, seats, method, where)
