"""Simulated games of two players, in seed blocks, for tests of what is made of them."""

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.ratings import Results
from arena.tournaments.ratings.davidson import ELO

Floats = NDArray[np.float64]


def blocks(
    seed: int, players: int, number: int, *, kinds: int = 1, luck: float = 0.0, spread: float = 200.0
) -> Results:
    """`number` seeds, each played in both seats; `luck` (Elo) favours one seat by the seed."""
    rng = np.random.default_rng(seed)
    strength = rng.normal(0, 200, players) / ELO
    one = rng.integers(0, players, number)
    other = (one + rng.integers(1, players, number)) % players
    first, second = np.column_stack([one, other]).ravel(), np.column_stack([other, one]).ravel()
    cluster = np.repeat(np.arange(number), 2)
    game = np.repeat(rng.integers(0, kinds, number), 2)
    edge = strength[first] - strength[second] + 40 / ELO + np.repeat(rng.normal(0, luck, number), 2) / ELO
    weights = np.exp(np.stack([edge / 2, np.full(2 * number, -0.7), -edge / 2]))
    outcome = (rng.random(2 * number) > np.cumsum(weights / weights.sum(axis=0), axis=0)[:2]).sum(axis=0)
    names, games = tuple([f"p{k}" for k in range(players)]), tuple([f"g{k}" for k in range(kinds)])
    return Results(names, games, game, first, second, outcome, cluster)


def picked(results: Results, rows: NDArray[np.int64]) -> Results:
    """Some of the rows, in this order, as often as they are named."""
    names = ("game", "first", "second", "outcome", "cluster", "weight", "times")
    return results._replace(**{name: values[rows] for name in names if (values := getattr(results, name)) is not None})
