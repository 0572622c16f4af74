"""Pausing servers and changing their weights, against servers that keep SGLang's contract."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from arena.adapters.models.sglang import SGLang
from arena.adapters.models.transport import Settings
from arena.model import Message, ModelError, Request
from tests.fakes.server import FakeSGLang

ASK = Request((Message("user", "Hi"),))


def steer(work: Callable[[SGLang, FakeSGLang, FakeSGLang], Awaitable[None]], latency: float = 0.0) -> None:
    """Run `work` with a model and its two servers."""

    async def run() -> None:
        async with FakeSGLang(latency=latency) as one, FakeSGLang(latency=latency) as two:
            model = SGLang([one.url, two.url], settings=Settings(retries=0))
            try:
                await work(model, one, two)
            finally:
                await model.close()

    asyncio.run(run())


async def started(one: FakeSGLang, two: FakeSGLang) -> FakeSGLang:
    """The server that a request is running at."""
    while not (one.engine.running or two.engine.running):
        await asyncio.sleep(0.005)
    return one if one.engine.running else two


def routes(server: FakeSGLang) -> list[str]:
    return [each.route for each in server.requests if each.route not in ("/workers", "/tokenize")]


def test_an_update_in_flight_shows_in_the_answer() -> None:
    async def work(model: SGLang, one: FakeSGLang, two: FakeSGLang) -> None:
        asked = asyncio.create_task(model.complete(ASK))
        at = await started(one, two)
        await asyncio.sleep(0.1)
        await model.update_weights(f"{at.model_path}/step-2", "step-2")
        (answer,) = await asked
        (first, second) = answer.weight_versions
        assert (first, second[1]) == ((0, "default"), "step-2")
        assert 0 < second[0] < len(answer.ids)
        assert await model.weight_version() == "step-2"
        body = next(each.body for each in one.requests if each.route == "/update_weights_from_disk")
        assert (body["flush_cache"], body["abort_all_requests"]) == (False, False)
        assert routes(one)[-4:-1] == ["/pause_generation", "/update_weights_from_disk", "/continue_generation"]
        assert one.requests[-4].body == {"mode": "in_place"}

    steer(work, latency=0.4)


def test_an_update_in_flight_may_compute_the_prompts_anew() -> None:
    async def work(model: SGLang, one: FakeSGLang, two: FakeSGLang) -> None:
        await model.update_weights(f"{one.model_path}/2", "2", recompute=True)
        bodies = {each.route: each.body for each in two.requests if each.body}
        assert bodies["/pause_generation"] == {"mode": "retract"}
        assert bodies["/update_weights_from_disk"]["flush_cache"] is True

    steer(work)


def test_a_drained_update_pauses_nothing() -> None:
    async def work(model: SGLang, one: FakeSGLang, two: FakeSGLang) -> None:
        await model.update_weights(f"{one.model_path}/2", "2", in_flight=False)
        assert routes(one) == routes(two) == ["/update_weights_from_disk"]
        assert one.requests[-1].body["flush_cache"] is True

    steer(work)


def test_servers_go_on_after_an_update_that_failed() -> None:
    async def work(model: SGLang, one: FakeSGLang, two: FakeSGLang) -> None:
        with pytest.raises(ModelError, match="/elsewhere"):
            await model.update_weights("/elsewhere", "2")
        assert one.engine.go.is_set()
        assert two.engine.go.is_set()
        assert await model.weight_version() == "default"
        assert await model.complete(ASK)

    steer(work)


def test_paused_servers_wait_until_they_are_resumed() -> None:
    async def work(model: SGLang, one: FakeSGLang, two: FakeSGLang) -> None:
        await model.pause()
        asked = asyncio.create_task(model.complete(ASK))
        await started(one, two)
        await asyncio.sleep(0.05)
        assert not asked.done()
        await model.resume()
        assert (await asked)[0].finish == "stop"

    steer(work)


def test_a_pause_may_abort_what_runs() -> None:
    async def work(model: SGLang, one: FakeSGLang, two: FakeSGLang) -> None:
        asked = asyncio.create_task(model.complete(ASK))
        await started(one, two)
        await model.pause("abort")
        assert (await asked)[0].finish == "abort"
        await model.resume()

    steer(work, latency=30.0)


def test_servers_with_different_weights_are_an_error() -> None:
    async def work(model: SGLang, one: FakeSGLang, two: FakeSGLang) -> None:
        one.engine.weight_version = "new"
        with pytest.raises(ModelError, match="different weights: default, new"):
            await model.weight_version()

    steer(work)


def test_caches_are_emptied_unless_requests_run() -> None:
    async def work(model: SGLang, one: FakeSGLang, two: FakeSGLang) -> None:
        await model.flush_cache()
        assert one.count["/flush_cache"] == two.count["/flush_cache"] == 1
        asked = asyncio.create_task(model.complete(ASK))
        await started(one, two)
        with pytest.raises(ModelError, match="Flush cache failed"):
            await model.flush_cache()
        assert await asked

    steer(work, latency=0.2)
