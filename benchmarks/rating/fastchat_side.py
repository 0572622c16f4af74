"""FastChat's Bradley-Terry and its bootstrap: lm-sys/FastChat (0e6d3e4), fastchat/serve/monitor/rating_systems.py.

`preprocess_for_bt`, `bt_loss_and_grad`, `fit_bt` and `compute_bootstrap_bt` line by line, with two favours: players
come as numbers, so the factorising of names costs nothing, and one process fits all replicates, so no pool is started.
FastChat is under the Apache licence 2.0.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

__all__ = ["bootstrap", "compute_bt"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def preprocess(first: Ints, second: Ints, outcome: Ints) -> tuple[Ints, Floats, Floats]:
    """Distinct (pair, outcome) rows, the first's score in them, and how often each occurs."""
    schedule = np.column_stack([first, second, 2 - outcome]).astype(np.int32)
    rows, weights = np.unique(schedule, return_counts=True, axis=0)
    return rows[:, [0, 1]].astype(np.int64), rows[:, 2].astype(np.float64) / 2.0, weights.astype(np.float64)


def bt_loss_and_grad(
    ratings: Floats, matchups: Ints, outcomes: Floats, weights: Floats, alpha: float
) -> tuple[float, Floats]:
    """Draws count as half a win and half a loss."""
    from scipy.special import expit

    matchup_ratings = ratings[matchups]
    logits = alpha * (matchup_ratings[:, 0] - matchup_ratings[:, 1])
    probs = expit(logits)
    loss = -((np.log(probs) * outcomes + np.log(1.0 - probs) * (1.0 - outcomes)) * weights).sum()
    matchups_grads = -alpha * (outcomes - probs) * weights
    model_grad = np.zeros_like(ratings)
    np.add.at(model_grad, matchups[:, [0, 1]], matchups_grads[:, None] * np.array([1.0, -1.0], dtype=np.float64))
    return float(loss), model_grad


def fit_bt(weights: Floats, matchups: Ints, outcomes: Floats, n_models: int, alpha: float, tol: float = 1e-6) -> Floats:
    """By L-BFGS-B, from zero."""
    from scipy.optimize import minimize

    result = minimize(
        fun=bt_loss_and_grad,
        x0=np.zeros(n_models, dtype=np.float64),
        args=(matchups, outcomes, weights, alpha),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 100, "gtol": tol},
    )
    return np.asarray(result["x"], dtype=np.float64)


def compute_bt(players: int, first: Ints, second: Ints, outcome: Ints) -> Floats:
    """Ratings."""
    matchups, outcomes, weights = preprocess(first, second, outcome)
    return 400.0 * fit_bt(weights, matchups, outcomes, players, float(np.log(10.0))) + 1000.0


def bootstrap(players: int, first: Ints, second: Ints, outcome: Ints, rounds: int) -> Floats:
    """Ratings of every round, from multinomial draws of the distinct rows' counts."""
    matchups, outcomes, weights = preprocess(first, second, outcome)
    rng = np.random.default_rng(seed=0)
    drawn = rng.multinomial(n=len(first), pvals=weights / weights.sum(), size=rounds)
    boot_weights = drawn.astype(np.float64) / len(first)
    fitted = partial(fit_bt, matchups=matchups, outcomes=outcomes, n_models=players, alpha=float(np.log(10.0)))
    return np.array([fitted(row) for row in boot_weights]) * 400.0 + 1000.0
