"""Batches: questions that come in at about the same time are answered together, in one event loop or several."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from arena.adapters.models.failures import one_line
from arena.model import ModelError

__all__ = ["Batcher"]

Question = TypeVar("Question")
Answer = TypeVar("Answer")
_QUIET = 3
"""Turns of the event loop without a new question, after which no more are expected: whoever was answered in the last
batch has asked again by then, unless it waits for something outside this loop."""


class Batcher(Generic[Question, Answer]):
    """Collects questions until the event loop has nothing new, and has them answered in one call.

    The work is done in the event loop, which waits: the same games then make the same batches. With `thread` it is done
    in a thread, and the loop goes on meanwhile.
    """

    def __init__(self, work: Callable[[Sequence[Question]], Sequence[Answer]], *, thread: bool = False) -> None:
        """`work`: answers in the order of the questions; called by one thread at a time for each event loop."""
        self._work, self._thread = work, thread
        self._waiting: dict[asyncio.AbstractEventLoop, list[tuple[Question, asyncio.Future[Answer]]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def answer(self, question: Question) -> Answer:
        """The answer to one question. Raises what the work raised, ModelError for what torch did."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        queue = self._waiting.get(loop)
        if queue is not None:
            queue.append((question, future))
        else:
            self._waiting[loop] = [(question, future)]
            task = loop.create_task(self._serve(loop))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await future

    async def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        """Answer until nobody waits."""
        queue = self._waiting[loop]
        try:
            while queue:
                await _quiet(queue)
                asked = [(question, future) for question, future in queue if not future.done()]
                queue.clear()
                if asked:
                    await self._answer(asked)
        finally:
            del self._waiting[loop]
            for _, future in queue:
                future.cancel()

    async def _answer(self, asked: Sequence[tuple[Question, asyncio.Future[Answer]]]) -> None:
        questions, failed, answers = [question for question, _ in asked], None, list[Answer]()
        try:
            answers += await asyncio.to_thread(self._work, questions) if self._thread else self._work(questions)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is raised in those who asked
            failed = error
        for at, (_, future) in enumerate(asked):
            if future.done():
                continue
            if failed is None:
                future.set_result(answers[at])
            else:
                future.set_exception(_told(failed))


async def _quiet(queue: Sequence[object]) -> None:
    """Until the loop has turned a few times without another question."""
    quiet, seen = 0, len(queue)
    while quiet < _QUIET:
        await asyncio.sleep(0)
        quiet, seen = (quiet + 1, seen) if len(queue) == seen else (0, len(queue))


def _told(error: Exception) -> ModelError:
    """The error as each of those who asked gets it: an exception of its own, in one line."""
    if isinstance(error, ModelError):
        return type(error)(str(error))
    return ModelError(one_line(f"the model failed: {type(error).__name__}: {error}"))
