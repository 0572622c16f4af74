"""Before anything is scheduled, every agent shows that it can play every game."""

from collections.abc import Callable

import msgspec

from arena.agent import Agent, AgentError
from arena.asking import reason_of
from arena.episode import Episode
from arena.match import play
from arena.registry import make_game
from arena.tournaments.config import GameEntry, Tournament
from arena.tournaments.schedule import seats_of
from arena.tournaments.tally import Refused
from arena.workers import Workers

__all__ = ["probe"]


async def probe(
    asked: Tournament, entry: GameEntry, agent: Agent, pool: Workers, stopped: Callable[[], bool] = lambda: False
) -> None:
    """One move of one agent in one game; the other seats play at random, and cost nothing. Raises Refused."""
    first = make_game(entry.id, asked.seed, entry.options)
    try:
        if (ready := agent.prepare(first, asked.referee)) is not None:
            await ready
    except (ValueError, AgentError) as error:
        raise Refused(f"agent {agent.name!r} cannot play {entry.label}: {error}") from error
    except Exception as error:
        raise Refused(f"agent {agent.name!r} cannot play {entry.label}: {reason_of(error)}") from error
    free = seats_of(entry)[1]
    seated: list[str | Agent] = ["random"] * len(free)
    acting = [p for p in first.to_act() if p in free]
    seated[free.index(acting[0]) if acting else 0] = agent
    for _ in range(asked.void_retries + 1):
        if stopped():
            return
        tried = await play(
            entry.id, seated, asked.seed, entry.options, msgspec.structs.replace(asked.referee, retries=0),
            deadline=asked.deadline, turn_seconds=asked.turn_seconds, max_turns=1, pool=pool,
        )  # fmt: skip
        if tried.outcome != "void" and not _cut(tried):
            return
    raise Refused(f"agent {agent.name!r} cannot play {entry.label}: {tried.reason}")


def _cut(episode: Episode) -> bool:
    """Whether the agent's reply ended the game by nobody's fault: its context is too small, or an abort."""
    return episode.outcome == "truncated" and any(turn.action is None for turn in episode.turns)
