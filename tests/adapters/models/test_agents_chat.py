"""Whole matches over HTTP by chat completions."""

import json
from typing import Any

import pytest

from arena.adapters.models.agents import OpenAIAgent
from arena.episode import Episode
from arena.registry import make_agent, make_game
from tests.adapters.models.matches import RETRY, calls, first_legal, over_http, played
from tests.fakes.engine import Asked
from tests.fakes.server import FakeSGLang


@pytest.mark.parametrize("dialect", ["openai", "vllm", "sglang"])
@pytest.mark.parametrize("decode", ["free", "vote"])
def test_a_match_by_chat_completions(dialect: Any, decode: str) -> None:
    async def work(server: FakeSGLang) -> Episode:
        return await played(make_agent(f"openai:{server.url}/v1?model=fake&decode={decode}&votes=2"))

    episode: Episode = over_http(work, FakeSGLang(first_legal, dialect=dialect))
    assert episode.outcome == "terminated", episode.reason
    assert all(turn.attempts[-1].verdict == "legal" for turn in episode.turns)
    recorded = calls(episode)
    assert {call.kind for call in recorded} == ({"chat"} if decode == "free" else {"chat", "sample"})
    assert recorded[-1].received.startswith("Let me think about it. <answer>")
    assert (dialect != "openai") is bool(recorded[-1].completion_ids and recorded[-1].logprobs)
    assert (dialect != "openai") is episode.seats[0].policy.trainable
    if dialect != "openai" and decode == "free":
        assert recorded[1].extends > len(recorded[0].prompt_ids)


def test_constrained_by_chat_completions() -> None:
    async def work(server: FakeSGLang) -> Episode:
        return await played(make_agent(f"openai:{server.url}?decode=constrained"))

    episode: Episode = over_http(work, FakeSGLang(first_legal))
    assert all(turn.attempts[0].verdict == "legal" for turn in episode.turns)

    async def refused(server: FakeSGLang) -> None:
        agent = OpenAIAgent(f"{server.url}/v1", decode="constrained", model="fake")
        with pytest.raises(ValueError, match="decode=constrained needs the feature regex of fake at http"):
            await agent.prepare(make_game("TicTacToe-v0"), RETRY)
        await agent.close()

    over_http(refused, FakeSGLang(dialect="openai"))


def test_structured_tools_by_chat_completions() -> None:
    def calling(prompt: str, asked: Asked) -> str:
        if "-> 5" in prompt:
            return "Final answer: 5"
        return '<tool_call>\n{"name": "add", "arguments": {"a": 2, "b": 3}}\n</tool_call>'

    async def work(server: FakeSGLang) -> Episode:
        return await played(make_agent(f"openai:{server.url}?tools=openai"), "CalculatorTask-v0", ())

    episode: Episode = over_http(work, FakeSGLang(calling))
    assert json.loads(str(episode.turns[0].action)) == {"name": "add", "arguments": {"a": 2, "b": 3}}
    assert episode.turns[0].attempts[0].calls[0].finish_reason == "tool_calls"
    assert episode.turns[1].action == "Final answer: 5"
