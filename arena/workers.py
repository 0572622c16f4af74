"""A pool of processes for agents that compute (searches): spawned clean, deaf to Ctrl-C, gone when their parent is.

Every process has a pipe of its own and one call at a time: one that dies, or is given up, ends its own call only.
"""

import asyncio
import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from typing import Any, Generic, Self, TypeVar

from arena.threads import in_thread

__all__ = ["Call", "WorkerDied", "Workers"]

T = TypeVar("T")
_Context = ForkServerContext | SpawnContext

_CLOSED = "the pool of workers is closed"
_PATIENCE = 5.0  # seconds for a process that was killed to be gone


class WorkerDied(RuntimeError):
    """The process of a call has ended before it answered: killed, out of memory, crashed."""


class Workers:
    """At most `count` processes (0: one a core) for `arena.match.play(..., pool=)`, in one event loop at a time.

    They start when first needed; one that dies, or whose call is cancelled, is replaced. Use it as a context
    manager, in a module with a `__main__` guard. `close` ends what still runs.
    """

    def __init__(self, count: int = 0) -> None:
        if count < 0:
            raise ValueError(f"count={count}: allowed are 0 (one a core) and more")
        self.count = count or os.cpu_count() or 1
        self._context = _context()
        self._processes = {_Process(self._context) for _ in range(self.count)}
        self._idle = list(self._processes)
        self._waiting: deque[asyncio.Future[_Process]] = deque()
        self._closed = False

    async def prepare(self, function: Callable[..., T], *args: object) -> "Call[T]":
        """Wait for a process that is free and has started; run the call at once then.

        So the wait for other calls, the start of a process and its imports are not on the call's own clock. Raises
        WorkerDied if the process does not start, and what reading the arguments in it raises.
        """
        payload = pickle.dumps((function, args), pickle.HIGHEST_PROTOCOL)
        process = self._renewed(await self._take())
        try:
            if not process.started:
                await in_thread(process.start, payload)
        except BaseException:
            process.kill()
            self._give(process)
            raise
        return Call(process, payload, self._give)

    async def _take(self) -> "_Process":
        if self._closed:
            raise WorkerDied(_CLOSED)
        if self._idle:
            return self._idle.pop()
        turn: asyncio.Future[_Process] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._give(turn.result())
            raise

    def _give(self, process: "_Process") -> None:
        """To the call that has waited longest."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(process)
                return
        self._idle.append(process)

    def _renewed(self, process: "_Process") -> "_Process":
        """The same, or another one for one that has ended."""
        if process.ended and not self._closed:
            self._processes.discard(process)
            process = _Process(self._context)
            self._processes.add(process)
        return process

    def close(self) -> None:
        """End all processes, and what still runs in them."""
        self._closed = True
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(WorkerDied(_CLOSED))
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Call(Generic[T]):
    """A call, and the process that is ready for it."""

    def __init__(self, process: "_Process", payload: bytes, give: Callable[["_Process"], None]) -> None:
        self._process, self._payload, self._give = process, payload, give

    async def run(self) -> T:
        """The result; what the call raises is raised here, WorkerDied if its process dies. Once only.

        Cancelled, it kills the process: nobody can take a search back.
        """
        try:
            result: T = await in_thread(self._process.ask, self._payload)
        except asyncio.CancelledError:
            self._process.kill()
            raise
        finally:
            self._give(self._process)
        return result


class _Process:
    """A process that starts late and ends once."""

    def __init__(self, context: _Context) -> None:
        self.started = False
        self._context, self._lock, self._killed = context, threading.Lock(), False
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    @property
    def ended(self) -> bool:
        return self._killed or (self._process is not None and not self._process.is_alive())

    def start(self, payload: bytes) -> None:
        """Start it, and let it import what a call like this one needs."""
        self._pipe, far = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(far,), name="arena-worker", daemon=True)
        process.start()
        far.close()
        with self._lock:
            self._process = process
            if self._killed:
                process.kill()
        self.ask(payload)
        self.started = True

    def ask(self, payload: bytes) -> Any:
        """Send a call and wait for its answer."""
        pipe, process = self._pipe, self._process
        if pipe is None or process is None:
            raise WorkerDied("the worker process was never started")
        answer = b""
        with suppress(EOFError, OSError):  # the process has died; it says how
            pipe.send_bytes(payload)
            if pipe in wait([pipe, process.sentinel]):
                answer = pipe.recv_bytes()
        if not answer:
            self.kill()
            self.join()
            raise WorkerDied(f"a worker process ended before it answered ({_how(process.exitcode)})")
        fine, value = pickle.loads(answer)  # noqa: S301 - from our own process
        if not fine:
            raise value
        return value

    def kill(self) -> None:
        with self._lock:
            self._killed = True
            if self._process is not None:
                self._process.kill()

    def join(self) -> None:
        if self._process is not None:
            self._process.join(_PATIENCE)


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        killed = -code == signal.SIGKILL
        return f"{signal.Signals(-code).name}{', out of memory?' * killed}"
    return f"exit code {code}"


def _context() -> _Context:
    """Never `fork`: the parent has threads and an event loop."""
    if "forkserver" in multiprocessing.get_all_start_methods():
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["arena.match"])
        return context
    return multiprocessing.get_context("spawn")


def _serve(pipe: Connection) -> None:
    """In the process: read the first call, for what it imports; then answer all that come."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    threading.Thread(target=_follow_parent, daemon=True).start()
    with suppress(EOFError, OSError):  # the parent is gone
        pipe.send_bytes(_answer(pipe.recv_bytes(), run=False))
        while True:
            pipe.send_bytes(_answer(pipe.recv_bytes(), run=True))


def _follow_parent() -> None:
    """End when the parent ends, however it does."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _answer(payload: bytes, *, run: bool) -> bytes:
    try:
        function, args = pickle.loads(payload)  # noqa: S301 - from our own parent
        return pickle.dumps((True, function(*args) if run else None), pickle.HIGHEST_PROTOCOL)
    except BaseException as error:  # noqa: BLE001 - told to the parent, whatever it is
        return _told(error)


def _told(error: BaseException) -> bytes:
    """The error itself where it can travel and harms nobody there, else its words."""
    told = f"{type(error).__name__}: {error}"
    if isinstance(error, Exception) and not isinstance(error, StopIteration):  # which no future can carry
        error.add_note(f"In a worker process:\n{traceback.format_exc()}")
        with suppress(Exception):  # pickles of other people's exceptions may fail in any way
            packed = pickle.dumps((False, error), pickle.HIGHEST_PROTOCOL)
            pickle.loads(packed)  # noqa: S301 - our own
            return packed
    return pickle.dumps((False, RuntimeError(told)))
