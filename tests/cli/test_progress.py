import io

import pytest
from rich.console import Console

from arena.cli import progress
from arena.cli.progress import following
from arena.tournaments.runner import Tally


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr(progress, "time", fake)
    return fake


def test_lines_come_now_and_then(clock: Clock) -> None:
    out, tally = io.StringIO(), Tally(total=100)
    with following(Console(file=out)) as report:
        for second in range(35):
            clock.now, tally.finished = 100.0 + second, second
            report(tally)
    assert out.getvalue() == "10/100 games\n20/100 games\n30/100 games\n"


def test_lines_tell_what_went_wrong(clock: Clock) -> None:
    out = io.StringIO()
    with following(Console(file=out)) as report:
        clock.now += 60
        report(Tally(total=100, there=5, finished=5, forfeits=2, voids=3))
    assert out.getvalue() == "10/100 games, 2 forfeits, 3 void\n"


def test_a_stop_and_the_end_are_told_at_once(clock: Clock) -> None:
    out, tally = io.StringIO(), Tally(total=4)
    with following(Console(file=out, width=120)) as report:
        report(tally)
        tally.stopped = True
        report(tally)
        report(tally)
        tally.finished = 4
        report(tally)
        report(tally)
    assert out.getvalue().splitlines() == [
        "0/4 games, stopping: running games finish, Ctrl-C again ends at once",
        "4/4 games, stopping: running games finish, Ctrl-C again ends at once",
    ]


def test_a_bar_on_a_terminal() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=120)
    with following(console) as report:
        report(Tally(total=8, there=2, finished=3, forfeits=1))
    assert "5/8" in out.getvalue()
    assert "1 forfeits" in out.getvalue()
