"""Server-sent events that say when a run has changed: one looks at the store for all who listen."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from arena.tournaments.database import StoreError
from arena.tournaments.site.snapshot import Snapshot

__all__ = ["Changes"]

_ALIVE = 15.0  # seconds after which a quiet stream says that it is there: proxies end what says nothing


class Changes:
    """Tells all who listen that the run has changed; one looks for everybody, every `poll` seconds."""

    def __init__(self, snapshot: Snapshot, poll: float) -> None:
        self.snapshot, self.poll = snapshot, poll
        self.count, self.ended = 0, False
        self._changed = asyncio.Condition()

    async def watch(self) -> None:
        """Look until cancelled."""
        before: object = None
        while True:
            with contextlib.suppress(StoreError):  # being written, or gone for a moment: seen at the next look
                now = await asyncio.to_thread(self.snapshot.version)
                if before is None:
                    before = now
                elif now != before and self.snapshot.due:  # sooner, all would be given what they have
                    before = now
                    await self._tell()
            await asyncio.sleep(self.poll)

    async def end(self) -> None:
        """Let all streams end: a server that stops waits for them."""
        self.ended = True
        async with self._changed:
            self._changed.notify_all()

    async def _tell(self) -> None:
        async with self._changed:
            self.count += 1
            self._changed.notify_all()

    async def stream(self) -> AsyncIterator[str]:
        """The events of one listener."""
        seen = self.count
        yield "retry: 2000\n\n"
        while not self.ended:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._next(seen), _ALIVE)
            if self.count != seen:
                seen = self.count
                yield f"id: {seen}\nevent: change\ndata: {seen}\n\n"
            else:
                yield ": here\n\n"

    async def _next(self, seen: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self.count != seen or self.ended)
