from dataclasses import replace
from pathlib import Path

import pytest

from arena.tournaments.board import MARKS, Beside, Board, Row, Section
from arena.tournaments.conduct import Conduct
from arena.tournaments.config import parse
from arena.tournaments.ratings.flags import flags
from arena.tournaments.ratings.tasks import FEW_COMMON
from arena.tournaments.ratings.teams import TOGETHER

ROW = Row(rank=1, agent=0, name="ann", games=4, value=1000.0, half=None, forfeits=0, voids=0, conduct=Conduct())
ASKED = parse({"games": ["TicTacToe"], "agents": ["random", "first"]})


def board(*sections: Section, overall: Section | None = None) -> Board:
    return Board(ASKED, "", {}, Path(), [], list(sections), overall, 0, 0, 0, [], [])


def test_what_a_row_works_out() -> None:
    assert (ROW.illegal, ROW.tokens, ROW.cost, ROW.win_rate) == (0.0, None, None, None)
    told = Conduct(turns=4, replies=8, illegal=1, unreadable=2, cut=1, calls=8, prompt_tokens=30, completion_tokens=10)
    row = replace(ROW, conduct=told, won=1, drawn=1, lost=2)
    assert (row.illegal, row.tokens, row.cost, row.win_rate) == (0.5, 10.0, None, 0.375)
    assert replace(ROW, conduct=Conduct(cost=0.5)).cost == 0.5
    assert replace(ROW, conduct=Conduct(calls=3)).tokens is None, "it was asked, but has no turn yet"


@pytest.mark.parametrize(
    ("cycle", "noise", "circular"), [(0.0, 0.0, False), (0.2, 0.1, False), (0.3, 0.1, True), (0.02, 0.0, True)]
)
def test_cycles_beyond_chance(cycle: float, noise: float, circular: bool) -> None:
    assert Beside({}, {}, {}, cycle, noise, {}, []).circular is circular


def test_marks_that_are_there_are_explained() -> None:
    rows = [replace(ROW, flags=("winless", "few games"))]
    shown = board(Section("Nim", 2, rows=rows), overall=Section("All games", 0, rows=[replace(ROW, flags=("anchor",))]))
    assert list(shown.marks) == ["winless", "few games", "anchor"]
    assert board(Section("Nim", 2, rows=[ROW])).marks == {}


def test_all_marks_are_explained() -> None:
    assert {FEW_COMMON, TOGETHER} <= set(MARKS)
    for word in (flags.__doc__ or "").partition("holds of: ")[2].partition(".")[0].split(","):
        assert word.strip() in {*MARKS, "no games"}


def test_sections() -> None:
    section = Section("Nim", 2, rows=[ROW])
    assert (section.rated, section.of(0), section.of(1)) == (False, ROW, None)
