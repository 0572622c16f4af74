"""Perfect matchings of a graph that need not be bipartite: whether everybody finds a partner among those allowed.

Edmonds, *Paths, trees, and flowers*, Canadian Journal of Mathematics 17 (1965); O(n^3), each search from one
unmatched vertex, with blossoms shrunk to their bases.
"""

from collections import deque
from collections.abc import Sequence

__all__ = ["matching", "perfect"]


def perfect(neighbours: Sequence[Sequence[int]]) -> bool:
    """Whether all vertices can be matched."""
    return len(neighbours) % 2 == 0 and -1 not in matching(neighbours)


def matching(neighbours: Sequence[Sequence[int]]) -> list[int]:
    """The partner of every vertex in a largest matching; -1: none.

    >>> matching([[1], [0, 2], [1, 3], [2]])
    [1, 0, 3, 2]
    """
    mate = [-1] * len(neighbours)
    for vertex, others in enumerate(neighbours):
        if mate[vertex] < 0:
            for other in others:
                if mate[other] < 0:
                    mate[vertex], mate[other] = other, vertex
                    break
    for vertex in range(len(neighbours)):
        if mate[vertex] < 0:
            _Search(neighbours, mate).augment(vertex)
    return mate


class _Search:
    """One search for an augmenting path."""

    def __init__(self, neighbours: Sequence[Sequence[int]], mate: list[int]) -> None:
        self.neighbours, self.mate = neighbours, mate
        self.parent = [-1] * len(mate)
        self.base = list(range(len(mate)))
        self.outer = [False] * len(mate)
        self.queue: deque[int] = deque()

    def augment(self, root: int) -> None:
        """Match the root too, if that can be done."""
        self.outer[root] = True
        self.queue.append(root)
        while self.queue:
            vertex = self.queue.popleft()
            for other in self.neighbours[vertex]:
                if self.base[vertex] == self.base[other] or self.mate[vertex] == other:
                    continue
                if other == root or (self.mate[other] >= 0 and self.parent[self.mate[other]] >= 0):
                    self._shrink(vertex, other)
                elif self.parent[other] < 0:
                    self.parent[other] = vertex
                    if self.mate[other] < 0:
                        self._flip(other)
                        return
                    self._reach(self.mate[other])

    def _reach(self, vertex: int) -> None:
        self.outer[vertex] = True
        self.queue.append(vertex)

    def _flip(self, vertex: int) -> None:
        """Along the path to the root, what was matched is not, and the other way round."""
        while vertex >= 0:
            before = self.parent[vertex]
            after = self.mate[before]
            self.mate[vertex], self.mate[before] = before, vertex
            vertex = after

    def _shrink(self, one: int, other: int) -> None:
        """The odd cycle that the edge closes becomes one vertex, its base."""
        top = self._meet(one, other)
        inside: set[int] = set()
        self._mark(one, top, other, inside)
        self._mark(other, top, one, inside)
        for vertex, base in enumerate(self.base):
            if base in inside:
                self.base[vertex] = top
                if not self.outer[vertex]:
                    self._reach(vertex)

    def _meet(self, one: int, other: int) -> int:
        """The base at which the paths of both to the root come together."""
        seen = set()
        while True:
            one = self.base[one]
            seen.add(one)
            if self.mate[one] < 0:
                break
            one = self.parent[self.mate[one]]
        while self.base[other] not in seen:
            other = self.parent[self.mate[self.base[other]]]
        return self.base[other]

    def _mark(self, vertex: int, top: int, child: int, inside: set[int]) -> None:
        while self.base[vertex] != top:
            inside |= {self.base[vertex], self.base[self.mate[vertex]]}
            self.parent[vertex] = child
            child = self.mate[vertex]
            vertex = self.parent[child]
