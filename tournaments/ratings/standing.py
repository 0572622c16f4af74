"""What ratings and their covariance say of who stands where: rank intervals, P(best), P(A > B), significance groups.

Ranks come from Gaussian draws of all ratings at once; P(A > B) is exact under the same normal. Players share a letter
where they do not differ at 95 % *simultaneously*: the bound on |difference| / sd is the 95 % quantile of its maximum
over all pairs, so the chance that any two equals are told apart is 5 %, however many players there are (Hothorn, Bretz
& Westfall, *Simultaneous inference in general parametric models*, Biometrical Journal 50 (2008)). One by one, pairs
differ more often than letters say: `beats` tells.
"""

from math import erfc
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Standing", "standing"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_TAIL = 0.025
_JITTER = 1e-10  # of the largest variance: ratings about their own mean have a covariance that is singular
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Standing(NamedTuple):
    """Where players stand, each within its group: players of different groups are not compared."""

    low: Ints
    """The best rank of the 95 % interval, from 1."""
    high: Ints
    """The worst."""
    best: Floats
    """Probability of being the first of the group."""
    beats: Floats
    """Shape (players, players): probability that the row's strength is above the column's; 0.5 across groups."""
    letters: tuple[str, ...]
    """Players who share a letter do not differ; from "a" on, after "z" come "a1", "b1", ..."""


def standing(
    mean: Floats, covariance: Floats, groups: Ints | None = None, *, draws: int = 1000, seed: int = 0
) -> Standing:
    """Work it out of ratings, shape (n,), and their covariance, shape (n, n), in any one unit."""
    n = len(mean)
    sd = np.sqrt(_variances(covariance))
    groups = np.zeros(n, dtype=np.int64) if groups is None else groups
    noise = _noise(covariance, draws, seed)
    low, high, best = np.ones(n, dtype=np.int64), np.ones(n, dtype=np.int64), np.ones(n)
    beats, letters, used = np.full((n, n), 0.5), [""] * n, 0
    for group in np.unique(groups):
        own = np.flatnonzero(groups == group)
        square = np.ix_(own, own)
        low[own], high[own], best[own] = _ranks(mean[own] + noise[:, own])
        gap = mean[own][:, None] - mean[own]
        beats[square] = _above(gap, sd[square])
        alike = np.abs(gap) <= _bound(noise[:, own], sd[square]) * sd[square]
        order = np.argsort(-mean[own], kind="stable")
        cliques = _cliques(alike[np.ix_(order, order)])
        for number, clique in enumerate(cliques, used):
            for k in order[clique]:
                letters[own[k]] += _letter(number)
        used += len(cliques)
    return Standing(low, high, best, beats, tuple(letters))


def _variances(covariance: Floats) -> Floats:
    """Of all differences, shape (n, n)."""
    own = np.diag(covariance)
    return np.maximum(own[:, None] + own - 2 * covariance, 0.0)


def _noise(covariance: Floats, draws: int, seed: int) -> Floats:
    """Deviations from the mean, shape (draws, n)."""
    n = len(covariance)
    jitter = _JITTER * (1 + float(np.diag(covariance).max(initial=0.0)))
    root = np.linalg.cholesky(covariance + jitter * np.eye(n))
    noise: Floats = np.random.default_rng(seed).standard_normal((draws, n)) @ root.T
    return noise


def _ranks(drawn: Floats) -> tuple[Ints, Ints, Floats]:
    """Best and worst rank of the 95 % interval and the share of draws in which each is first."""
    draws, n = drawn.shape
    order = np.argsort(-drawn, axis=1)
    counts = np.bincount((order * n + np.arange(n)).ravel(), minlength=n * n).reshape(n, n)  # player, rank
    below = np.cumsum(counts, axis=1)
    low, high = (below <= _TAIL * draws).sum(axis=1), (below < (1 - _TAIL) * draws).sum(axis=1)
    return low + 1, high + 1, counts[:, 0] / draws


def _above(gap: Floats, sd: Floats) -> Floats:
    """P(difference > 0); of what is known exactly 0 or 1, and one half where nothing differs."""
    sure = (1 + np.sign(gap)) / 2
    z = (gap / np.where(sd > 0, sd, 1.0)).ravel() * -(0.5**0.5)
    normal = np.fromiter(map(erfc, z.tolist()), np.float64, len(z)) / 2  # scipy's import takes longer than all the rest
    return np.where(sd > 0, normal.reshape(gap.shape), sure)


def _bound(noise: Floats, sd: Floats) -> float:
    """The 95 % quantile, over draws, of the largest |difference| / sd of any pair."""
    draws, n = noise.shape
    drawn = np.ascontiguousarray(noise.T, dtype=np.float32)
    scale = np.where(sd > 0, 1 / np.where(sd > 0, sd, 1.0), 0.0).astype(np.float32)
    largest = np.zeros(draws, dtype=np.float32)
    for k in range(1, n):
        z = drawn[:k] - drawn[k]
        z *= scale[:k, k, None]
        np.maximum(largest, np.maximum(z.max(axis=0), -z.min(axis=0)), out=largest)
    return float(np.quantile(largest, 1 - 2 * _TAIL))


def _cliques(alike: Bools) -> list[list[int]]:
    """Sets of players of whom no two differ, such that every two who do not differ are in one of them.

    A greedy cover, players best first: as few letters as there can be where all intervals are equally wide.
    """
    n = len(alike)
    alike = alike | np.eye(n, dtype=np.bool_)
    open_ = np.triu(alike)
    cliques = []
    while open_.any():
        seed = np.unravel_index(int(np.argmax(open_)), open_.shape)
        clique = [int(seed[0])]
        fits = alike[seed[0]].copy()
        if seed[0] != seed[1]:
            clique.append(int(seed[1]))
            fits &= alike[seed[1]]
        fits[clique] = False
        while fits.any():
            clique.append(int(np.argmax(fits)))
            fits &= alike[clique[-1]]
            fits[clique] = False
        clique.sort()
        open_[np.ix_(clique, clique)] = False
        cliques.append(clique)
    return cliques


def _letter(number: int) -> str:
    """The name of a clique.

    >>> [_letter(k) for k in (0, 25, 26, 52)]
    ['a', 'z', 'a1', 'a2']
    """
    again, place = divmod(number, len(_LETTERS))
    return _LETTERS[place] + (str(again) if again else "")
