"""Asking an agent that cannot answer at once: in a worker process, in a thread, over the network, within a time."""

import asyncio
from collections.abc import Awaitable
from concurrent.futures import Executor
from functools import lru_cache
from inspect import iscoroutinefunction
from typing import Any

from arena.agent import Agent, Reply, View
from arena.threads import in_thread

__all__ = ["TIMED_OUT", "cancelled", "checked", "in_worker", "waits", "within"]

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


async def in_worker(agent: Agent, view: View, pool: Executor | None) -> Reply:
    """The answer of a blocking agent: in the pool, where the seat's memory travels there and back; else in a thread."""
    if pool is None:
        return await in_thread(_act, agent, view)
    view.rng  # noqa: B018 - made here, so that the stream goes on from turn to turn
    reply, memory = await asyncio.get_running_loop().run_in_executor(pool, _act_away, agent, view)
    view.memory.clear()
    view.memory.update(memory)
    return reply


def _act_away(agent: Agent, view: View) -> tuple[Reply, dict[str, Any]]:
    """In a worker process: the answer, and the seat's memory as it is now."""
    return _act(agent, view), view.memory


def _act(agent: Agent, view: View) -> Reply:
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
