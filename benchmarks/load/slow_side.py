"""A fast model's games beside a slow one's: `python -m benchmarks.load.slow_side ROUTE FAST SLOW MATCHES`."""

import asyncio
import json
import sys
import time
from statistics import median

from arena.agent import Agent
from arena.match import play
from arena.registry import make_agent
from benchmarks.load.game import known
from benchmarks.load.meter import files
from benchmarks.load.table import seats

__all__ = ["main"]

WAVES = 6
SLOW_PLIES = 6


async def _seconds(agents: list[Agent], seed: int) -> float:
    start = time.perf_counter()
    episode = await play(known(), agents, seed)
    if episode.outcome != "terminated":
        raise RuntimeError(f"a match was not played to its end: {episode.reason}")
    return time.perf_counter() - start


async def _waves(agents: list[Agent], matches: int) -> float:
    """The median seconds of a match, of several waves of so many at once."""
    seconds: list[float] = []
    for wave in range(WAVES):
        seconds += await asyncio.gather(*[_seconds(agents, wave * matches + at) for at in range(matches)])
    return median(seconds)


async def main(route: str, fast_url: str, slow_url: str, matches: int) -> None:
    """Print the medians, in seconds, and how many slow matches were going on at the end of the fast ones."""
    files(4 * matches + 512)
    fast = [make_agent(spec) for spec in seats(route, fast_url)]
    slow = [make_agent(spec) for spec in seats(route, slow_url)]
    try:
        await _waves(fast, matches)
        alone = await _waves(fast, matches)
        options = {"plies": SLOW_PLIES}
        beside = [asyncio.create_task(play(known(), slow, 1_000_000 + at, options)) for at in range(matches)]
        both = await _waves(fast, matches)
        running = sum(not task.done() for task in beside)
        ended = [episode.outcome for episode in await asyncio.gather(*beside)]
    finally:
        for agent in [*fast, *slow]:
            await (agent.close() or asyncio.sleep(0))
    print(json.dumps({"alone": alone, "beside": both, "running": running, "slow": ended.count("terminated")}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
