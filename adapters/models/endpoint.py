"""Endpoint: one of the servers of a model, and how it is doing."""

import asyncio
import threading
from collections.abc import Callable
from typing import ClassVar
from weakref import WeakKeyDictionary, WeakValueDictionary

import yarl

from arena.adapters.models.failures import Failure
from arena.adapters.models.limits import Pace, Slots
from arena.adapters.models.settings import Settings

__all__ = ["LONGEST_ASKED_FOR", "Endpoint"]

LONGEST_ASKED_FOR = 60.0
"""Seconds that a server's Retry-After is believed."""
ASIDE, LONGEST_ASIDE = 1.0, 30.0
"""Seconds an endpoint that broke down is set aside, doubled every time."""
REFUSALS = 3
"""From so many on, with no answer between, an endpoint is set aside as if it had broken down."""


class Endpoint:
    """One server, and how it is doing: the same for all pools of an event loop that ask it."""

    _living: ClassVar["WeakValueDictionary[tuple[asyncio.AbstractEventLoop, str], Endpoint]"] = WeakValueDictionary()
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, base: str, clock: Callable[[], float]) -> None:
        self.base = base
        self.clock = clock
        self.slots = Slots(1)
        self.requests: Pace | None = None
        self.tokens: Pace | None = None
        self.limited = False
        self.aside_until = 0.0
        self.quiet_until = 0.0
        self.breakdowns = 0
        self.refusals = 0
        self._asking: WeakKeyDictionary[object, Settings] = WeakKeyDictionary()
        self._urls: dict[str, yarl.URL] = {}

    @classmethod
    def at(cls, base: str, loop: asyncio.AbstractEventLoop, who: object, settings: Settings) -> "Endpoint":
        """The one of this event loop; `who` asks it from now on, with these limits."""
        with cls._lock:
            found = cls._living.get((loop, base))
            if found is None:
                found = cls._living[loop, base] = cls(base, loop.time)
        found._asking[who] = settings
        found._limit()
        return found

    def left_by(self, who: object) -> None:
        """Its limits need not be kept any longer."""
        if self._asking.pop(who, None) is not None and self._asking:
            self._limit()

    def _limit(self) -> None:
        """The lowest of all limits holds."""
        asking = list(self._asking.values())
        self.slots.allow(min(s.concurrency for s in asking), adaptive=any(s.adaptive for s in asking))
        self.requests = self._paced(self.requests, [s.requests_per_minute for s in asking])
        self.tokens = self._paced(self.tokens, [s.tokens_per_minute for s in asking])
        self.limited = self.requests is not None or self.tokens is not None

    def _paced(self, pace: Pace | None, limits: list[float | None]) -> Pace | None:
        lowest = min((limit for limit in limits if limit is not None), default=None)
        if lowest is None:
            return None
        if pace is None:
            return Pace(lowest, self.clock)
        pace.seconds = 60 / lowest
        return pace

    def url(self, path: str) -> yarl.URL:
        """The address of a path here, made once."""
        url = self._urls.get(path)
        if url is None:
            url = self._urls[path] = yarl.URL(self.base + path, encoded=True)
        return url

    def answered(self) -> None:
        """All is well."""
        self.aside_until, self.breakdowns, self.refusals = 0.0, 0, 0
        self.slots.answered()

    def failed(self, failure: Failure, sent: float, now: float) -> None:
        """Remember what that says about the server."""
        if failure.busy:
            self.slots.overloaded(sent, now)
        if failure.again and not failure.down:
            self.refusals += 1
        if (failure.down or self.refusals >= REFUSALS) and self.aside_until <= now:
            self.aside_until = now + min(ASIDE * 2.0**self.breakdowns, LONGEST_ASIDE)
            self.breakdowns = min(self.breakdowns + 1, 10)
        if failure.wait:
            self.quiet_until = max(self.quiet_until, now + min(failure.wait, LONGEST_ASKED_FOR))

    async def enter(self, tokens: int) -> None:
        """Take a slot, and wait as long as the server, or the limits per minute, ask for."""
        if self.requests is not None:
            await self.requests.take(1)
        if self.tokens is not None and tokens:
            await self.tokens.take(tokens)
        await self._quiet()
        await self.slots.enter()
        try:
            await self._quiet()  # it may have asked for it while others were served
        except asyncio.CancelledError:
            self.slots.leave()
            raise

    async def _quiet(self) -> None:
        while self.quiet_until:
            wait = self.quiet_until - self.clock()
            if wait <= 0:
                self.quiet_until = 0.0
                return
            await asyncio.sleep(wait)
