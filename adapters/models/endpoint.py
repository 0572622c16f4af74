"""Endpoint: one of the servers of a model, and how it is doing."""

import asyncio
from collections.abc import Callable

import yarl

from arena.adapters.models.failures import Failure
from arena.adapters.models.limits import Pace, Slots
from arena.adapters.models.settings import Settings

__all__ = ["LONGEST_ASKED_FOR", "Endpoint"]

LONGEST_ASKED_FOR = 60.0
"""Seconds that a server's Retry-After is believed."""
ASIDE, LONGEST_ASIDE = 1.0, 30.0
"""Seconds an endpoint that broke down is set aside, doubled every time."""


class Endpoint:
    """One server, and how it is doing."""

    def __init__(self, base: str, settings: Settings, clock: Callable[[], float]) -> None:
        self.base = base
        self.slots = Slots(settings.concurrency, adaptive=settings.adaptive)
        self.requests = Pace(settings.requests_per_minute, clock) if settings.requests_per_minute else None
        self.tokens = Pace(settings.tokens_per_minute, clock) if settings.tokens_per_minute else None
        self.limited = self.requests is not None or self.tokens is not None
        self.aside_until = 0.0
        self.quiet_until = 0.0
        self.breakdowns = 0
        self._urls: dict[str, yarl.URL] = {}

    def url(self, path: str) -> yarl.URL:
        """The address of a path here, made once."""
        url = self._urls.get(path)
        if url is None:
            url = self._urls[path] = yarl.URL(self.base + path, encoded=True)
        return url

    def answered(self) -> None:
        """All is well."""
        self.aside_until, self.breakdowns = 0.0, 0
        self.slots.answered()

    def failed(self, failure: Failure, sent: float, now: float) -> None:
        """Remember what that says about the server."""
        if failure.busy:
            self.slots.overloaded(sent, now)
        if failure.down:
            self.aside_until = now + min(ASIDE * 2.0**self.breakdowns, LONGEST_ASIDE)
            self.breakdowns = min(self.breakdowns + 1, 10)
        if failure.wait:
            self.quiet_until = max(self.quiet_until, now + min(failure.wait, LONGEST_ASKED_FOR))

    async def hold(self, tokens: int, now: Callable[[], float]) -> None:
        """Wait as long as the server, or the limits per minute, ask for."""
        if self.requests is not None:
            await self.requests.take(1)
        if self.tokens is not None and tokens:
            await self.tokens.take(tokens)
        while (wait := self.quiet_until - now()) > 0:
            await asyncio.sleep(wait)
