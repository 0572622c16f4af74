"""Ctrl-C heard in the event loop, and the garbage collector held back, while a tournament runs."""

import asyncio
import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Self

__all__ = ["Interrupts", "collected_rarely"]

_COLLECTED = 100_000  # objects more than before, until the garbage collector looks at the young ones
_AT_ONCE = 2.0  # seconds after a second Ctrl-C, until what does not end is interrupted where it is


@contextmanager
def collected_rarely() -> Iterator[None]:
    """While a thousand games wait for models, the collector walks all they hold again and again: a fifth of the time.

    What a game leaves behind goes by reference counts; cycles wait a little longer.
    """
    before = gc.get_threshold()
    if 0 < before[0] < _COLLECTED:
        gc.set_threshold(_COLLECTED, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


class Interrupts:
    """Ctrl-C as a call in the loop, while the context lasts (in the main thread; elsewhere nothing is changed).

    From the third on, or where the loop has not heard the second one for two seconds, it is a KeyboardInterrupt where
    the program is.
    """

    def __init__(self, act: Callable[[int], None], at_once: Callable[[], bool]) -> None:
        """`at_once`: whether what runs is interrupted, too: a loop that is held up would not hear of it."""
        self.act, self.at_once, self.times = act, at_once, 0

    def __enter__(self) -> Self:
        self.loop = asyncio.get_running_loop()
        self.main = threading.current_thread() is threading.main_thread()
        self.over = threading.Event()
        if self.main:
            self.before = signal.signal(signal.SIGINT, self._caught)
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        if self.main:
            signal.signal(signal.SIGINT, self.before)

    def _caught(self, number: int, frame: FrameType | None) -> None:
        self.times += 1
        if self.at_once() or self.times > 2:
            self.act(self.times)
            raise KeyboardInterrupt
        self.loop.call_soon_threadsafe(self.act, self.times)
        if self.times == 2 and os.name == "posix":
            threading.Thread(target=self._press_again, name="at once", daemon=True).start()

    def _press_again(self) -> None:
        if not self.over.wait(_AT_ONCE):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
