"""Intervals: what a few runs with different seeds say about the next one."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import t

__all__ = ["Interval", "interval"]


class Interval(NamedTuple):
    """A mean over runs and its 95 % interval."""

    mean: float
    half: float
    """Infinite where there is only one run."""

    @property
    def above_zero(self) -> bool:
        """Whether all of it is above zero."""
        return self.mean - self.half > 0

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.half:.3f}"


def interval(values: Sequence[float]) -> Interval:
    """Student's t over independent runs.

    >>> str(interval([1.0, 2.0, 3.0]))
    '2.000 ± 2.484'
    """
    count = len(values)
    if count < 2:
        return Interval(float(np.mean(values)), float("inf"))
    error = float(np.std(values, ddof=1)) / count**0.5
    return Interval(float(np.mean(values)), float(t.ppf(0.975, count - 1)) * error)
