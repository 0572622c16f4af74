"""A watchdog: a run in which nothing goes on any more says what it waits for, and ends.

It is a thread, so that it also sees an event loop that a never ending call holds up. Every finished answer, and every
step of the run itself, is a sign of life.
"""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import iscoroutinefunction
from itertools import count, pairwise
from typing import Any, NamedTuple, Self

from arena.agent import Agent, Reply, View
from arena.workers import Call, Workers

__all__ = ["GAME", "Watchdog", "WatchedWorkers"]

GAME: ContextVar[str] = ContextVar("game", default="")
"""What the running task plays, in words."""

_SHOWN = 5  # of what hangs
_GRACE = 5.0  # seconds for a way to end, until the next harder one


class _Doing(NamedTuple):
    what: str
    since: float


class Watchdog:
    """Use it as a context manager around all that may hang; without `seconds` it only remembers what is done."""

    def __init__(self, seconds: float | None, end: Callable[[str], None], grace: float | None = None) -> None:
        """`end`: called in the event loop with what hangs, once nothing has happened for so many seconds."""
        self.seconds, self.end, self.grace = seconds, end, _GRACE if grace is None else grace
        self.patient = False
        """Others are waited for, who have watchdogs of their own."""
        self.message = ""
        """What hung."""
        self.biting = False
        """What holds the event loop up is being interrupted."""
        self._last = time.monotonic()
        self._doing: dict[int, _Doing] = {}
        self._numbers = count()
        self._step = ""
        self._over = threading.Event()

    def __enter__(self) -> Self:
        self._loop, self._home = asyncio.get_running_loop(), threading.current_thread()
        if self.seconds is not None:
            threading.Thread(target=self._watch, name="watchdog", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def alive(self) -> None:
        """Something has happened."""
        self._last = time.monotonic()

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Something begins, and ends: signs of life both, and in between it may be what hangs."""
        number = next(self._numbers)
        self._last = now = time.monotonic()
        self._doing[number] = _Doing(what, now)
        try:
            yield
        finally:
            del self._doing[number]
            self._last = time.monotonic()

    def now(self, what: str) -> None:
        """What the run does from here on."""
        self._step = what
        self.alive()

    def hangs(self) -> str:
        """What has been going on for longest, in words."""
        now = time.monotonic()
        doing = sorted(self._doing.copy().values(), key=lambda each: each.since)
        lines = [f"{each.what} for {now - each.since:.0f} s" for each in doing[:_SHOWN]]
        lines += [f"and {len(doing) - _SHOWN} more"] if len(doing) > _SHOWN else []
        return "; ".join([self._step] * bool(self._step) + lines) or "nothing is known to be under way"

    def watch(self, agent: Agent) -> None:
        """Every answer of this agent is a sign of life from now on; those of blocking ones, the workers' are."""
        if self.seconds is None or agent.blocking:
            return
        watched = self._waiting if iscoroutinefunction(type(agent).act) else self._asked
        vars(agent)["act"] = watched(agent, agent.act)

    def _waiting(self, agent: Agent, act: Callable[[View], Any]) -> Callable[[View], Awaitable[Reply]]:
        async def asked(view: View) -> Reply:
            with self.doing(turn(agent.name, view)):
                reply: Reply = await act(view)
            return reply

        return asked

    def _asked(self, agent: Agent, act: Callable[[View], Any]) -> Callable[[View], Reply | Awaitable[Reply]]:
        async def awaited(reply: Awaitable[Reply], view: View) -> Reply:
            with self.doing(turn(agent.name, view)):
                return await reply

        def asked(view: View) -> Reply | Awaitable[Reply]:
            with self.doing(turn(agent.name, view)):
                reply: Reply | Awaitable[Reply] = act(view)
            return awaited(reply, view) if isinstance(reply, Awaitable) else reply

        return asked

    def _watch(self) -> None:
        seconds = self.seconds or 0.0
        while not self._over.wait(min(seconds / 4, 1.0)):
            if self.patient:
                self.alive()
            if time.monotonic() - self._last > seconds:
                self.message = f"nothing has gone on for {seconds:g} s: {self.hangs()}"
                self._bite()
                return

    def _bite(self) -> None:
        """End the run: by a word in its loop; else by an interrupt where it is stuck; else with the process."""
        self._loop.call_soon_threadsafe(self.end, self.message)
        if self._over.wait(self.grace) or self._home is not threading.main_thread():
            return
        if os.name == "posix":
            self.biting = True
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            if self._over.wait(self.grace):
                return
        print(f"arena: given up: {self.message}; and it cannot be stopped, so this process ends", file=sys.stderr)
        sys.stderr.flush()
        os._exit(1)


def turn(name: str, view: View) -> str:
    """Whose turn of which game, in words."""
    return f"{GAME.get() or 'a game'}: agent {name!r}, seat {view.player}, at ply {view.ply}"


class WatchedWorkers(Workers):
    """Workers whose answers are signs of life."""

    def __init__(self, count: int, watchdog: Watchdog) -> None:
        super().__init__(count)
        self.watchdog = watchdog

    async def prepare(self, function: Callable[..., Any], *args: object) -> Call[Any]:
        """See `Workers.prepare`."""
        call = await super().prepare(function, *args)
        self.watchdog.alive()
        if self.watchdog.seconds is not None:
            vars(call)["run"] = self._run(call.run, args)
        return call

    def _run(self, run: Callable[[], Awaitable[Any]], args: tuple[object, ...]) -> Callable[[], Awaitable[Any]]:
        what = GAME.get() or "a search"
        for agent, view in pairwise(args):
            if isinstance(agent, Agent) and isinstance(view, View):
                what = turn(agent.name, view)

        async def watched() -> Any:
            with self.watchdog.doing(what):
                return await run()

        return watched
