"""Transport: limits, retries and routing."""

import asyncio

import pytest
from aiohttp import web

from arena.adapters.models import pool
from arena.adapters.models.settings import base_url
from arena.adapters.models.transport import Answered, Settings, Transport
from arena.model import ModelError
from tests.adapters.models.small_server import (
    QUICK,
    asked,
    closed_port,
    hanging,
    hello,
    json_of,
    scripted,
    serving,
    settle,
)

pytestmark = pytest.mark.usefixtures("short_waits")


def test_an_answer_says_who_gave_it_and_how_long_it_took() -> None:
    found = asked(scripted()[0], hello)
    assert isinstance(found, Answered)
    assert (found.body, found.attempts) == (b'{"rid": 1}', 1)
    assert found.url.startswith("http://127.0.0.1:")
    assert 0 < found.seconds < 1


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_may_pass_is_asked_again_with_the_same_body(status: int) -> None:
    handler, heard = scripted(status, status)
    found = asked(handler, hello)
    assert isinstance(found, Answered)
    assert found.attempts == 3
    assert heard == [b'{"rid": 1}'] * 3


@pytest.mark.parametrize("status", [400, 404, 409, 413, 422])
def test_what_will_not_pass_is_not_asked_again(status: int) -> None:
    handler, heard = scripted(status)
    with pytest.raises(ModelError, match=f"/ask answers {status}: status {status}$") as caught:
        asked(handler, hello)
    assert caught.value.status == status
    assert len(heard) == 1


def test_retries_end() -> None:
    handler, heard = scripted(*[503] * 9)
    with pytest.raises(ModelError, match=r"answers 503: status 503 \(asked 3 times\)") as caught:
        asked(handler, hello, Settings(retries=2))
    assert (caught.value.status, len(heard)) == (503, 3)
    with pytest.raises(ModelError, match=r"answers 503: status 503$"):
        asked(scripted(503)[0], lambda transport: transport.post("/ask", b"", retries=0))


def test_retry_after_holds_back_everybody() -> None:
    handler, heard = scripted(429, **{"Retry-After": "0.2"})

    async def use(transport: Transport) -> list[float]:
        first = asyncio.create_task(hello(transport))
        await settle(lambda: bool(heard))
        await asyncio.sleep(0.02)
        second = await hello(transport)
        return [(await first).seconds, second.seconds]

    seconds = asked(handler, use)
    assert isinstance(seconds, list)
    assert seconds[0] > 0.2
    assert seconds[1] > 0.1


def test_retry_after_is_believed_only_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "LONGEST_ASKED_FOR", 0.05)
    monkeypatch.setattr("arena.adapters.models.endpoint.LONGEST_ASKED_FOR", 0.05)
    found = asked(scripted(429, **{"Retry-After": "86400"})[0], hello)
    assert isinstance(found, Answered)
    assert found.seconds < 2


def test_no_more_in_flight_than_allowed() -> None:
    now = most = 0

    async def handler(_: web.Request) -> web.StreamResponse:
        nonlocal now, most
        now, most = now + 1, max(most, now + 1)
        await asyncio.sleep(0.005)
        now -= 1
        return web.Response()

    async def use(transport: Transport) -> None:
        await asyncio.gather(*(hello(transport) for _ in range(60)))

    asked(handler, use, Settings(concurrency=7))
    assert most == 7


def test_an_adaptive_limit_follows_what_the_server_can_take() -> None:
    now = refused = 0

    async def handler(_: web.Request) -> web.StreamResponse:
        nonlocal now, refused
        if now >= 4:
            refused += 1
            return json_of(503)
        now += 1
        await asyncio.sleep(0.002)
        now -= 1
        return web.Response()

    async def use(transport: Transport) -> float:
        await asyncio.gather(*(hello(transport) for _ in range(200)))
        return transport._pool().endpoints[0].slots.limit

    limit = asked(handler, use, Settings(concurrency=64, adaptive=True, retries=60))
    assert isinstance(limit, float)
    assert 1 <= limit < 16


def test_requests_per_minute_are_kept() -> None:
    async def use(transport: Transport) -> float:
        began = asyncio.get_running_loop().time()
        await asyncio.gather(*(hello(transport) for _ in range(6)))
        return asyncio.get_running_loop().time() - began

    seconds = asked(scripted()[0], use, Settings(requests_per_minute=1200))
    assert isinstance(seconds, float)
    assert 0.24 < seconds < 2


def test_tokens_per_minute_are_kept() -> None:
    async def use(transport: Transport) -> float:
        began = asyncio.get_running_loop().time()
        await transport.post("/ask", b"", tokens=2000)
        await transport.post("/ask", b"", tokens=1)
        return asyncio.get_running_loop().time() - began

    seconds = asked(scripted()[0], use, Settings(tokens_per_minute=600_000))
    assert isinstance(seconds, float)
    assert 0.19 < seconds < 2


def test_one_endpoint_takes_over_from_another_and_affinity_holds() -> None:
    async def main() -> None:
        good, heard = scripted()
        async with serving(good) as one, serving(good) as two:
            dead = f"http://127.0.0.1:{closed_port()}"
            transport = Transport([one, dead, two], QUICK)
            games = [f"game {number}" for number in range(30)]
            first = [(await transport.post("/ask", b"x", affinity=game)).url for game in games]
            assert set(first) == {one, two}
            assert [(await transport.post("/ask", b"x", affinity=game)).url for game in games] == first
            assert len(heard) == 60
            whole = Transport([one, two], QUICK)
            owners = [(await whole.post("/ask", b"x", affinity=game)).url for game in games]
            assert owners == first  # the dead one moved no game between the others
            assert (await transport.post("/ask", b"x", url=two)).url == two
            with pytest.raises(ModelError, match=r"not an endpoint of this model: http"):
                await transport.post("/ask", b"x", url="http://127.0.0.1:9")
            await transport.close()
            await whole.close()

    asyncio.run(main())


def test_without_affinity_the_least_busy_is_asked() -> None:
    async def main() -> None:
        slow, fast = list[str](), list[str]()
        quick, _ = scripted()

        async def counting(request: web.Request) -> web.StreamResponse:
            fast.append(request.path)
            return await quick(request)

        async with serving(hanging(slow)) as one, serving(counting) as two:
            transport = Transport([one, two], QUICK)
            stuck = asyncio.create_task(transport.post("/ask", b"", url=one))
            await settle(lambda: bool(slow))
            for _ in range(5):
                await transport.post("/ask", b"")
            stuck.cancel()
            await transport.close()
        assert (len(slow), len(fast)) == (1, 5)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("http://localhost:30000/", "http://localhost:30000"),
        (" https://host.example/api/v1/ ", "https://host.example/api/v1"),
        ("http://[::1]:80", "http://[::1]"),
    ],
)
def test_addresses(text: str, base: str) -> None:
    assert base_url(text) == base


@pytest.mark.parametrize(
    "text", ["", "localhost:30000", "ftp://host", "http://", "http://host?x=1", "http://host:99999"]
)
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="a server's address"):
        Transport([text])


def test_passwords_in_addresses_are_refused_and_not_repeated() -> None:
    with pytest.raises(ValueError, match="api_key_env=") as caught:
        Transport(["http://me:secret@host"])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong", [{"concurrency": 0}, {"retries": -1}, {"call_seconds": 0}, {"first_token_seconds": -1.0}]
)
def test_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Settings(**wrong)  # type: ignore[arg-type]  # numbers all of them
