"""Keeps as many games under way as caps allow: takes them from the supply, leases and starts them, shares with others.

Games go window -> leased -> running. What another process has leased is `elsewhere` until that one has finished it or
its lease has ended. Nothing waits for what it need not: a game that a cap holds back lets others by, leases are asked
for while other games run, and a slow game takes no more than its own place.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from arena.tournaments.budget import Budget, minus
from arena.tournaments.caps import Caps
from arena.tournaments.history import Result
from arena.tournaments.owners import gone
from arena.tournaments.recorder import Recorder
from arena.tournaments.schedule import Fixture
from arena.tournaments.stopping import Spent
from arena.tournaments.store import Store
from arena.tournaments.supply import Supply
from arena.tournaments.tally import Tally
from arena.tournaments.window import Ready, Window

__all__ = ["Dispatch"]

_LOOK = 2048  # games of a fixed schedule that are looked over, at least, for those that caps let by
_AHEAD = 256  # leases for games that start within the second, at most
_VISITED = 512  # finished games passed over, until others have a turn
_AGAIN = 16  # games of others, beside those we have places for, that are asked for again at every look
_POLL = 1.0  # seconds from one look at what other processes do to the next


class News(NamedTuple):
    """What others have done."""

    results: list[Result]
    marker: int
    voids: dict[str, int]
    spent: Spent | None


class Running(NamedTuple):
    """A game under way."""

    ready: Ready
    task: asyncio.Task[None]


class Dispatch:
    """Plays all games of a supply. `halt` lets running games finish and starts no more; cancelling `run` ends them."""

    def __init__(
        self,
        supply: Supply,
        caps: Caps,
        budget: Budget,
        recorder: Recorder,
        play: Callable[[Fixture], Awaitable[None]],
        at_once: int,
        over: Callable[[], str],
    ) -> None:
        """`over`: asked now and then which stopping rule holds, in words; "": none."""
        self.supply, self.window, self.budget, self.recorder = supply, Window(caps), budget, recorder
        self.play, self.at_once, self.over = play, at_once, over
        self.tally: Tally = supply.tally
        self.leased: deque[Ready] = deque()
        self.running: dict[str, Running] = {}
        self.elsewhere: dict[str, Fixture] = {}
        self.halted = False
        self.error: BaseException | None = None
        self.changed = asyncio.Event()
        self.marker = 0
        """Of `Store.results`: what is not known yet comes after it."""
        self._look = max(_LOOK, 4 * at_once) if supply.fixed else 2 * at_once + 16
        self._ours: set[str] = set()
        """Games for which a lease is asked, or held."""
        self._ended: deque[float] = deque(maxlen=_AHEAD)
        self._met = False
        """Another process has been seen."""
        self._looks = 0
        self._starved: int | None = None
        """`_looks` when the schedule first waited for results though nothing was under way."""

    def halt(self) -> None:
        """Start no more."""
        self.halted = True
        self.changed.set()

    async def run(self) -> None:
        """Until all is played, by us or by others, or it is halted and what ran has ended."""
        following = asyncio.create_task(self._follow())
        try:
            while not self._finished():
                self.changed.clear()
                if not self.halted and (batch := await self._next()):
                    await self._lease(batch)
                elif not self._finished():
                    self._wait_for_others()
                    await self.changed.wait()
        finally:
            following.cancel()
            tasks = [running.task for running in self.running.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(following, *tasks, return_exceptions=True)
            self.tally.waiting = False

    def _finished(self) -> bool:
        if self.error is not None:
            raise self.error
        self.recorder.check()
        if self.halted:
            return not self.running
        if reason := self.over():
            self.tally.ended = reason
            self.halt()
            return not self.running
        busy = self.running or self.leased or self.elsewhere or len(self.window)
        return self.supply.dry and not busy

    async def _next(self) -> list[Ready]:
        """Games that may start now, with a few more for those that end within the second; [] if there is none."""
        under_way = len(self.running) + len(self.leased)
        places = min(self.at_once + self._ahead() - under_way, self.budget.room(under_way))
        batch: list[Ready] = []
        visited = 0
        while len(batch) < places:
            if (ready := self.window.take()) is not None:
                batch.append(ready)
            elif len(self.window) >= self._look or (games := self.supply.next()) is None:
                break
            else:
                for fixture in games:
                    self._offer(fixture)
                visited += 1 if games else 4
                if visited >= _VISITED:
                    visited = 0
                    await asyncio.sleep(0)
                    if self.halted or self.error is not None:
                        break
        return batch

    def _ahead(self) -> int:
        """As many as ended within the last second: fast games need not wait for their leases, slow ones hoard none."""
        since = time.monotonic() - 1.0
        while self._ended and self._ended[0] < since:
            self._ended.popleft()
        return len(self._ended)

    def _offer(self, fixture: Fixture) -> None:
        """Into the window, unless it is under way."""
        if fixture.id not in self._ours and fixture.id not in self.elsewhere:
            self.window.add(fixture)

    async def _lease(self, batch: list[Ready]) -> None:
        fixtures = [ready.fixture for ready in batch]
        self._ours.update([fixture.id for fixture in fixtures])
        owner, seconds = self.recorder.owner, self.recorder.lease
        mine = {fixture.id for fixture in await self.recorder.ask(lambda store: store.claim(fixtures, owner, seconds))}
        for ready in batch:
            if ready.fixture.id in mine:
                self.leased.append(ready)
            else:
                self.window.give(ready.held)
                self._ours.discard(ready.fixture.id)
                self.elsewhere[ready.fixture.id] = ready.fixture
        self._start()

    def _start(self) -> None:
        while self.leased and len(self.running) < self.at_once and not self.halted:
            ready = self.leased.popleft()
            self.running[ready.fixture.id] = Running(ready, asyncio.create_task(self._run(ready)))

    async def _run(self, ready: Ready) -> None:
        fixture = ready.fixture
        try:
            await self.play(fixture)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - raised by `run`
            self.error = self.error or error
        finally:
            del self.running[fixture.id]
            self._ours.discard(fixture.id)
            self.window.give(ready.held)
            self._ended.append(time.monotonic())
            self.changed.set()
            self._start()

    def _wait_for_others(self) -> None:
        """Nothing can be started: say so if others play all that is left; a schedule must not wait for nobody."""
        idle = not (self.running or self.leased or self.halted)
        self.tally.waiting = idle and bool(self.elsewhere)
        if not (idle and self.supply.waits) or self.elsewhere or len(self.window):
            self._starved = None
        elif self._starved is None:
            self._starved = self._looks  # results of others may be on their way
        elif self._looks > self._starved:
            raise RuntimeError("the schedule waits for a game that nobody plays")

    async def _follow(self) -> None:
        """Learn now and then what other processes have finished, and take over what they have left."""
        every = min(_POLL, self.recorder.lease / 4)
        try:
            while True:
                await asyncio.sleep(every)
                await self._look_at_others()
                self.changed.set()
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - raised by `run`
            self.error = self.error or error
            self.changed.set()

    async def _look_at_others(self) -> None:
        own, curious = self.budget.own, self._met or bool(self.elsewhere) or self._starved is not None
        news = await self.recorder.ask(lambda store: self._news(store, curious))
        self._looks += 1
        if news is not None:
            self._met = True
            self.marker = news.marker
            self.supply.hear(news.results, news.voids)
            if news.spent is not None:
                self.budget.base = minus(news.spent, own)
            self._look_at_elsewhere()

    def _news(self, store: Store, curious: bool) -> News | None:
        """In the recorder's thread. The leases of processes that have ended on this machine are given up."""
        mine = self.recorder.owner
        others = [owner for owner in store.owners() if owner != mine]
        for owner in others:
            if gone(owner, mine):
                store.release(owner)
        if not others and not curious:
            return None
        results, marker = store.results(self.marker)
        return News(results, marker, store.void_attempts(), Spent(*store.spent()) if self.budget.counts else None)

    def _look_at_elsewhere(self) -> None:
        """What others have finished, or left void, is done; of the rest, what we could play is asked for again."""
        again = max(self.at_once - len(self.running), 0) + _AGAIN
        for key, fixture in list(self.elsewhere.items()):
            if key in self.supply.finished:
                self.tally.there += self.supply.fixed
            elif self.supply.lost(fixture):
                self.supply.leave(fixture)
            elif again:
                again -= 1
                self.window.add(fixture)
            else:
                continue
            del self.elsewhere[key]
        self.tally.elsewhere = len(self.elsewhere)

    def seats(self, names: list[str]) -> Counter[str]:
        """How many games every agent sits in just now."""
        return Counter(names[agent] for run in self.running.values() for agent in set(run.ready.fixture.agents))
