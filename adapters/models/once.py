"""Once: work that all who want its result at the same time wait for together."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from arena.model import ModelError

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
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            asker = asyncio.current_task()
            if task.cancelled() and asker is not None and not asker.cancelling():
                raise ModelError("the model has been closed meanwhile") from None
            raise

    async def stop(self) -> None:
        """End the work of the running event loop; whoever waits for it gets a ModelError."""
        task = self._tasks.get(asyncio.get_running_loop())
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def _done(self, task: "asyncio.Task[Result]") -> None:
        self._tasks.pop(task.get_loop(), None)
        if not task.cancelled():
            task.exception()  # is known: those who waited may all be gone
