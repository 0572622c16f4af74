"""The agent at the table, its model a toy: helpers of its tests."""

import asyncio
from typing import Any

from arena.agent import Call, Reply
from arena.agents.llm import LLMAgent
from arena.agents.prompting import Prompting
from arena.episode import Episode, validate
from arena.match import play
from arena.model import Feature, Sampling
from arena.referee import Referee
from arena.registry import make_game
from arena.replaying import replay
from tests.agents.toy_model import ToyModel, decode, view

MODES: dict[str, frozenset[Feature]] = {"tokens": ToyModel("").features, "messages": frozenset({"n"})}
RETRY = Referee(retries=3, illegal="random")
SHORT = Sampling(max_tokens=50)


def agent(model: ToyModel, sampling: Sampling = SHORT, **options: Any) -> LLMAgent:
    return LLMAgent(model, Prompting(**options), sampling)


def played(who: LLMAgent, game: str = "TicTacToe-v0", referee: Referee = RETRY, **more: Any) -> Episode:
    """A match against the first legal action; its record holds together and repeats."""
    episode = asyncio.run(play(game, [who, "first"], 1, more.pop("options", {}), referee, **more))
    validate(episode)
    if episode.outcome != "void":
        replay(episode)
    return episode


def calls(episode: Episode) -> list[Call]:
    """Of seat 0."""
    return [call for turn in episode.turns if turn.seat == 0 for each in turn.attempts for call in each.calls]


def asked(who: LLMAgent, *, note: str = "", memory: dict[str, Any] | None = None, game: str = "TicTacToe-v0") -> Reply:
    seen = view(make_game(game), note=note)
    seen.memory = {} if memory is None else memory
    return asyncio.run(who.act(seen))


def said(model: ToyModel, at: int = -1) -> str:
    """The text of a prompt."""
    request = model.requests[at]
    if request.prompt_ids:
        return decode(request.prompt_ids)
    return (
        "".join([f"<|im_start|>{m.role}\n{m.content}<|im_end|>" for m in request.messages]) + "<|im_start|>assistant\n"
    )
