"""Thousands of matches at once in one process, measured from inside it: `python -m benchmarks.crowd GAME COUNT`."""

import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from arena.agent import Agent, Reply, View
from arena.episode import Episode
from arena.match import play
from benchmarks.timing import Spread

__all__ = ["Crowd", "measured", "spread"]

ROOT = Path(__file__).resolve().parent.parent


class Crowd(NamedTuple):
    """CPU microseconds a step, and kB of peak memory a match above what the process held before."""

    microseconds: float
    kilobytes: float


class Waiting(Agent):
    """Random play that lets every other match go first at each turn."""

    name = "waiting"

    async def act(self, view: View) -> Reply:
        await asyncio.sleep(0)
        legal = view.legal_actions
        return Reply(legal[view.draw(len(legal))] if legal else view.sample_action())


def measured(game: str, count: int) -> Crowd:
    """In a fresh process. RuntimeError, with what it said, if that fails."""
    command = [sys.executable, "-m", "benchmarks.crowd", game, str(count)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr}")
    return Crowd(**json.loads(done.stdout))


def spread(results: Sequence[Crowd], field: Literal["microseconds", "kilobytes"]) -> Spread:
    """Of one figure of several runs."""
    return Spread.of([getattr(result, field) for result in results])


async def _all(game: str, count: int) -> list[Episode]:
    agents = [Waiting(), Waiting()]
    return await asyncio.gather(*[play(game, agents, seed) for seed in range(count)])


def _peak() -> int:
    """The most memory the process has held, in kB: of itself, not of the process it was forked from."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1])
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most // 1024 if sys.platform == "darwin" else most


def main(game: str, count: int) -> None:
    """Print one measurement as JSON."""
    asyncio.run(_all(game, 20))
    before, start = _peak(), time.process_time()
    episodes = asyncio.run(_all(game, count))
    spent, peak = time.process_time() - start, _peak()
    steps = sum(len(episode.turns) for episode in episodes)
    print(json.dumps({"microseconds": spent / steps * 1e6, "kilobytes": (peak - before) / count}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
