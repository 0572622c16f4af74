"""Branches: several ways in which a recorded match could have gone on from one of its plies."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from arena.agent import Agent
from arena.asking import close_made
from arena.episode import Episode
from arena.game import Action, Game, Player
from arena.match import play, play_sync
from arena.registry import make_agent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from arena.workers import Workers

__all__ = ["branch", "branch_sync"]


async def branch(
    episode: Episode,
    ply: int,
    k: int,
    agents: Sequence[str | Agent],
    *,
    actions: Mapping[Player, Action] | None = None,
    sample: int = 0,
    game: type[Game] | None = None,
    concurrency: int = 64,
    deadline: float | None = None,
    turn_seconds: float | None = None,
    max_turns: int | None = None,
    pool: "Workers | None" = None,
    group_id: str = "",
) -> list[Episode]:
    """`k` continuations of an episode from before its ply `ply`, in order; each is an episode that replays.

    `agents`: who plays on, one for each seat; each takes up what its seat has played (`Agent.recall`). `actions`: what
    seats do at that ply instead of being asked (attempts with the reason "forced"), so that branches with other actions
    show what these are worth. What is before the ply stays as it is, but for rewards, which the new episode pays.
    Continuation i has `sample` + i, and draws from streams of its own; the game's chance is the parent's, so that equal
    actions meet equal dice in all of them. `game`: the class of a game that is not registered. `concurrency`:
    continuations in flight. The other arguments are those of `arena.match.play`; `max_turns` counts from the beginning.

    A continuation may be void, as any match. Raises ValueError for a ply or actions that cannot be, or a live game.
    """
    _check(k, concurrency)
    room = asyncio.Semaphore(concurrency)

    async def one(number: int, held: Sequence[Agent]) -> Episode:
        async with room:
            return await play(
                game or episode.env,
                held,
                episode.seed,
                episode.options,
                deadline=deadline,
                turn_seconds=turn_seconds,
                max_turns=max_turns,
                pool=pool,
                group_id=group_id,
                sample=sample + number,
                start=episode,
                ply=ply,
                actions=actions,
            )

    async with _made(agents) as held:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(number, held)) for number in range(k)]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


def branch_sync(
    episode: Episode,
    ply: int,
    k: int,
    agents: Sequence[str | Agent],
    *,
    actions: Mapping[Player, Action] | None = None,
    sample: int = 0,
    game: type[Game] | None = None,
    max_turns: int | None = None,
) -> list[Episode]:
    """`branch` from plain code, one after another; for agents that wait (language models) `branch` is the faster.

    >>> start = play_sync("TicTacToe-v0", ["first", "first"])
    >>> worth = branch_sync(start, 4, 3, ["random", "random"], actions={0: "9"})
    >>> [(e.parent == start.id, e.fork, e.sample, e.turns[4].action) for e in worth][:2]
    [(True, 4, 0, '9'), (True, 4, 1, '9')]
    """
    _check(k, 1)
    env, seed, options = game or episode.env, episode.seed, episode.options
    return [
        play_sync(
            env, agents, seed, options, max_turns=max_turns, sample=sample + i, start=episode, ply=ply, actions=actions
        )
        for i in range(k)
    ]


def _check(k: int, concurrency: int) -> None:
    for name, number in (("k", k), ("concurrency", concurrency)):
        if type(number) is not int or number < 1:
            raise ValueError(f"{name}={number!r}: allowed are numbers from 1")


@asynccontextmanager
async def _made(agents: Sequence[str | Agent]) -> "AsyncIterator[list[Agent]]":
    """The agents as objects, once for all continuations; those made here are closed."""
    held = [make_agent(agent) for agent in agents]
    try:
        yield held
    finally:
        await close_made(held, agents)
