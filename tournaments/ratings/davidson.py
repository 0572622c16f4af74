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

__all__ = ["ELO", "Belief", "Cells", "Fit", "Moments", "Prior", "fit", "moments", "square", "times"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ELO = 400 / np.log(10)
"""Elo points of one natural unit of strength."""
_DENSE = 4_000_000  # codes of cells that may be counted in a table; more are sorted


class Prior(NamedTuple):
    """Standard deviations in Elo points (strength, seat term) and natural units (draw parameter), which has a mean."""

    strength: float = 350.0
    seat: float = 200.0
    draw: float = 2.0
    draw_mean: float = -0.7


class Belief(NamedTuple):
    """What is held of all parameters before any game, in natural units."""

    mean: Floats
    precision: Floats
    """Shape (parameters,), its diagonal, or (parameters, parameters)."""
    start: Floats | None = None
    """Where the fit begins, and the values of what is known; None: at the mean."""
    free: Ints | None = None
    """Parameters that are fitted, the others being known; None: all."""

    def begin(self, start: Floats | None = None) -> Floats:
        """Where a fit begins: at `start`, but for what is known."""
        known = self.mean if self.start is None else self.start
        if start is None or self.free is None:
            return known if start is None else start
        begun = known.copy()
        begun[self.free] = start[self.free]
        return begun

    @classmethod
    def of(cls, players: int, games: int, prior: Prior | None = None) -> "Belief":
        """Every parameter for itself."""
        asked = prior or Prior()
        sizes = (players, games, games)
        precision = [(asked.strength / ELO) ** -2, (asked.seat / ELO) ** -2, asked.draw**-2]
        return cls(np.repeat([0.0, 0.0, asked.draw_mean], sizes), np.repeat(precision, sizes))


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
        return cls.indexed(players, games, game, first, second, outcome, weight)[0]

    @classmethod
    def indexed(
        cls,
        players: int,
        games: int,
        game: Ints,
        first: Ints,
        second: Ints,
        outcome: Ints,
        weight: Floats | None = None,
    ) -> tuple["Cells", Ints]:
        """The same, and the cell of every row."""
        code = first * players + second
        if games > 1:
            code += game * players * players
        used, cell = _compressed(code, games * players * players)
        counts = np.bincount(outcome * len(used) + cell, weight, 3 * len(used)).reshape(3, -1).T
        pair = used % (players * players)
        columns = used // (players * players), pair // players, pair % players
        return cls(players, games, *columns, np.ascontiguousarray(counts, dtype=np.float64)), cell


class Fit(NamedTuple):
    """The mode of the posterior; parameters are strengths, then seat terms, then draw parameters, in natural units."""

    parameters: Floats
    hessian: Floats
    """Of the negative log posterior: the observed information and the priors' precision."""
    precision: Floats
    """The priors' part of it, or its diagonal."""
    iterations: int
    free: Ints | None = None
    """Parameters that were fitted; None: all. The Hessian has a diagonal of ones elsewhere."""

    def inverse(self) -> Floats:
        """Of the Hessian, symmetric to the last bit: the posterior's covariance; zero where nothing was fitted."""
        if self.free is None:
            found = np.linalg.inv(self.hessian)
        else:
            square = np.ix_(self.free, self.free)
            found = np.zeros_like(self.hessian)
            found[square] = np.linalg.inv(self.hessian[square])
        return np.asarray((found + found.T) / 2, dtype=np.float64)


class Moments(NamedTuple):
    """Of one game in every cell, at some parameters: derivatives of its log likelihood by d and c."""

    by_d: Floats
    """Shape (3, cells), by outcome."""
    by_c: Floats
    dd: Floats
    """Shape (cells,): the information on d, on c, and on both."""
    cc: Floats
    dc: Floats


def fit(
    cells: Cells,
    prior: Prior | None = None,
    start: Floats | None = None,
    belief: Belief | None = None,
    enough: float = 0.0,
) -> Fit:
    """The mode of the posterior, by Newton's method.

    `start`: parameters to begin with (a warm refit). `belief`: instead of what `prior` says. `enough`: as of `newton`.
    Raises ArithmeticError if it does not converge.
    """
    held = Belief.of(cells.players, cells.games, prior) if belief is None else belief
    posterior = _Posterior(cells, held)
    mode = newton(posterior.loss, posterior.derivatives, held.begin(start), enough, held.free)
    return Fit(mode.parameters, mode.hessian, held.precision, mode.iterations, held.free)


def moments(cells: Cells, x: Floats) -> Moments:
    """Of every cell, at the parameters x."""
    p, _ = _probabilities(*_logits(cells, x))
    edge = p[0] - p[2]
    by_d = np.array([0.5, 0.0, -0.5])[:, None] - 0.5 * edge
    by_c = np.array([0.0, 1.0, 0.0])[:, None] - p[1]
    return Moments(by_d, by_c, 0.25 * (p[0] + p[2] - edge**2), p[1] * (1 - p[1]), -0.5 * edge * p[1])


class _Posterior:
    """Its negative logarithm and derivatives; what they share at one x is worked out once."""

    def __init__(self, cells: Cells, held: Belief) -> None:
        self._cells, self._held = cells, held
        self._total = cells.counts.sum(axis=1)
        self._x, self._p = np.zeros(0), np.zeros((3, 0))

    def loss(self, x: Floats) -> float:
        cells, off = self._cells, x - self._held.mean
        d, c = _logits(cells, x)
        self._x, (self._p, log_z) = x, _probabilities(d, c)
        w, t, l = cells.counts.T  # noqa: E741 - wins, ties, losses
        likelihood = 0.5 * float((w - l) @ d) + float(t @ c) - float(self._total @ log_z)
        return 0.5 * float(off @ times(self._held.precision, off)) - likelihood

    def derivatives(self, x: Floats) -> tuple[Floats, Floats]:
        if self._x is not x:
            self.loss(x)
        return _derivatives(self._cells, self._p, self._total, x, self._held)


def times(matrix: Floats, vector: Floats) -> Floats:
    """Their product; a matrix of one dimension is its diagonal."""
    product: Floats = matrix * vector if matrix.ndim == 1 else matrix @ vector
    return product


def square(precision: Floats) -> Floats:
    """A new matrix; of one dimension it is its diagonal."""
    return np.diag(precision) if precision.ndim == 1 else precision.copy()


def _logits(cells: Cells, x: Floats) -> tuple[Floats, Floats]:
    """d and c of every cell."""
    n, g = cells.players, cells.games
    return x[cells.first] - x[cells.second] + x[n + cells.game], x[n + g + cells.game]


def _probabilities(d: Floats, c: Floats) -> tuple[Floats, Floats]:
    """P(first wins, draw, second wins), shape (3, cells), and log z."""
    half = d / 2
    top = np.maximum(np.abs(half), c)
    p = np.empty((3, len(d)))
    for k, logit in enumerate((half, c, -half)):
        np.exp(logit - top, out=p[k])
    z = p[0] + p[1] + p[2]
    p /= z
    return p, top + np.log(z)


def _derivatives(cells: Cells, p: Floats, total: Floats, x: Floats, held: Belief) -> tuple[Floats, Floats]:
    """Gradient and Hessian of the negative log posterior."""
    n, g = cells.players, cells.games
    game, first, second = cells.game, cells.first, cells.second
    edge = p[0] - p[2]
    by_d = 0.5 * (cells.counts[:, 0] - cells.counts[:, 2] - total * edge)
    by_c = cells.counts[:, 1] - total * p[1]
    strength = np.bincount(first, by_d, n) - np.bincount(second, by_d, n)
    told = np.concatenate([strength, np.bincount(game, by_d, g), np.bincount(game, by_c, g)])
    dd = 0.25 * total * (p[0] + p[2] - edge**2)
    cc, dc = total * p[1] * (1 - p[1]), -0.5 * total * edge * p[1]
    hessian = np.zeros((n + 2 * g, n + 2 * g))
    between = np.bincount(first * n + second, dd, n * n).reshape(n, n)
    between += between.T
    hessian[:n, :n] = np.diag(between.sum(axis=1)) - between
    for at, value in ((n, dd), (n + g, dc)):
        edges = np.bincount(first * g + game, value, n * g) - np.bincount(second * g + game, value, n * g)
        hessian[:n, at : at + g] = edges.reshape(n, g)
        hessian[at : at + g, :n] = hessian[:n, at : at + g].T
    seat, draw = n + np.arange(g), n + g + np.arange(g)
    hessian[seat, seat], hessian[draw, draw] = np.bincount(game, dd, g), np.bincount(game, cc, g)
    hessian[seat, draw] = hessian[draw, seat] = np.bincount(game, dc, g)
    hessian += square(held.precision)
    return times(held.precision, x - held.mean) - told, hessian


def _compressed(code: Ints, size: int) -> tuple[Ints, Ints]:
    """The codes that occur, in order, and the place of every row's among them."""
    if size > _DENSE:
        used, place = np.unique(code, return_inverse=True)
        return used, place
    used = np.flatnonzero(np.bincount(code, minlength=size))
    places = np.zeros(size, dtype=np.int64)
    places[used] = np.arange(len(used))
    return used, places[code]
