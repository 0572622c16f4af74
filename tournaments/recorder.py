"""The thread that keeps what is played."""

import asyncio
import queue
import threading
from typing import Self

from arena.episode import Episode
from arena.tournaments.schedule import Fixture
from arena.tournaments.store import Store, StoreError
from arena.tournaments.tally import Tally

__all__ = ["Recorder"]

_WAITING = 64  # finished games that may wait for the disk


class Recorder:
    """A thread that stores episodes, so that no game waits for the disk; a game counts once it is stored."""

    def __init__(self, store: Store, tally: Tally) -> None:
        self.store, self.tally = store, tally
        self.queue: queue.SimpleQueue[tuple[Fixture, Episode] | None] = queue.SimpleQueue()
        self.error: Exception | None = None
        self.looking = asyncio.Lock()
        self.thread = threading.Thread(target=self._work, name="recorder")

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.queue.put(None)
        self.thread.join()
        if kind is None:
            self.check()

    async def put(self, fixture: Fixture, episode: Episode) -> None:
        """Hand over an episode; waits only while many others do. Raises StoreError once one could not be kept."""
        self.check()
        self.queue.put((fixture, episode))
        await asyncio.sleep(0)
        if self.queue.qsize() > _WAITING:
            async with self.looking:  # one looks for all: a thousand that do would leave the thread no time
                await self._until_few_wait()

    async def _until_few_wait(self) -> None:
        while self.queue.qsize() > _WAITING:
            self.check()
            if not self.thread.is_alive():
                raise StoreError(f"{self.store.path} is not written any more: its thread has ended")
            await asyncio.sleep(0.002)

    def check(self) -> None:
        """Raise StoreError once an episode could not be kept."""
        if self.error is not None:
            said = f"{type(self.error).__name__}: {self.error}"
            raise StoreError(f"{self.store.path} cannot be written: {said[:500]}") from self.error

    def _work(self) -> None:
        while (item := self.queue.get()) is not None:
            if self.error is None:
                try:
                    self._keep(*item)
                except Exception as error:  # noqa: BLE001 - whatever it is, the run must not go on without a record
                    self.error = error

    def _keep(self, fixture: Fixture, episode: Episode) -> None:
        if episode.outcome == "void":
            self.store.add_void(fixture, episode)
        elif self.store.add(fixture, episode):
            self.tally.finished += 1
            self.tally.forfeits += bool(episode.forfeits)
            self.tally.truncated += episode.outcome == "truncated"
        else:
            self.tally.there += 1  # another run of the same tournament was quicker
