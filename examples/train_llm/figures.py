"""Figures: how a model plays, measured in matches like any others."""

from collections.abc import Sequence
from typing import Any

import msgspec

from arena.adapters.datasets.trajectory import Trajectory
from arena.adapters.models.local import LocalModel
from arena.agent import Agent
from arena.agents.llm import LLMAgent
from arena.rollouts.collecting import collect_sync
from examples.train_llm.plan import GAME, PROMPTING, SAMPLING

__all__ = ["OPPONENTS", "Figures", "measure", "player"]

OPPONENTS = ("random", "minimax")
NAME = "learner"


class Figures(msgspec.Struct, frozen=True):
    """What came of some games against one opponent, as many from either seat."""

    games: int
    won: int
    drawn: int
    illegal: int
    """Games that ended by an illegal or unreadable reply, which are lost."""
    returns: float
    """Mean return: 1 for a win, 0 for a draw, -1 for a loss."""

    @property
    def win_rate(self) -> float:
        """The share of games won."""
        return self.won / self.games

    @property
    def draw_rate(self) -> float:
        """The share of games drawn."""
        return self.drawn / self.games

    @property
    def illegal_rate(self) -> float:
        """The share of games that ended by an illegal reply."""
        return self.illegal / self.games


def player(model: Any, tokenizer: Any, seed: int, temperature: float = SAMPLING.temperature) -> LLMAgent:
    """The model at the table."""
    sampling = msgspec.structs.replace(SAMPLING, temperature=temperature)
    agent = LLMAgent(LocalModel(model, tokenizer, seed=seed), PROMPTING, sampling)
    agent.name = NAME
    return agent


def measure(agent: Agent, opponent: str | Agent, seeds: Sequence[int]) -> Figures:
    """Play every seed from both seats."""
    groups = collect_sync(GAME, [agent, opponent], seeds, rotate=True)
    if void := [episode.reason for group in groups for episode in group.void]:
        raise RuntimeError(f"{len(void)} games could not be played: {void[0]}")
    seats = [Trajectory(episode, group.rotation) for group in groups for episode in group.episodes]
    rewards = [seat.reward for seat in seats]
    return Figures(
        len(seats),
        sum(reward > 0 for reward in rewards),
        sum(reward == 0 for reward in rewards),
        sum(seat.forfeited for seat in seats),
        sum(rewards) / len(seats),
    )
