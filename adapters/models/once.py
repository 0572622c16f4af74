"""Once: work that all who want its result at the same time wait for together."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

__all__ = ["Once"]

Result = TypeVar("Result")


class Once(Generic[Result]):
    """One task at a time in each event loop. Whoever is cancelled while waiting does not take it from the others."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.AbstractEventLoop, asyncio.Task[Result]] = {}

    async def result(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """The result, or the error, of the work that is being done, or else of this."""
        loop = asyncio.get_running_loop()
        task = self._tasks.get(loop)
        if task is None:
            task = self._tasks[loop] = loop.create_task(work())
            task.add_done_callback(self._done)
        return await asyncio.shield(task)

    def _done(self, task: "asyncio.Task[Result]") -> None:
        self._tasks.pop(task.get_loop(), None)
        if not task.cancelled():
            task.exception()  # is known: those who waited may all be gone
