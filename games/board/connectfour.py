"""Connect Four on two bitboards; the board's text is kept beside them, one letter changed a move.

Rules: Allis, *A Knowledge-based Approach of Connect-Four* (1988), ch. 2. Positions are counted by Tromp (OEIS
A212693), and OpenSpiel `connect_four` is the oracle in the tests.

The bitboards are those of Tromp's Fhourstones, laid by rows.
"""

from dataclasses import dataclass
from random import Random
from typing import Self

from arena.game import NOBODY, SEAT, Action, Drawing, IllegalAction, Player, TurnGame

__all__ = ["ConnectFour"]

HEAD = ("You are X.\n", "You are O.\n")
RULES = """Connect Four on a board of {columns} columns and {rows} rows. You are {mark}; X moves first, then the \
players take turns.
On your turn write the number of a column that is not full, 1 to {columns} from the left; your disc falls to the \
lowest free square of it.
For example: {example}
{connect} of your discs in a row, column or diagonal win (+1, the loser -1). A full board is a draw (0)."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The tables of one board. Square (row, column) is bit `row * stride + column`; row 0 is the lowest."""

    stride: int
    """Columns and a spare one that stays empty, so that a shifted line never wraps into the next row."""
    cells: int
    earliest: int
    """No line can be complete with fewer discs on the board."""
    lines: tuple[tuple[int, ...], ...]
    """For every direction the shifts that, ANDed one after the other, leave a bit only where a line begins."""
    top: int
    """Where the top row begins."""
    rise: int
    """The squares of column 0."""
    open: tuple[tuple[Action, ...], ...]
    """The columns that are not full, for every state of the top row."""
    column: dict[Action, int]
    place: tuple[int, ...]
    """Where a square stands in the board's text."""
    empty: str
    """The text of the board without discs."""
    numbers: tuple[tuple[float, ...], ...]
    """A row as numbers, 1 for a disc, for every state of it."""


class _Shapes(dict[tuple[int, int, int], Shape]):
    """Shapes by (columns, rows, connect), made when first asked for: pickled games need not carry them."""

    def __missing__(self, key: tuple[int, int, int]) -> Shape:
        columns, rows, connect = key
        stride, names = columns + 1, tuple([str(column + 1) for column in range(columns)])
        shape = self[key] = Shape(
            stride,
            columns * rows,
            2 * connect - 1,
            tuple([_shifts(step, connect) for step in (1, stride - 1, stride, stride + 1)]),
            (rows - 1) * stride,
            sum(1 << stride * row for row in range(rows)),
            tuple([tuple([n for c, n in enumerate(names) if not full >> c & 1]) for full in range(1 << columns)]),
            {name: column for column, name in enumerate(names)},
            tuple([2 * (columns * (rows - 1 - row) + column) for row in range(rows) for column in range(stride)]),
            "\n".join([" ".join("." * columns)] * rows + [" ".join(names)]),
            tuple([tuple([float(row >> c & 1) for c in range(columns)]) for row in range(1 << columns)]),
        )
        return shape


SHAPES = _Shapes()


def _shifts(step: int, connect: int) -> tuple[int, ...]:
    """Each shift doubles the length that is certain, the last one fills up to `connect`."""
    shifts, certain = [], 1
    while certain < connect:
        shifts.append(step * min(certain, connect - certain))
        certain = min(2 * certain, connect)
    return tuple(shifts)


def has_line(board: int, lines: tuple[tuple[int, ...], ...]) -> bool:
    """Whether the discs hold a line in one of the directions (`Shape.lines`)."""
    for shifts in lines:
        left = board
        for shift in shifts:
            left &= left >> shift
        if left:
            return True
    return False


def _require(name: str, value: int, low: int, high: int) -> None:
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{name}={value!r}: allowed are {low} to {high}")


