"""Keys in what servers say: whatever answer repeats one, it is masked before it is an error, a reason or a gap."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from arena.adapters.models import keys
from arena.adapters.models.failures import one_line, said
from arena.adapters.models.openai import OpenAICompatible
from arena.adapters.models.settings import Settings
from arena.adapters.models.sglang import SGLang
from arena.model import Message, ModelError, Request
from tests.adapters.models.small_server import serving

KEY = "verysecret0123456789"
HELD = Settings(api_key_env="MODEL_KEY", retries=0)
STREAMED = Settings(api_key_env="MODEL_KEY", retries=0, first_token_seconds=5.0)
Echo = Callable[[str], Any]
pytestmark = pytest.mark.usefixtures("key")


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in use, which no other test has heard of."""
    monkeypatch.setenv("MODEL_KEY", KEY)
    monkeypatch.setattr(keys, "_hidden", set())


def told(ask: Callable[[str], Awaitable[object]], echo: Echo) -> str:
    """All that comes of asking a server whose every answer is what `echo` makes of the key it was sent."""

    async def handler(request: web.Request) -> web.StreamResponse:
        found = echo(request.headers["Authorization"].removeprefix("Bearer "))
        if isinstance(found, bytes):
            return web.Response(body=found)
        by_path = found.get(request.path, found)
        return web.json_response(by_path, status=404 if by_path is None else 200)

    async def main() -> str:
        async with serving(handler) as url:
            try:
                return str(await ask(url))
            except ModelError as error:
                return str(error)

    return asyncio.run(main())


async def chat(url: str, settings: Settings = HELD) -> object:
    model = OpenAICompatible(url, model="m", extras="sglang", settings=settings)
    try:
        return [(a.reason, a.gaps) for a in await model.complete(Request((Message("user", "Hi"),)))]
    finally:
        await model.close()


async def native(url: str, settings: Settings = HELD) -> object:
    model = SGLang(url, settings=settings)
    try:
        return [(a.reason, a.gaps) for a in await model.complete(Request(prompt_ids=(1, 2)))]
    finally:
        await model.close()


async def with_model(url: str, work: Callable[[SGLang], Awaitable[object]]) -> object:
    model = SGLang(url, model="mine", settings=HELD)
    try:
        return await work(model)
    finally:
        await model.close()


def chosen(**more: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": "[4]"}, **more}]}


def generated(**finish: Any) -> dict[str, Any]:
    return {"text": "", "output_ids": [], "meta_info": {"finish_reason": {"type": "abort", **finish}}}


@pytest.mark.parametrize(
    "echo",
    [
        lambda key: {"error": {"message": f"no credit left for {key}", "code": 402}},
        lambda key: {"error": {"message": f"no credit left for {key}", "code": 503}},
        lambda key: {"error": f"no credit left for {key}"},
        lambda key: chosen(finish_reason="abort", meta_info={"finish_reason": {"message": f"{key} ran out"}}),
        lambda key: chosen(finish_reason=key),
    ],
)
def test_chat_answers(echo: Echo) -> None:
    assert_masked(told(chat, echo))


@pytest.mark.parametrize("error", [{"message": f"{KEY} ran out", "code": 402}, f"{KEY} ran out"])
def test_errors_in_a_chat_s_stream(error: Any) -> None:
    body = b"data: %b\n\ndata: [DONE]\n\n" % json.dumps({"error": error}).encode()
    assert_masked(told(lambda url: chat(url, STREAMED), lambda key: body))


@pytest.mark.parametrize(
    "echo",
    [
        lambda key: generated(message=f"quota of {key} used", status_code=400),
        lambda key: generated(message=f"quota of {key} used", status_code=503),
        lambda key: generated(message=f"quota of {key} used"),
        lambda key: generated(type=key),
    ],
)
def test_native_answers(echo: Echo) -> None:
    assert_masked(told(native, echo))


@pytest.mark.parametrize("code", [400, 503])
def test_errors_in_a_native_stream(code: int) -> None:
    body = b"data: %b\n\n" % json.dumps({"error": {"message": f"quota of {KEY} used", "code": code}}).encode()
    assert_masked(told(lambda url: native(url, STREAMED), lambda key: body))


def facts(key: str) -> dict[str, Any]:
    """What a server is that calls itself after the key."""
    return {
        "/workers": None,
        "/model_info": {"weight_version": key, "served_model_name": key},
        "/server_info": {"version": key},
        "/v1/models": {"data": [{"id": key}]},
        "/tokenize": {"tokens": [1]},
        "/update_weights_from_disk": {"success": False, "message": f"{key} may not"},
        "/pause_generation": {},
        "/continue_generation": {},
    }


@pytest.mark.parametrize(
    "work",
    [
        lambda model: model.info(),
        lambda model: model.update_weights("/new", "2"),
    ],
)
def test_what_a_native_server_says_of_itself(work: Callable[[SGLang], Awaitable[object]]) -> None:
    assert_masked(told(lambda url: with_model(url, work), facts))


def test_names_in_a_list_of_models() -> None:
    async def ask(url: str) -> object:
        model = OpenAICompatible(url, model=KEY[:-1], settings=HELD)
        try:
            return await model.info()
        finally:
            await model.close()

    found = told(ask, lambda key: {"/v1/models": {"data": [{"id": key}]}, "/model_info": None, "/version": None})
    assert "did you mean ***? there are ***" in found


def test_a_key_is_masked_before_a_text_is_cut() -> None:
    keys.hide(KEY)
    for space in range(2380, 2405):
        assert KEY[:4] not in one_line(" " * space + KEY)
    for space in range(19_180, 19_205):
        assert KEY[:4] not in said(b" " * space + KEY.encode())


def test_a_key_is_masked_though_another_begins_like_it_and_a_placeholder_is_not() -> None:
    keys.hide("abcdef")
    keys.hide("abcdef-and-more")
    keys.hide("x")
    assert one_line("abcdef-and-more abcdef x") == "*** *** x"


def test_a_key_that_was_changed_meanwhile_stays_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    keys.key_in("MODEL_KEY")
    monkeypatch.setenv("MODEL_KEY", "another0123456789")
    keys.key_in("MODEL_KEY")
    assert keys.masked(f"{KEY} another0123456789") == "*** ***"


def assert_masked(found: str) -> None:
    assert "***" in found
    assert KEY not in found
