"""What there is to say against ratings: players that were not compared, or not enough."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.ratings.components import components
from arena.tournaments.ratings.davidson import Cells

__all__ = ["FEW_GAMES", "flags", "groups_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEW_GAMES = 10
"""Games of a player below which the prior, which is worth about one, is not yet negligible."""


def groups_of(cells: Cells) -> Ints:
    """A number for every player: those with different numbers never met, not even through others."""
    n = cells.players
    met = np.zeros((n, n))
    met[cells.first, cells.second] = 1.0
    return components(met)


def flags(
    cells: Cells, groups: Ints, tally: tuple[Ints, Ints, Ints], told: Floats, anchors: Sequence[int] = ()
) -> tuple[tuple[str, ...], ...]:
    """Of every player, what holds of: no games, undefeated, winless, one-sided, few games, separate group, anchor.

    One-sided: some of its group never lost a point to the others of it, so that only the prior says how far ahead they
    are. `tally` is wins, draws and losses, `told` how many games count, repeated ones apart.
    """
    n, (wins, draws, losses) = cells.players, tally
    scored = np.zeros(n * n)
    for one, other, won in ((cells.first, cells.second, 0), (cells.second, cells.first, 2)):
        scored += np.bincount(one * n + other, cells.counts[:, won] + cells.counts[:, 1], n * n)
    mutual = components(scored.reshape(n, n), strong=True)
    inner = (wins + draws > 0) & (draws + losses > 0)
    apart = len(np.unique(groups[wins + draws + losses > 0])) > 1
    parted = {group for group in set(groups.tolist()) if len(np.unique(mutual[inner & (groups == group)])) > 1}
    said = []
    for k in range(n):
        words = _of_results(int(wins[k]), int(draws[k]), int(losses[k]), int(groups[k]) in parted)
        if words != ["no games"]:
            words += ["few games"] * bool(told[k] < FEW_GAMES) + ["separate group"] * apart
        said.append((*words, *["anchor"] * (k in anchors)))
    return tuple(said)


def _of_results(wins: int, draws: int, losses: int, parted: bool) -> list[str]:
    if not wins + draws + losses:
        return ["no games"]
    if not draws + losses:
        return ["undefeated"]
    if not wins + draws:
        return ["winless"]
    return ["one-sided"] * parted
