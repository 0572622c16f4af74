"""Davidson's model of wins, draws and losses with a seat term, fitted by Newton's method on counts.

With strengths a and b, the first seat's advantage s and the draw parameter c of the game, and d = a - b + s:
P(first wins) = e^(d/2) / z, P(second wins) = e^(-d/2) / z, P(draw) = e^c / z, z the sum of the three.

Davidson, *On extending the Bradley-Terry model to accommodate ties in paired comparison experiments*, JASA 65 (1970).
Davidson & Beaver, *On extending the Bradley-Terry model to incorporate within-pair order effects*, Biometrics 33
(1977).
Normal priors, weak, keep the undefeated and the drawless finite.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.ratings.newton import newton

__all__ = ["ELO", "Cells", "Fit", "Prior", "clustered", "fit"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ELO = 400 / np.log(10)
"""Elo points of one natural unit of strength."""


class Prior(NamedTuple):
    """Standard deviations in Elo points (strength, seat term) and natural units (draw parameter), which has a mean."""

    strength: float = 350.0
    seat: float = 200.0
    draw: float = 2.0
    draw_mean: float = -0.7


class Cells(NamedTuple):
    """Sufficient statistics: how often each pair, in these seats of this game, ended how."""

    players: int
    games: int
    game: Ints
    first: Ints
    second: Ints
    counts: Floats
    """One row for each cell: first won, draw, second won."""

    @classmethod
    def of(
        cls,
        players: int,
        games: int,
        game: Ints,
        first: Ints,
        second: Ints,
        outcome: Ints,
        weight: Floats | None = None,
    ) -> "Cells":
        """Count single games, each as much as its weight; `outcome` is 0, 1 or 2, as the columns of `counts`."""
        key = (game * players + first) * players + second
        size = games * players * players
        table = np.bincount(outcome * size + key, weight, minlength=3 * size).reshape(3, size).T
        used = np.flatnonzero(table.any(axis=1))
        pair = used % (players * players)
        counts = table[used].astype(np.float64)
        return cls(players, games, used // (players * players), pair // players, pair % players, counts)


class Fit(NamedTuple):
    """The mode of the posterior; parameters are strengths, then seat terms, then draw parameters, in natural units."""

    parameters: Floats
    hessian: Floats
    """Of the negative log posterior: the observed information and the priors' precision."""
    precision: Floats
    """The priors' part of it (its diagonal)."""
    iterations: int


def fit(cells: Cells, prior: Prior | None = None, start: Floats | None = None) -> Fit:
    """The mode of the posterior, by Newton's method.

    `start`: parameters to begin with (a warm refit). Raises ArithmeticError if it does not converge.
    """
    mean, precision = _priors(cells, prior or Prior())
    mode = newton(
        lambda x: _loss(cells, x, mean, precision),
        lambda x: _derivatives(cells, x, mean, precision),
        mean if start is None else start,
    )
    return Fit(mode.parameters, mode.hessian, precision, mode.iterations)


def clustered(
    fitted: Fit,
    cells: Cells,
    game: Ints,
    first: Ints,
    second: Ints,
    outcome: Ints,
    cluster: Ints,
    weight: Floats | None = None,
    times: Floats | None = None,
) -> Floats:
    """The covariance that holds where games of one cluster depend on each other (sandwich estimator).

    The meat is the sum over clusters of the outer products of their scores, and the prior's precision: a
    direction that only the prior knows keeps the prior's width.
    """
    from scipy.sparse import csr_matrix

    p, _ = _probabilities(*_logits(cells, fitted.parameters, game, first, second))
    won = 0.5 * ((outcome == 0) - 1.0 * (outcome == 2)) - 0.5 * (p[0] - p[2])
    drawn = (outcome == 1) - p[1]
    n, g = cells.players, cells.games
    columns = np.concatenate([first, second, n + game, n + g + game])
    values = np.concatenate([won, -won, won, drawn]) * (1.0 if weight is None else np.tile(weight, 4))
    size = int(cluster.max()) + 1
    often = np.zeros(size)
    often[cluster] = 1.0 if times is None else times
    values *= np.tile(np.sqrt(often[cluster]), 4)
    scores = csr_matrix((values, (np.tile(cluster, 4), columns)), shape=(size, n + 2 * g))
    clusters = float(often.sum())
    meat = (scores.T @ scores).toarray() * (clusters / max(clusters - 1, 1))
    bread = np.linalg.inv(fitted.hessian)
    covariance: Floats = bread @ (meat + np.diag(fitted.precision)) @ bread
    return covariance


def _priors(cells: Cells, prior: Prior) -> tuple[Floats, Floats]:
    sizes = (cells.players, cells.games, cells.games)
    mean = np.repeat([0.0, 0.0, prior.draw_mean], sizes)
    precision = np.repeat([(prior.strength / ELO) ** -2, (prior.seat / ELO) ** -2, prior.draw**-2], sizes)
    return mean, precision


def _logits(cells: Cells, x: Floats, game: Ints, first: Ints, second: Ints) -> tuple[Floats, Floats]:
    """d and c of every row."""
    n, g = cells.players, cells.games
    return x[first] - x[second] + x[n + game], x[n + g + game]


def _probabilities(d: Floats, c: Floats) -> tuple[Floats, Floats]:
    """P(first wins, draw, second wins), shape (3, rows), and log z."""
    logits = np.stack([d / 2, c, -d / 2])
    top = logits.max(axis=0)
    log_z: Floats = top + np.log(np.exp(logits - top).sum(axis=0))
    return np.exp(logits - log_z), log_z


def _loss(cells: Cells, x: Floats, mean: Floats, precision: Floats) -> float:
    d, c = _logits(cells, x, cells.game, cells.first, cells.second)
    _, log_z = _probabilities(d, c)
    w, t, l = cells.counts.T  # noqa: E741 - wins, ties, losses
    likelihood = float(((w - l) * d / 2 + t * c - (w + t + l) * log_z).sum())
    return 0.5 * float((precision * (x - mean) ** 2).sum()) - likelihood


def _derivatives(cells: Cells, x: Floats, mean: Floats, precision: Floats) -> tuple[Floats, Floats]:
    """Gradient and Hessian of the negative log posterior."""
    n, g, size = cells.players, cells.games, len(x)
    p, _ = _probabilities(*_logits(cells, x, cells.game, cells.first, cells.second))
    total = cells.counts.sum(axis=1)
    edge = p[0] - p[2]
    by_d = 0.5 * (cells.counts[:, 0] - cells.counts[:, 2] - total * edge)
    by_c = cells.counts[:, 1] - total * p[1]
    places = (cells.first, cells.second, n + cells.game, n + g + cells.game)
    signs = (1.0, -1.0, 1.0)
    gradient = precision * (x - mean)
    for place, value in zip(places, (by_d, -by_d, by_d, by_c), strict=True):
        gradient -= np.bincount(place, value, size)
    dd = 0.25 * total * (p[0] + p[2] - edge**2)
    cc = total * p[1] * (1 - p[1])
    dc = -0.5 * total * edge * p[1]
    hessian = np.diag(precision).ravel()
    for a in range(3):
        for b in range(3):
            hessian += np.bincount(places[a] * size + places[b], signs[a] * signs[b] * dd, size * size)
        hessian += np.bincount(places[a] * size + places[3], signs[a] * dc, size * size)
        hessian += np.bincount(places[3] * size + places[a], signs[a] * dc, size * size)
    hessian += np.bincount(places[3] * size + places[3], cc, size * size)
    return gradient, hessian.reshape(size, size)
