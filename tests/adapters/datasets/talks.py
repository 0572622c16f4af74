"""Matches for the tests of text formats: language models of every kind at the table, and what they were really sent."""

import asyncio
from collections.abc import Sequence
from typing import Any

from arena.adapters.datasets.trajectory import Trajectory
from arena.agents.llm import LLMAgent
from arena.agents.prompting import Prompting
from arena.episode import Episode, validate
from arena.match import play
from arena.model import Completion, Message, Sampling
from arena.referee import Referee
from tests.agents.toy_model import ToyModel

RETRY = Referee(retries=3, illegal="random")
SHORT = Sampling(max_tokens=50)


class Noting(ToyModel):
    """Notes every conversation that is rendered for an answer, as messages."""

    def __init__(self, *answers: str | Completion, **odd: Any) -> None:
        super().__init__(*answers, **odd)
        self.told: list[tuple[Message, ...]] = []

    async def complete(self, request: Any) -> tuple[Completion, ...]:
        if request.messages:
            self.told.append(request.messages)
        return await super().complete(request)


def chat(*answers: str | Completion, **odd: Any) -> Noting:
    """A model that is asked in messages, so that what it was told can be read off its requests."""
    return Noting(*answers, features=odd.pop("features", ("n", "tools")), **odd)


def llm(model: ToyModel, sampling: Sampling = SHORT, **options: Any) -> LLMAgent:
    return LLMAgent(model, Prompting(**options), sampling)


def played(agents: Sequence[Any], game: str = "TicTacToe-v0", referee: Referee = RETRY, **more: Any) -> Episode:
    """A match of seed 1; its record holds together."""
    episode = asyncio.run(play(game, list(agents), more.pop("seed", 1), more.pop("options", {}), referee, **more))
    validate(episode)
    return episode


def seat(episode: Episode, player: int = 0) -> Trajectory:
    return Trajectory(episode, player)
