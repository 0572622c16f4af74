"""Largest matchings, beside brute force and published hard cases."""

from functools import cache
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.tournaments.schedules.matching import matching, perfect

Edges = list[tuple[int, int]]
PETERSEN = [edge for k in range(5) for edge in ((k, (k + 1) % 5), (k, k + 5), (5 + k, 5 + (k + 2) % 5))]


def graph(size: int, edges: Edges) -> list[list[int]]:
    neighbours: list[list[int]] = [[] for _ in range(size)]
    for one, other in edges:
        neighbours[one].append(other)
        neighbours[other].append(one)
    return neighbours


def largest(size: int, edges: Edges) -> int:
    """How many can be matched, by trying all."""

    @cache
    def most(free: frozenset[int]) -> int:
        if not free:
            return 0
        one, rest = min(free), free - {min(free)}
        partners = [b if a == one else a for a, b in edges if one in (a, b)]
        return max([most(rest), *[2 + most(rest - {p}) for p in partners if p in rest]])

    return most(frozenset(range(size)))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Edges]:
    size = draw(st.integers(0, 10))
    pairs = list(combinations(range(size), 2))
    return size, draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []


@settings(max_examples=200, deadline=None)
@given(graphs())
def test_as_large_as_brute_force_finds(given_: tuple[int, Edges]) -> None:
    size, edges = given_
    mate = matching(graph(size, edges))
    for one, other in enumerate(mate):
        assert other < 0 or (mate[other] == one and (min(one, other), max(one, other)) in set(edges))
    assert sum(other >= 0 for other in mate) == largest(size, edges)


@pytest.mark.parametrize(
    ("size", "edges", "there"),
    [
        (10, PETERSEN, True),
        (6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (2, 3)], True),  # two triangles and a bridge
        (6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)], False),
        (4, [(0, 1), (0, 2), (0, 3)], False),
        (3, [(0, 1), (1, 2), (2, 0)], False),
        (0, [], True),
    ],
)
def test_perfect(size: int, edges: Edges, there: bool) -> None:
    assert perfect(graph(size, edges)) is there


def test_a_long_path_of_triangles() -> None:
    size = 300
    edges = [(k, k + 1) for k in range(size - 1)] + [(k, k + 2) for k in range(0, size - 2, 3)]
    assert perfect(graph(size, edges))
