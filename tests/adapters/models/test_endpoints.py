"""Endpoints: one takes over from another that is too busy, and all who ask one share its limits."""

import asyncio
import socket
import time

import pytest
from aiohttp import web

from arena.adapters.models.endpoint import REFUSALS
from arena.adapters.models.openai import OpenAICompatible
from arena.adapters.models.sglang import SGLang
from arena.adapters.models.transport import Settings, Transport
from arena.model import Message, ModelError, Request, Sampling
from tests.adapters.models.small_server import QUICK, asked, hello, json_of, scripted, serving
from tests.fakes.server import FakeSGLang
from tests.fakes.trouble import Trouble

SHORT = Request((Message("user", "Hi"),), sampling=Sampling(max_tokens=4))


@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize("status", [500, 502, 503])
def test_another_endpoint_takes_over_from_one_that_is_too_busy(status: int) -> None:
    async def main() -> None:
        bad, refused = scripted(*[status] * 1000)
        good, heard = scripted()
        async with serving(bad) as one, serving(good) as two, serving(good) as three:
            transport, whole = Transport([one, two, three], QUICK), Transport([two, three], QUICK)
            games = [f"game {number}" for number in range(30)]
            found = [await transport.post("/ask", b"x", affinity=game) for game in games]
            assert {answered.url for answered in found} == {two, three}
            owners = [(await whole.post("/ask", b"x", affinity=game)).url for game in games]
            assert [answered.url for answered in found] == owners  # the next in the order of their affinity
            assert len(heard) == 60
            assert REFUSALS <= len(refused) < 15  # set aside after a few refusals, and tried again now and then
            with pytest.raises(ModelError, match=rf"answers {status}.*\(asked 3 times\)"):
                await transport.post("/ask", b"x", url=one, retries=2)
            await transport.close()
            await whole.close()

    asyncio.run(main())


def test_one_refusal_moves_one_request_and_no_other(short_waits: None) -> None:
    async def main() -> None:
        (first, _), (second, _) = scripted(503), scripted(503)
        async with serving(first) as one, serving(second) as two:
            transport = Transport([one, two], QUICK)
            moved = await transport.post("/ask", b"x", affinity="a")
            assert moved.attempts == 3  # both refuse it once
            assert await again(transport) == {moved.url}
            await transport.close()

    async def again(transport: Transport) -> set[str]:
        return {(await transport.post("/ask", b"x", affinity="a")).url for _ in range(5)}

    asyncio.run(main())


def test_a_busy_endpoint_that_asks_for_time_does_not_hold_up_another(short_waits: None) -> None:
    async def main() -> float:
        busy, _ = scripted(*[429] * 9, **{"Retry-After": "30"})
        good, _ = scripted()
        async with serving(busy) as one, serving(good) as two:
            transport = Transport([one, two], QUICK)
            found = [await transport.post("/ask", b"x", affinity=f"{number}") for number in range(9)]
            await transport.close()
            return sum(answered.seconds for answered in found)

    assert asyncio.run(main()) < 5


@pytest.mark.parametrize("streamed", [False, True])
def test_who_waits_for_a_slot_waits_as_long_as_the_server_asked_meanwhile(streamed: bool) -> None:
    times = list[float]()

    async def handler(request: web.Request) -> web.StreamResponse:
        times.append(time.monotonic())
        await asyncio.sleep(0.02)
        return json_of(429, **{"Retry-After": "0.4"}) if len(times) == 1 else web.Response(body=b"data: {}\n\n")

    async def one(transport: Transport) -> None:
        if streamed:
            assert [part async for part in transport.stream("/ask", b"")] == [b"{}"]
        else:
            await hello(transport)

    async def use(transport: Transport) -> None:
        await asyncio.gather(*[one(transport) for _ in range(3)])
        assert transport._pool().endpoints[0].slots.busy == 0

    asked(handler, use, Settings(concurrency=1))
    assert len(times) == 4
    assert times[1] - times[0] > 0.4


def test_who_is_cancelled_while_the_server_wants_quiet_gives_the_slot_back() -> None:
    async def use(transport: Transport) -> None:
        endpoint = transport._pool().endpoints[0]
        await endpoint.slots.enter()
        waiting = asyncio.create_task(hello(transport))
        await asyncio.sleep(0.01)
        endpoint.quiet_until = endpoint.clock() + 60
        endpoint.slots.leave()
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert endpoint.slots.busy == 0

    asked(scripted()[0], use, Settings(concurrency=1))


