"""Trouble on the way, and the fake's counters."""

import asyncio
import json
import time

import aiohttp
import pytest

from tests.fakes.asking import Asker, asked
from tests.fakes.server import FakeSGLang
from tests.fakes.trouble import GARBAGE, OK, Trouble, Troubles


def troubled(*outcomes: Trouble) -> FakeSGLang:
    troubles = Troubles()
    troubles.script(*outcomes)
    return FakeSGLang(trouble=troubles)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_status_with_retry_after(status: int) -> None:
    async def test(ask: Asker) -> None:
        async with ask.session.post(ask.url + "/generate", json={"text": "x"}) as reply:
            assert (reply.status, reply.headers["Retry-After"]) == (status, "1.5")
            assert (await reply.json())["code"] == status
        assert (await ask.post("/generate", text="x"))[0] == 200

    asked(test, troubled(Trouble("status", status=status, retry_after=1.5)))


def test_a_script_is_met_in_order_and_only_where_it_counts() -> None:
    async def test(ask: Asker) -> None:
        assert (await ask.post("/tokenize", prompt="x"))[0] == 200
        assert [(await ask.post("/generate", text="x"))[0] for _ in range(3)] == [500, 200, 503]

    asked(test, troubled(Trouble("status", status=500), OK, Trouble("status")))


@pytest.mark.parametrize("trouble", [Trouble("drop"), Trouble("cut"), Trouble("hang", seconds=0.01)])
def test_lost_connections(trouble: Trouble) -> None:
    async def test(ask: Asker) -> None:
        with pytest.raises(aiohttp.ClientError):
            await ask.post("/generate", text="x")
        assert (await ask.post("/generate", text="x"))[0] == 200

    asked(test, troubled(trouble))


def test_a_cut_body_has_begun() -> None:
    async def test(ask: Asker) -> None:
        async with ask.session.post(ask.url + "/generate", json={"text": "x"}) as reply:
            assert reply.status == 200
            with pytest.raises(aiohttp.ClientPayloadError):
                await reply.read()
        async with ask.session.post(ask.url + "/generate", json={"text": "x", "stream": True}) as reply:
            assert (await reply.content.readline()).startswith(b'data: {"text"')
            with pytest.raises(aiohttp.ClientPayloadError):
                await reply.read()

    asked(test, troubled(Trouble("cut"), Trouble("cut")))


def test_a_hang_lasts_until_the_client_gives_up() -> None:
    fake = troubled(Trouble("hang"))

    async def test(ask: Asker) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ask.post("/generate", text="x"), 0.05)
        async with asyncio.timeout(5):
            while fake.in_flight:
                await asyncio.sleep(0.002)

    asked(test, fake)


@pytest.mark.parametrize("stream", [False, True])
def test_slow_bodies_are_whole(stream: bool) -> None:
    async def test(ask: Asker) -> None:
        began = time.perf_counter()
        async with ask.session.post(ask.url + "/generate", json={"text": "x", "stream": stream}) as reply:
            text = await reply.text()
        assert time.perf_counter() - began >= 0.07
        assert "I have thought about it." in text

    asked(test, troubled(Trouble("slow", seconds=0.08)))


def test_a_run_aborted_by_the_server() -> None:
    fake = troubled(Trouble("abort"), Trouble("abort"))

    async def test(ask: Asker) -> None:
        answer = await ask.generate("x")
        assert answer["meta_info"]["finish_reason"]["type"] == "abort"
        assert len(answer["output_ids"]) > 0
        assert (await ask.chat("x"))[1]["choices"][0]["finish_reason"] == "abort"
        assert len(fake.aborted) == 2

    asked(test, fake)


@pytest.mark.parametrize("name", sorted(GARBAGE))
def test_garbage_is_a_200(name: str) -> None:
    async def test(ask: Asker) -> None:
        async with ask.session.post(ask.url + "/generate", json={"text": "x"}) as reply:
            assert (reply.status, await reply.read()) == (200, GARBAGE[name])

    asked(test, troubled(Trouble("garbage", body=name)))


def test_garbage_of_ones_own_and_what_the_named_kinds_are() -> None:
    async def test(ask: Asker) -> None:
        assert await ask.post("/generate", text="x") == (200, [1])

    asked(test, troubled(Trouble("garbage", body=b"[1]")))
    assert len(GARBAGE["huge"]) > 1 << 20
    assert json.loads(GARBAGE["wrong types"])["text"] == 5
    for name in ("text", "empty", "truncated"):
        with pytest.raises(ValueError, match="line 1"):
            json.loads(GARBAGE[name])


def test_rates_repeat_by_seed() -> None:
    def met(seed: int) -> list[str]:
        troubles = Troubles(seed)
        troubles.rate(Trouble("hang"), 0.1)
        troubles.rate(Trouble("drop"), 0.2)
        return [troubles.next("/generate").kind for _ in range(2000)]

    first = met(1)
    assert first == met(1) != met(2)
    assert abs(first.count("hang") / 2000 - 0.1) < 0.03
    assert abs(first.count("drop") / 2000 - 0.2) < 0.04
    troubles = Troubles()
    troubles.rate(OK, 0.9)
    with pytest.raises(ValueError, match="more than 1"):
        troubles.rate(OK, 0.2)


def test_counters_and_records() -> None:
    fake = FakeSGLang(latency=0.03, record=3)

    async def test(ask: Asker) -> None:
        await asyncio.gather(*(ask.post("/generate", text=f"x{one}") for one in range(4)))
        await ask.get("/health")
        assert fake.count == {"/generate": 4, "/health": 1}
        assert (fake.max_in_flight, fake.in_flight, fake.engine.max_active) == (4, 0, 4)
        assert fake.connections == 4
        assert [one.route for one in fake.requests] == ["/generate", "/generate", "/health"]
        assert fake.requests[0].body["text"].startswith("x")

    asked(test, fake)
