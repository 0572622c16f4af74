"""How much may be asked of one endpoint at a time: requests in flight, requests and tokens per minute."""

import asyncio
from collections import deque
from collections.abc import Callable

__all__ = ["Deadlines", "Pace", "Slots", "Watched"]

CUT = 0.5
"""What is left of an adaptive limit after the server was too busy."""


class Slots:
    """Requests in flight: at most `most`, first come, first served.

    Adaptive: the limit is halved when the server is too busy and grows by one for every limit's worth of answers
    (AIMD, as in TCP; Chiu and Jain 1989). Requests that were sent before the last cut do not cut it again.
    """

    __slots__ = ("adaptive", "busy", "cut_at", "limit", "most", "waiting")

    def __init__(self, most: int, *, adaptive: bool = False) -> None:
        self.most, self.adaptive = most, adaptive
        self.limit = float(most)
        self.busy = 0
        self.cut_at = float("-inf")
        self.waiting: deque[asyncio.Future[None]] = deque()

    def allow(self, most: int, *, adaptive: bool) -> None:
        """Change the limit. What is in flight beyond it is let be."""
        cut = adaptive and self.limit < self.most
        self.most, self.adaptive = most, adaptive
        self.limit = min(self.limit, float(most)) if cut else float(most)
        self._serve()

    def enter_now(self) -> bool:
        """Take a slot if one is free and nobody waits for it."""
        if self.busy >= int(self.limit) or self.waiting:
            return False
        self.busy += 1
        return True

    async def enter(self) -> None:
        """Take a slot, waiting for one if need be."""
        if self.enter_now():
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()  # the slot had been handed over already
            elif turn in self.waiting:
                self.waiting.remove(turn)
            raise

    def leave(self) -> None:
        """Give a slot back; the longest waiting get what is free."""
        self.busy -= 1
        self._serve()

    def _serve(self) -> None:
        while self.waiting and self.busy < int(self.limit):
            turn = self.waiting.popleft()
            if not turn.done():
                self.busy += 1
                turn.set_result(None)

    def answered(self) -> None:
        """The server kept up with a request."""
        if self.adaptive and self.limit < self.most:
            self.limit = min(self.limit + 1 / self.limit, self.most)
            self._serve()

    def overloaded(self, sent: float, now: float) -> None:
        """The server was too busy for a request that was sent at `sent`."""
        if self.adaptive and sent > self.cut_at:
            self.limit = max(self.limit * CUT, 1.0)
            self.cut_at = now


class Pace:
    """At most `per_minute` units in any minute, evenly spaced, in the order they are asked for.

    Only the unit of account that is being served can overstep it: a request of many tokens delays the next one.
    """

    def __init__(self, per_minute: float, clock: Callable[[], float]) -> None:
        self.seconds = 60 / per_minute
        self.clock = clock
        self.free_at = 0.0
        self._turn = asyncio.Lock()

    async def take(self, amount: float) -> None:
        """Wait until `amount` units may be used. Cancelled while waiting, nothing is used."""
        async with self._turn:
            while (wait := self.free_at - self.clock()) > 0:
                await asyncio.sleep(wait)
            self.free_at = max(self.free_at, self.clock()) + amount * self.seconds


class Deadlines:
    """A time limit that all calls share: one timer in all, where `asyncio.timeout` would need one for each call.

    As their limits are equal, calls run out of time in the order they were begun.
    """

    __slots__ = ("calls", "loop", "seconds", "timer")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.loop = asyncio.get_running_loop()
        self.calls: dict[Watched, None] = {}
        self.timer: asyncio.TimerHandle | None = None

    def watch(self) -> "Watched":
        """Begin: the running task is cancelled when its time is over, unless `done` comes first."""
        call = Watched(self.loop.time() + self.seconds)
        self.calls[call] = None
        if self.timer is None:
            self.timer = self.loop.call_at(call.ends, self._strike)
        return call

    def done(self, call: "Watched") -> None:
        """End."""
        self.calls.pop(call, None)

    def _strike(self) -> None:
        self.timer, now = None, self.loop.time()
        while self.calls:
            call = next(iter(self.calls))
            if call.ends > now:
                self.timer = self.loop.call_at(call.ends, self._strike)
                return
            del self.calls[call]
            call.over = True
            call.task.cancel()

    def close(self) -> None:
        """Stop the timer."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class Watched:
    """One call under a time limit."""

    __slots__ = ("before", "ends", "over", "task")

    def __init__(self, ends: float) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.task, self.ends, self.over = task, ends, False
        self.before = task.cancelling()

    def timed_out(self) -> bool:
        """Whether a CancelledError that came is ours, and nobody else wants the task cancelled."""
        return self.over and self.task.uncancel() <= self.before