@pytest.mark.parametrize("first_token_seconds", [None, 5.0])
def test_tokens_per_minute_are_kept_whether_answers_are_streamed_or_not(first_token_seconds: float | None) -> None:
    async def main() -> float:
        settings = Settings(tokens_per_minute=6000, first_token_seconds=first_token_seconds)
        async with FakeSGLang() as server:
            model = SGLang(server.url, settings=settings)
            ask = Request(prompt_ids=(5,) * 9, sampling=Sampling(max_tokens=11))
            began = time.monotonic()
            for _ in range(3):
                await model.complete(ask)
            await model.close()
            return time.monotonic() - began

    assert asyncio.run(main()) >= 0.4


def test_two_agents_with_other_settings_share_an_endpoint_s_limits() -> None:
    async def main() -> None:
        async with FakeSGLang(latency=0.02) as server:
            one = SGLang(server.url, settings=Settings(concurrency=2))
            two = SGLang(server.url, settings=Settings(concurrency=5, retries=3))
            await asyncio.gather(*[model.complete(SHORT) for model in (one, two) for _ in range(8)])
            assert server.max_in_flight == 2
            await one.close()
            server.max_in_flight = 0
            await asyncio.gather(*[two.complete(SHORT) for _ in range(16)])
            assert server.max_in_flight == 5  # the lower limit went with the one who wanted it
            await two.close()

    asyncio.run(main())


def test_the_lowest_pace_holds_for_all_who_ask_an_endpoint() -> None:
    async def main() -> None:
        async with serving(scripted()[0]) as url:
            slow = Transport([url], Settings(requests_per_minute=600, tokens_per_minute=9))
            fast = Transport([url], Settings(requests_per_minute=6000))
            await hello(slow)
            began = time.monotonic()
            for _ in range(3):
                await hello(fast)
            assert time.monotonic() - began > 0.29
            assert fast._pool().endpoints == slow._pool().endpoints
            await slow.close()
            endpoint = fast._pool().endpoints[0]
            assert endpoint.tokens is None
            assert endpoint.requests is not None
            assert endpoint.requests.seconds == 0.01
            await fast.close()

    asyncio.run(main())


def full_server() -> tuple[socket.socket, list[socket.socket]]:
    """A server that takes no more connections, as its queue of them is full: Linux then lets the next ones wait."""
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(0)
    waiting = [socket.socket() for _ in range(3)]
    for client in waiting:
        client.setblocking(False)
        client.connect_ex(server.getsockname())
    return server, waiting


def test_a_connection_that_does_not_come_about_is_given_up_in_time() -> None:
    async def main() -> float:
        server, waiting = full_server()
        base = f"http://127.0.0.1:{server.getsockname()[1]}"
        transport = Transport([base], Settings(connect_seconds=0.2, call_seconds=30, retries=0))
        began = time.monotonic()
        try:
            with pytest.raises(ModelError, match=rf"cannot connect to {base} in time \(connect_seconds\)"):
                await hello(transport)
        finally:
            await transport.close()
            for each in (server, *waiting):
                each.close()
        return time.monotonic() - began

    assert 0.15 < asyncio.run(main()) < 5


def test_a_server_that_is_down_is_found_out_soon_and_tried_for_longer_in_play(short_waits: None) -> None:
    async def main() -> None:
        async with FakeSGLang() as gone:
            url = gone.url
        model = SGLang(url)
        with pytest.raises(ModelError, match=r"cannot connect to .* \(asked 2 times\)"):
            await model.info()
        with pytest.raises(ModelError, match=r"cannot connect to .* \(asked 6 times\)"):
            await model.complete(Request(prompt_ids=(1,)))
        await model.close()

    asyncio.run(main())


def test_an_address_of_the_other_interface_says_what_to_leave_out() -> None:
    async def main() -> None:
        async with FakeSGLang() as server:
            model = SGLang(f"{server.url}/v1", settings=QUICK)
            with pytest.raises(ModelError, match=r"/v1 has no /\w+ \(404\): leave out /v1"):
                await model.info()
            await model.close()

    asyncio.run(main())


@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize("settings", [Settings(), Settings(first_token_seconds=5.0)], ids=["whole", "streamed"])
def test_a_retry_is_the_same_request_to_a_hosted_server(settings: Settings) -> None:
    async def main() -> None:
        async with FakeSGLang(dialect="openai") as server:
            server.trouble.script(Trouble("status", status=503), Trouble("drop"))
            model = OpenAICompatible(server.url, model="m", extras="openai", settings=settings)
            await model.complete(SHORT)
            await model.complete(SHORT)
            await model.close()
            keys = [each.headers["Idempotency-Key"] for each in server.requests]
            assert len(keys) == 4
            assert len(set(keys[:3])) == 1
            assert keys[3] != keys[0]
        async with FakeSGLang() as server:
            model = OpenAICompatible(server.url, model="m", extras="sglang")
            await model.complete(SHORT)
            await model.close()
            assert "Idempotency-Key" not in server.requests[-1].headers  # it has the id in the body

    asyncio.run(main())
