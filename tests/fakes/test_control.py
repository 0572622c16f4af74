"""Aborts, the queue, pauses, versions of the weights, sessions and what the server says of itself."""

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from tests.fakes.asking import Asker, asked
from tests.fakes.server import FakeSGLang

LONG: dict[str, Any] = {"ignore_eos": True, "max_new_tokens": 100}


async def until(what: Callable[[], bool]) -> None:
    """Wait, at most five seconds."""
    async with asyncio.timeout(5):
        while not what():
            await asyncio.sleep(0.002)


def test_an_abort_is_a_200_with_what_there_is() -> None:
    fake = FakeSGLang(token_time=0.002)

    async def test(ask: Asker) -> None:
        long = asyncio.create_task(ask.generate("x", params=LONG, rid="me", return_logprob=True))
        other = asyncio.create_task(ask.generate("x", params={"max_new_tokens": 20}, rid="you"))
        await until(lambda: len(fake.engine.running) == 2)
        await asyncio.sleep(0.05)
        assert await ask.post("/abort_request", rid="me") == (200, "")
        answer = await long
        reason = {"type": "abort", "message": "Aborted", "status_code": None, "err_type": None}
        assert answer["meta_info"]["finish_reason"] == reason
        assert 0 < len(answer["output_ids"]) < 100
        assert (await other)["meta_info"]["finish_reason"]["type"] == "stop"
        assert fake.aborted == ["me"]

    asked(test, fake)


def test_an_abort_takes_all_ids_that_begin_with_it_but_only_a_known_one() -> None:
    fake = FakeSGLang(latency=5)

    async def test(ask: Asker) -> None:
        runs = [asyncio.create_task(ask.generate("x", rid=rid)) for rid in ("a1", "a10", "b")]
        await until(lambda: len(fake.engine.running) == 3)
        await ask.post("/abort_request", rid="a")
        await ask.post("/abort_request", rid="")
        assert fake.aborted == []
        await ask.post("/abort_request", rid="a1")
        assert fake.aborted == ["a1", "a10"]
        await ask.post("/abort_request", abort_all=True)
        ends = [one["meta_info"]["finish_reason"]["type"] for one in await asyncio.gather(*runs)]
        assert ends == ["abort"] * 3
        assert fake.engine.running == {}

    asked(test, fake)


def test_a_client_that_goes_away_aborts_its_run() -> None:
    fake = FakeSGLang(latency=5)

    async def test(ask: Asker) -> None:
        run = asyncio.create_task(ask.generate("x", rid="gone"))
        stream = asyncio.create_task(ask.events("/generate", text="x", rid="gone too", stream=True))
        await until(lambda: len(fake.engine.running) == 2)
        run.cancel()
        stream.cancel()
        await until(lambda: not fake.engine.running)
        assert sorted(fake.aborted) == ["gone", "gone too"]
        assert (fake.in_flight, fake.engine.active) == (0, 0)

    asked(test, fake)


def test_one_id_runs_once_at_a_time() -> None:
    fake = FakeSGLang(latency=0.1)

    async def test(ask: Asker) -> None:
        first = asyncio.create_task(ask.generate("x", rid="a"))
        await until(lambda: bool(fake.engine.running))
        status, said = await ask.post("/generate", text="x", rid="a")
        assert (status, said) == (400, {"error": {"message": "Duplicate request ID detected: a"}})
        await first
        await ask.generate("x", rid="a")

    asked(test, fake)


def test_a_full_queue_is_a_503() -> None:
    fake = FakeSGLang(latency=0.1, max_running=2, max_queued=1)

    async def test(ask: Asker) -> None:
        answers = await asyncio.gather(*(ask.post("/generate", text="x") for _ in range(5)))
        assert sorted(status for status, _ in answers) == [200, 200, 200, 503, 503]
        full = {"object": "error", "message": "The request queue is full.", "type": "503", "param": None, "code": 503}
        assert next(body for status, body in answers if status == 503) == full
        assert (fake.engine.max_active, fake.engine.active, len(fake.engine.queue)) == (2, 0, 0)
        assert (await ask.post("/generate", text="x"))[0] == 200

    asked(test, fake)


def test_an_abort_in_the_queue_says_little() -> None:
    fake = FakeSGLang(latency=0.2, max_running=1)

    async def test(ask: Asker) -> None:
        first = asyncio.create_task(ask.generate("x", rid="first"))
        await until(lambda: fake.engine.active == 1)
        second = asyncio.create_task(ask.generate("x", rid="second"))
        await until(lambda: len(fake.engine.queue) == 1)
        await ask.post("/abort_request", rid="second")
        answer = await second
        assert answer["output_ids"] == []
        assert answer["meta_info"]["finish_reason"] == {"type": "abort", "message": "Abort in waiting queue"}
        assert "prompt_tokens" not in answer["meta_info"]
        assert (await first)["meta_info"]["finish_reason"]["type"] == "stop"

    asked(test, fake)


