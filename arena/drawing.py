"""A board as data, for whoever draws it: cells as text, whose they are, and what is worth a mark."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

__all__ = ["Drawing", "Style"]

Style = Literal["squares", "holes", "lines"]


class Drawing(NamedTuple):
    """A board of rows and columns as everybody at the table may see it, from the top left.

    >>> Drawing((("X", ""), ("", "O")), owners={"X": 0, "O": 1}).problem()
    ''
    """

    rows: tuple[tuple[str, ...], ...]
    """The text of every cell, "" where it is empty; all rows are of one length."""
    style: Style = "squares"
    """Checkered squares, holes that hold discs, or lines with stones on their crossings."""
    row_labels: tuple[str, ...] = ()
    """One for each row, or none."""
    column_labels: tuple[str, ...] = ()
    owners: Mapping[str, int] = {}
    """The seat that a cell with this text belongs to, which gives its colour."""
    marked: tuple[tuple[int, int], ...] = ()
    """Cells (row, column) worth a mark, such as the line that has won. What a move changed is seen without it."""

    def problem(self) -> str:
        """What is wrong with it, "" where nothing is."""
        widths = set(map(len, self.rows))
        if len(widths) != 1 or 0 in widths:
            return "its rows must have one length, at least 1"
        sizes = len(self.rows), widths.pop()
        for name, labels, size in zip(("row", "column"), (self.row_labels, self.column_labels), sizes, strict=True):
            if len(labels) not in (0, size):
                return f"{len(labels)} {name} labels for {size} {name}s"
        if any(row not in range(sizes[0]) or column not in range(sizes[1]) for row, column in self.marked):
            return "a mark lies outside"
        return ""
