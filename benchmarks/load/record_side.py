"""Plays matches and keeps all they ask: `python -m benchmarks.load.record_side ROUTE URL FOLDER MATCHES`.

`FOLDER/asked` has what the agents asked of their model (`Model.complete`, `Model.render`), `FOLDER/calls` the HTTP
calls that became of it.
"""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from arena.agents.llm import LLMAgent
from arena.match import play
from arena.model import Completion, Message, Model, ModelInfo, Request
from arena.registry import make_agent
from benchmarks.load.calls import Asked, Call, save
from benchmarks.load.game import known
from benchmarks.load.table import seats

__all__ = ["Recorder", "main", "recorded"]

_asked: ContextVar[list[Asked]] = ContextVar("asked")
_calls: ContextVar[list[Call]] = ContextVar("calls")


class Recorder(Model):
    """A model that keeps what each match asks of it."""

    def __init__(self, model: Any) -> None:
        """`model`: one that has a transport."""
        self.model, self.name, self.features = model, model.name, model.features
        self._post = model.transport.post
        model.transport.post = self._kept

    async def _kept(self, path: str, body: bytes, **options: Any) -> Any:
        _calls.get([]).append(Call(path, body))
        return await self._post(path, body, **options)

    async def complete(self, request: Request) -> tuple[Completion, ...]:
        _asked.get([]).append(Asked(request))
        answers: tuple[Completion, ...] = await self.model.complete(request)
        return answers

    async def render(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), *, reply: bool = True
    ) -> tuple[int, ...]:
        _asked.get([]).append(Asked(messages=tuple(messages)))
        tokens: tuple[int, ...] = await self.model.render(messages, tools, reply=reply)
        return tokens

    async def info(self) -> ModelInfo:
        info: ModelInfo = await self.model.info()
        return info

    async def close(self) -> None:
        self.model.transport.post = self._post
        await self.model.close()


async def recorded(agent: LLMAgent, count: int) -> tuple[list[list[Asked]], list[list[Call]]]:
    """What so many matches ask, both seats with one agent; a first one, which also asks what the model is, aside."""
    agent.model = Recorder(agent.model)
    game = known()

    async def match(seed: int) -> tuple[list[Asked], list[Call]]:
        asked, calls = list[Asked](), list[Call]()
        _asked.set(asked)
        _calls.set(calls)
        await play(game, [agent, agent], seed)
        return asked, calls

    await asyncio.create_task(match(1 << 40))
    kept = await asyncio.gather(*[asyncio.create_task(match((1 << 41) + seed)) for seed in range(count)])
    return [asked for asked, _ in kept], [calls for _, calls in kept]


async def main(route: str, url: str, folder: str, count: int) -> None:
    """Keep the two files."""
    agent = make_agent(seats(route, url)[0])
    if not isinstance(agent, LLMAgent):
        raise TypeError(f"{agent.name} is no language model")
    try:
        asked, calls = await recorded(agent, count)
    finally:
        await agent.close()
    save(Path(folder) / "asked", asked)
    save(Path(folder) / "calls", calls)
    print(json.dumps({"asked": sum(map(len, asked)), "calls": sum(map(len, calls))}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
