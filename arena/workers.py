"""A pool of processes for agents that compute (searches): spawned clean, deaf to Ctrl-C, gone when their parent is."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import BaseContext
from typing import ParamSpec, TypeVar

__all__ = ["Workers"]

_PATIENCE = 1.0  # seconds for the executor's own thread to drop what waits

P = ParamSpec("P")
T = TypeVar("T")


def _context() -> BaseContext:
    """Never `fork`: the parent has threads and an event loop."""
    if "forkserver" in multiprocessing.get_all_start_methods():
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["arena.match"])
        return context
    return multiprocessing.get_context("spawn")


def _prepare() -> None:
    """In a new worker: leave Ctrl-C to the parent, and end when the parent ends, however it does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class Workers(Executor):
    """An executor of `count` processes (0: one a core) for `arena.match.play(..., pool=)`.

    A worker that dies takes the calls in flight with it (they raise BrokenProcessPool); the next call gets new
    workers. Processes start when first needed. Use it as a context manager, in a module with a
    `__main__` guard.
    """

    def __init__(self, count: int = 0) -> None:
        self.count = count or os.cpu_count() or 1
        self._context = _context()
        self._pool = self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self.count, mp_context=self._context, initializer=_prepare)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """See `concurrent.futures.Executor.submit`."""
        try:
            return self._pool.submit(fn, *args, **kwargs)
        except BrokenProcessPool:
            self._pool.shutdown(wait=False)
            self._pool = self._new_pool()
            return self._pool.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Without `wait`, calls that still run are ended, not awaited."""
        if wait:
            self._pool.shutdown(cancel_futures=cancel_futures)
        else:
            self._end()

    def _end(self) -> None:
        """Drop the calls that wait, then kill the processes; the executor has no public way to either before 3.14.

        In this order: it fails the calls of a killed process, and stumbles (to 3.11) over those that were cancelled.
        """
        processes = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        until = time.monotonic() + _PATIENCE
        while processes and self._pool._cancel_pending_futures and time.monotonic() < until:
            time.sleep(0.001)
        for process in processes:
            process.kill()
