"""Pool: the connections of one event loop to the endpoints of a model, and the attempts at a request."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from hashlib import blake2b
from random import Random
from typing import NamedTuple
from weakref import WeakSet

import aiohttp

from arena.adapters.models.endpoint import LONGEST_ASKED_FOR, Endpoint
from arena.adapters.models.failures import Failure, broken_connection, refused
from arena.adapters.models.keys import key_in
from arena.adapters.models.limits import Deadlines
from arena.adapters.models.settings import Settings, origin
from arena.adapters.models.sse import payloads as payloads_of
from arena.model import ModelError

__all__ = ["Answered", "Cancelled", "Pool", "Question"]

Cancelled = Callable[[str], Awaitable[None]]
"""What is done when a request will not be waited for any longer, given its endpoint: abort it there."""

FIRST_WAIT, LONGEST_WAIT = 0.5, 20.0
"""Seconds: the longest wait before the second attempt, doubled with every further one up to the last."""
LARGEST = 64 << 20
"""Bytes of an answer."""
GOODBYE = 5.0
"""Seconds an abort may take."""
IDLE = 4.0
"""Seconds a connection is kept: less than the 5 of uvicorn, which would close it just when it is used again."""


class Answered(NamedTuple):
    """An answer, and what it took to get it."""

    body: bytes
    url: str
    """The endpoint that gave it."""
    seconds: float
    """From the first attempt on, waiting included."""
    attempts: int


class Question(NamedTuple):
    """A request to any of the endpoints, or to the one named."""

    method: str
    path: str
    body: bytes | None
    affinity: str
    cancelled: Cancelled | None
    url: str
    tokens: int
    retries: int | None
    streamed: list[bytes] | None = None
    """Where the payloads of a streamed answer go."""
    headers: Mapping[str, str] = {}


class Pool:
    """The connections of the running event loop. They are closed with it, if not before."""

    def __init__(self, urls: Sequence[str], settings: Settings, named: Collection[str]) -> None:
        """`named`: the origins that may have the key. Raises ModelError where there is none."""
        self.loop = asyncio.get_running_loop()
        self.settings = settings
        self.clock = self.loop.time
        self.key = {"Authorization": f"Bearer {key_in(settings.api_key_env)}"} if settings.api_key_env else {}
        self.named = frozenset(base for base in urls if origin(base) in named)
        self.endpoints = [Endpoint.at(base, self.loop, self, settings) for base in urls]
        self.users: WeakSet[object] = WeakSet()
        self.deadlines = Deadlines(settings.call_seconds)
        self.chance = Random()
        self.goodbyes: set[asyncio.Task[None]] = set()
        self.closed = False
        self.connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE)
        self.session = self._session()
        self._with_loop = _close_with_loop(self.session)
        with contextlib.suppress(StopIteration):
            self._with_loop.__anext__().__await__().send(None)  # runs it up to its only yield

    def _session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=self.connector,
            headers={"Content-Type": "application/json", "Accept-Encoding": "identity"},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.settings.connect_seconds),
        )

    async def ask(self, question: Question) -> Answered:
        """The first good answer. Raises ModelError."""
        clock, began, attempt, tried = self.clock, self.clock(), 0, set[Endpoint]()
        while True:
            attempt += 1
            endpoint = self._choose(question, tried)
            result = await self._attempt(endpoint, question)
            if isinstance(result, bytes):
                return Answered(result, endpoint.base, clock() - began, attempt)
            await self._again(result, endpoint, question, attempt, tried)

    async def _attempt(self, endpoint: Endpoint, question: Question) -> bytes | Failure:
        slots = endpoint.slots
        if endpoint.limited or endpoint.quiet_until or not slots.enter_now():
            await endpoint.enter(question.tokens)
        call = self.deadlines.watch()
        try:
            body = await (self._whole if question.streamed is None else self._collected)(endpoint, question)
        except _Refused as refusal:
            failure = refusal.failure
        except asyncio.CancelledError:
            if not call.timed_out():
                self._goodbye(endpoint, question)
                raise
            failure = broken_connection(endpoint.base, self._too_slow())
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            failure = broken_connection(endpoint.base, error)
        else:
            endpoint.answered()
            return body
        finally:
            self.deadlines.done(call)
            slots.leave()
        endpoint.failed(failure, call.ends - self.settings.call_seconds, self.clock())
        return failure

    def _request(self, endpoint: Endpoint, question: Question) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        key = self.key if endpoint.base in self.named else {}
        return self.session.request(
            question.method,
            endpoint.url(question.path),
            data=question.body,
            headers={**key, **question.headers} if question.headers else key,
            allow_redirects=False,
        )

    async def _whole(self, endpoint: Endpoint, question: Question) -> bytes:
        async with self._request(endpoint, question) as response:
            if response.status >= 300:
                await self._refuse(endpoint, question, response)
            length = response.content_length
            if length is not None and length <= LARGEST:
                return await response.read()
            return await _bounded(response, LARGEST)

    async def _collected(self, endpoint: Endpoint, question: Question) -> bytes:
        async with contextlib.aclosing(self._streamed(endpoint, question)) as found:
            payloads = [payload async for payload in found]
        if question.streamed is not None:
            question.streamed[:] = payloads
        return b""

    async def _streamed(self, endpoint: Endpoint, question: Question) -> AsyncGenerator[bytes, None]:
        """The payloads. Servers may hold back even the status until there is a first token."""
        limit = self.settings.first_token_seconds
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(limit) as timer:
                    response = await stack.enter_async_context(self._request(endpoint, question))
                    if response.status >= 300:
                        await self._refuse(endpoint, question, response)
                    found = payloads_of(response.content.iter_any(), LARGEST)
                    first = await anext(found, None)
            except TimeoutError:
                if not timer.expired():
                    raise
                raise TimeoutError(f"no first token within {limit:g} s (first_token_seconds)") from None
            if first is not None:
                yield first
                async for payload in found:
                    yield payload

    async def _refuse(self, endpoint: Endpoint, question: Question, response: aiohttp.ClientResponse) -> None:
        """Raise what the server says instead of an answer."""
        said = await _bounded(response, LARGEST >> 10)
        env, named = self.settings.api_key_env, endpoint.base in self.named
        raise _Refused(refused(endpoint.base, question.path, response.status, response.headers, said, env, named=named))

    def _too_slow(self) -> TimeoutError:
        return TimeoutError(f"no whole answer within {self.settings.call_seconds:g} s (call_seconds)")

    async def _again(
        self, failure: Failure, endpoint: Endpoint, question: Question, attempt: int, tried: set[Endpoint]
    ) -> None:
        """Get ready for the next attempt. Raises ModelError if there is none."""
        if failure.running and question.cancelled is not None:
            await _say_goodbye(question.cancelled, endpoint.base)
        retries = self.settings.retries if question.retries is None else question.retries
        if not failure.again or attempt > retries:
            raise failure.error(attempt)
        tried.add(endpoint)
        another = not question.url and bool(self._well(tried))
        if failure.down and another:
            return  # it takes over at once
        wait = self.chance.uniform(0, min(FIRST_WAIT * 2.0 ** (attempt - 1), LONGEST_WAIT))
        if not another:
            tried.clear()
            wait += min(failure.wait or 0.0, LONGEST_ASKED_FOR)
        await asyncio.sleep(wait)

    def _well(self, tried: Collection[Endpoint] = ()) -> list[Endpoint]:
        now = self.clock()
        return [e for e in self.endpoints if e.aside_until <= now and e.quiet_until <= now and e not in tried]

    def _choose(self, question: Question, tried: Collection[Endpoint] = ()) -> Endpoint:
        """The endpoint named, or the one that the affinity falls on among those that are well, or the least busy one.

        Rendezvous hashing (Thaler and Ravishankar 1998): an endpoint that is set aside moves only its own requests.
        `tried`: those that were too busy for this request just now.
        """
        if self.closed:
            raise ModelError(f"{', '.join(self._bases())}: the connections have been closed meanwhile")
        if question.url:
            return self._named(question.url)
        if len(self.endpoints) == 1:
            return self.endpoints[0]
        well = self._well(tried) or self._well() or self.endpoints
        if question.affinity:
            return max(well, key=lambda e: _rank(e.base, question.affinity))
        return min(well, key=lambda e: (e.slots.busy + len(e.slots.waiting), self.chance.random()))

    def _named(self, url: str) -> Endpoint:
        found = next((e for e in self.endpoints if e.base == url), None)
        if found is None:
            raise ModelError(f"{url}: not an endpoint of this model: {', '.join(self._bases())}")
        return found

    def _bases(self) -> list[str]:
        return [endpoint.base for endpoint in self.endpoints]

    async def stream(self, question: Question) -> AsyncGenerator[bytes, None]:
        """The payloads of a streamed answer as they come."""
        attempt, begun, tried = 0, False, set[Endpoint]()
        while True:
            attempt += 1
            endpoint = self._choose(question, tried)
            await endpoint.enter(question.tokens)
            sent = self.clock()
            try:
                async with contextlib.aclosing(self._streamed(endpoint, question)) as found:
                    while (payload := await self._until(sent, found)) is not None:
                        begun = True
                        yield payload
            except _Refused as refusal:
                failure = refusal.failure
            except (asyncio.CancelledError, GeneratorExit):
                self._goodbye(endpoint, question)
                raise
            except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
                failure = broken_connection(endpoint.base, error)
            else:
                endpoint.answered()
                return
            finally:
                endpoint.slots.leave()
            endpoint.failed(failure, sent, self.clock())
            await self._again(failure._replace(again=failure.again and not begun), endpoint, question, attempt, tried)

    async def _until(self, sent: float, found: AsyncGenerator[bytes, None]) -> bytes | None:
        """The next payload. A time limit of its own each: whoever iterates may be anywhere in between."""
        try:
            async with asyncio.timeout_at(sent + self.settings.call_seconds) as limit:
                return await anext(found, None)
        except TimeoutError:
            if limit.expired():
                raise self._too_slow() from None
            raise

    async def notify(self, path: str, body: bytes, url: str) -> bool:
        """Tell an endpoint something once, whatever comes of it; whether it was taken."""
        endpoint = self._named(url)
        question = Question("POST", path, body, "", None, url, 0, 0)
        try:
            async with asyncio.timeout(GOODBYE), self._request(endpoint, question) as response:
                return response.status < 300
        except (aiohttp.ClientError, TimeoutError, ConnectionError):
            return False

    def _goodbye(self, endpoint: Endpoint, question: Question) -> None:
        if question.cancelled is not None and not self.closed:
            task = self.loop.create_task(_say_goodbye(question.cancelled, endpoint.base))
            self.goodbyes.add(task)
            task.add_done_callback(self.goodbyes.discard)

    async def farewell(self) -> None:
        """Let aborts go out."""
        if self.goodbyes:
            await asyncio.wait(set(self.goodbyes))

    async def close(self) -> None:
        """Let aborts go out, and close all connections."""
        await self.farewell()
        self._end()
        self.deadlines.close()
        await self._with_loop.aclose()

    def _end(self) -> None:
        self.closed = True
        for endpoint in self.endpoints:
            endpoint.left_by(self)

    def abandon(self) -> None:
        """Forget the connections of an event loop that has been closed without closing them."""
        self._end()
        with contextlib.suppress(StopIteration):
            next(self.session.close().__await__())  # has nothing to wait for, as there is no loop


class _Refused(Exception):
    """A refusal on its way out of a generator."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.line)
        self.failure = failure


async def _close_with_loop(session: aiohttp.ClientSession) -> AsyncGenerator[None, None]:
    """Closes the session when it is closed itself: `asyncio.run` does that to every generator left over."""
    try:
        yield
    finally:
        await session.close()
        await asyncio.sleep(0)  # closed transports say so in the loop's next round


async def _say_goodbye(cancelled: Cancelled, base: str) -> None:
    with contextlib.suppress(ModelError, TimeoutError):
        async with asyncio.timeout(GOODBYE):
            await cancelled(base)


async def _bounded(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The body. Raises ClientPayloadError if it is longer than that."""
    parts: list[bytes] = []
    async for part in response.content.iter_any():
        most -= len(part)
        if most < 0:
            raise aiohttp.ClientPayloadError("an endless answer")
        parts.append(part)
    return b"".join(parts)


def _rank(base: str, affinity: str) -> bytes:
    return blake2b(f"{base} {affinity}".encode(errors="replace"), digest_size=8).digest()
