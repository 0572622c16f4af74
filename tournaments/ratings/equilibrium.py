"""The equilibrium of a symmetric zero-sum game in which each side chooses an agent.

Of several equilibria the one of maximum entropy is meant, which is unique: equals get equal weights (Balduzzi, Tuyls,
Perolat & Graepel, *Re-evaluating evaluation*, NeurIPS 2018). Where there is only one, as in most of what is measured,
copies of an agent share that agent's weight and change nothing else. Played for scores it is Nash averaging; played for
majority margins it is the maximal lottery (Fishburn, *Probabilistic social choice based on simple voting comparisons*,
Review of Economic Studies 51 (1984); Brandl, Brandt & Seedig, *Consistent probabilistic social choice*, Econometrica 84
(2016)).
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["equilibrium"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_TIGHT = 1e-10  # of the solvers
_SMALL = 1e-9  # a payoff, beside the largest, that is none; the share of an agent that is outside


def equilibrium(payoff: Floats) -> Floats:
    """The mixture that no agent beats, shape (n,), of maximum entropy.

    `payoff`: antisymmetric, shape (n, n), what the row's agent gains from the column's. Raises ValueError otherwise.

    >>> equilibrium(np.array([[0, 1, -1], [-1, 0, 2], [1, -2, 0]])).round(6).tolist()
    [0.5, 0.25, 0.25]
    """
    size = np.abs(payoff).max(initial=0.0)
    if payoff.shape != payoff.T.shape or payoff.ndim != 2 or np.abs(payoff + payoff.T).max(initial=0.0) > _SMALL * size:
        raise ValueError("the payoffs must be antisymmetric: what one agent gains, the other loses")
    n = len(payoff)
    if not n or size == 0:
        return np.full(n, 1 / max(n, 1))
    payoff = (payoff - payoff.T) / (2 * size)
    inside, some = _support(payoff)
    only = _only(payoff[np.ix_(inside, inside)])
    mixture = np.zeros(n)
    mixture[inside] = _most_even(payoff[inside], inside, some[inside]) if only is None else only
    return mixture


def _support(payoff: Floats) -> tuple[Bools, Floats]:
    """Who is in some equilibrium, and an equilibrium with all of them (Goldman & Tucker: one is strict everywhere).

    Each agent's weight and what it loses to the mixture are never both above 0; one mixture has one of the two above 0
    for all agents. The linear programme looks for the largest t below all these sums.
    """
    from scipy.optimize import linprog

    n = len(payoff)
    one = np.ones((n, 1))
    beaten_by_none = np.hstack([payoff, 0 * one])  # what the column mixture gives a row: at most 0
    strict = np.hstack([payoff - np.eye(n), one])
    found = linprog(
        np.append(np.zeros(n), -1.0),
        A_ub=np.vstack([beaten_by_none, strict]),
        b_ub=np.zeros(2 * n),
        A_eq=np.append(np.ones(n), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * n + [(None, None)],
        method="highs",
        options={"primal_feasibility_tolerance": _TIGHT, "dual_feasibility_tolerance": _TIGHT},
    )
    if found.x is None:
        raise ArithmeticError(f"no equilibrium was found: {found.message}")
    weight = np.maximum(found.x[:n], 0.0)
    return weight > np.maximum(-payoff @ weight, _SMALL), weight


def _only(payoff: Floats) -> Floats | None:
    """The mixture of which nobody in it gains or loses, where there is only one."""
    _, sizes, rows = np.linalg.svd(payoff)
    if len(sizes) > 1 and sizes[-2] < _SMALL:
        return None
    mixture = rows[-1] / rows[-1].sum()
    return mixture if bool((mixture > 0).all()) else None


def _most_even(payoff: Floats, inside: Bools, some: Floats) -> Floats:
    """The mixture of maximum entropy of those inside; `payoff`: theirs, shape (inside, n).

    By its dual: weights are exp(payoff @ prices) normalised, where agents inside have any price and those outside, who
    may not gain, one that is not negative. `some`: another equilibrium, for the case that the solver stops early.
    """
    from scipy.optimize import fmin_l_bfgs_b
    from scipy.special import logsumexp, softmax

    def loss(prices: Floats) -> float:
        return float(logsumexp(payoff @ prices))

    def gradient(prices: Floats) -> Floats:
        return np.asarray(payoff.T @ softmax(payoff @ prices), dtype=np.float64)

    bounds = [(None, None) if own else (0.0, None) for own in inside]
    prices, _, _ = fmin_l_bfgs_b(
        loss, np.zeros(payoff.shape[1]), gradient, bounds=bounds, factr=1.0, pgtol=_TIGHT, maxiter=5000, maxfun=20000
    )
    mixture = np.asarray(softmax(payoff @ prices), dtype=np.float64)
    gained = -(payoff.T @ mixture)
    off = max(float(np.abs(gained[inside]).max()), float(gained[~inside].max(initial=0.0)))
    return mixture if off < 1e-5 else some / some.sum()
