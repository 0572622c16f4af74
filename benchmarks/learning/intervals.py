"""Student's and Welch's intervals: the seeds are the sample, since games of one learner are no independent evidence."""

from collections.abc import Sequence
from statistics import fmean, variance

from scipy.stats import t as student

from benchmarks.timing import Spread

__all__ = ["LEVEL", "difference", "interval"]

LEVEL = 0.95


def interval(values: Sequence[float]) -> Spread:
    """For the mean of two values or more."""
    mean, error = fmean(values), (variance(values) / len(values)) ** 0.5
    reach = error * float(student.ppf((1 + LEVEL) / 2, len(values) - 1))
    return Spread(mean, mean - reach, mean + reach)


def difference(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """For the difference of two means; a point where all values of each side are the same."""
    parts = [(variance(values) / len(values), len(values)) for values in (ours, theirs)]
    middle, square = fmean(ours) - fmean(theirs), sum([part for part, _ in parts])
    if square == 0:
        return Spread(middle, middle, middle)
    freedom = square**2 / sum([part**2 / (n - 1) for part, n in parts])
    reach = square**0.5 * float(student.ppf((1 + LEVEL) / 2, freedom))
    return Spread(middle, middle - reach, middle + reach)
