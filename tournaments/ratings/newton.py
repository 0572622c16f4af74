"""Newton's method with a halving line search, for log posteriors that are concave: it ends at their only maximum."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Mode", "newton"]

Floats = NDArray[np.float64]

_ITERATIONS = 100
_ENOUGH = 1e-13  # Newton decrement by which the step that remains is too small for the loss to tell, relative to it


class Mode(NamedTuple):
    """Where a negative log posterior is least."""

    parameters: Floats
    hessian: Floats
    """There: the observed information and the priors' precision."""
    iterations: int


def newton(
    loss: Callable[[Floats], float],
    derivatives: Callable[[Floats], tuple[Floats, Floats]],
    start: Floats,
    enough: float = 0.0,
) -> Mode:
    """Minimise `loss`, given its gradient and Hessian. Raises ArithmeticError if it does not converge.

    Both are asked about one array after the other: what they share may be kept between the two calls. `enough`: the
    Newton decrement, the squared length of the step in standard errors, below which the step that is due is the last.
    """
    x, here = start.copy(), loss(start)
    for iteration in range(_ITERATIONS):
        gradient, hessian = derivatives(x)
        step = np.linalg.solve(hessian, gradient)
        decrement = float(gradient @ step)
        if decrement < max(enough, _ENOUGH * (1 + abs(here))):
            return Mode(x - step, hessian, iteration)
        size = 1.0
        while (ahead := loss(nearer := x - size * step)) > here - 1e-4 * size * decrement:
            size /= 2
        x, here = nearer, ahead
    raise ArithmeticError(f"no convergence after {_ITERATIONS} iterations")
