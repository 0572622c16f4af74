"""Instances of the multi-issue bargaining of `negotiation`: every pool and pair of value functions there is.

Constraints: Lewis et al., *Deal or No Deal? End-to-End Learning for Negotiation Dialogues* (2017), section 2.2, as in
OpenSpiel `bargaining`: 5 to 7 items of three types, at least one of each; every item has a whole, non-negative value
for each seat; all items together are worth 10 to each; each type is worth something to somebody; some type is worth
something to both. There are 5,793 instances; OpenSpiel's generator and ours draw each with the same chance.
"""

from functools import cache
from itertools import product

__all__ = ["ITEMS", "MOST", "POOLS", "TOTAL", "Bundle", "instances", "partners", "splits", "valuations", "worth"]

Bundle = tuple[int, int, int]
"""A number for each of the three types: how many, or what one of them is worth."""
ITEMS = ("book", "hat", "ball")
TOTAL = 10
MOST = 5
"""The most items of one type."""
POOLS: tuple[Bundle, ...] = tuple((a, b, c) for a, b, c in product(range(1, MOST + 1), repeat=3) if 5 <= a + b + c <= 7)


def worth(values: Bundle, bundle: Bundle) -> int:
    """What the bundle is worth."""
    return values[0] * bundle[0] + values[1] * bundle[1] + values[2] * bundle[2]


@cache
def splits(pool: Bundle) -> tuple[Bundle, ...]:
    """What one seat can be given of the pool: everything from nothing to all."""
    a, b, c = pool
    return tuple([(i, j, k) for i in range(a + 1) for j in range(b + 1) for k in range(c + 1)])


@cache
def valuations(pool: Bundle) -> tuple[Bundle, ...]:
    """The value functions that make the pool worth 10."""
    a, b, c = (range(TOTAL // count + 1) for count in pool)
    return tuple([(i, j, k) for i in a for j in b for k in c if worth((i, j, k), pool) == TOTAL])


@cache
def partners(pool: Bundle, mine: Bundle) -> tuple[Bundle, ...]:
    """What the other seat's values may be, given mine: no type worthless to both, some type dear to both."""
    return tuple(
        [
            theirs
            for theirs in valuations(pool)
            if all(m or t for m, t in zip(mine, theirs, strict=True))
            and any(m and t for m, t in zip(mine, theirs, strict=True))
        ]
    )


@cache
def instances() -> tuple[tuple[Bundle, Bundle, Bundle], ...]:
    """Every (pool, values of seat 0, values of seat 1); made at the first call (about 20 ms)."""
    return tuple(
        [(pool, mine, theirs) for pool in POOLS for mine in valuations(pool) for theirs in partners(pool, mine)]
    )
