"""What there is to say against ratings: players that were not compared, or not enough."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.ratings.components import components
from arena.tournaments.ratings.davidson import Cells

__all__ = ["FEW_GAMES", "Flags", "flags", "groups_of", "scored_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = tuple[tuple[str, ...], ...]

FEW_GAMES = 10
"""Games of a player below which the prior, which is worth about one, is not yet negligible."""


def groups_of(cells: Cells) -> Ints:
    """A number for every player: those with different numbers never met, not even through others."""
    n = cells.players
    met = np.zeros((n, n))
    met[cells.first, cells.second] = 1.0
    return components(met)


def scored_of(cells: Cells) -> Floats:
    """Shape (players, players): how often the row's player did not lose to the column's."""
    n = cells.players
    scored = np.zeros(n * n)
    for one, other, won in ((cells.first, cells.second, 0), (cells.second, cells.first, 2)):
        scored += np.bincount(one * n + other, cells.counts[:, won] + cells.counts[:, 1], n * n)
    return scored.reshape(n, n)


def flags(scored: Floats, groups: Ints, told: Floats, anchors: Sequence[int] = ()) -> Flags:
    """Of every player, what holds of: no games, undefeated, winless, one-sided, few games, separate group, anchor.

    One-sided: some of its group never lost a point to the others of it, so that only the prior says how far ahead they
    are. `scored[i, j]`: how often i was not below j; `told`: how many games count, repeated ones apart.
    """
    played = told > 0
    above, below = scored.sum(axis=1) > 0, scored.sum(axis=0) > 0
    mutual = components(scored, strong=True)
    apart = len(np.unique(groups[played])) > 1
    parted = {group for group in set(groups.tolist()) if len(np.unique(mutual[above & below & (groups == group)])) > 1}
    said = []
    for k in range(len(scored)):
        words = ["no games"]
        if played[k]:
            words = ["undefeated"] * bool(not below[k]) + ["winless"] * bool(not above[k])
            words = words or ["one-sided"] * (int(groups[k]) in parted)
            words += ["few games"] * bool(told[k] < FEW_GAMES) + ["separate group"] * apart
        said.append((*words, *["anchor"] * (k in anchors)))
    return tuple(said)
