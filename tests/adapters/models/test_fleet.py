"""A router and its workers: who gets the key, and what is left when a model is closed."""

import asyncio

import pytest
from aiohttp import web

from arena.adapters.models.keys import masked
from arena.adapters.models.once import Once
from arena.adapters.models.pool import IDLE
from arena.adapters.models.settings import Settings
from arena.adapters.models.sglang import SGLang
from arena.model import Message, ModelError, Request, Sampling
from tests.adapters.models.small_server import QUICK, serving, settle
from tests.fakes.server import FakeSGLang

KEY = "fleet-secret-0123456789"
SHORT = Request((Message("user", "Hi"),), sampling=Sampling(max_tokens=4))


async def closed(*servers: FakeSGLang) -> None:
    """Wait until nobody is connected any longer, and not until connections that nobody closed are too old."""
    async with asyncio.timeout(IDLE / 2):
        await settle(lambda: not any(server.connections for server in servers))


def test_the_key_goes_only_to_servers_that_were_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", KEY)
    held, settings = list[str | None](), Settings(api_key_env="MODEL_KEY", retries=0)

    async def stranger(request: web.Request) -> web.StreamResponse:
        held.append(request.headers.get("Authorization"))
        return web.json_response({"message": "who are you?"}, status=401)

    async def main() -> None:
        async def router(request: web.Request) -> web.StreamResponse:
            assert request.headers["Authorization"] == f"Bearer {KEY}"
            return web.json_response({"workers": [{"url": worker}]})

        async with serving(stranger) as worker, serving(router) as url:
            model = SGLang(url, settings=settings)
            said = r"asks for a key \(401: who are you\?\), which .* named by a router: name it in the router's place"
            with pytest.raises(ModelError, match=said):
                await model.encode(["a"])
            await model.fleet.abort(["1"], url)
            assert held == [None, None]
            named = SGLang(worker, settings=settings)
            with pytest.raises(ModelError, match=r"refused the key \(401"):
                await named.complete(Request(prompt_ids=(1,)))
            assert held[2] == f"Bearer {KEY}"
            await model.close()
            await named.close()

    asyncio.run(main())
    assert masked(KEY) == "***"


def test_a_worker_at_an_origin_that_was_named_gets_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", KEY)

    async def server(request: web.Request) -> web.StreamResponse:
        if request.path == "/workers":
            return web.json_response({"workers": [{"url": f"http://{request.host}/one/"}]})
        assert (request.path, request.headers["Authorization"]) == ("/one/tokenize", f"Bearer {KEY}")
        return web.json_response({"tokens": [[1]]})

    async def main() -> None:
        async with serving(server) as url:
            model = SGLang(url, settings=Settings(api_key_env="MODEL_KEY", retries=0))
            assert await model.encode(["a"]) == ((1,),)
            await model.close()

    asyncio.run(main())


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://me:secret@host", "worker-1", ""])
def test_a_worker_that_has_no_address_is_an_error(url: str) -> None:
    async def router(request: web.Request) -> web.StreamResponse:
        return web.json_response({"workers": [{"url": url}]})

    async def main() -> None:
        async with serving(router) as base:
            model = SGLang(base, settings=QUICK)
            with pytest.raises(ModelError, match="/workers is not a router's list of workers"):
                await model.encode(["a"])
            await model.close()

    asyncio.run(main())


def test_nothing_is_left_when_a_model_behind_a_router_is_closed() -> None:
    async def main() -> None:
        async with FakeSGLang() as worker, FakeSGLang(router=True, workers=[worker]) as router:
            model = SGLang(router.url)
            for _ in range(2):  # it may be used again when it has been closed
                await model.info()
                await asyncio.gather(*[model.complete(SHORT) for _ in range(5)])
                assert worker.connections > 0
                await model.close()
                await closed(worker, router)
            assert router.count["/workers"] == 2

    asyncio.run(main())


def test_a_model_that_is_used_again_is_closed_again_and_others_are_not() -> None:
    async def main() -> None:
        async with FakeSGLang() as server:
            model = SGLang(server.url)
            for _ in range(2):
                await model.complete(SHORT)
                await model.close()
                await closed(server)
            other = SGLang(server.url)
            await model.complete(SHORT)
            await other.complete(SHORT)
            await model.close()
            await model.close()
            assert server.connections > 0
            await other.close()
            await closed(server)

    asyncio.run(main())


def test_a_model_that_could_not_be_made_keeps_no_connection_open() -> None:
    async def main() -> None:
        async with FakeSGLang() as server:
            model = SGLang(server.url)
            with pytest.raises(ValueError, match="name the model"):
                SGLang(server.url, settings=Settings(prices="prices.toml"))
            await model.complete(SHORT)
            await model.close()
            await closed(server)

    asyncio.run(main())


def test_work_is_done_once_for_all_who_wait_and_again_after_an_error() -> None:
    async def main() -> None:
        once, done = Once[int](), list[int]()

        async def work() -> int:
            done.append(len(done))
            await asyncio.sleep(0.01)
            if len(done) == 1:
                raise ModelError("down")
            return len(done)

        first = [asyncio.create_task(once.result(work)) for _ in range(3)]
        await asyncio.sleep(0)
        first[0].cancel()
        ends = await asyncio.gather(*first, return_exceptions=True)
        assert [type(end) for end in ends] == [asyncio.CancelledError, ModelError, ModelError]
        assert list(await asyncio.gather(once.result(work), once.result(work))) == [2, 2]

    asyncio.run(main())


def test_work_that_is_stopped_is_an_error_for_those_who_wait() -> None:
    async def main() -> None:
        once = Once[None]()
        waiting = [asyncio.create_task(once.result(lambda: asyncio.sleep(60))) for _ in range(2)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await once.stop()
        await once.stop()
        ends = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(end) for end in ends] == [asyncio.CancelledError, ModelError]

    asyncio.run(main())


def test_a_model_closed_while_its_router_is_slow_opens_nothing_afterwards() -> None:
    async def main() -> None:
        async with FakeSGLang() as worker:
            release = asyncio.Event()

            async def router(request: web.Request) -> web.StreamResponse:
                await release.wait()
                return web.json_response({"workers": [{"url": worker.url}]})

            async with serving(router) as url:
                model = SGLang(url, settings=QUICK)
                asking = asyncio.create_task(model.encode(["a"]))
                await asyncio.sleep(0.05)
                await model.close()
                release.set()
                with pytest.raises(ModelError, match="closed meanwhile"):
                    await asking
                await asyncio.sleep(0.02)
                assert worker.connections == 0

    asyncio.run(main())
