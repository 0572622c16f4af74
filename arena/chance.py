"""Chance: a frozen source of random numbers, so that dice can fall inside an immutable game."""

from hashlib import blake2b
from random import Random
from typing import Self

import msgspec

__all__ = ["Chance"]


class Chance(msgspec.Struct, frozen=True):
    """A counter-based random source: the n-th draw of a key is always the same, and drawing gives the next source.

    >>> chance = Chance(key=7)
    >>> dice, after = chance.integers(6, 5)
    >>> dice == chance.integers(6, 5)[0], dice == after.integers(6, 5)[0]
    (True, False)
    """

    key: int
    n: int = 0

    @classmethod
    def of(cls, rng: Random) -> Self:
        """A fresh source, keyed from `rng`."""
        return cls(rng.getrandbits(64))

    def integers(self, high: int, count: int = 1) -> tuple[tuple[int, ...], "Chance"]:
        """`count` independent integers in `range(high)` and the next source (about 0.5 us and 0.1 us a number)."""
        if high < 1 or count < 0:
            raise ValueError(f"high={high} must be at least 1 and count={count} at least 0")
        # 128 spare bits keep the bias of the modulus below 2**-128
        size = (count * high.bit_length() + 135) // 8
        if size > 64:
            rng, after = self.draw()
            return tuple([rng.randrange(high) for _ in range(count)]), after
        pool = int.from_bytes(self._digest(size), "little")
        numbers = []
        for _ in range(count):
            pool, number = divmod(pool, high)
            numbers.append(number)
        return tuple(numbers), Chance(self.key, self.n + 1)

    def draw(self) -> tuple[Random, "Chance"]:
        """A private generator for everything `integers` cannot say, and the next source (about 6 us)."""
        return Random(int.from_bytes(self._digest(8), "little")), Chance(self.key, self.n + 1)

    def _digest(self, size: int) -> bytes:
        return blake2b(b"%d.%d" % (self.key, self.n), digest_size=size).digest()
