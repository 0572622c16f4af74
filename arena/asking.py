"""Asking an agent that cannot answer at once: in a worker process, in a thread, over the network, within a time."""

import asyncio
from collections.abc import Awaitable, Sequence
from functools import lru_cache
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from arena.agent import Agent, Reply, View
from arena.game import IllegalAction
from arena.text import clean, mask_secrets

if TYPE_CHECKING:
    from arena.workers import Call, Workers

__all__ = [
    "TIMED_OUT",
    "Answer",
    "act",
    "cancelled",
    "check_limits",
    "checked",
    "close_made",
    "in_worker",
    "no_loop_yet",
    "prepared",
    "reason_of",
    "waits",
    "within",
]

Answer = tuple[Reply, dict[str, Any]]
"""A reply from another process, and the seat's memory as it is now."""

TIMED_OUT = Reply("", truncated=True)
"""Stands for the answer that did not come in time."""


@lru_cache(maxsize=1024)
def waits(agent: type[Agent]) -> bool:
    """Whether its `act` is `async`."""
    return iscoroutinefunction(agent.act)


def checked(reply: object, agent: Agent) -> Reply:
    """The reply. Raises TypeError for what is none."""
    if not isinstance(reply, Reply):
        raise TypeError(f"agent {agent.name!r} must return a Reply, got {type(reply).__name__}")
    return reply


async def within(reply: Reply | Awaitable[Reply], agent: Agent, seconds: float | None) -> Reply:
    """The awaited reply, or TIMED_OUT. A TimeoutError of the agent's own is passed on."""
    if not isinstance(reply, Awaitable):
        return checked(reply, agent)
    if seconds is None:
        return checked(await reply, agent)
    try:
        async with asyncio.timeout(seconds) as timer:
            return checked(await reply, agent)
    except TimeoutError:
        if not timer.expired():
            raise
        return TIMED_OUT


async def prepared(agent: Agent, view: View, pool: "Workers") -> "Call[Answer] | None":
    """For a blocking agent: a worker that is free and has all it needs. To wait for one is on no agent's clock."""
    if not agent.blocking:
        return None
    view.rng  # noqa: B018 - made here, so that the stream goes on from turn to turn
    return await pool.prepare(_act_away, agent, view)


async def in_worker(call: "Call[Answer]", view: View) -> Reply:
    """The answer from a worker process, where the seat's memory travels there and back."""
    reply, memory = await call.run()
    view.memory.clear()
    view.memory.update(memory)
    return reply


def _act_away(agent: Agent, view: View) -> Answer:
    """In a worker process."""
    return act(agent, view), view.memory


def act(agent: Agent, view: View) -> Reply:
    """The answer of a blocking agent, in its thread or process."""
    try:
        return checked(agent.act(view), agent)
    except StopIteration as error:  # a future cannot carry it
        raise RuntimeError(f"agent {agent.name!r} raised StopIteration") from error


def cancelled() -> bool:
    """Whether the task that runs is being cancelled, not only something that an agent awaited."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # driven without a loop
        return False
    return task is not None and task.cancelling() > 0


async def close_made(agents: Sequence[Agent], given: Sequence[str | Agent]) -> None:
    """Close the agents that were made here from spec strings."""
    for agent, spec in zip(agents, given, strict=True):
        if agent is not spec and (closed := agent.close()) is not None:
            await closed


def check_limits(deadline: float | None, turn_seconds: float | None, max_turns: int | None) -> None:
    """Raise ValueError for a time or a number of turns that is none."""
    if deadline is turn_seconds is max_turns is None:
        return
    for name, seconds in (("deadline", deadline), ("turn_seconds", turn_seconds)):
        if seconds is not None and not (type(seconds) in (int, float) and 0 < seconds < float("inf")):
            raise ValueError(f"{name}={seconds!r}: allowed are None and seconds above 0")
    if max_turns is not None and not (type(max_turns) is int and max_turns > 0):
        raise ValueError(f"max_turns={max_turns!r}: allowed are None and numbers from 1")


def no_loop_yet() -> None:
    """Raise RuntimeError where plain code may not wait for a loop of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("an event loop runs already (a notebook?): write await arena.match.play(...) instead")


def reason_of(error: BaseException) -> str:
    """What went wrong, in a line that can be stored; what looks like a key is left out."""
    if isinstance(error, BaseExceptionGroup):
        return reason_of(error.exceptions[0])
    if isinstance(error, IllegalAction):
        return f"the game refused an action it had listed: {error}"
    return mask_secrets(clean(f"{type(error).__name__}: {error}"))[:2000]
