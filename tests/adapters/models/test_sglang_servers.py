"""What servers say they are, and servers behind a router, asked by the native SGLang model."""

import asyncio
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from arena.adapters.models.sglang import SGLang
from arena.adapters.models.transport import Settings
from arena.model import ModelError, Request
from tests.adapters.models.asking import FAST, HI, play, sent
from tests.fakes.engine import marked
from tests.fakes.server import FakeSGLang
from tests.fakes.template import Template


def test_what_a_server_is() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        info = await model.info()
        assert (info.model, info.server, info.url) == ("fake", "SGLang 0.5.23", server.url)
        assert (info.context, info.weight_version) == (8192, "default")
        assert len(info.tokenizer_hash) == len(info.template_hash) == 16
        assert set(info.features) == model.features
        assert await model.health() < 5

    play(work)


def test_a_model_that_is_not_served_is_an_error_though_the_server_takes_the_name() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        assert await model.complete(Request(messages=HI))
        with pytest.raises(ModelError, match=rf"{server.url} does not serve 'qwen': it serves fake$"):
            await model.info()

    play(work, model="qwen")


def test_a_server_is_known_by_its_old_name_after_an_update() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        await model.update_weights(f"{server.model_path}/step-2", "step-2")
        info = await model.info()
        assert (info.model, info.weight_version) == ("fake", "step-2")

    play(work, model="fake")


def test_endpoints_of_two_models_are_an_error() -> None:
    async def run() -> None:
        async with FakeSGLang() as one, FakeSGLang() as same, FakeSGLang(template=Template(bos=True)) as other:
            model = SGLang(f"{one.url},{same.url}")
            info = await model.info()
            assert info.details["servers"] == f"{one.url}, {same.url}"
            await model.close()
            model = SGLang([one.url, other.url])
            with pytest.raises(ModelError, match="write tokens differently"):
                await model.info()
            await model.close()

    asyncio.run(run())


def test_a_router_s_workers_are_asked_for_what_it_lacks() -> None:
    async def run() -> None:
        one, two = FakeSGLang(marked()), FakeSGLang(marked())
        async with one, two, FakeSGLang(router=True, workers=(one, two)) as router:
            model = SGLang(router.url, prompt_ids=True, settings=FAST)
            (answer,) = await model.complete(Request(messages=HI))
            assert len(answer.ids) == len(answer.logprobs) > 0
            assert answer.gaps == ("prompt_ids: the server did not tell the prompt it read",)
            info = await model.info()
            assert info.server == "SGLang 0.5.23 behind a router"
            assert info.details["servers"] == f"{one.url}, {two.url}"
            assert {"regex", "json_schema", "ebnf"} <= set(info.features)
            assert router.count["/tokenize"] == 0
            await model.close()

    asyncio.run(run())


def test_a_cancelled_request_is_aborted_at_all_workers_of_a_router() -> None:
    async def run() -> None:
        one, two = FakeSGLang(latency=30.0), FakeSGLang(latency=30.0)
        async with one, two, FakeSGLang(router=True, workers=(one, two)) as router:
            model = SGLang(router.url, settings=FAST)
            task = asyncio.create_task(model.complete(Request(messages=HI, id="mine")))
            while not (one.engine.running or two.engine.running):
                await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.wait([task])
            await model.close()
            assert [sent(worker, "/abort_request") for worker in (one, two)] == [[{"rid": "mine"}]] * 2

    asyncio.run(run())


def test_a_router_that_loses_constraints_is_found_out() -> None:
    to: list[str] = []

    async def losing(request: web.Request) -> web.Response:
        body = await request.json()
        body["sampling_params"].pop("ebnf", None)
        async with aiohttp.ClientSession() as session, session.post(f"{to[0]}/generate", json=body) as answer:
            return web.json_response(await answer.json(), status=answer.status)

    async def workers(request: web.Request) -> web.Response:
        return web.json_response({"workers": [{"url": to[0]}]})

    async def run() -> None:
        async with FakeSGLang() as worker:
            to.append(worker.url)
            app = web.Application()
            app.add_routes([web.post("/generate", losing), web.get("/workers", workers)])
            runner = web.AppRunner(app)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            model = SGLang(f"http://127.0.0.1:{runner.addresses[0][1]}", settings=FAST)
            info = await model.info()
            assert "ebnf" not in info.features
            assert {"regex", "json_schema"} <= set(info.features)
            await model.close()
            await runner.cleanup()

    asyncio.run(run())


def test_a_router_s_new_worker_is_found() -> None:
    async def run() -> None:
        async with FakeSGLang() as new:
            async with FakeSGLang() as old:
                router = FakeSGLang(router=True, workers=(old,))
                await router.start()
                model = SGLang(router.url, settings=Settings(retries=0))
                assert await model.encode(["a"])
            router.workers = (new,)
            assert await model.encode(["a"])
            assert new.count["/tokenize"] == 1
            router.workers = ()
            await model.fleet.forget()
            with pytest.raises(ModelError, match="a router without workers"):
                await model.encode(["a"])
            await model.close()
            await router.stop()

    asyncio.run(run())


def test_sessions() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        name = await model.open_session()
        assert server.engine.sessions == {name}
        with pytest.raises(ModelError, match="still open"):
            await model.open_session(session_id=name)
        await model.close_session(name)
        assert server.engine.sessions == set()

    play(work)


@pytest.mark.parametrize("dialect", ["vllm", "openai"])
def test_another_kind_of_server_is_an_error(dialect: Any) -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        with pytest.raises(ModelError, match="right kind of server"):
            await model.info()

    play(work, FakeSGLang(dialect=dialect))


def test_nobody_there() -> None:
    async def run() -> None:
        async with FakeSGLang() as gone:
            url = gone.url
        model = SGLang(url, settings=Settings(retries=0))
        for ask in (model.info(), model.complete(Request(messages=HI)), model.render(HI)):
            with pytest.raises(ModelError, match=f"cannot connect to {url}"):
                await ask
        await model.close()

    asyncio.run(run())
