"""What a store tells of its games, ready for statistics: results by block, ranked games, answers, totals, spending.

Agents are positions in the order of `Store.agents()` unless another numbering is named.
"""

from collections.abc import Mapping
from math import ceil, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.conduct import Conduct

__all__ = [
    "ALIKE",
    "AgentCount",
    "Answers",
    "EntryCount",
    "Latency",
    "PairCounts",
    "RankedGames",
    "Spent",
    "Timeline",
    "Totals",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

ALIKE = 4
"""Games of one seating, all alike, from which on that is worth a word."""
_RATIO = 1.05  # from one bin of latencies to the next


class Spent(NamedTuple):
    """What the games have taken so far, void attempts too."""

    games: int
    """Finished games."""
    tokens: int
    """Prompts and answers."""
    dollars: float
    """Where prices are known."""


class PairCounts(NamedTuple):
    """The two-player games of one entry that count, as `ratings.Results` takes them: a row a game of a cluster.

    Blocks in which the same happened are one cluster with `times` above 1.
    """

    first: Ints
    second: Ints
    outcome: Ints
    """Index into `ratings.OUTCOMES`."""
    cluster: Ints
    times: Floats
    """How many blocks the row's cluster stands for."""
    weight: Floats
    """What a game tells beside the others of its seating, 0 to 1 (`Columns.news`)."""
    games: int
    """How many games the rows stand for."""
    again: int
    """How many of them were played before in their block and seating, move by move."""
    alike: list[tuple[int, int]]
    """Seatings with at least four games, forfeits apart, that were all the same move by move."""


class RankedGames(NamedTuple):
    """Games of one entry, of any number of seats, that count; a row a game, in the order of the ids."""

    agents: Ints
    """Shape (games, seats): those in the seats that are not the house's."""
    returns: Floats
    """Shape (games, seats)."""
    forfeits: Bools
    """Shape (games, seats)."""
    cluster: Ints
    """Games of one block have one number."""
    seed: Ints
    teams: Ints | None
    """Shape (games, seats): the team of every seat; None: each for itself."""
    roles: list[tuple[str, ...]]
    """Of every game's seats; () where seats have none."""
    ended: Floats
    """Seconds since the epoch."""


class Answers(NamedTuple):
    """Games of one seat, a row a game, in the order of the ids."""

    agent: Ints
    seed: Ints
    """The item."""
    value: Floats
    """The return."""
    forfeit: Bools
    cluster: Ints
    """Answers of one agent to one item have one number."""


class Timeline(NamedTuple):
    """The two-player games of one entry that count, a row each, block by block in the order in which they ended."""

    ended: Floats
    """Seconds since the epoch at which the last of the block that counts ended."""
    first: Ints
    second: Ints
    outcome: Ints
    block: Ints
    """Blocks by number, ascending."""


class Latency(NamedTuple):
    """Seconds of answers as counts of logarithmic bins: a quantile is right to 2.5 %."""

    counts: Mapping[int, int]

    @staticmethod
    def bin(seconds: float) -> int:
        """The number of the bin that holds so many seconds, above 0.

        >>> Latency.bin(1.0), Latency.bin(1.05), Latency.bin(0.5)
        (0, 1, -14)
        """
        return ceil(log(min(max(seconds, 1e-9), 1e9)) / log(_RATIO) - 0.5)

    def quantile(self, share: float) -> float | None:
        """The seconds that this share of answers took at most; None: nothing was timed.

        >>> Latency({0: 98, 14: 2}).quantile(0.5), round(Latency({0: 98, 14: 2}).quantile(0.99), 2)
        (1.0, 1.98)
        """
        left = share * sum(self.counts.values())
        for number in sorted(self.counts):
            left -= self.counts[number]
            if left <= 0:
                return float(_RATIO**number)
        return None

    @property
    def p50(self) -> float | None:
        """The median."""
        return self.quantile(0.5)

    @property
    def p95(self) -> float | None:
        """What 95 % of answers took at most."""
        return self.quantile(0.95)

    def plus(self, other: "Latency") -> "Latency":
        """Both together."""
        numbers = self.counts.keys() | other.counts.keys()
        return Latency({n: self.counts.get(n, 0) + other.counts.get(n, 0) for n in numbers})


class AgentCount(NamedTuple):
    """One agent in one entry: of the games that count, but for `voids`."""

    games: int = 0
    """Seats it took in them."""
    forfeits: int = 0
    truncated: int = 0
    voids: int = 0
    """Void attempts at games it sat in."""
    conduct: Conduct = Conduct()
    latency: Latency = Latency({})
    wasted: Conduct = Conduct()
    """In void attempts."""


class EntryCount(NamedTuple):
    """One entry."""

    games: int = 0
    """Games that count."""
    truncated: int = 0
    """Of them."""
    dropped: int = 0
    """Truncated games that are left out, as the tournament declares."""
    voids: int = 0
    """Void attempts."""


class Totals(NamedTuple):
    """What is counted of everything."""

    agents: dict[tuple[int, int], AgentCount]
    """By entry (its number in `Store.entries()`) and agent; those that sat in no game of it have none."""
    entries: dict[int, EntryCount]
    """By number in `Store.entries()`; all of them."""
