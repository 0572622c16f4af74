from itertools import product

import pytest

from arena.games.board.grid import row_table


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_every_row_is_drawn_from_the_lowest_bit(width: int) -> None:
    table = row_table(width)
    assert len(table) == len(set(table.values())) == 3**width
    for (x, o), text in table.items():
        assert not x & o
        cells = text.split(" ")
        assert len(cells) == width
        for i, cell in enumerate(cells):
            assert cell == ("X" if x >> i & 1 else "O" if o >> i & 1 else ".")


def test_no_pair_of_disjoint_bits_is_missing() -> None:
    assert set(row_table(4)) == {(x, o) for x, o in product(range(16), repeat=2) if not x & o}


def test_marks_can_be_chosen() -> None:
    assert row_table(3, ("-", "#", "o"))[0b010, 0b001] == "o # -"
