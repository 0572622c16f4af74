"""What holds for the rules texts of all games."""

import re

import pytest

from arena.registry import game_ids, make_game

DIAGRAM = re.compile(r"[\d ]+|.*numbered")  # rows of squares, and the line that leads to them


@pytest.mark.parametrize("game_id", game_ids())
def test_a_paragraph_is_one_line_so_that_any_display_can_wrap_it(game_id: str) -> None:
    for line in make_game(game_id).rules(0).splitlines():
        said = re.fullmatch(r"For example: .+|- .+|To make .+|.*[.:]", line)
        assert said or DIAGRAM.fullmatch(line), f"this line goes on in the next: {line!r}"


@pytest.mark.parametrize("game_id", game_ids())
def test_an_example_stands_on_a_line_of_its_own_and(game_id: str) -> None:
    rules = make_game(game_id).rules(0)
    assert "or example:" not in re.sub(r"^For example:", "", rules, flags=re.MULTILINE)
