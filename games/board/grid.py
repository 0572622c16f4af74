"""Drawing boards by rows from a table: the text is most of the cost of a step."""

from itertools import product

__all__ = ["row_table"]


def row_table(width: int, marks: tuple[str, str, str] = (".", "X", "O")) -> dict[tuple[int, int], str]:
    """The text of a row for every (bits of the first side, bits of the second side).

    >>> row_table(3)[0b001, 0b100]
    'X . O'
    """
    _, first, second = marks
    table = {}
    for cells in product(marks, repeat=width):
        x = sum(1 << i for i, cell in enumerate(cells) if cell == first)
        o = sum(1 << i for i, cell in enumerate(cells) if cell == second)
        table[x, o] = " ".join(cells)
    return table
