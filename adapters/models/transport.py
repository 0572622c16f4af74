"""Transport: thousands of HTTP requests in flight to the endpoints of one model, with limits, retries and routing."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Sequence
from typing import ClassVar
from weakref import WeakValueDictionary

import msgspec

from arena.adapters.models.pool import Answered, Cancelled, Pool, Question
from arena.adapters.models.settings import Settings, base_url

__all__ = ["Answered", "Cancelled", "Settings", "Transport", "base_url"]

DEFAULTS = Settings()


class Transport:
    """Asks the endpoints of one model.

    It may be used from several event loops, one after the other or at once in threads: each has its own connections,
    which are closed with the loop at the latest.
    """

    _shared: ClassVar["WeakValueDictionary[tuple[tuple[str, ...], Settings], Transport]"] = WeakValueDictionary()
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, urls: Sequence[str], settings: Settings = DEFAULTS) -> None:
        """`urls`: base URLs, at least one. Raises ValueError."""
        if not urls:
            raise ValueError("no endpoint: name at least one server's address, such as http://127.0.0.1:30000")
        self.urls = tuple(dict.fromkeys(map(base_url, urls)))
        self.settings = settings
        self._users = 1
        self._pools: dict[asyncio.AbstractEventLoop, Pool] = {}
        self._last: Pool | None = None

    @classmethod
    def shared(cls, urls: Sequence[str], settings: Settings = DEFAULTS) -> "Transport":
        """The transport everybody has who asks these endpoints with these settings: one pool, one limit.

        Prices and cache do not count. Each user closes it once; the last one closes the connections.
        """
        key = tuple(map(base_url, urls)), _of_the_wire(settings)
        with cls._lock:
            found = cls._shared.get(key)
            if found is None:
                found = cls._shared[key] = cls(urls, key[1])
            else:
                found._users += 1
            return found

    async def post(
        self,
        path: str,
        body: bytes,
        *,
        affinity: str = "",
        cancelled: Cancelled | None = None,
        url: str = "",
        tokens: int = 0,
        retries: int | None = None,
    ) -> Answered:
        """Send JSON; the body of a 2xx answer. Raises ModelError.

        `affinity`: requests with the same one go to the same endpoint as long as it is up. `cancelled` runs in the
        background if the call is cancelled (or times out) while the server may be at work on it. `url`: that endpoint
        only. `tokens`: what it may use of the tokens per minute. `retries`: other than the settings say.
        """
        return await self._pool().ask(Question("POST", path, body, affinity, cancelled, url, tokens, retries))

    async def get(self, path: str, *, url: str = "", retries: int | None = None) -> Answered:
        """The body of a 2xx answer. Raises ModelError."""
        return await self._pool().ask(Question("GET", path, None, "", None, url, 0, retries))

    async def notify(self, path: str, body: bytes, url: str) -> bool:
        """Send JSON to that endpoint once, outside all limits, for a few seconds: whether it was taken. For aborts."""
        return await self._pool().notify(path, body, url)

    async def collect(
        self, path: str, body: bytes, *, affinity: str = "", cancelled: Cancelled | None = None, tokens: int = 0
    ) -> tuple[list[bytes], Answered]:
        """As `post`, for an answer that is streamed: its `data:` payloads, and the rest (the body is empty).

        `first_token_seconds` is for the first payload. An answer that breaks off is asked for again, as a whole.
        """
        payloads: list[bytes] = []
        question = Question("POST", path, body, affinity, cancelled, "", tokens, None, payloads)
        return payloads, await self._pool().ask(question)

    async def stream(
        self, path: str, body: bytes, *, affinity: str = "", cancelled: Cancelled | None = None
    ) -> AsyncGenerator[bytes, None]:
        """The payloads of an answer's `data:` lines as they come, until [DONE]. Raises ModelError.

        What fails before the first payload is tried again. Iterate it under `contextlib.aclosing`.
        """
        question = Question("POST", path, body, affinity, cancelled, "", 0, None)
        async with contextlib.aclosing(self._pool().stream(question)) as payloads:
            async for payload in payloads:
                yield payload

    async def close(self) -> None:
        """Close this event loop's connections; of a shared transport, when its last user closes it."""
        with self._lock:
            self._users = max(self._users - 1, 0)
            if self._users:
                return
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()

    def _pool(self) -> Pool:
        loop = asyncio.get_running_loop()
        last = self._last
        if last is not None and last.loop is loop and not last.closed:
            return last
        for other in [other for other in self._pools if other.is_closed()]:
            self._pools.pop(other).abandon()
        pool = self._pools.get(loop)
        if pool is None or pool.closed:
            pool = self._pools[loop] = Pool(self.urls, self.settings)
        self._last = pool
        return pool


def _of_the_wire(settings: Settings) -> Settings:
    return msgspec.structs.replace(
        settings, cache="", prices="", input_price=None, cached_price=None, output_price=None
    )
