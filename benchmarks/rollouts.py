"""A collection of episodes in groups, beside bare matches: what it costs to be bounded and resumable."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

from arena.match import play
from arena.rollouts.collecting import collect
from benchmarks.crowd import Waiting
from benchmarks.timing import Figure, Loop, differences, interleave, loop

__all__ = ["over_play"]

AT_ONCE = (1_000, 5_000)
SAMPLES = 8


def over_play(seconds: float) -> list[Figure]:
    """CPU microseconds an episode of TicTacToe between agents that wait: collected, and matches gathered at once."""
    return [_line(count if seconds >= 1 else count // 25, file=file, seconds=seconds)
            for count in AT_ONCE for file in (False, True)]  # fmt: skip


def _line(count: int, *, file: bool, seconds: float) -> Figure:
    ours = loop(_batch(_to_file if file else _collected, count))
    spent, floor = interleave([ours, _bare(count)], seconds)
    over = differences(spent, floor)
    written = ", each written to a file" if file else ""
    return Figure(f"{count} at once{written}", "us", min(spent), min(floor), over)


def _bare(count: int) -> Loop:
    async def gathered(count: int) -> int:
        agents = [Waiting(), Waiting()]
        return len(await asyncio.gather(*[play("TicTacToe-v0", agents, seed) for seed in range(count)]))

    return loop(_batch(gathered, count))


def _batch(work: Callable[[int], Awaitable[int]], count: int) -> Callable[[], int]:
    async def once() -> int:
        return await work(count)

    return lambda: asyncio.run(once())


async def _collected(count: int, out: Path | None = None) -> int:
    agents = [Waiting(), Waiting()]
    seeds = range(count // SAMPLES)
    async with aclosing(collect("TicTacToe-v0", agents, seeds, SAMPLES, concurrency=count, out=out)) as groups:
        return sum([len(group.episodes) async for group in groups])


async def _to_file(count: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        return await _collected(count, Path(folder) / "step.jsonl")
