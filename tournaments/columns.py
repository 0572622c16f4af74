"""Finished games in columns: what statistics over many of them read."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

__all__ = ["Columns"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_LISTS = msgspec.json.Decoder(list[list[float]])


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

    @classmethod
    def of(cls, rows: Sequence[Sequence[str]], seats: int) -> "Columns":
        """From rows (agents, returns, forfeits, block, outcome, digest), the first three JSON lists.

        Raises ValueError or msgspec.DecodeError for rows that no store has written.
        """
        agents, returns, forfeits, block, outcome, digest = zip(*rows, strict=True) if rows else [()] * 6
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
        )


def _of_length(texts: Sequence[str], length: int) -> list[list[float]]:
    lists = _lists(texts)
    if odd := set(map(len, lists)) - {length}:
        raise ValueError(f"{odd.pop()} numbers for a game of {length} seats")
    return lists


def _lists(texts: Sequence[str]) -> list[list[float]]:
    """All JSON lists in one go."""
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("bytes where a list was written")
    return _LISTS.decode(f"[{','.join(texts)}]")
