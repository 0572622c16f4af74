"""A model and the server it asks, for tests of the native SGLang model."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from arena.adapters.models.sglang import SGLang
from arena.adapters.models.transport import Settings
from arena.model import Message
from tests.fakes.engine import marked
from tests.fakes.server import FakeSGLang

__all__ = ["FAST", "HI", "play", "sent"]

HI = (Message("system", "Play."), Message("user", "Hi [mark:a]"))
FAST = Settings(retries=2, call_seconds=10)


def play(work: Callable[[SGLang, FakeSGLang], Awaitable[None]], fake: FakeSGLang | None = None, **options: Any) -> None:
    """Run `work` with a model and the server it asks."""

    async def run() -> None:
        async with fake or FakeSGLang(marked()) as server:
            model = SGLang(server.url, **({"settings": FAST} | options))
            try:
                await work(model, server)
            finally:
                await model.close()

    asyncio.run(run())


def sent(server: FakeSGLang, route: str = "/generate") -> list[Any]:
    return [each.body for each in server.requests if each.route == route]
