"""The Rasch model with difficulties integrated out: log odds of solving = strength - difficulty.

Difficulties of a family are normal, with a mean and a spread that are estimated too. Strengths and all difficulties
estimated together would stretch the strengths, however many tasks there are, the more the fewer agents (Neyman & Scott,
*Consistent estimates based on partially consistent observations*, Econometrica 16 (1948)); the marginal likelihood does
not (Bock & Aitkin, *Marginal maximum likelihood estimation of item parameters*, Psychometrika 46 (1981)), and it needs
no Hessian of all tasks. Integrals are sums over nodes laid around each task's own difficulty; derivatives by Louis,
*Finding the observed information matrix when using the EM algorithm*, JRSS B 44 (1982).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.ratings.davidson import ELO, Belief, Fit, square, times

__all__ = ["Answers", "Rasch", "TaskPrior", "belief", "fit", "scores"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_PLACES = np.arange(-9, 10) * 0.6
_BEND = 0.5
_NODES = np.sinh(_BEND * _PLACES) / _BEND  # standard deviations, further apart where what is left to sum is flat
_WIDTHS = np.log(0.6 * np.cosh(_BEND * _PLACES))
_ITERATIONS = 100
_ENOUGH = 1e-12  # as in `newton`
_STEP = 10.0  # natural units
_NEAR = (
    0.1  # decrement from which on sums over nodes are too coarse to judge steps: whole ones, unless they lead nowhere
)
_SMALL = 1e-9
_LEAST = 0.01
_CELLS = 50_000  # patterns times nodes times agents worked on at once: what a processor's cache holds


class TaskPrior(NamedTuple):
    """Standard deviations in Elo points of strengths and of a family's mean difficulty; of the spread of its tasks, the
    median, and the standard deviation of its logarithm."""

    strength: float = 350.0
    difficulty: float = 700.0
    spread: float = 300.0
    log_spread: float = 0.7


class Answers(NamedTuple):
    """Tasks by who solved them, those alike counted together."""

    solved: Floats
    """Shape (patterns, agents): how often, or the sum of scores."""
    tried: Floats
    """Shape (patterns, agents); 0 where the agent did not meet the task."""
    family: Ints
    """Of each pattern."""
    tasks: Floats
    """How many have each pattern."""
    families: int


class Rasch(NamedTuple):
    """The mode: parameters are strengths, mean difficulties, logarithms of spreads, in natural units."""

    fit: Fit
    difficulty: Floats
    """Of each pattern: its mean given its answers."""
    deviation: Floats
    """And its standard deviation."""


class _Nodes(NamedTuple):
    at: Floats
    """Shape (patterns, nodes)."""
    width: Floats
    """Of the same shape: the logarithm of the distance between nodes."""


def belief(players: int, families: int, prior: TaskPrior) -> Belief:
    """What is held before the answers."""
    sizes = (players, families, families)
    precision = [(prior.strength / ELO) ** -2, (prior.difficulty / ELO) ** -2, prior.log_spread**-2]
    return Belief(np.repeat([0.0, 0.0, np.log(prior.spread / ELO)], sizes), np.repeat(precision, sizes))


def fit(answers: Answers, held: Belief, start: Floats | None = None, enough: float = 0.0) -> Rasch:
    """The mode of the posterior, by Newton's method; the nodes follow. Raises ArithmeticError without convergence."""
    x = held.begin(start).copy()
    free = np.arange(len(x)) if held.free is None else held.free
    middle, share, last = np.zeros(len(answers.tasks)), 1.0, np.inf
    for iteration in range(_ITERATIONS):
        nodes, middle = _laid(answers, x, middle)
        here, gradient, hessian = _derivatives(answers, x, nodes, held)
        step = np.zeros(len(x))
        step[free] = np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
        decrement = float(gradient @ step)
        if decrement < max(enough, _ENOUGH * (1 + abs(here))):
            return Rasch(Fit(x, hessian, held.precision, iteration, held.free), *_difficulties(answers, x, nodes))
        step = step * min(1.0, _STEP / float(np.abs(step).max()))
        share, last = share / 2 if _NEAR > decrement > last else share, decrement
        x = x - (share if decrement < _NEAR else _shortened(answers, x, step, middle, held, here)) * step
    raise ArithmeticError(f"no convergence after {_ITERATIONS} iterations")


