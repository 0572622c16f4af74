"""What tests of whole matches over HTTP share."""

import asyncio
import re
from collections.abc import Callable, Coroutine
from typing import Any

from arena.agent import Agent, Call
from arena.episode import Episode, validate
from arena.match import play
from arena.referee import Referee
from arena.registry import make_game
from arena.replaying import replay
from tests.fakes.engine import Asked
from tests.fakes.server import FakeSGLang

RETRY = Referee(retries=2, illegal="random")
LEGAL = re.compile(r"Legal actions: ([^,<\n]+)")


def first_legal(prompt: str, asked: Asked) -> str:
    """Thinks, then takes the first action that the prompt lists last."""
    if asked.constraint is not None:
        return str(asked.constraint.pick(asked.random))
    return f"Let me think about it. <answer>{LEGAL.findall(prompt)[-1]}</answer>"


def over_http(work: Callable[[FakeSGLang], Coroutine[Any, Any, Any]], fake: FakeSGLang | None = None) -> Any:
    """What `work` gives with a server; no request of ours broke SGLang's contract."""

    async def run() -> Any:
        async with fake or FakeSGLang(first_legal) as server:
            found = await work(server)
            server.check()
            return found

    return asyncio.run(run())


async def played(agent: Agent, game: str = "TicTacToe-v0", others: tuple[str, ...] = ("random",)) -> Episode:
    await agent.prepare(make_game(game), RETRY) or 0  # type: ignore[misc]  # a served agent's is awaitable
    episode = await play(game, [agent, *others], 3, {}, RETRY)
    await agent.close()  # type: ignore[misc]  # so is this
    validate(episode)
    replay(episode)
    return episode


def calls(episode: Episode) -> list[Call]:
    return [call for turn in episode.turns if turn.seat == 0 for each in turn.attempts for call in each.calls]
