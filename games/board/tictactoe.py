"""Tic-tac-toe (noughts and crosses) on two 9-bit boards.

Rules: Berlekamp, Conway & Guy, *Winning Ways*, ch. 22; OpenSpiel `tic_tac_toe` is the oracle in the tests.
"""

from functools import cache
from random import Random
from typing import Self

from arena.game import NOBODY, SEAT, Action, Drawing, IllegalAction, Player, TurnGame
from arena.games.board.grid import row_table

__all__ = ["TicTacToe"]

LINES = (0o7, 0o70, 0o700, 0o111, 0o222, 0o444, 0o421, 0o124)
WON = tuple(any(board & line == line for line in LINES) for board in range(512))
FREE = tuple(tuple(str(square + 1) for square in range(9) if not taken >> square & 1) for taken in range(512))
BIT = {str(square + 1): 1 << square for square in range(9)}
ROW = row_table(3)
HEAD = ("You are X.", "You are O.")
RULES = """Tic-tac-toe on a 3 x 3 board. You are {mark}; X moves first, then the players take turns.
On your turn write the number of a free square; the squares are numbered
1 2 3
4 5 6
7 8 9
For example: 5
Three of your marks in a row, column or diagonal win (+1, the loser -1). A full board is a draw (0)."""


@cache
def drawn(player: Player, x: int, o: int) -> str:
    """What a seat sees; there are 5,478 positions, so each is drawn once."""
    return f"{HEAD[player]}\n{ROW[x & 7, o & 7]}\n{ROW[x >> 3 & 7, o >> 3 & 7]}\n{ROW[x >> 6, o >> 6]}"


class TicTacToe(TurnGame):
    """Noughts and crosses: three in a row on a 3 x 3 board."""

    zero_sum = True
    perfect_information = True
    tags = ("board", "abstract")
    players = 2

    mine: int = 0  # squares of the seat to move: bit i is square i + 1
    theirs: int = 0
    ply: int = 0
    over: bool = False

    @classmethod
    def initial(cls, rng: Random) -> Self:
        """The empty board."""
        return cls()

    def to_act(self) -> tuple[Player, ...]:
        """See `Game.to_act`."""
        return NOBODY if self.over else SEAT[self.ply & 1]

    def rules(self, player: Player) -> str:
        """See `Game.rules`."""
        return RULES.format(mark="XO"[player])

    def observation(self, player: Player) -> str:
        """Three rows; `.` is a free square."""
        return drawn(player, self.theirs, self.mine) if self.ply & 1 else drawn(player, self.mine, self.theirs)

    def legal_actions(self, player: Player) -> tuple[Action, ...]:
        """See `Game.legal_actions`."""
        return () if self.over or player != self.ply & 1 else FREE[self.mine | self.theirs]

    def play(self, action: Action) -> Self:
        """See `TurnGame.play`."""
        bit = BIT.get(action, 0)
        if not bit & ~(self.mine | self.theirs):
            raise IllegalAction(f"square {action} is taken" if bit else "write the number of a free square, 1 to 9")
        mine, ply = self.mine | bit, self.ply + 1
        return type(self)(self.theirs, mine, ply, WON[mine] or ply == 9)

    def returns(self) -> tuple[float, ...]:
        """See `Game.returns`."""
        if not WON[self.theirs]:
            return (0.0, 0.0)
        return (1.0, -1.0) if self.ply & 1 else (-1.0, 1.0)

    def drawing(self) -> Drawing:
        """Three rows, a complete line marked."""
        x, o = (self.theirs, self.mine) if self.ply & 1 else (self.mine, self.theirs)
        rows = [["X" if x >> at & 1 else "O" if o >> at & 1 else "" for at in range(row, row + 3)] for row in (0, 3, 6)]
        won = [line for line in LINES if self.theirs & line == line]
        marked = [divmod(at, 3) for at in range(9) if any(line >> at & 1 for line in won)]
        return Drawing(tuple(map(tuple, rows)), owners={"X": 0, "O": 1}, marked=tuple(marked))

    def max_turns(self) -> int:
        """Nine squares."""
        return 9

    def max_length(self) -> int:
        """See `Game.max_length`."""
        return 64

    def action_table(self) -> tuple[Action, ...]:
        """The nine squares."""
        return FREE[0]

    def features(self, player: Player) -> tuple[float, ...]:
        """Nine squares of mine, nine of theirs."""
        mine, theirs = self.mine, self.theirs
        if player != self.ply & 1:
            mine, theirs = theirs, mine
        return tuple([float(board >> square & 1) for board in (mine, theirs) for square in range(9)])