def scores(answers: Answers, x: Floats) -> Floats:
    """The gradient of each pattern's log likelihood, shape (patterns, parameters)."""
    nodes, _ = _laid(answers, x, np.zeros(len(answers.tasks)))
    made = np.zeros((len(answers.tasks), len(x)))
    for rows in _chunks(answers):
        _, weight, slope, _ = _at_nodes(answers, x, nodes, rows)
        made[rows] = _spread_out(answers, (weight[:, :, None] * slope).sum(axis=1), rows, len(x))
    return made


def _shortened(answers: Answers, x: Floats, step: Floats, middle: Floats, held: Belief, here: float) -> float:
    """The share of a step that leads down."""
    size = 1.0
    while size > _SMALL and _loss(answers, x - size * step, _laid(answers, x - size * step, middle)[0], held) > here:
        size /= 2
    return size


def _chunks(answers: Answers) -> list[Ints]:
    patterns, agents = answers.solved.shape
    return [
        rows.astype(np.int64)
        for rows in np.array_split(np.arange(patterns), 1 + patterns * agents * len(_NODES) // _CELLS)
    ]


def _family(answers: Answers, x: Floats) -> tuple[Floats, Floats]:
    """Mean and spread of the family of each pattern."""
    n, g = answers.solved.shape[1], answers.families
    return x[n + answers.family], np.exp(x[n + g + answers.family])


def _laid(answers: Answers, x: Floats, middle: Floats) -> tuple[_Nodes, Floats]:
    """Nodes around the most likely difficulty of each pattern, which Newton's method finds from `middle`."""
    center, spread = _family(answers, x)
    strength = x[: answers.solved.shape[1]]
    for _ in range(100):
        p, _ = _logistic(strength - middle[:, None])
        slope = (answers.tried * p - answers.solved).sum(axis=1) + (center - middle) / spread**2
        curve = (answers.tried * p * (1 - p)).sum(axis=1) + spread**-2
        move = np.clip(slope / curve, -1.0, 1.0)
        middle = middle + move
        if np.abs(move).max() < 1e-6:
            break
    deviation = curve**-0.5
    at = middle[:, None] + deviation[:, None] * _NODES
    return _Nodes(at, np.log(deviation)[:, None] + _WIDTHS), middle


def _logistic(logit: Floats) -> tuple[Floats, Floats]:
    """P(solved), and minus the logarithm of P(not solved), without overflow."""
    small = np.exp(-np.abs(logit))
    return np.where(logit > 0, 1.0, small) / (1 + small), np.maximum(logit, 0.0) + np.log1p(small)


def _log_joint(answers: Answers, x: Floats, nodes: _Nodes, rows: Ints) -> tuple[Floats, Floats]:
    """The log of what the sum over nodes is of, shape (rows, nodes), and P(solved), shape (rows, nodes, agents)."""
    center, spread = _family(answers, x)
    at, solved, strength = nodes.at[rows], answers.solved[rows], x[: answers.solved.shape[1]]
    p, cost = _logistic(strength - at[:, :, None])
    told = (solved @ strength)[:, None] - at * solved.sum(axis=1)[:, None]
    told -= (cost @ answers.tried[rows][:, :, None])[:, :, 0]
    z = (at - center[rows, None]) / spread[rows, None]
    normal = -0.5 * z**2 - np.log(spread[rows, None]) - 0.5 * np.log(2 * np.pi)
    return told + normal + nodes.width[rows], p


def _loss(answers: Answers, x: Floats, nodes: _Nodes, held: Belief) -> float:
    off = x - held.mean
    total = 0.5 * float(off @ times(held.precision, off))
    for rows in _chunks(answers):
        joint, _ = _log_joint(answers, x, nodes, rows)
        total -= float(answers.tasks[rows] @ np.logaddexp.reduce(joint, axis=1))
    return total


def _at_nodes(answers: Answers, x: Floats, nodes: _Nodes, rows: Ints) -> tuple[Floats, Floats, Floats, Floats]:
    """Log likelihoods, shares of the nodes, slopes there by strengths, mean and log spread, curvatures by strengths."""
    joint, p = _log_joint(answers, x, nodes, rows)
    log_z = np.logaddexp.reduce(joint, axis=1)
    center, spread = _family(answers, x)
    z = (nodes.at[rows] - center[rows, None]) / spread[rows, None]
    expected = answers.tried[rows, None, :] * p
    slope = np.empty((*z.shape, p.shape[2] + 2))
    slope[:, :, :-2] = answers.solved[rows, None, :] - expected
    slope[:, :, -2], slope[:, :, -1] = z / spread[rows, None], z**2 - 1
    return log_z, np.exp(joint - log_z[:, None]), slope, expected * (1 - p)


def _spread_out(answers: Answers, slope: Floats, rows: Ints, size: int) -> Floats:
    """Slopes by the family's mean and spread put in the columns of that family."""
    n, g = answers.solved.shape[1], answers.families
    made = np.zeros((len(rows), size))
    made[:, :n] = slope[:, :n]
    made[np.arange(len(rows)), n + answers.family[rows]] = slope[:, n]
    made[np.arange(len(rows)), n + g + answers.family[rows]] = slope[:, n + 1]
    return made


def _derivatives(answers: Answers, x: Floats, nodes: _Nodes, held: Belief) -> tuple[float, Floats, Floats]:
    """The negative log posterior, its gradient and Hessian, the latter made positive where it is not."""
    n, g = answers.solved.shape[1], answers.families
    off = x - held.mean
    gradient, complete, missing = times(held.precision, off), square(held.precision), np.zeros((len(x), len(x)))
    loss = 0.5 * float(off @ gradient)
    for rows in _chunks(answers):
        log_z, weight, slope, curve = _at_nodes(answers, x, nodes, rows)
        count = answers.tasks[rows]
        first = (weight[:, None, :] @ slope)[:, 0]
        loss -= float(count @ log_z)
        gradient -= count @ _spread_out(answers, first, rows, len(x))
        complete[np.arange(n), np.arange(n)] += count @ (weight[:, None, :] @ curve)[:, 0]
        for family in np.unique(answers.family[rows]):
            own = answers.family[rows] == family
            where = np.r_[np.arange(n), n + family, n + g + family]
            flat = (np.sqrt(count[own, None] * weight[own])[:, :, None] * slope[own]).reshape(-1, n + 2)
            mean_slope = np.sqrt(count[own, None]) * first[own]
            missing[np.ix_(where, where)] += flat.T @ flat - mean_slope.T @ mean_slope
            complete[np.ix_(where[n:], where[n:])] += _curvature(answers, x, nodes, rows[own], weight[own], int(family))
    return loss, gradient, _positive(complete - missing)


def _positive(hessian: Floats) -> Floats:
    """The same, or with eigenvalues turned up: far from the mode the likelihood of a spread need not be concave."""
    values, vectors = np.linalg.eigh(hessian)
    if values[0] > 0:
        return hessian
    return np.asarray(vectors * np.maximum(np.abs(values), _LEAST) @ vectors.T, dtype=np.float64)


def _curvature(answers: Answers, x: Floats, nodes: _Nodes, rows: Ints, weight: Floats, family: int) -> Floats:
    """Of the difficulties' normal density by its mean and log spread, negative, shape (2, 2)."""
    n, g = answers.solved.shape[1], answers.families
    center, spread = x[n + family], np.exp(x[n + g + family])
    z = (nodes.at[rows] - center) / spread
    counted = answers.tasks[rows, None] * weight
    cross = 2 * float((counted * z).sum()) / spread
    return np.array([[counted.sum() / spread**2, cross], [cross, 2 * float((counted * z**2).sum())]])


def _difficulties(answers: Answers, x: Floats, nodes: _Nodes) -> tuple[Floats, Floats]:
    joint = np.concatenate([_log_joint(answers, x, nodes, rows)[0] for rows in _chunks(answers)])
    weight = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None])
    middle = (weight * nodes.at).sum(axis=1)
    variance = (weight * (nodes.at - middle[:, None]) ** 2).sum(axis=1)
    return middle, variance**0.5
