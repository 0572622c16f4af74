"""The games that are next: in order, but one that a cap holds back lets others by."""

from collections import defaultdict, deque
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from arena.tournaments.caps import Caps, Key, Need
from arena.tournaments.schedule import Fixture

__all__ = ["Ready", "Window"]


class Ready(NamedTuple):
    """A game that may start, and what it holds."""

    fixture: Fixture
    held: tuple[str, ...]


class Window:
    """A queue for each kind of game (`Caps.key`); the kinds that can start are in a heap, by their first game's turn.

    A kind without room is set aside until what it lacks is given back: nobody looks at it in the meantime. To take a
    game costs O(log kinds).
    """

    def __init__(self, caps: Caps) -> None:
        self.caps = caps
        self.ids: set[str] = set()
        """Of the games in it."""
        self._turns = count()
        self._queues: dict[Key, deque[tuple[int, Fixture]]] = {}
        self._heap: list[tuple[int, Key]] = []
        self._aside: defaultdict[str, set[Key]] = defaultdict(set)
        """By resource: the kinds that wait for it."""

    def __len__(self) -> int:
        return len(self.ids)

    def add(self, fixture: Fixture) -> None:
        """Behind all others; a game that is in it already stays where it is."""
        if fixture.id in self.ids:
            return
        self.ids.add(fixture.id)
        key, turn = self.caps.key(fixture.agents), next(self._turns)
        queue = self._queues.get(key)
        if queue is None:
            self._queues[key] = deque([(turn, fixture)])
            heappush(self._heap, (turn, key))
        else:
            queue.append((turn, fixture))

    def take(self) -> Ready | None:
        """The first game that can start; None: none can."""
        while self._heap:
            key = self._heap[0][1]
            held = self.caps.take(key)
            if isinstance(held, Need):
                heappop(self._heap)
                for name in held.either:
                    self._aside[name].add(key)
                continue
            heappop(self._heap)
            queue = self._queues[key]
            fixture = queue.popleft()[1]
            if queue:
                heappush(self._heap, (queue[0][0], key))
            else:
                del self._queues[key]
            self.ids.discard(fixture.id)
            return Ready(fixture, held)
        return None

    def give(self, held: tuple[str, ...]) -> None:
        """A game has ended: kinds that waited for what it held are looked at again."""
        self.caps.give(held)
        for name in held:
            for key in self._aside.pop(name, ()):
                self._wake(key)

    def _wake(self, key: Key) -> None:
        """Back into the heap, and out of where else it was set aside."""
        for need in key:
            for name in need.either:
                if (keys := self._aside.get(name)) is not None:
                    keys.discard(key)
        heappush(self._heap, (self._queues[key][0][0], key))
