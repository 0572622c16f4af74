"""Games that one agent plays for a score: agents compared seed by seed, and a scale on which scores can be read.

Whoever earned more on the same seed has won there, so that a hard deal is hard for all. What one seed says of all pairs
is one cluster.
"""

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.game import Game
from arena.registry import AgentSpec
from arena.tournaments.config import Tournament
from arena.tournaments.ratings import Mean, Results
from arena.tournaments.ratings.davidson import Prior
from arena.tournaments.readings import Answers

__all__ = ["NO_SEATS", "Scale", "comparisons", "scale"]

Floats = NDArray[np.float64]

_RANDOM = "random"
_EQUAL = 1e-9  # returns that differ less are equal
NO_SEATS = Prior(seat=1e-6)
"""Of two answers to one seed none is the first."""


class Scale(NamedTuple):
    """Where 0 and 1 lie, in returns."""

    zero: float
    one: float
    what: str
    """What is 0."""

    def of(self, mean: Mean) -> tuple[float, float | None]:
        """A mean return and half of its interval on this scale; the ends are taken for known."""
        span = self.one - self.zero
        return (mean.mean - self.zero) / span, None if mean.half is None else mean.half / span


def scale(game: Game, tournament: Tournament, names: Sequence[str], means: Sequence[Mean | None]) -> Scale | None:
    """The scale of a game: 0 is the mean return of the agent `random` where one has played, else the least return.

    `means` by agent, in the order of `names`. None: returns have no bounds, or chance earns the most there is.
    """
    least, most = game.reward_range()
    if not isfinite(most):
        return None
    specs = {entry.name: entry.spec for entry in tournament.agents}
    for name, mean in zip(names, means, strict=True):
        if mean is not None and name in specs and AgentSpec.parse(specs[name]).name == _RANDOM:
            return Scale(mean.mean, most, f"the mean of {name!r}") if mean.mean < most else None
    return Scale(least, most, "the least return") if isfinite(least) and least < most else None


def comparisons(names: tuple[str, ...], label: str, answers: Answers) -> Results:
    """Every two agents on every seed that both have played; who forfeited is behind all who did not.

    An agent's repeated answers to a seed count by their mean.
    """
    seeds, place = np.unique(answers.seed, return_inverse=True)
    n = len(names)
    cell, size = place * n + answers.agent, len(seeds) * n
    count = np.bincount(cell, minlength=size)
    there = (count > 0).reshape(len(seeds), n)
    worst = float(answers.value.min(initial=0.0)) - 1.0
    value = np.where(answers.forfeit, worst, answers.value)
    mean = (np.bincount(cell, value, size) / np.maximum(count, 1)).reshape(len(seeds), n)
    one, other = np.triu_indices(n, 1)
    seed, pair = np.nonzero(there[:, one] & there[:, other])
    first, second = one[pair], other[pair]
    gap = mean[seed, first] - mean[seed, second]
    outcome = (1 - np.sign(np.where(np.abs(gap) < _EQUAL, 0.0, gap))).astype(np.int64)
    return Results(names, (label,), np.zeros(len(seed), dtype=np.int64), first, second, outcome, seed)
