"""Paths, keys, the router, threads and the command line."""

import asyncio
import json
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from tests.fakes.asking import Asker, asked, asking
from tests.fakes.server import FakeSGLang
from tests.repository import ROOT


def test_wrong_paths_methods_and_bodies() -> None:
    async def test(ask: Asker) -> None:
        assert await ask.get("/v2/models") == (404, {"detail": "Not Found"})
        assert await ask.get("/generate") == (405, {"detail": "Method Not Allowed"})
        for data, kind in ((b"{", "application/json"), (b"{}", "text/plain")):
            async with ask.session.post(ask.url + "/generate", data=data, headers={"Content-Type": kind}) as reply:
                assert (reply.status, (await reply.json())["type"]) == (400, "Bad Request")

    asked(test, FakeSGLang())


def test_a_key_is_demanded_and_never_recorded() -> None:
    fake = FakeSGLang(api_key="s3cret")

    async def test(ask: Asker) -> None:
        assert await ask.post("/generate", text="x") == (401, {"error": "Unauthorized"})
        assert (await ask.get("/health"))[0] == 200
        ask.headers = {"Authorization": "Bearer s3cret"}
        assert (await ask.post("/generate", text="x"))[0] == 200
        assert "s3cret" not in repr(fake.requests)

    asked(test, fake)


def test_the_router_drops_what_it_does_not_know() -> None:
    async def run() -> None:
        async with FakeSGLang() as one, FakeSGLang() as two, asking(FakeSGLang(router=True, workers=[one, two])) as ask:
            for _ in range(2):
                answer = await ask.generate("x", return_prompt_token_ids=True, return_logprob=True)
                assert "prompt_token_ids" not in answer
                assert answer["meta_info"]["output_token_logprobs"]
            assert (await ask.generate("x", params={"regex": "(a|b)"}))["text"] in {"a", "b"}
            _, body = await ask.chat("x", return_token_ids=True, return_meta_info=True)
            assert body["choices"][0].keys().isdisjoint({"response_token_ids", "meta_info"})
            for path in ("/tokenize", "/abort_request"):
                assert (await ask.post(path, prompt="x"))[0] == 404
            workers = (await ask.get("/workers"))[1]
            assert [worker["url"] for worker in workers["workers"]] == [one.url, two.url]
            assert (await ask.get("/model_info"))[0] == 200
            assert [len(one.engine.cache.root.children), len(two.engine.cache.root.children)] == [2, 1]

    asyncio.run(run())


def test_an_abort_at_the_worker_reaches_a_run_through_the_router() -> None:
    async def run() -> None:
        async with FakeSGLang(latency=5) as worker, asking(FakeSGLang(router=True, workers=[worker])) as ask:
            task = asyncio.create_task(ask.generate("x", rid="r"))
            while not worker.engine.running:
                await asyncio.sleep(0.002)
            await Asker(ask.session, worker.url).post("/abort_request", rid="r")
            assert (await task)["meta_info"]["finish_reason"]["type"] == "abort"

    asyncio.run(run())


def test_a_router_without_workers() -> None:
    async def test(ask: Asker) -> None:
        status, body = await ask.post("/generate", text="x")
        assert (status, body["error"]["code"]) == (503, "no_available_workers")
        assert (await ask.get("/health"))[0] == 503
        assert (await ask.get("/workers"))[1]["workers"] == []

    asked(test, FakeSGLang(router=True))


def get(url: str) -> tuple[int, bytes]:
    with urllib.request.urlopen(url, timeout=10) as reply:
        return reply.status, reply.read()


def test_in_a_thread_for_plain_code() -> None:
    with FakeSGLang(model="threaded") as fake:
        status, body = get(fake.url + "/model_info")
        assert (status, json.loads(body)["served_model_name"]) == (200, "threaded")
    with pytest.raises(urllib.error.URLError):
        get(fake.url + "/model_info")


def breaking(url: str) -> None:
    headers = {"Content-Type": "application/json"}
    body = json.dumps({"text": "x", "foo": 1}).encode()
    urllib.request.urlopen(urllib.request.Request(url + "/generate", body, headers), timeout=10).close()


def test_a_violation_in_a_thread_fails_too() -> None:
    with pytest.raises(AssertionError, match="no key SGLang knows"), FakeSGLang() as fake:
        breaking(fake.url)


def test_an_exception_of_the_test_is_not_hidden_by_violations() -> None:
    fake = FakeSGLang()
    fake.violations.append("one")
    with pytest.raises(urllib.error.HTTPError), fake:
        get(fake.url + "/nowhere")


def test_from_the_command_line() -> None:
    command = [sys.executable, "-m", "tests.fakes.server", "--port", "0", "--latency", "0.01"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().split()[-1]
            assert get(url + "/health") == (200, b"")
        finally:
            process.terminate()