def test_an_update_in_flight_shows_in_the_spans() -> None:
    fake = FakeSGLang(token_time=0.004)

    async def test(ask: Asker) -> None:
        run = asyncio.create_task(ask.generate("x", params={"ignore_eos": True, "max_new_tokens": 40}))
        await until(lambda: bool(fake.engine.running))
        await asyncio.sleep(0.05)
        status, said = await ask.post("/pause_generation", mode="in_place")
        assert (status, said["status"]) == (200, "ok")
        before = next(iter(fake.engine.running.values()))[0].done
        await asyncio.sleep(0.03)
        assert next(iter(fake.engine.running.values()))[0].done == before
        new = {"model_path": fake.model_path, "weight_version": "step-2", "flush_cache": False}
        assert (await ask.post("/update_weights_from_disk", **new))[1]["success"] is True
        await ask.post("/continue_generation")
        meta = (await run)["meta_info"]
        first = {"version": "default", "start": 0, "end": before}
        assert meta["weight_versions"] == [first, {"version": "step-2", "start": before, "end": 40}]
        assert meta["weight_version"] == "step-2"
        assert (await ask.get("/model_info"))[1]["weight_version"] == "step-2"

    asked(test, fake)


def test_a_pause_holds_new_requests_and_by_default_aborts_old_ones() -> None:
    fake = FakeSGLang(latency=0.01)

    async def test(ask: Asker) -> None:
        fake.engine.latency = 5
        old = asyncio.create_task(ask.generate("x"))
        await until(lambda: bool(fake.engine.running))
        await ask.post("/pause_generation")
        assert (await old)["meta_info"]["finish_reason"]["type"] == "abort"
        fake.engine.latency = 0
        new = asyncio.create_task(ask.generate("x"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(new), 0.05)
        await ask.post("/continue_generation")
        assert (await new)["meta_info"]["finish_reason"]["type"] == "stop"

    asked(test, fake)


def test_updates_flush_abort_and_can_fail() -> None:
    fake = FakeSGLang()

    async def test(ask: Asker) -> None:
        prompt = [9] * 20
        await ask.generate(prompt)
        status, said = await ask.post("/update_weights_from_disk", model_path="/elsewhere")
        assert (status, said["success"]) == (400, False)
        assert (await ask.generate(prompt))["meta_info"]["cached_tokens"] == 19
        await ask.post("/update_weights_from_disk", model_path=fake.model_path)
        assert (await ask.generate(prompt))["meta_info"]["cached_tokens"] == 0
        fake.engine.latency = 5
        run = asyncio.create_task(ask.generate(prompt))
        await until(lambda: bool(fake.engine.running))
        assert (await ask.post("/flush_cache"))[0] == 400
        status, said = await ask.post("/update_weight_version", new_version="v7")
        assert said == {"success": True, "message": "Weight version updated to v7", "new_version": "v7"}
        assert (await run)["meta_info"]["finish_reason"]["type"] == "abort"
        with fake.expected("'new_version' is missing"):
            assert (await ask.post("/update_weight_version"))[0] == 400

    asked(test, fake)


def test_sessions() -> None:
    async def test(ask: Asker) -> None:
        status, name = await ask.post("/open_session", capacity_of_str_len=1000)
        assert status == 200
        assert (await ask.post("/open_session", capacity_of_str_len=1, session_id=name))[0] == 400
        assert (await ask.post("/generate", text="x", session_params={"id": name}))[0] == 200
        assert await ask.post("/close_session", session_id=name) == (200, "")
        assert (await ask.post("/generate", text="x", session_params={"id": name}))[0] == 400

    asked(test, FakeSGLang())


def test_what_the_server_says_of_itself() -> None:
    async def test(ask: Asker) -> None:
        assert [await ask.get(path) for path in ("/health", "/health_generate", "/ready")] == [(200, "")] * 3
        assert (await ask.get("/model_info"))[1]["served_model_name"] == "small"
        assert (await ask.get("/get_model_info"))[1] == (await ask.get("/model_info"))[1]
        assert (await ask.get("/server_info"))[1]["context_length"] == 99
        card = (await ask.get("/v1/models"))[1]["data"][0]
        assert (card["id"], card["max_model_len"], card["owned_by"]) == ("small", 99, "sglang")
        assert 'sglang:num_running_reqs{model_name="small"} 0.0' in (await ask.get("/metrics"))[1]

    asked(test, FakeSGLang(model="small", context_length=99))


def test_a_closed_fake_leaves_nothing() -> None:
    fake = FakeSGLang(latency=30)

    async def run() -> None:
        async with aiohttp.ClientSession() as session:
            async with fake:
                task = asyncio.create_task(Asker(session, fake.url).generate("x"))
                await until(lambda: bool(fake.engine.running))
                assert fake.connections == 1
            assert fake.connections == fake.in_flight == fake.engine.active == 0
            with pytest.raises(aiohttp.ClientError):
                await task
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []

    asyncio.run(run())
