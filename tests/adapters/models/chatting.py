"""What tests of chat completions share: a model at a fake server, and what it was asked."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from arena.adapters.models.openai import OpenAICompatible
from arena.adapters.models.settings import Settings
from arena.model import (
    Completion,
    Message,
    ModelInfo,
    Request,
    Sampling,
)
from tests.fakes.server import FakeSGLang

Found = TypeVar("Found")
HELLO = Request((Message("system", "Play."), Message("user", "Your move?")), sampling=Sampling(max_tokens=20))
WEATHER = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"const": "Rome"}}}},
}
DIALECTS = pytest.mark.parametrize("dialect", ["sglang", "vllm", "openai"])
WAYS = pytest.mark.parametrize("settings", [Settings(), Settings(first_token_seconds=5.0)], ids=["whole", "streamed"])


def sampled(**changes: Any) -> Request:
    return Request(HELLO.messages, sampling=Sampling(**{"max_tokens": 20, **changes}))


def used(use: Callable[[OpenAICompatible], Awaitable[Found]], fake: FakeSGLang, **options: Any) -> Found:
    """What `use` gives with a model at the fake server."""

    async def main() -> Found:
        async with fake:
            model = OpenAICompatible(options.pop("url", fake.url), **options)
            try:
                return await use(model)
            finally:
                await model.close()

    return asyncio.run(main())


def completed(request: Request, fake: FakeSGLang, **options: Any) -> tuple[Completion, ...]:
    async def use(model: OpenAICompatible) -> tuple[Completion, ...]:
        return await model.complete(request)

    return used(use, fake, **options)


def informed(fake: FakeSGLang, **options: Any) -> ModelInfo:
    async def use(model: OpenAICompatible) -> ModelInfo:
        return await model.info()

    return used(use, fake, **options)


def sent(fake: FakeSGLang) -> dict[str, Any]:
    """The body of the last chat request."""
    bodies: list[dict[str, Any]] = [r.body for r in fake.requests if r.route == "/v1/chat/completions"]
    return bodies[-1]


def says(text: str) -> Callable[[str, object], str]:
    return lambda prompt, asked: text
