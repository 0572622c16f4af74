"""Pausing servers and changing their weights, against servers that keep SGLang's contract."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from arena.adapters.models.sglang import SGLang
from arena.adapters.models.transport import Settings
from arena.agent import Agent, Reply, View
from arena.agents.llm import LLMAgent
from arena.episode import Episode
from arena.match import play
from arena.model import Message, ModelError, Request
from arena.registry import make_agent
from tests.adapters.models.matches import first_legal
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


@pytest.mark.parametrize(
    ("how", "sent"),
    [
        ({"load_format": "dummy"}, {"load_format": "dummy", "flush_cache": False}),
        ({"token_step": 7}, {"token_step": 7}),
        ({"abort": True}, {"abort_all_requests": True, "flush_cache": True}),
        ({}, {"abort_all_requests": False, "flush_cache": False}),
    ],
)
def test_options_of_an_update_are_sent_to_every_server(how: dict[str, Any], sent: dict[str, Any]) -> None:
    async def work(model: SGLang, one: FakeSGLang, two: FakeSGLang) -> None:
        await model.update_weights(f"{one.model_path}/2", "2", **how)
        for server in (one, two):
            body = next(each.body for each in server.requests if each.route == "/update_weights_from_disk")
            assert body.items() >= sent.items()
            assert body.keys() - sent.keys() <= {"model_path", "weight_version", "flush_cache", "abort_all_requests"}

    steer(work)


def test_an_update_may_abort_what_runs() -> None:
    async def work(model: SGLang, one: FakeSGLang, two: FakeSGLang) -> None:
        asked = asyncio.create_task(model.complete(ASK))
        await started(one, two)
        await model.update_weights(f"{one.model_path}/2", "2", abort=True)
        assert (await asked)[0].finish == "abort"
        with pytest.raises(ValueError, match="abort, recompute"):
            await model.update_weights(f"{one.model_path}/2", "2", abort=True, recompute=True)

    steer(work, latency=30.0)


def test_a_server_that_renames_itself_is_still_the_model_it_was_started_as() -> None:
    async def work(model: SGLang, one: FakeSGLang, two: FakeSGLang) -> None:
        before = await model.info()
        await model.update_weights(f"{one.model_path}/step-2", "step-2")
        after = await model.info()
        assert (after.model, after.weight_version) == (before.model, "step-2")
        named = SGLang([one.url, two.url], model="fake")
        assert (await named.info()).model == "fake"
        await named.close()

    steer(work)


def test_a_worker_that_a_router_took_on_meanwhile_is_updated_too() -> None:
    async def run() -> None:
        async with FakeSGLang() as one, FakeSGLang() as two, FakeSGLang(router=True, workers=[one]) as router:
            model = SGLang(router.url, settings=Settings(retries=0))
            await model.info()
            router.workers = (one, two)
            await model.update_weights(f"{one.model_path}/2", "2")
            assert (one.engine.weight_version, two.engine.weight_version) == ("2", "2")
            assert await model.weight_version() == "2"
            await model.close()

    asyncio.run(run())


def test_a_seat_is_recorded_with_the_weights_that_answered_it() -> None:
    """Two matches share an agent: one is over before the weights change, and waits for its opponent's last move."""

    async def run() -> tuple[Episode, Episode]:
        async with FakeSGLang(first_legal) as server:
            agent = make_agent(f"sglang:{server.url}")
            change = asyncio.Event()

            class Holds(Agent):
                name = "holds"

                async def act(self, view: View) -> Reply:
                    await change.wait()
                    return Reply(view.sample_action())

            early = asyncio.create_task(play("TicTacToe-v0", [agent, Holds()], 0, max_turns=2))
            while not server.count["/generate"]:
                await asyncio.sleep(0.005)
            assert isinstance(agent, LLMAgent)
            assert isinstance(agent.model, SGLang)
            await agent.model.update_weights(f"{server.model_path}/2", "2")
            late = await play("TicTacToe-v0", [agent, "first"], 1)
            change.set()
            ended = await early
            await agent.close()
            return ended, late

    early, late = asyncio.run(run())
    assert early.turns[0].attempts[0].calls[0].weight_versions == ((0, "default"),)
    assert [episode.seats[0].policy.weight_version for episode in (early, late)] == ["default", "2"]
    assert {v for turn in late.turns if turn.seat == 0 for _, v in turn.attempts[0].calls[0].weight_versions} == {"2"}
