"""Newton's method with a halving line search, for log posteriors that are concave: it ends at their only maximum."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Mode", "newton"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

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
    free: Ints | None = None,
) -> Mode:
    """Minimise `loss`, given its gradient and Hessian. Raises ArithmeticError if it does not converge.

    Both are asked about one array after the other: what they share may be kept between the two calls. `enough`: the
    Newton decrement, the squared length of the step in standard errors, below which the step that is due is the last.
    `free`: the parameters that are sought, the others staying as in `start`; the Hessian has a diagonal of ones there.
    """
    if free is not None:
        return _partly(loss, derivatives, start, enough, free)
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


def _partly(
    loss: Callable[[Floats], float],
    derivatives: Callable[[Floats], tuple[Floats, Floats]],
    start: Floats,
    enough: float,
    free: Ints,
) -> Mode:
    def whole(part: Floats) -> Floats:
        filled = start.copy()
        filled[free] = part
        return filled

    def of_part(part: Floats) -> tuple[Floats, Floats]:
        gradient, hessian = derivatives(whole(part))
        return gradient[free], hessian[np.ix_(free, free)]

    mode = newton(lambda part: loss(whole(part)), of_part, start[free], enough)
    hessian = np.eye(len(start))
    hessian[np.ix_(free, free)] = mode.hessian
    return Mode(whole(mode.parameters), hessian, mode.iterations)
