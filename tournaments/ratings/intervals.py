"""How intervals are made, whatever the model: from the curvature, the scatter between clusters, or a bootstrap."""

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

__all__ = ["Method", "covariance"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Method = Literal["auto", "fisher", "clustered", "bootstrap"]

_FEW = 5  # clusters of a player, below which their scatter says too little


def covariance(
    method: Method,
    each: Callable[[], Floats],
    curvature: Callable[[], Floats],
    scatter: Callable[[], Floats],
    drawn: Callable[[], Floats],
) -> tuple[Floats, str]:
    """The covariance of parameters, the players' strengths first, and how it was found.

    `each`: how many clusters every player has games in. `drawn`: the covariance of bootstrap replicates. "auto" is
    "clustered", but players with games in 1 to 4 clusters get the wider of that and the curvature's, and it is called
    "fisher" where all are such. Raises ValueError for another method.
    """
    if method not in get_args(Method):
        raise ValueError(f"method {method!r}: allowed are {', '.join(get_args(Method))}")
    if method == "fisher":
        return curvature(), method
    if method == "bootstrap":
        return drawn(), method
    found = scatter()
    if method == "clustered":
        return found, method
    often = each()
    few = np.flatnonzero((often > 0) & (often < _FEW))
    if len(few) == np.count_nonzero(often):
        return _widened(curvature(), found, np.arange(len(found))), "fisher"
    return (_widened(found, curvature(), few) if len(few) else found), "clustered"


def _widened(covariance: Floats, other: Floats, rows: Ints) -> Floats:
    """Standard deviations of these rows as the other has them, if they are larger there; correlations stay."""
    own, wide = np.diag(covariance)[rows], np.diag(other)[rows]
    scale = np.ones(len(covariance))
    scale[rows] = np.sqrt(np.maximum(wide / np.where(own > 0, own, np.inf), 1.0))
    return covariance * scale[:, None] * scale
