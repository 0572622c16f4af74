"""The cache and what is served at an address: another model's answers, or other weights', are not given back."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.adapters.models.openai import OpenAICompatible
from arena.adapters.models.settings import Settings
from arena.adapters.models.sglang import SGLang
from arena.model import Message, Model, Request, Sampling
from tests.adapters.models.chatting import says
from tests.fakes.server import FakeSGLang
from tests.fakes.template import Template

COLD = Request((Message("user", "Who are you?"),), sampling=Sampling(temperature=0, max_tokens=9))
KINDS = pytest.mark.parametrize("kind", [SGLang, OpenAICompatible])


def answers(*servers: FakeSGLang, cache: Path, kind: Callable[..., Model] = SGLang, **options: Any) -> list[str]:
    """What each server says, one after the other, at one address and with one cache."""

    async def main() -> list[str]:
        found, url = list[str](), ""
        for server in servers:
            server._port = int(url.rpartition(":")[2] or 0)
            async with server:
                url = server.url
                model = kind(url, settings=Settings(cache=str(cache)), **options)
                found.append((await model.complete(COLD))[0].text)
                await model.close()
        return found

    return asyncio.run(main())


@KINDS
def test_another_model_at_the_same_address_is_asked(kind: Callable[..., Model], tmp_path: Path) -> None:
    a, again, b = FakeSGLang(says("A"), model="A"), FakeSGLang(says("x"), model="A"), FakeSGLang(says("B"), model="B")
    assert answers(a, again, b, cache=tmp_path, kind=kind) == ["A", "A", "B"]
    assert again.count["/generate"] + again.count["/v1/chat/completions"] == 0


def test_another_model_under_the_same_name_is_asked(tmp_path: Path) -> None:
    a, b = FakeSGLang(says("A"), model="A"), FakeSGLang(says("B"), model="B")
    options = {"model": "given", "extras": "sglang"}
    assert answers(a, b, cache=tmp_path, kind=OpenAICompatible, **options) == ["A", "B"]


def test_another_tokenizer_counts(tmp_path: Path) -> None:
    assert answers(FakeSGLang(says("A")), FakeSGLang(says("B"), template=Template(bos=True)), cache=tmp_path) == [
        "A",
        "B",
    ]


def used(work: Callable[[SGLang, FakeSGLang], Awaitable[None]], cache: Path, **options: Any) -> None:
    async def main() -> None:
        async with FakeSGLang(**options) as server:
            model = SGLang(server.url, settings=Settings(cache=str(cache)))
            await work(model, server)
            await model.close()

    asyncio.run(main())


def test_the_facts_are_asked_for_once_and_not_for_what_is_drawn(tmp_path: Path) -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        await model.complete(msgspec.structs.replace(COLD, sampling=Sampling(max_tokens=2)))
        assert server.count["/model_info"] == 0
        await asyncio.gather(*[model.complete(COLD) for _ in range(5)])
        await model.complete(COLD)
        assert server.count["/model_info"] == 1

    used(work, tmp_path)


def test_new_weights_are_asked(tmp_path: Path) -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        for version in ("1", "1", "2"):
            await model.update_weights(f"{server.model_path}/{version}", version)
            for _ in range(2):
                (answer,) = await model.complete(COLD)
                assert answer.weight_versions[-1][1] == version
        assert server.count["/generate"] == 2

    used(work, tmp_path)


def test_weights_that_somebody_else_updates_are_noticed_with_the_next_answer(tmp_path: Path) -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        await model.complete(COLD)
        server.engine.weight_version = "2"
        other = msgspec.structs.replace(COLD, n=2)
        for asked in (2, 3, 3):  # not kept as an answer of the old weights, then kept as one of the new
            await model.complete(other)
            assert server.count["/generate"] == asked
        (answer,) = await model.complete(COLD)
        assert answer.weight_versions == ((0, "2"),)

    used(work, tmp_path)


def test_an_answer_that_two_versions_of_the_weights_gave_is_not_kept(tmp_path: Path) -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        asked = asyncio.create_task(model.complete(COLD))
        while not server.engine.running:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)
        await model.update_weights(f"{server.model_path}/2", "2")
        await asked
        assert model.cache is not None
        assert len(model.cache) == 0

    used(work, tmp_path, latency=0.3)
