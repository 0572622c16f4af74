"""inspect-ai at the same conversations: `python -m benchmarks.load.inspect_side URL CONVERSATIONS TURNS`.

Its tasks have one seat: a conversation here is one seat's half of a match. Its log is written, as `inspect eval` does.
"""

import os
import sys
import tempfile
from importlib.metadata import version
from typing import Any

import inspect_ai
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser
from inspect_ai.scorer import includes
from inspect_ai.solver import Generate, TaskState, solver, system_message

from benchmarks.load import texts
from benchmarks.load.meter import Meter, files


@solver  # type: ignore[untyped-decorator]  # inspect-ai is in another environment
def relay(turns: int) -> Any:
    """The positions of one seat of Relay, whatever is answered."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        for turn in range(turns):
            if turn:
                told = texts.position(state.metadata["deal"], 0, 2 * turn, [4] * 2 * turn)
                state.messages.append(ChatMessageUser(content=told))
            state = await generate(state)
        return state

    return solve


def _task(count: int, turns: int) -> inspect_ai.Task:
    samples = [
        Sample(input=texts.position(deal, 0, 0, ()), target="answer", metadata={"deal": deal}) for deal in range(count)
    ]
    return inspect_ai.Task(
        dataset=MemoryDataset(samples),
        solver=[system_message(texts.rules(0, texts.PLIES)), relay(turns)],
        scorer=includes(),
    )


def _play(url: str, folder: str, count: int, turns: int) -> Any:
    return inspect_ai.eval(
        _task(count, turns), model="openai-api/fake/fake", model_base_url=f"{url}/v1", display="none", log_dir=folder,
        max_connections=count, max_samples=count, max_tasks=1, log_level="error",
    )[0]  # fmt: skip


def main(url: str, count: int, turns: int) -> None:
    """Print one measurement."""
    files(count + 512)
    os.environ["FAKE_API_KEY"] = "none"
    with tempfile.TemporaryDirectory() as folder:
        _play(url, folder, 4, 2)
        meter = Meter()
        log = _play(url, folder, count, turns)
        done = log.results.completed_samples
        meter.tell(done * turns or 1, version=version("inspect-ai"), errors=count - done)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
