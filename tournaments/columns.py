"""Finished games in columns: what statistics over many of them read."""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from arena.tournaments.conduct import Conduct

__all__ = ["Columns"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_LISTS = msgspec.json.Decoder(list[list[float]])
_TABLES = msgspec.json.Decoder(list[list[list[float]]])
_FIELDS = len(Conduct.__struct_fields__)


class Columns(NamedTuple):
    """The games of one entry, in the order of their ids."""

    agents: Ints
    """Shape (games, seats): numbers of the agents in the seats that are not the house's."""
    returns: Floats
    """Shape (games, seats)."""
    forfeits: Bools
    """Shape (games, seats): who forfeited."""
    block: Ints
    """Games of one block have one number."""
    truncated: Bools
    digest: NDArray[np.str_]
    """Equal play, equal digest."""
    conduct: Floats
    """Shape (games, seats, fields of `Conduct`)."""

    @classmethod
    def of(cls, rows: Sequence[Sequence[str]], seats: int) -> "Columns":
        """From rows (agents, returns, forfeits, block, outcome, digest, conduct): JSON lists but for block to digest.

        Raises ValueError or msgspec.DecodeError for rows that no store has written.
        """
        agents, returns, forfeits, block, outcome, digest, conduct = zip(*rows, strict=True) if rows else [()] * 7
        forfeited = np.zeros((len(rows), seats), dtype=np.bool_)
        for game, positions in enumerate(_lists(forfeits)):
            for position in positions:
                if position not in range(seats):
                    raise ValueError(f"the forfeit of position {position:g} in a game of {seats} seats")
                forfeited[game, int(position)] = True
        numbers = {name: number for number, name in enumerate(dict.fromkeys(block))}
        return cls(
            np.array(_of_length(agents, seats), dtype=np.int64).reshape(len(rows), seats),
            np.array(_of_length(returns, seats), dtype=np.float64).reshape(len(rows), seats),
            forfeited,
            np.array([numbers[name] for name in block], dtype=np.int64),
            np.array(outcome, dtype=np.str_) == "truncated",
            np.array(digest, dtype=np.str_),
            _conducts(conduct, seats),
        )

    def news(self) -> Floats:
        """What each two-player game tells beside the others, 0 to 1, shape (games,).

        Where games of one block and seating are alike move by move (repetitions between agents that a seed makes
        the same), only the different ones count. The weight is the seating's in all blocks, so that its proportions
        are kept: what happens often by chance weighs no less than what is rare.
        """
        seating = self.agents[:, 0] * (self.agents.max(initial=0) + 1) + self.agents[:, 1]
        place = self.block * (seating.max(initial=0) + 1) + seating
        if len(np.unique(place)) == len(place):
            return np.ones(len(place))
        _, play = np.unique(self.digest, return_inverse=True)
        _, firsts = np.unique(place * len(play) + play, return_index=True)
        different = np.bincount(seating[firsts], minlength=int(seating.max()) + 1)
        share: Floats = different[seating] / np.bincount(seating)[seating]
        return share

    def only(self, kept: Bools) -> "Columns":
        """The games that `kept` is true of."""
        return Columns(
            self.agents[kept],
            self.returns[kept],
            self.forfeits[kept],
            self.block[kept],
            self.truncated[kept],
            self.digest[kept],
            self.conduct[kept],
        )


def _of_length(texts: Sequence[str], length: int) -> list[list[float]]:
    lists = _lists(texts)
    if odd := set(map(len, lists)) - {length}:
        raise ValueError(f"{odd.pop()} numbers for a game of {length} seats")
    return lists


def _conducts(texts: Sequence[str], seats: int) -> Floats:
    """Of every game and seat, the zeros that were left out put back."""
    games = _TABLES.decode(_joined(texts))
    if odd := set(map(len, games)) - {seats}:
        raise ValueError(f"the conduct of {odd.pop()} in a game of {seats} seats")
    rows = [numbers for game in games for numbers in game]
    lengths = np.fromiter(map(len, rows), dtype=np.int64)
    if (longest := lengths.max(initial=0)) > _FIELDS:
        raise ValueError(f"a conduct of {longest} numbers, there are {_FIELDS}")
    table = np.zeros((len(rows), _FIELDS))
    table[np.arange(_FIELDS) < lengths[:, None]] = np.fromiter(chain.from_iterable(rows), dtype=np.float64)
    return table.reshape(len(texts), seats, _FIELDS)


def _lists(texts: Sequence[str]) -> list[list[float]]:
    """All JSON lists in one go."""
    return _LISTS.decode(_joined(texts))


def _joined(texts: Sequence[str]) -> str:
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("bytes where a list was written")
    return f"[{','.join(texts)}]"