class ConnectFour(TurnGame):
    """Connect Four: discs fall into columns, and four in a line win.

    Options:
        columns: the width of the board, 4 to 9
        rows: the height of the board, 4 to 9
        connect: how many discs in a line win, 3 up to the longer side of the board
    """

    zero_sum = True
    perfect_information = True
    tags = ("board", "abstract")
    players = 2

    mine: int = 0  # discs of the seat to move
    theirs: int = 0
    ply: int = 0
    won: bool = False
    over: bool = False
    board: str = SHAPES[7, 6, 4].empty
    shape: tuple[int, int, int] = (7, 6, 4)

    @classmethod
    def initial(cls, rng: Random, columns: int = 7, rows: int = 6, connect: int = 4) -> Self:
        """The empty board."""
        _require("columns", columns, 4, 9)
        _require("rows", rows, 4, 9)
        _require("connect", connect, 3, max(columns, rows))
        shape = (columns, rows, connect)
        return cls(board=SHAPES[shape].empty, shape=shape)

    def to_act(self) -> tuple[Player, ...]:
        """See `Game.to_act`."""
        return NOBODY if self.over else SEAT[self.ply & 1]

    def rules(self, player: Player) -> str:
        """See `Game.rules`."""
        columns, rows, connect = self.shape
        example = (columns + 1) // 2
        return RULES.format(columns=columns, rows=rows, connect=connect, example=example, mark="XO"[player])

    def observation(self, player: Player) -> str:
        """The rows from the top, `.` is a free square; the column numbers below."""
        return HEAD[player] + self.board

    def legal_actions(self, player: Player) -> tuple[Action, ...]:
        """See `Game.legal_actions`."""
        if self.over or player != self.ply & 1:
            return ()
        shape = SHAPES[self.shape]
        return shape.open[(self.mine | self.theirs) >> shape.top]

    def play(self, action: Action) -> Self:
        """See `TurnGame.play`."""
        shape, taken, ply = SHAPES[self.shape], self.mine | self.theirs, self.ply
        if action not in shape.open[taken >> shape.top]:
            known = action in shape.column
            raise IllegalAction(f"column {action} is full" if known else self._asked())
        column = shape.column[action]
        # a column fills from row 0 up: the number of its discs is its next row
        square = shape.stride * (taken >> column & shape.rise).bit_count() + column
        mine, at = self.mine | 1 << square, shape.place[square]
        board = f"{self.board[:at]}{'XO'[ply & 1]}{self.board[at + 1 :]}"
        ply += 1
        won = ply >= shape.earliest and has_line(mine, shape.lines)
        return type(self)(self.theirs, mine, ply, won, won or ply == shape.cells, board, self.shape)

    def _asked(self) -> str:
        return f"write the number of a column that is not full, 1 to {self.shape[0]}"

    def returns(self) -> tuple[float, ...]:
        """See `Game.returns`."""
        if not self.won:
            return (0.0, 0.0)
        return (1.0, -1.0) if self.ply & 1 else (-1.0, 1.0)

    def max_turns(self) -> int:
        """The number of squares."""
        return SHAPES[self.shape].cells

    def max_length(self) -> int:
        """See `Game.max_length`."""
        return len(HEAD[0]) + len(self.board)

    def render(self) -> str:
        """The board."""
        return self.board

    def drawing(self) -> Drawing:
        """The rows from the top, complete lines marked."""
        *rows, names = [line.split() for line in self.board.split("\n")]
        cells = tuple([tuple(["" if cell == "." else cell for cell in row]) for row in rows])
        return Drawing(cells, "holes", (), tuple(names), {"X": 0, "O": 1}, self._lines() if self.won else ())

    def _lines(self) -> tuple[tuple[int, int], ...]:
        """The squares (row from the top, column) of the lines of the side that has won."""
        columns, rows, connect = self.shape
        stride, found = columns + 1, set[int]()
        for step in (1, stride - 1, stride, stride + 1):
            for start in range(stride * rows):
                line = [start + step * k for k in range(connect)]
                if all(self.theirs >> square & 1 for square in line):
                    found.update(line)
        return tuple(sorted([(rows - 1 - square // stride, square % stride) for square in found]))

    def action_table(self) -> tuple[Action, ...]:
        """The columns."""
        return SHAPES[self.shape].open[0]

    def features(self, player: Player) -> tuple[float, ...]:
        """The squares of mine, then of theirs, by rows from the lowest, each from the left: 1 is a disc."""
        columns, rows, _ = self.shape
        mine, theirs = self.mine, self.theirs
        if player != self.ply & 1:
            mine, theirs = theirs, mine
        numbers, full, seen = SHAPES[self.shape].numbers, (1 << columns) - 1, list[float]()
        for board in (mine, theirs):
            for start in range(0, rows * (columns + 1), columns + 1):
                seen += numbers[board >> start & full]
        return tuple(seen)
