"""Who did how well against whom: the cells of a heat map, of any kind of game."""

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.board import Pair

__all__ = ["Heat", "matched", "met", "ranked_before"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_WORTH = np.array([1.0, 0.5, 0.0])
"""What an outcome of `ratings.OUTCOMES` is worth to the first."""


class Heat:
    """Points and comparisons of every agent against every other."""

    def __init__(self, agents: int) -> None:
        self.points, self.games = np.zeros((agents, agents)), np.zeros((agents, agents))

    def add(self, first: Ints, second: Ints, worth: Floats, times: Floats | None = None) -> "Heat":
        """`worth` to the first, 0 to 1, shape (rows,); the second gets the rest. `times`: that a row counts."""
        n, often = len(self.games), np.ones(len(first)) if times is None else times
        for one, other, points in ((first, second, worth), (second, first, 1 - worth)):
            key = one * n + other
            self.points += np.bincount(key, points * often, n * n).reshape(n, n)
            self.games += np.bincount(key, often, n * n).reshape(n, n)
        return self

    def cells(self, order: list[int]) -> list[list[Pair | None]]:
        """Of these agents in this order; None where two have not met."""
        square = np.ix_(order, order)
        games = np.rint(self.games[square]).astype(np.int64)
        share = self.points[square] / np.maximum(games, 1)
        return [
            [Pair(score, count) if count else None for score, count in zip(scores, counts, strict=True)]
            for scores, counts in zip(share.tolist(), games.tolist(), strict=True)
        ]


def met(agents: int, first: Ints, second: Ints, outcome: Ints, times: Floats | None = None) -> Heat:
    """Of two-player results; `outcome` indexes `ratings.OUTCOMES`."""
    return Heat(agents).add(first, second, _WORTH[outcome], times)


def ranked_before(agents: int, seated: Ints, value: Floats, side: Ints | None = None) -> Heat:
    """Who came before whom in games of many seats, shapes (games, seats); equal values share the point.

    `side`: the team of every seat; members of one team are not compared.
    """
    heat, seats = Heat(agents), seated.shape[1]
    for one in range(seats):
        for other in range(one + 1, seats):
            apart = seated[:, one] != seated[:, other]
            if side is not None:
                apart &= side[:, one] != side[:, other]
            gap = value[apart, one] - value[apart, other]
            heat.add(seated[apart, one], seated[apart, other], (1 + np.sign(gap)) / 2)
    return heat


def matched(agents: int, agent: Ints, item: Ints, value: Floats) -> Heat:
    """Who did better on the same items, rows of single answers; an agent's repeated answers to one are averaged."""
    items, place = np.unique(item, return_inverse=True)
    cell, size = place * agents + agent, len(items) * agents
    count = np.bincount(cell, minlength=size)
    mean = np.where(count, np.bincount(cell, value, size) / np.maximum(count, 1), np.nan).reshape(len(items), agents)
    heat = Heat(agents)
    for one in range(agents):
        sign = np.sign(mean[:, one, None] - mean[:, one + 1 :])
        both = ~np.isnan(sign)
        games = both.sum(axis=0)
        points = np.where(both, (1 + sign) / 2, 0.0).sum(axis=0)
        heat.games[one, one + 1 :], heat.games[one + 1 :, one] = games, games
        heat.points[one, one + 1 :], heat.points[one + 1 :, one] = points, games - points
    return heat
