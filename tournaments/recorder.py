"""The thread that works with the store, so that no game waits for the disk or the database."""

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from arena.episode import Episode
from arena.tournaments.schedule import Fixture
from arena.tournaments.store import Store, StoreError
from arena.tournaments.tally import Tally

__all__ = ["Recorder"]

T = TypeVar("T")

_Item = Callable[[], object] | tuple[Fixture, Episode]

_BATCH = 64  # finished games that are stored together, at most
_WAITING = 64  # finished games that may wait for the disk
_HURRY = 5.0  # seconds for what waits, once nobody wants to


class Recorder:
    """Stores episodes in the order in which they come; a game counts once it is stored.

    Leases are renewed here, so that they last while the event loop is busy. Use it as an async context manager; at its
    end all is stored, and the leases are given back.
    """

    def __init__(self, store: Store, tally: Tally, owner: str = "", lease: float = 60.0) -> None:
        """`lease`: seconds until another process may take over what this one does not renew."""
        self.store, self.tally, self.owner, self.lease = store, tally, owner, lease
        self.queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self.error: Exception | None = None
        self.looking = asyncio.Lock()
        self.renewed = time.monotonic()
        self.thread = threading.Thread(target=self._work, name="recorder", daemon=True)

    async def __aenter__(self) -> "Recorder":
        self.thread.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.owner:
            self.tell(lambda store: store.release(self.owner))
        self.queue.put(None)
        try:
            while self.thread.is_alive():
                await asyncio.sleep(0.002)
        except asyncio.CancelledError:
            self.thread.join(_HURRY)
            raise
        if kind is None:
            self.check()

    @property
    def waiting(self) -> int:
        """What is still to be done."""
        return self.queue.qsize()

    async def put(self, fixture: Fixture, episode: Episode) -> None:
        """Hand over an episode; waits only while many others do. Raises StoreError once one could not be kept."""
        self.check()
        self.queue.put((fixture, episode))
        await asyncio.sleep(0)
        if self.queue.qsize() > _WAITING:
            async with self.looking:  # one looks for all: a thousand that do would leave the thread no time
                await self._until_few_wait()

    async def ask(self, work: Callable[[Store], T]) -> T:
        """What `work` finds out, after all that was handed over before. Raises StoreError if it cannot."""
        self.check()
        answer: Future[T] = Future()

        def answering() -> None:
            if answer.set_running_or_notify_cancel():
                try:
                    answer.set_result(work(self.store))
                except Exception as error:  # noqa: BLE001 - raised where it was asked
                    answer.set_exception(error)

        self.queue.put(answering)
        told = asyncio.wrap_future(answer)
        while not (await asyncio.wait([told], timeout=1.0))[0]:
            self._check_thread()
        if (error := told.exception()) is not None:
            raise self._unkept(error) from error
        return told.result()

    def tell(self, work: Callable[[Store], object]) -> None:
        """As `ask`, and nobody waits for it."""

        def telling() -> None:
            work(self.store)

        self.queue.put(telling)

    async def _until_few_wait(self) -> None:
        while self.queue.qsize() > _WAITING:
            self.check()
            self._check_thread()
            await asyncio.sleep(0.002)

    def _check_thread(self) -> None:
        if not self.thread.is_alive():
            raise StoreError(f"{self.store.place} is not written any more: its thread has ended")

    def check(self) -> None:
        """Raise StoreError once an episode could not be kept."""
        if self.error is not None:
            raise self._unkept(self.error) from self.error

    def _unkept(self, error: BaseException) -> StoreError:
        return StoreError(f"{self.store.place} cannot be written: {type(error).__name__}: {str(error)[:500]}")

    def _work(self) -> None:
        patience = self.lease / 6 if self.owner else None
        item: _Item | None = _nothing
        while item is not None:
            try:
                item = self.queue.get(timeout=patience)
            except queue.Empty:
                item = _nothing
            games: list[tuple[Fixture, Episode]] = []
            while isinstance(item, tuple) and item[1].outcome != "void" and len(games) < _BATCH:
                games.append(item)  # all that wait, in one transaction
                try:
                    item = self.queue.get_nowait()
                except queue.Empty:
                    item = _nothing
            if games:
                self._guarded(partial(self._keep, games), must=False)
            if isinstance(item, tuple):
                self._guarded(partial(self._keep_one, *item), must=False)
            elif item is not None:
                self._guarded(item, must=True)  # a question gets its answer, if only an error
            if self.owner and time.monotonic() - self.renewed > self.lease / 3:
                self.renewed = time.monotonic()
                self._guarded(self._renew, must=False)

    def _guarded(self, work: Callable[[], object], *, must: bool) -> None:
        if must or self.error is None:
            try:
                work()
            except Exception as error:  # noqa: BLE001 - whatever it is, the run must not go on without a record
                self.error = self.error or error

    def _renew(self) -> None:
        self.store.renew(self.owner, self.lease)

    def _keep_one(self, fixture: Fixture, episode: Episode) -> None:
        if episode.outcome == "void":
            self.store.add_void(fixture, episode)
        else:
            self._keep([(fixture, episode)])

    def _keep(self, games: list[tuple[Fixture, Episode]]) -> None:
        for new, (_, episode) in zip(self.store.add_all(games), games, strict=True):
            if new:
                self.tally.finished += 1
                self.tally.forfeits += bool(episode.forfeits)
                self.tally.truncated += episode.outcome == "truncated"
            else:
                self.tally.there += 1  # another run of the same tournament was quicker


def _nothing() -> None:
    """It is time to look at the leases."""
