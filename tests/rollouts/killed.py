"""A collection that is killed from outside: `python -m tests.rollouts.killed FILE`."""

import asyncio
import sys

from arena.agent import Agent, Reply, View
from arena.rollouts.collecting import Group, collect

SEEDS, SAMPLES = 60, 4


class Takes(Agent):
    """Random play that takes a little time."""

    name = "takes"

    async def act(self, view: View) -> Reply:
        await asyncio.sleep(0.001)
        return Reply(view.sample_action())


async def collected(path: str) -> list[Group]:
    """Everything, with what is in the file."""
    agents: list[str | Agent] = [Takes(), "random"]
    found = collect("TicTacToe-v0", agents, range(SEEDS), SAMPLES, rotate=True, out=path, concurrency=8)
    return [group async for group in found]


if __name__ == "__main__":
    asyncio.run(collected(sys.argv[1]))
