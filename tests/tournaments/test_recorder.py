"""The thread that stores episodes, when hundreds of games end at once."""

import asyncio
import time
from typing import Any

import pytest

from arena.match import play_sync
from arena.tournaments.recorder import Recorder
from arena.tournaments.runner import Tally
from arena.tournaments.store import StoreError

GAMES = 300
EPISODE = play_sync("TicTacToe-v0", ["first", "first"])


class SlowStore:
    """Keeps nothing, and fails at episode number `fails`."""

    place = "a store"

    def __init__(self, fails: int = -1) -> None:
        self.kept, self.fails = 0, fails

    def add_all(self, games: list[object]) -> list[bool]:
        for _ in games:
            time.sleep(0.0005)
            if self.kept == self.fails:
                raise OSError("disk full")
            self.kept += 1
        return [True] * len(games)


async def put_at_once(store: Any, tally: Tally) -> None:
    fixture: Any = None
    async with Recorder(store, tally) as recorder:
        await asyncio.gather(*[recorder.put(fixture, EPISODE) for _ in range(GAMES)])


def test_one_game_looks_for_all_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """With hundreds looking again and again the thread would get no time."""
    looking, most, waited, real = 0, 0, 0, Recorder._until_few_wait

    async def counted(recorder: Recorder) -> None:
        nonlocal looking, most, waited
        looking, waited = looking + 1, waited + 1
        most = max(most, looking)
        await real(recorder)
        looking -= 1

    monkeypatch.setattr(Recorder, "_until_few_wait", counted)
    store, tally = SlowStore(), Tally(GAMES)
    asyncio.run(put_at_once(store, tally))
    assert (store.kept, tally.finished) == (GAMES, GAMES)
    assert waited > GAMES // 2
    assert most == 1


def test_who_waits_hears_of_a_full_disk() -> None:
    store = SlowStore(fails=5)
    with pytest.raises(StoreError, match="a store cannot be written: OSError: disk full"):
        asyncio.run(put_at_once(store, Tally(GAMES)))
    assert store.kept == 5
