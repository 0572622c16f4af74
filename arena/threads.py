"""Threads for what would hold the event loop up: a blocking agent without a process pool, a live game."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import ParamSpec, TypeVar, cast

__all__ = ["in_thread", "live_pool"]

P = ParamSpec("P")
T = TypeVar("T")

_LIVE = 64  # live games that act at the same moment


@cache
def live_pool() -> ThreadPoolExecutor:
    """The threads in which live games act."""
    return ThreadPoolExecutor(_LIVE, thread_name_prefix="arena-live")


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call it in a thread of its own, which nobody waits for once this await is cancelled.

    (`asyncio.to_thread` would be waited for when the loop is closed, so that a time limit would not end anything.)
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, error: BaseException | None) -> None:
        if not future.done():
            future.set_result(cast("T", result)) if error is None else future.set_exception(error)

    def work() -> None:
        result, error = None, None
        try:
            result = function(*args, **kwargs)
        except BaseException as raised:  # noqa: BLE001 - handed to who awaits
            error = raised
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(tell, result, error)

    threading.Thread(target=work, name="arena-agent", daemon=True).start()
    return await future
