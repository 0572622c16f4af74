"""How the tests of the fake ask it: plain aiohttp, no client of ours."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.fakes.server import FakeSGLang

Prompt = str | list[int] | list[list[int]]


@dataclass
class Asker:
    """A session with a server."""

    session: aiohttp.ClientSession
    url: str
    headers: dict[str, str] | None = None

    async def post(self, path: str, **body: Any) -> tuple[int, Any]:
        """Status and body (JSON where it is, text otherwise)."""
        async with self.session.post(self.url + path, json=body, headers=self.headers) as reply:
            return reply.status, read(await reply.text())

    async def get(self, path: str) -> tuple[int, Any]:
        """Status and body."""
        async with self.session.get(self.url + path, headers=self.headers) as reply:
            return reply.status, read(await reply.text())

    async def events(self, path: str, **body: Any) -> list[Any]:
        """The events of a stream; the last is the string `[DONE]`."""
        async with self.session.post(self.url + path, json=body) as reply:
            lines = (await reply.text()).split("\n\n")
        return [read(line.removeprefix("data: ")) for line in lines if line]

    async def generate(
        self, prompt: str | list[int] | list[list[int]], *, params: dict[str, Any] | None = None, **more: Any
    ) -> Any:
        """The answer of /generate, which must be a 200."""
        key = "text" if isinstance(prompt, str) else "input_ids"
        status, body = await self.post("/generate", **{key: prompt}, sampling_params=params or {}, **more)
        assert status == 200, body
        return body

    async def chat(self, content: str, **more: Any) -> tuple[int, Any]:
        """Status and body of a chat of one message."""
        body = {"model": "any", "messages": [{"role": "user", "content": content}]} | more
        return await self.post("/v1/chat/completions", **body)


def read(text: str) -> Any:
    """JSON where it is."""
    try:
        return json.loads(text)
    except ValueError:
        return text


@asynccontextmanager
async def asking(fake: FakeSGLang) -> AsyncIterator[Asker]:
    """A running fake and a session with it."""
    async with fake, aiohttp.ClientSession() as session:
        yield Asker(session, fake.url)


def asked(test: Callable[[Asker], Coroutine[Any, Any, None]], fake: FakeSGLang) -> None:
    """Run a test against a fake."""

    async def run() -> None:
        async with asking(fake) as ask:
            await test(ask)

    asyncio.run(run())
