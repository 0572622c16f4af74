"""Bootstrap over clusters, by how often each kind of cluster occurs: single games are not touched again.

Clusters with the same rows are one pattern; a replicate draws how often each occurs from a Poisson distribution
(Hanley & MacGibbon, Computer Methods and Programs in Biomedicine 83 (2006)), and Newton's method fits it from the
estimate. Every replicate draws its priors' means too, so that what only the prior knows keeps the prior's width.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.ratings.davidson import Belief, Cells, Fit, Moments, fit, moments, times

__all__ = ["ENOUGH", "Patterns", "bootstrap", "patterns", "root"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ENOUGH = 1e-4  # a last step of a hundredth of a standard error, after which the error is its square


class Patterns(NamedTuple):
    """Kinds of clusters, and the rows that they consist of."""

    times: Floats
    """How often each occurs."""
    pattern: Ints
    """Of every row."""
    kind: Ints
    """Of every row: outcome * number of cells + cell."""
    weight: Floats | None
    """Of every row."""


def patterns(
    cells: Cells,
    cell: Ints,
    outcome: Ints,
    cluster: Ints,
    weight: Floats | None = None,
    times: Floats | None = None,
) -> Patterns:
    """Of rows as in `sandwich.clustered`. Clusters are told apart by 64-bit sums of random numbers of their rows."""
    kind = outcome * len(cells.game) + cell
    order = None if (cluster[1:] >= cluster[:-1]).all() else np.argsort(cluster, kind="stable")
    if order is not None:
        kind, cluster = kind[order], cluster[order]
        weight, times = [column if column is None else column[order] for column in (weight, times)]
    begins = np.flatnonzero(np.concatenate([[True], cluster[1:] != cluster[:-1]]))
    marks = np.random.default_rng(0).integers(0, 2**64, 3 * len(cells.game), dtype=np.uint64)[kind]
    if weight is not None:
        marks *= np.ascontiguousarray(weight).view(np.uint64) | np.uint64(1)
    digest = np.add.reduceat(marks, begins)
    _, at, pattern = np.unique(digest, return_index=True, return_inverse=True)
    often = np.bincount(pattern, None if times is None else times[begins])
    ends = np.append(begins[1:], len(cluster))
    lengths = (ends - begins)[at]
    rows = np.repeat(begins[at] - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
    of = np.repeat(np.arange(len(at)), lengths)
    return Patterns(often.astype(np.float64), of, kind[rows], None if weight is None else weight[rows])


def bootstrap(
    fitted: Fit, cells: Cells, belief: Belief, kinds: Patterns, replicates: int = 100, seed: int = 0
) -> Floats:
    """The parameters of every replicate, shape (replicates, parameters)."""
    rng = np.random.default_rng(seed)
    told, inverse, spread = moments(cells, fitted.parameters), fitted.inverse(), root(belief.precision)
    drawn = np.empty((replicates, len(fitted.parameters)))
    for k in range(replicates):
        often = rng.poisson(kinds.times)[kinds.pattern]
        worth = often if kinds.weight is None else often * kinds.weight
        counts = np.bincount(kinds.kind, worth, 3 * len(cells.game)).astype(np.float64).reshape(3, -1)
        held = belief._replace(mean=belief.mean + times(spread, rng.standard_normal(len(belief.mean))))
        uphill = _score(cells, counts, told) - times(belief.precision, fitted.parameters - held.mean)
        again = cells._replace(counts=np.ascontiguousarray(counts.T))
        drawn[k] = fit(again, start=fitted.parameters + inverse @ uphill, belief=held, enough=ENOUGH).parameters
    return drawn


def root(precision: Floats) -> Floats:
    """Of the prior's covariance; directions of which the prior says nothing have none."""
    if precision.ndim == 1:
        return np.asarray(precision**-0.5, dtype=np.float64)
    values, vectors = np.linalg.eigh(precision)
    told = values > 1e-9 * values.max()
    return np.asarray(vectors * np.where(told, np.where(told, values, 1.0) ** -0.5, 0.0), dtype=np.float64)


def _score(cells: Cells, counts: Floats, told: Moments) -> Floats:
    """The gradient of the log likelihood of these counts, shape (3, cells), where `told` was worked out."""
    n, g = cells.players, cells.games
    by_d, by_c = (told.by_d * counts).sum(axis=0), (told.by_c * counts).sum(axis=0)
    strength = np.bincount(cells.first, by_d, n) - np.bincount(cells.second, by_d, n)
    return np.concatenate([strength, np.bincount(cells.game, by_d, g), np.bincount(cells.game, by_c, g)])
