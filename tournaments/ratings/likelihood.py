"""Choices among alternatives whose log weights are linear in the parameters, fitted by Newton's method.

P(alternative) = e^(features . values) / z, where each value is a sum of parameters: a strength and a seat term, or the
strengths of a team. The log likelihood is concave, and with normal priors it has one maximum (the conditional logit of
McFadden, *Conditional logit analysis of qualitative choice behavior*, 1974). Rows are vectorised; there is no loop over
games.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.ratings.bootstrap import ENOUGH, root
from arena.tournaments.ratings.davidson import Belief, Fit, square, times
from arena.tournaments.ratings.newton import newton
from arena.tournaments.ratings.sandwich import enlargement

__all__ = ["Block", "bootstrap", "clustered", "fit"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Block(NamedTuple):
    """Choices of one shape: the same alternatives, other parameters in every row."""

    features: Floats
    """Shape (alternatives, slots): what an alternative's log weight is made of."""
    places: Ints
    """Shape (rows, slots, parts): the parameters that a slot's value is the sum of; their number stands for none."""
    seen: Floats
    """Shape (rows, slots): features of the alternative that happened."""
    cluster: Ints
    weight: Floats
    """What each row tells beside the others."""
    times: Floats
    """How many clusters like its own a row stands for."""


def fit(blocks: Sequence[Block], held: Belief, start: Floats | None = None, enough: float = 0.0) -> Fit:
    """The mode of the posterior under normal priors, as `davidson.fit`."""
    mode = newton(
        lambda x: _loss(blocks, x, held.mean, held.precision),
        lambda x: _derivatives(blocks, x, held.mean, held.precision),
        held.begin(start),
        enough,
        held.free,
    )
    return Fit(mode.parameters, mode.hessian, held.precision, mode.iterations, held.free)


def bootstrap(fitted: Fit, blocks: Sequence[Block], held: Belief, replicates: int, seed: int = 0) -> Floats:
    """The covariance of replicates, made as in `arena.tournaments.ratings.bootstrap`."""
    rng, spread = np.random.default_rng(seed), root(held.precision)
    often = np.zeros(1 + max(int(block.cluster.max()) for block in blocks))
    for block in blocks:
        often[block.cluster] = block.times
    off = np.empty((replicates, len(fitted.parameters)))
    for k in range(replicates):
        drawn = rng.poisson(often).astype(np.float64)
        again = [block._replace(times=drawn[block.cluster]) for block in blocks]
        moved = held._replace(mean=held.mean + times(spread, rng.standard_normal(len(held.mean))))
        off[k] = fit(again, moved, fitted.parameters, ENOUGH).parameters - fitted.parameters
    return np.asarray(np.cov(off, rowvar=False), dtype=np.float64)


def clustered(fitted: Fit, blocks: Sequence[Block], contrasts: Floats) -> Floats:
    """The sandwich estimator over clusters, as in `arena.tournaments.ratings.sandwich`; `contrasts` as there."""
    from scipy.sparse import csr_matrix

    size, bread = len(fitted.parameters), fitted.inverse()
    numbers = 1 + max(int(block.cluster.max()) for block in blocks)
    rows, columns, values, often, share = [], [], [], np.zeros(numbers), np.zeros(numbers)
    for block in blocks:
        off, spread = _moments(block, fitted.parameters)
        shape = block.places.shape
        rows.append(np.broadcast_to(block.cluster[:, None, None], shape).ravel())
        columns.append(block.places.ravel())
        values.append(np.broadcast_to((off * block.weight[:, None])[:, :, None], shape).ravel())
        often[block.cluster] = block.times
        share += np.bincount(block.cluster, block.weight * _leverage(block, spread, bread), numbers)
    scale = np.sqrt(often * enlargement(share, contrasts, often))
    places = np.concatenate(rows), np.concatenate(columns)
    scores = csr_matrix((np.concatenate(values) * scale[places[0]], places), shape=(numbers, size + 1))[:, :size]
    meat = (scores.T @ scores).toarray() + square(fitted.precision)
    return np.asarray(bread @ meat @ bread, dtype=np.float64)


def _values(block: Block, x: Floats) -> Floats:
    """Of every slot, shape (rows, slots)."""
    return np.asarray(np.append(x, 0.0)[block.places].sum(axis=2), dtype=np.float64)


def _probabilities(block: Block, x: Floats) -> tuple[Floats, Floats]:
    """Of every alternative, shape (rows, alternatives), and log z."""
    logits = _values(block, x) @ block.features.T
    top = logits.max(axis=1, keepdims=True)
    shares = np.exp(logits - top)
    z = shares.sum(axis=1, keepdims=True)
    return shares / z, (top + np.log(z))[:, 0]


def _moments(block: Block, x: Floats) -> tuple[Floats, Floats]:
    """Of one choice: seen minus expected features, shape (rows, slots), and their covariance, (rows, slots, slots)."""
    probability, _ = _probabilities(block, x)
    slots = block.features.shape[1]
    expected = probability @ block.features
    squares = (block.features[:, :, None] * block.features[:, None, :]).reshape(-1, slots * slots)
    spread = (probability @ squares).reshape(-1, slots, slots) - expected[:, :, None] * expected[:, None, :]
    return block.seen - expected, spread


def _leverage(block: Block, spread: Floats, bread: Floats) -> Floats:
    """Of one choice: the trace of its information and the covariance of the parameters."""
    padded = np.pad(bread, ((0, 1), (0, 1)))
    total = np.zeros(len(spread))
    for a in range(block.places.shape[2]):
        for b in range(block.places.shape[2]):
            total += (spread * padded[block.places[:, :, None, a], block.places[:, None, :, b]]).sum(axis=(1, 2))
    return total


def _loss(blocks: Sequence[Block], x: Floats, mean: Floats, precision: Floats) -> float:
    total = 0.5 * float((x - mean) @ times(precision, x - mean))
    for block in blocks:
        _, log_z = _probabilities(block, x)
        told = (block.seen * _values(block, x)).sum(axis=1) - log_z
        total -= float((block.weight * block.times * told).sum())
    return total


def _derivatives(blocks: Sequence[Block], x: Floats, mean: Floats, precision: Floats) -> tuple[Floats, Floats]:
    """Gradient and Hessian of the negative log posterior."""
    size = len(x)
    gradient, hessian = np.append(times(precision, x - mean), 0.0), np.pad(square(precision), (0, 1)).ravel()
    for block in blocks:
        off, spread = _moments(block, x)
        counted = block.weight * block.times
        spread *= counted[:, None, None]
        off *= counted[:, None]
        parts = block.places.shape[2]
        for a in range(parts):
            gradient -= np.bincount(block.places[:, :, a].ravel(), off.ravel(), size + 1)
            for b in range(parts):
                place = block.places[:, :, None, a] * (size + 1) + block.places[:, None, :, b]
                hessian += np.bincount(place.ravel(), spread.ravel(), (size + 1) ** 2)
    return gradient[:size], hessian.reshape(size + 1, size + 1)[:size, :size]
