"""Runs that hang, everywhere: they say what hangs, keep what is finished, and end."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from arena.agent import Agent, Reply, View
from arena.game import Game
from arena.referee import Referee
from arena.registry import AGENTS
from arena.tournaments.config import parse
from arena.tournaments.runner import Stalled, Tally, run
from arena.tournaments.store import Store
from arena.tournaments.watchdog import Watchdog


class Hanging(Agent):
    """Hangs where it is told to: prepare, act (from the second ply on), late (in a few games only) or close."""

    def __init__(self, target: str = "act") -> None:
        self.where = target

    async def prepare(self, game: Game, referee: Referee) -> None:
        await asyncio.sleep(3600 if self.where == "prepare" else 0)

    async def act(self, view: View) -> Reply:
        late = self.where == "late" and view._seed == 5
        await asyncio.sleep(3600 if view.ply and (self.where == "act" or late) else 0)
        return Reply((view.legal_actions or ("",))[0])

    async def close(self) -> None:
        await asyncio.sleep(3600 if self.where == "close" else 0)


class Looping(Agent):
    """Never gives the event loop back, from the second ply on."""

    def act(self, view: View) -> Reply:
        while view.ply:
            time.sleep(0.01)
        return Reply((view.legal_actions or ("",))[0])


@pytest.fixture(autouse=True)
def _agents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.tournaments.watchdog._GRACE", 1.0)
    for name in ("Hanging", "Looping"):
        monkeypatch.setitem(AGENTS, name.lower(), f"{__name__}:{name}")


def play(folder: Path, *agents: str, **change: Any) -> Tally:
    asked = parse({"games": ["TicTacToe"], "agents": [*agents, "first"], "blocks": 8, "stalled": 1.0, **change})
    with Store.resume(folder, asked) as store:
        return run(asked, store)


def finished(folder: Path) -> int:
    with Store.open(folder) as store:
        return len(store.finished())


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("prepare", "preflight of agent 'hanging:prepare' in TicTacToe-v0 for"),
        ("act", r"game [0-9a-f]{8} \(TicTacToe-v0, seed \d: .*\): agent 'hanging:act', seat [01], at ply [12] for"),
        ("late", r"game [0-9a-f]{8} \(TicTacToe-v0, seed 5: .*\): agent 'hanging:late', seat [01], at ply [12] for"),
        ("close", "closing the agents; closing agent 'hanging:close' for"),
    ],
)
def test_what_hangs_is_said(where: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(Stalled, match=f"nothing has gone on for 1 s: .*{said}"):
        play(tmp_path, f"hanging:{where}")
    assert finished(tmp_path) == {"prepare": 0, "act": 0, "late": 14, "close": 16}[where]
    assert "watchdog" not in [thread.name for thread in threading.enumerate()]


def test_a_loop_that_is_held_up_is_interrupted(tmp_path: Path) -> None:
    with pytest.raises(Stalled, match="agent 'looping', seat"):
        play(tmp_path, "looping")


def test_a_search_that_hangs_is_said(tmp_path: Path) -> None:
    with pytest.raises(Stalled, match=r"game .*: agent 'stuck', seat [01], at ply [12] for"):
        play(tmp_path, "stuck", blocks=1, workers=1, stalled=3.0)


def test_a_store_that_hangs_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    never = threading.Event()
    monkeypatch.setattr(Store, "add_all", lambda *_: never.wait(20))
    monkeypatch.setattr("arena.tournaments.recorder._HURRY", 0.2)
    with pytest.raises(Stalled, match=r"storing what is finished"):
        play(tmp_path, "random")
    never.set()


def test_slow_is_not_stuck(tmp_path: Path) -> None:
    tally = play(tmp_path, "slow?seconds=0.3", blocks=1, concurrency=1, stalled=1.5)
    assert (tally.finished, tally.left) == (2, 0)


def test_a_process_that_cannot_be_stopped_ends() -> None:
    """Neither the loop nor the main thread hears: the process ends, and says why."""
    program = """
import asyncio, signal, time
from arena.tournaments.watchdog import Watchdog

async def main():
    with Watchdog(0.3, lambda what: None, grace=0.3) as dog, dog.doing("a call that never ends"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while True:
            time.sleep(0.1)

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "given up: nothing has gone on for 0.3 s: a call that never ends for" in done.stderr
    assert "Traceback" not in done.stderr


def test_it_tells_a_few_of_many() -> None:
    dog = Watchdog(None, print)
    marks = [dog.doing(f"game {number}") for number in range(8)]
    for mark in marks:
        mark.__enter__()
    assert dog.hangs().endswith("game 4 for 0 s; and 3 more")


def press(times: int, after: float) -> None:
    def work() -> None:
        for _ in range(times):
            time.sleep(after)
            os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=work, daemon=True).start()


@pytest.mark.parametrize(("where", "done"), [("close", 16), ("prepare", 0)])
def test_two_ctrl_c_end_what_hangs_before_and_after_the_games(where: str, done: int, tmp_path: Path) -> None:
    asked = parse({"games": ["TicTacToe"], "agents": [f"hanging:{where}", "first"], "blocks": 8})
    pressed: list[float] = []

    def report(tally: Tally) -> None:
        if tally.finished == done and not pressed:
            pressed.append(time.monotonic())
            press(2, 0.5)

    with Store.resume(tmp_path, asked) as store:
        tally = run(asked, store, report, tick=0.05)
    assert (tally.finished, tally.stopped) == (done, True)
    assert finished(tmp_path) == done


def test_two_ctrl_c_end_a_loop_that_is_held_up(tmp_path: Path) -> None:
    asked = parse({"games": ["TicTacToe"], "agents": ["looping", "first"], "blocks": 8})
    press(2, 1.0)
    with Store.resume(tmp_path, asked) as store:
        assert run(asked, store).stopped
