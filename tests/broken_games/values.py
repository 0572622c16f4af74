"""Games broken in chance and values."""

import random
import threading
from random import Random
from typing import Any, Self

import numpy as np

from arena.game import Action, Player, replace
from tests.broken_games.play import SamplesElsewhere
from tests.broken_games.register import COUNTER, Live, Logged, breaks
from tests.toy_games import Bazaar, Take


@breaks("max_action", "but max_action() is 0")
class ShortBound(Take):
    def max_action(self) -> int:
        return 0


@breaks("max_action", "but max_action() is 46")
class ShortTextBound(Bazaar):
    def max_action(self) -> int:
        return 46


@breaks("closing", "it must be safe")
class ClosesOnce(Live):
    log: list[str] = []  # noqa: RUF012 - msgspec copies it for every value

    def close(self) -> None:
        if self.log:
            raise RuntimeError("closed already")
        self.log.append("closed")


@breaks("determinism", "played again")
class CountsDeals(Take):
    @classmethod
    def initial(cls, rng: Random, most: int = 7, takes: tuple[int, ...] = (1, 2)) -> Self:
        return cls(next(COUNTER) + 1, tuple(takes), most)


@breaks("determinism", "moves drawn by sample_action")
class SamplesOutside(SamplesElsewhere):
    """Random play is not the same twice."""


LAST: list[int] = [0]


@breaks("interleaving", "interleaved with other games")
class SharedClock(Take):
    @classmethod
    def initial(cls, rng: Random, most: int = 7, takes: tuple[int, ...] = (1, 2)) -> Self:
        LAST[0] = 0
        return super().initial(rng, most, takes)

    def play(self, action: Action) -> Self:
        LAST[0] += 1
        return super().play(action)

    def observation(self, player: Player) -> str:
        return f"{self.stones} stones, clock {LAST[0]}"


@breaks("threads", "played in threads")
class LooksAtThread(Take):
    def observation(self, player: Player) -> str:
        return f"{self.stones} stones in {threading.current_thread().name}"


@breaks("hash_seed", "never let the order of a set")
class ShowsHash(Take):
    def observation(self, player: Player) -> str:
        return f"{self.stones} stones {hash('stone')}"


@breaks("global_random", "the global random module")
class GlobalRandom(Take):
    def play(self, action: Action) -> Self:
        random.random()
        return super().play(action)


@breaks("global_random", "the global numpy.random")
class GlobalNumpy(Take):
    def play(self, action: Action) -> Self:
        np.random.rand()
        return super().play(action)


@breaks("purity", "changed the value")
class WritesIntoIt(Logged):
    def play(self, action: Action) -> Self:
        self.log.append(action)
        return super().play(action)


@breaks("purity", "another position the second time")
class ForgetsNothing(Take):
    def play(self, action: Action) -> Self:
        return replace(super().play(action), most=next(COUNTER))


@breaks("hashing", "log: list")
class Unhashable(Logged):
    """Holds a list."""


@breaks("equality", "gave an unequal position")
class OnlyItself(Take):
    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = Take.__hash__


@breaks("equality", "that look different are equal")
class AllAlike(Take):
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


class Handle(Take):
    tool: Any = None

    @classmethod
    def initial(cls, rng: Random, most: int = 7, takes: tuple[int, ...] = (1, 2)) -> Self:
        return replace(super().initial(rng, most, takes), tool=TOOL)


TOOL = threading.Lock()


@breaks("pickling", "hold data only")
class HoldsLock(Handle):
    """A lock cannot travel."""


@breaks("pickling", "a pickled position is not equal")
class LosesPly(Take):
    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.stones, self.takes, self.most)


@breaks("copying", "a copied position is not equal")
class BadCopy(Take):
    def __copy__(self) -> Self:
        return replace(self, ply=self.ply + 2)


@breaks("copying", "a deep-copied position is not equal")
class BadDeepCopy(Take):
    def __deepcopy__(self, memo: object) -> Self:
        return replace(self, stones=self.stones + 2)
