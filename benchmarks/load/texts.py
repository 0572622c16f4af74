"""What a seat is told in the load benchmark, the same for every library under test. Needs nothing but Python."""

from collections.abc import Sequence

__all__ = ["PLIES", "mark", "position", "rules"]

PLIES = 20
"""Turns of a match, both seats together."""


def rules(player: int, plies: int) -> str:
    """How to play."""
    return f"""Relay, a game for two players with {plies} turns. You are player {player}; player 0 begins, then you
take turns. On your turn say a whole number from 1 to 7, for example: 4
It is written at the end of a row both players see.
A number that equals the one before it counts nothing, one that is greater counts once and a smaller one counts twice.
When the row is full, each player's numbers are added up as they count. The greater sum wins (+1, the other -1); equal
sums are a draw (0 each). Think about what your opponent can answer before you say a number."""


def mark(deal: int, player: int, ply: int) -> str:
    """The asker's mark, which an answer must carry: nobody else has it."""
    return f"[m:{deal:x}.{player}.{ply}]"


def position(deal: int, player: int, ply: int, row: Sequence[int]) -> str:
    """What the seat sees at its turn: about as much as a small board."""
    lines = [" ".join(map(str, row[start : start + 5])).ljust(9, ".") for start in range(0, max(len(row), 1), 5)]
    board = "\n".join(f"{5 * number + 1:2}: {line}" for number, line in enumerate(lines))
    own = mark(deal, player, ply)
    return f"Row, five numbers a line:\n{board}\nTurn {ply + 1}. Your mark is {own}; repeat it. Your number?"
