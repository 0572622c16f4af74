"""A sequential test of two hypotheses about the score between two agents, on the scores of whole blocks.

The generalised sequential probability ratio test: the log likelihood ratio of the likeliest distribution with the mean
(or t-value) of H1 and the likeliest one with that of H0. With two games a block, scores have five values (pentanomial),
and the games of a block may depend on each other as they like; single games have three (trinomial).

Michel Van den Bergh, *A generalized SPRT with a multinomial model* and *Normalized Elo* (cantate.be/Fishtest), as in
fishtest and fastchess, whose published values the tests hold. Bounds: A. Wald, *Sequential analysis* (1947).
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from arena.tournaments.terms import Sprt

__all__ = ["Trial", "bounds", "ratio", "trial"]

_FLOOR = 1e-3  # of an outcome that never came: it may come
_SAME = 1e-12
_TURNS = 200
_NORMALIZED = 800 / math.log(10)  # normalized Elo of one standard deviation


class Trial(NamedTuple):
    """How far a test is."""

    ratio: float
    """Log likelihood ratio: above 0 it speaks for `elo1`."""
    lower: float
    upper: float
    blocks: int
    """Whole blocks told."""
    games: int
    """Single games told: of blocks that stay incomplete."""

    @property
    def verdict(self) -> str:
        """ "elo1" or "elo0", whichever is accepted; "": neither yet."""
        return "elo1" if self.ratio >= self.upper else "elo0" if self.ratio <= self.lower else ""


def bounds(alpha: float, beta: float) -> tuple[float, float]:
    """The ratios at which `elo0` and `elo1` are accepted.

    >>> [round(bound, 2) for bound in bounds(0.05, 0.05)]
    [-2.94, 2.94]
    """
    return math.log(beta / (1 - alpha)), math.log((1 - beta) / alpha)


def trial(asked: Sprt, blocks: Sequence[float], games: Sequence[float] = (0, 0, 0)) -> Trial:
    """The test after these blocks, counted by score from the least to the most, and single games (lost, drawn, won).

    A block of n games has 2 n + 1 scores.
    """
    told = sum(ratio(counts, asked.elo0, asked.elo1, asked.model) for counts in (blocks, games) if sum(counts))
    return Trial(told, *bounds(asked.alpha, asked.beta), round(sum(blocks)), round(sum(games)))


def ratio(counts: Sequence[float], elo0: float, elo1: float, model: str = "logistic") -> float:
    """The log likelihood ratio of `elo1` against `elo0`, of observations counted by score.

    `counts`: 2 n + 1 of them for blocks of n games, from all lost to all won. 0 where nothing is counted.
    """
    if not sum(counts):
        return 0.0
    held = [max(float(count), _FLOOR) for count in counts]
    values = [k / (len(held) - 1) for k in range(len(held))]
    shares = [count / sum(held) for count in held]
    games = (len(held) - 1) / 2
    if model == "logistic":
        zero, one = [_with_mean(values, shares, 1 / (1 + 10 ** (-elo / 400))) for elo in (elo0, elo1)]
    else:
        zero, one = [_with_t(values, shares, elo / _NORMALIZED * math.sqrt(games)) for elo in (elo0, elo1)]
    return sum(count * math.log(b / a) for count, a, b in zip(held, zero, one, strict=True))


def _with_mean(values: Sequence[float], shares: Sequence[float], mean: float) -> list[float]:
    """The likeliest distribution of this mean."""
    return _tilted(shares, [value - mean for value in values])


def _with_t(values: Sequence[float], shares: Sequence[float], t: float) -> list[float]:
    """The likeliest distribution whose mean is t standard deviations above one half.

    The constraint is made linear about the last distribution, again and again.
    """
    found = [1 / len(values)] * len(values)
    for _ in range(_TURNS):
        mean = sum(p * value for p, value in zip(found, values, strict=True))
        deviation = math.sqrt(sum(p * (value - mean) ** 2 for p, value in zip(found, values, strict=True)))
        offsets = [value - 0.5 - t * deviation * (1 + ((mean - value) / deviation) ** 2) / 2 for value in values]
        before, found = found, _tilted(shares, offsets)
        if max(abs(a - b) for a, b in zip(before, found, strict=True)) < _SAME:
            break
    return found


def _tilted(shares: Sequence[float], offsets: Sequence[float]) -> list[float]:
    """The likeliest distribution under which the mean of `offsets` is 0: p / (1 + x offset)."""
    if not min(offsets) < 0 < max(offsets):
        raise ArithmeticError("no distribution of these scores has the asked mean")

    def mean(x: float) -> float:
        return sum(p * offset / (1 + x * offset) for p, offset in zip(shares, offsets, strict=True))

    x = _zero(mean, -1 / max(offsets), -1 / min(offsets))
    found = [p / (1 + x * offset) for p, offset in zip(shares, offsets, strict=True)]
    return [p / sum(found) for p in found]


def _zero(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function is 0, strictly between two poles: by halving, to the last digit."""
    for _ in range(_TURNS):
        middle = low + (high - low) / 2
        if not low < middle < high:
            break
        if falling(middle) > 0:
            low = middle
        else:
            high = middle
    return low + (high - low) / 2
