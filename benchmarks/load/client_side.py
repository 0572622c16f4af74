"""The same calls made alone by the same client: `python -m benchmarks.load.client_side ROUTE URL ASKED CAP [YOUNG]`.

`YOUNG`: objects until the garbage collector looks at the young ones, as the tournament runner sets it.
"""

import asyncio
import gc
import sys
from collections.abc import Sequence
from pathlib import Path

from arena.agents.llm import LLMAgent
from arena.model import Model
from arena.registry import make_agent
from benchmarks.load.calls import Asked, load_asked
from benchmarks.load.meter import Meter, files
from benchmarks.load.table import seats

__all__ = ["main", "model_of"]


def model_of(spec: str) -> Model:
    """The client behind an agent. Raises TypeError where it has none."""
    agent = make_agent(spec)
    if not isinstance(agent, LLMAgent):
        raise TypeError(f"{spec} is no language model")
    return agent.model


async def _match(model: Model, asked: Sequence[Asked]) -> None:
    for each in asked:
        if each.request is not None:
            await model.complete(each.request)
        else:
            await model.render(each.messages)


async def main(route: str, url: str, path: str, cap: int) -> None:
    """Print one measurement."""
    files(cap + 512)
    recorded = load_asked(Path(path))
    model = model_of(seats(route, url, concurrency=cap)[0])
    try:
        await asyncio.gather(*[_match(model, recorded[0][:2]) for _ in recorded])
        meter = Meter()
        await asyncio.gather(*[_match(model, asked) for asked in recorded])
        turns = sum(each.request is not None for asked in recorded for each in asked)
        meter.tell(turns)
    finally:
        await model.close()


if __name__ == "__main__":
    if sys.argv[5:]:
        gc.set_threshold(int(sys.argv[5]), *gc.get_threshold()[1:])
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
