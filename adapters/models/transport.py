"""Transport: thousands of HTTP requests in flight to the endpoints of one model, with limits, retries and routing."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import ClassVar
from weakref import WeakValueDictionary

import msgspec

from arena.adapters.models.pool import Answered, Cancelled, Pool, Question
from arena.adapters.models.settings import Settings, base_url, origin

__all__ = ["Answered", "Cancelled", "Settings", "Transport", "base_url"]

DEFAULTS = Settings()
NONE: Mapping[str, str] = {}


class Transport:
    """Asks the endpoints of one model.

    It may be used from several event loops, one after the other or at once in threads: each has its own connections,
    which are closed with the loop at the latest. A transport that has been closed may be used, and closed, again.
    """

    def __init__(
        self,
        urls: Sequence[str],
        settings: Settings = DEFAULTS,
        *,
        named: Sequence[str] | None = None,
        pools: "_Pools | None" = None,
    ) -> None:
        """`urls`: base URLs, at least one. `named`: those of servers that may have the key; None: all. ValueError."""
        self._pools = pools or _Pools(_bases(urls), settings, _origins(urls if named is None else named))
        self.urls, self.settings = self._pools.urls, self._pools.settings
        self._last: Pool | None = None

    @classmethod
    def shared(
        cls, urls: Sequence[str], settings: Settings = DEFAULTS, *, named: Sequence[str] | None = None
    ) -> "Transport":
        """A transport whose connections are those of all who ask these endpoints with these settings.

        Prices and cache do not count. They are closed when the last one that has used them is closed.
        """
        made = _Pools.at(_bases(urls), _of_the_wire(settings), _origins(urls if named is None else named))
        return cls(urls, settings, pools=made)

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
        headers: Mapping[str, str] = NONE,
    ) -> Answered:
        """Send JSON; the body of a 2xx answer. Raises ModelError.

        `affinity`: requests with the same one go to the same endpoint as long as it is up. `cancelled` runs in the
        background if the call is cancelled (or times out) while the server may be at work on it. `url`: that endpoint
        only. `tokens`: what it may use of the tokens per minute. `retries`: other than the settings say.
        """
        question = Question("POST", path, body, affinity, cancelled, url, tokens, retries, None, headers)
        return await self._pool().ask(question)

    async def get(self, path: str, *, url: str = "", retries: int | None = None) -> Answered:
        """The body of a 2xx answer. Raises ModelError."""
        return await self._pool().ask(Question("GET", path, None, "", None, url, 0, retries))

    async def notify(self, path: str, body: bytes, url: str) -> bool:
        """Send JSON to that endpoint once, outside all limits, for a few seconds: whether it was taken. For aborts."""
        return await self._pool().notify(path, body, url)

    async def collect(
        self,
        path: str,
        body: bytes,
        *,
        affinity: str = "",
        cancelled: Cancelled | None = None,
        tokens: int = 0,
        headers: Mapping[str, str] = NONE,
    ) -> tuple[list[bytes], Answered]:
        """As `post`, for an answer that is streamed: its `data:` payloads, and the rest (the body is empty).

        `first_token_seconds` is for the first payload. An answer that breaks off is asked for again, as a whole.
        """
        payloads: list[bytes] = []
        question = Question("POST", path, body, affinity, cancelled, "", tokens, None, payloads, headers)
        return payloads, await self._pool().ask(question)

    async def stream(
        self, path: str, body: bytes, *, affinity: str = "", cancelled: Cancelled | None = None, tokens: int = 0
    ) -> AsyncGenerator[bytes, None]:
        """The payloads of an answer's `data:` lines as they come, until [DONE]. Raises ModelError.

        What fails before the first payload is tried again. Iterate it under `contextlib.aclosing`.
        """
        question = Question("POST", path, body, affinity, cancelled, "", tokens, None)
        async with contextlib.aclosing(self._pool().stream(question)) as payloads:
            async for payload in payloads:
                yield payload

    async def close(self) -> None:
        """Let aborts go out, and close this event loop's connections unless others use them, too."""
        await self._pools.left_by(self)
        self._last = None

    def _pool(self) -> Pool:
        loop = asyncio.get_running_loop()
        last = self._last
        if last is not None and last.loop is loop and not last.closed:
            return last
        pool = self._last = self._pools.of(loop)
        pool.users.add(self)
        return pool


class _Pools:
    """The connections of all event loops to the same endpoints with the same settings."""

    _shared: ClassVar["WeakValueDictionary[tuple[object, ...], _Pools]"] = WeakValueDictionary()
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, urls: tuple[str, ...], settings: Settings, named: frozenset[str]) -> None:
        self.urls, self.settings, self.named = urls, settings, named
        self._open: dict[asyncio.AbstractEventLoop, Pool] = {}

    @classmethod
    def at(cls, urls: tuple[str, ...], settings: Settings, named: frozenset[str]) -> "_Pools":
        """Those that all have who ask for the same."""
        key = urls, settings, named
        with cls._lock:
            found = cls._shared.get(key)
            if found is None:
                found = cls._shared[key] = cls(*key)
            return found

    def of(self, loop: asyncio.AbstractEventLoop) -> Pool:
        """The connections of the running event loop."""
        with self._lock:
            over = [self._open.pop(other) for other in list(self._open) if other.is_closed()]
            pool = self._open.get(loop)
            if pool is None or pool.closed:
                pool = self._open[loop] = Pool(self.urls, self.settings, self.named)
        for other in over:
            other.abandon()
        return pool

    async def left_by(self, who: object) -> None:
        """Close the running event loop's connections if nobody else uses them."""
        loop = asyncio.get_running_loop()
        pool = self._open.get(loop)
        if pool is None or who not in pool.users:
            return
        await pool.farewell()  # what is said then still needs its user
        pool.users.discard(who)
        if not pool.users:
            self._open.pop(loop, None)
            await pool.close()


def _bases(urls: Sequence[str]) -> tuple[str, ...]:
    if not urls:
        raise ValueError("no endpoint: name at least one server's address, such as http://127.0.0.1:30000")
    return tuple(dict.fromkeys(map(base_url, urls)))


def _origins(urls: Sequence[str]) -> frozenset[str]:
    return frozenset(origin(base_url(url)) for url in urls)


def _of_the_wire(settings: Settings) -> Settings:
    return msgspec.structs.replace(
        settings, cache="", prices="", input_price=None, cached_price=None, output_price=None
    )
