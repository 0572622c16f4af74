"""Ctrl-C heard in the event loop, and the garbage collector held back, while a tournament runs."""

import asyncio
import gc
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Self

__all__ = ["Interrupts", "collected_rarely"]

_COLLECTED = 100_000  # objects more than before, until the garbage collector looks at the young ones


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
    """Ctrl-C as a call in the loop, while the context lasts (in the main thread; elsewhere nothing is changed)."""

    def __init__(self, act: Callable[[int], None], at_once: bool) -> None:
        """`at_once`: interrupt what runs, too: a loop that waits for a line of input would not hear of it."""
        self.act, self.at_once, self.times = act, at_once, 0

    def __enter__(self) -> Self:
        self.loop = asyncio.get_running_loop()
        self.main = threading.current_thread() is threading.main_thread()
        if self.main:
            self.before = signal.signal(signal.SIGINT, self._caught)
        return self

    def __exit__(self, *_: object) -> None:
        if self.main:
            signal.signal(signal.SIGINT, self.before)

    def _caught(self, number: int, frame: FrameType | None) -> None:
        self.times += 1
        if self.at_once:
            self.act(1)
            raise KeyboardInterrupt
        self.loop.call_soon_threadsafe(self.act, self.times)
