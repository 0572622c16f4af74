"""What a tournament would cost: its games in small, played by stand-ins that count tokens. No model is asked."""

import asyncio
from collections.abc import Awaitable, Iterator
from typing import NamedTuple

from arena.agent import Agent
from arena.match import play_sync
from arena.registry import make_agent
from arena.tournaments.config import AgentEntry, GameEntry, Tournament
from arena.tournaments.schedule import count, seats_of

__all__ = ["Spending", "spending"]

_SEEDS = 4  # games of each kind that are tried out


class Spending(NamedTuple):
    """What one agent would spend in one game of the tournament, all its games together."""

    game: str
    agent: str
    replies: float
    prompt: float
    """Tokens of all prompts."""
    cached: float
    """Of these, tokens that the server has seen before in the same conversation."""
    wrote: float
    """Tokens of all answers, at most."""
    cost: float | None
    """Dollars, at most; None: the price is not known."""


def spending(asked: Tournament) -> Iterator[Spending]:
    """For every game and every agent that asks a model. Agents are made, models are not asked."""
    for entry, games in zip(asked.games, count(asked), strict=True):
        share = games * len(seats_of(entry)[1]) / len(asked.agents)  # games in which an agent sits, on the whole
        for player in asked.agents:
            standin = None if player.human else _standin(player)
            if standin is not None:
                yield _of(asked, entry, player, standin, share)


def _standin(player: AgentEntry) -> Agent | None:
    agent = player.make()
    standin = agent.standin()
    if (closed := agent.close()) is not None:
        asyncio.run(_awaited(closed))
    return standin


async def _awaited(closed: Awaitable[None]) -> None:
    await closed


def _of(asked: Tournament, entry: GameEntry, player: AgentEntry, standin: Agent, share: float) -> Spending:
    found = [_usage(asked, entry, standin, number) for number in range(_SEEDS)]
    total = {key: sum(each.get(key, 0.0) for each in found) * share / _SEEDS for key in _KEYS}
    cost = total["cost"] if any("cost" in each for each in found) else None
    replies, prompt, cached, wrote = [total[key] for key in _KEYS[:4]]
    return Spending(entry.label, player.name, replies, prompt, cached, wrote, cost)


_KEYS = ("replies", "prompt_tokens", "cached_tokens", "completion_tokens", "cost")


def _usage(asked: Tournament, entry: GameEntry, standin: Agent, number: int) -> dict[str, float]:
    """What is spent in one game, in a seat that changes from game to game."""
    free = seats_of(entry)[1]
    at = number % len(free)
    seated = [standin if position == at else make_agent("random") for position in range(len(free))]
    episode = play_sync(entry.id, seated, asked.seed + number, entry.options, asked.referee, max_turns=asked.max_turns)
    if episode.outcome == "void":
        raise ValueError(f"{entry.label} cannot be tried out: {episode.reason}")
    turns = [turn for turn in episode.turns if turn.seat == free[at]]
    spent: dict[str, float] = {"replies": float(len(turns))}
    for turn in turns:
        for attempt in turn.attempts:
            for call in attempt.calls:
                for key, value in call.usage.items():
                    spent[key] = spent.get(key, 0.0) + value
    return spent
