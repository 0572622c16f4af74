"""Transport: streamed answers, and endless ones."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import pytest
from aiohttp import web

from arena.adapters.models import pool
from arena.adapters.models.transport import Settings, Transport
from arena.model import ModelError
from tests.adapters.models.small_server import (
    Handler,
    aborting,
    asked,
    hanging,
    hello,
    scripted,
)

pytestmark = pytest.mark.usefixtures("short_waits")


def events(*lines: bytes, pause: float = 0.0, cut: bool = False) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(pause)
        response = web.StreamResponse()
        await response.prepare(request)
        for line in lines:
            await response.write(line)
            await asyncio.sleep(0.001)
        if cut and request.transport is not None:
            request.transport.abort()
        return response

    return handler


async def streamed(transport: Transport) -> list[bytes]:
    async with aclosing(transport.stream("/ask", b"")) as found:
        return [payload async for payload in found]


async def collected(transport: Transport) -> list[bytes]:
    return (await transport.collect("/ask", b""))[0]


BOTH = pytest.mark.parametrize("ask", [streamed, collected])


@BOTH
def test_a_stream_is_read_up_to_its_end(ask: Callable[[Transport], Awaitable[list[bytes]]]) -> None:
    lines = [b": hello\n\nda", b'ta: {"a":', b"1}\r\n\r\ndata:2\n", b"event: x\n\ndata: [DONE]\n\ndata: 3\n\n"]
    assert asked(events(*lines), ask) == [b'{"a":1}', b"2"]
    assert asked(events(b"data: 1\n\ndata: 2"), ask) == [b"1", b"2"]
    assert asked(events(), ask) == []


@BOTH
def test_the_first_token_may_be_too_late(ask: Callable[[Transport], Awaitable[list[bytes]]]) -> None:
    settings = Settings(first_token_seconds=0.05, retries=1)
    with pytest.raises(ModelError, match=r"no first token within 0\.05 s \(first_token_seconds\) \(asked 2 times\)"):
        asked(events(b"data: 1\n\n", pause=5), ask, settings)


@BOTH
def test_a_whole_stream_may_be_too_late(ask: Callable[[Transport], Awaitable[list[bytes]]]) -> None:
    slow = events(*[b"data: 1\n\n"] * 10_000)
    with pytest.raises(ModelError, match=r"no whole answer within 0\.1 s \(call_seconds\)"):
        asked(slow, ask, Settings(call_seconds=0.1, retries=0))


def test_a_stream_that_breaks_off_is_collected_again_but_not_streamed_again() -> None:
    broken, whole = events(b"data: 1\n\n", cut=True), events(b"data: 2\n\n")
    times = 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal times
        times += 1
        return await (broken if times == 1 else whole)(request)

    assert asked(handler, collected) == [b"2"]
    times = 0
    with pytest.raises(ModelError, match="the connection broke off"):
        asked(handler, streamed)


def test_a_stream_that_is_refused_is_asked_again() -> None:
    refusing, _ = scripted(503)
    times = 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal times
        times += 1
        return await (refusing if times == 1 else events(b"data: 1\n\n"))(request)

    assert asked(handler, streamed) == [b"1"]
    with pytest.raises(ModelError, match="answers 400"):
        asked(scripted(400)[0], streamed)


def test_a_stream_that_nobody_reads_to_its_end_is_aborted() -> None:
    heard = list[str]()

    async def handler(request: web.Request) -> web.StreamResponse:
        heard.append(request.path)
        return await (events(b"data: 1\n\n", b"data: 2\n\n") if request.path == "/ask" else hanging([]))(request)

    async def use(transport: Transport) -> None:
        stream = transport.stream("/ask", b"", cancelled=aborting(transport))
        async with aclosing(stream) as found:
            async for _ in found:
                break
        assert transport._pool().endpoints[0].slots.busy == 0

    asked(handler, use)
    assert heard == ["/ask", "/abort_request"]


@pytest.mark.parametrize("length", [True, False])
def test_an_endless_answer_is_given_up(monkeypatch: pytest.MonkeyPatch, length: bool) -> None:
    monkeypatch.setattr(pool, "LARGEST", 1 << 16)

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(1 << 30)} if length else {})
        await response.prepare(request)
        while True:
            await response.write(b"data: x" * 1000)

    for ask in (hello, streamed, collected):
        with pytest.raises(ModelError, match="an endless answer"):
            asked(handler, ask, Settings(retries=0))
