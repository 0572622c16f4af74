"""Components of small graphs, without scipy's, whose import takes longer than a leaderboard of 100,000 games."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["components"]

Ints = NDArray[np.int64]


def components(edges: NDArray[np.generic], *, strong: bool = False) -> Ints:
    """The number of every node's component, from 0 by its first node; `edges` has the shape (n, n), not 0: an edge.

    `strong`: nodes that reach each other along directed edges.

    >>> edges = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    >>> components(edges).tolist(), components(edges, strong=True).tolist()
    ([0, 0, 1], [0, 1, 2])
    """
    n = len(edges)
    if not n:
        return np.zeros(0, dtype=np.int64)
    there = (edges != 0) | np.eye(n, dtype=np.bool_)
    reach = (there if strong else there | there.T).astype(np.float32)
    while True:
        further = (reach @ reach > 0).astype(np.float32)  # paths twice as long
        if np.array_equal(further, reach):
            break
        reach = further
    _, numbers = np.unique(np.argmax((reach > 0) & (reach.T > 0), axis=1), return_inverse=True)
    return numbers.astype(np.int64).reshape(n)
