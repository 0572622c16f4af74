"""Paired timing: what is compared takes turns, so that a busy machine slows both sides alike."""

import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from statistics import median
from typing import NamedTuple

__all__ = ["ROUNDS", "Figure", "Loop", "Spread", "absent", "differences", "interleave", "loop", "ratios"]

Loop = Callable[[float], float]
"""Works for about so many CPU seconds; the CPU microseconds that one player action took."""
ROUNDS = 9
_UNCHECKED = 200  # actions between two looks at the clock, which costs 0.4 us
_clock = time.process_time


class Spread(NamedTuple):
    """The median of the rounds and the quartiles beside it."""

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Of the figures of all rounds."""
        ordered = sorted(values)
        quarter = len(ordered) // 4
        return cls(median(ordered), ordered[quarter], ordered[-1 - quarter])


class Figure(NamedTuple):
    """One line of a table."""

    work: str
    unit: str
    ours: float | None = None
    peer: float | None = None
    result: Spread | None = None
    """What the goal is about: a ratio of speeds, or a cost."""
    goal: float | None = None
    at_most: bool = False
    """The goal is a bound from above."""
    note: str = ""
    """Why there is no result, or what it is about."""

    @property
    def verdict(self) -> str:
        """Whether the goal is reached."""
        if self.result is None or self.goal is None:
            return ""
        holds = self.result.middle <= self.goal if self.at_most else self.result.middle >= self.goal
        return "reached" if holds else "falls short"


def loop(episode: Callable[[], int]) -> Loop:
    """Whole episodes, one after the other; `episode` plays one and says how many player actions it took."""

    def run(seconds: float) -> float:
        count, due, start = 0, 0, _clock()
        while True:
            count += episode()
            if count >= due:
                due = count + _UNCHECKED
                if (spent := _clock() - start) >= seconds:
                    return spent / count * 1e6

    return run


def interleave(loops: Sequence[Loop], seconds: float, rounds: int = ROUNDS) -> list[list[float]]:
    """CPU microseconds per action of every loop in every round, `seconds` for each loop in all.

    A first round, not counted, warms caches. Every other round goes backwards.
    """
    for run in loops:
        run(seconds / rounds / 4)
    spent: list[list[float]] = [[] for _ in loops]
    for turn in range(rounds):
        order = list(enumerate(loops))
        for at, run in reversed(order) if turn % 2 else order:
            spent[at].append(run(seconds / rounds))
    return spent


def ratios(ours: Sequence[float], peer: Sequence[float]) -> Spread:
    """How many times as fast we are, round by round."""
    return Spread.of([theirs / mine for mine, theirs in zip(ours, peer, strict=True)])


def differences(ours: Sequence[float], floor: Sequence[float]) -> Spread:
    """What our work costs over the floor, round by round."""
    return Spread.of([mine - theirs for mine, theirs in zip(ours, floor, strict=True)])


def absent(*modules: str) -> str:
    """ "X is not installed" for the first of the modules that is not there, else ""."""
    return next((f"{module} is not installed" for module in modules if find_spec(module) is None), "")
