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


def test_who_plays_how_fast_and_what_is_waited_for(clock: Clock) -> None:
    out = io.StringIO()
    tally = Tally(total=1000, open_ended=True, distance="widest interval 140 of 100 Elo")
    tally.running.update({"a": 5, "b": 4, "c": 3, "d": 2, "e\x1b[31m": 9})
    with following(Console(file=out, force_terminal=True, width=250)) as report:
        report(tally)
        clock.now += 10
        tally.finished = 25
        report(tally)
    seen = out.getvalue()
    assert "games, at most" in seen
    assert "2.5 games/s, widest interval 140 of 100 Elo, at the table: e" in seen
    assert "a 5, b 4, c 3 and 1 more" in seen
    assert "\x1b[31m" not in seen.partition("at the table")[2].partition("9")[0]


def test_slow_games_are_counted_by_the_minute(clock: Clock) -> None:
    rate, tally = progress._Rate(), Tally(total=10)
    assert rate(tally) == ""
    clock.now, tally.finished = clock.now + 30, 1
    assert rate(tally) == "2.0 games/min"
    clock.now += 90
    assert rate(tally) == ""


def test_waiting_for_others_is_told_at_once(clock: Clock) -> None:
    out, tally = io.StringIO(), Tally(total=4, finished=1)
    with following(Console(file=out, width=120)) as report:
        report(tally)
        tally.waiting, tally.elsewhere = True, 3
        report(tally)
        report(tally)
    assert out.getvalue() == "1/4 games, waiting for 3 games that other processes play\n"
