"""Asking an agent that cannot answer at once: in a worker process, in a thread, over the network, within a time."""

import asyncio
from collections.abc import Awaitable
from functools import lru_cache
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from arena.agent import Agent, Reply, View

if TYPE_CHECKING:
    from arena.workers import Call, Workers

__all__ = ["TIMED_OUT", "Answer", "act", "cancelled", "checked", "in_worker", "prepared", "waits", "within"]

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
