"""From a fitted model of whatever kind to a rating table: who can be compared, what there is to say, the Elo scale."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.ratings.davidson import ELO
from arena.tournaments.ratings.pairs import CENTER, Z95, Method, Ratings
from arena.tournaments.ratings.standing import standing

__all__ = ["Likelihood", "Tally", "about", "center", "chosen", "flags", "groups", "offs", "rated"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Tally = tuple[Ints, Ints, Ints]
"""Wins, draws and losses of every player."""
Flags = tuple[tuple[str, ...], ...]

_GAMES, _CLUSTERS = 50, 25


class Likelihood(NamedTuple):
    """What one game's results say of strengths, near their best: the rest of the model fitted to them (profiled).

    In natural units, log likelihood = linear . x - x . information . x / 2.
    """

    linear: Floats
    information: Floats
    covariance: Floats
    """Of `linear`, shape (players, players): how results scatter."""
    size: float
    """Games."""


def about(parameters: Floats, hessian: Floats, covariance: Floats, precision: Floats, size: float) -> Likelihood:
    """The likelihood of the strengths, the first parameters, as many as there are `precision`s of their priors.

    The rest is eliminated by the Schur complement; `covariance` is the estimate's.
    """
    n = len(precision)
    rest = hessian[n:, n:]
    posterior = hessian[:n, :n] - hessian[:n, n:] @ np.linalg.solve(rest, hessian[n:, :n]) if len(rest) else hessian
    information = posterior - np.diag(precision)
    mode = parameters[:n]
    scatter = posterior @ covariance[:n, :n] @ posterior - np.diag(precision)
    return Likelihood(information @ mode + precision * mode, information, scatter, size)


def chosen(method: Method, games: Floats, clusters: Ints) -> str:
    """The scatter between clusters is a good estimate only where every player has enough games, in enough clusters."""
    if method != "auto":
        return method
    enough = bool((games[games > 0] >= _GAMES).all() and (clusters[clusters > 0] >= _CLUSTERS).all())
    return "clustered" if enough else "fisher"


def groups(scored: Floats) -> Ints:
    """Players with different numbers never met. `scored[i, j]`: how often i was not below j."""
    return _components(scored, "weak")


def flags(scored: Floats, group: Ints, played: Bools) -> Flags:
    """What there is to say against each rating, as of two players' results."""
    above, below = scored.sum(axis=1) > 0, scored.sum(axis=0) > 0
    mutual = _components(scored, "strong")
    apart = len(np.unique(group[played])) > 1
    said: list[tuple[str, ...]] = []
    for k in range(len(scored)):
        inner = mutual[above & below & (group == group[k])]
        if not played[k]:
            said.append(("no games",))
            continue
        words = ["undefeated"] if not below[k] else ["winless"] if not above[k] else []
        words = words or ["one-sided"] * (len(np.unique(inner)) > 1)
        said.append((*words, *["separate group"] * apart))
    return tuple(said)


def center(group: Ints) -> Floats:
    """The matrix that takes the mean of its group from every player."""
    same = (group[:, None] == group[None, :]).astype(np.float64)
    matrix: Floats = np.eye(len(group)) - same / same.sum(axis=1, keepdims=True)
    return matrix


def offs(names: Sequence[str], terms: Floats, parameters: Floats, covariance: Floats) -> dict[str, tuple[float, float]]:
    """What each of some terms is worth over the mean of the others, in Elo, and half of its 95 % interval.

    `terms`: shape (names, parameters), each a sum of parameters.
    """
    k = len(names)
    others = ELO * (np.eye(k) - 1 / k) * k / max(k - 1, 1) @ terms
    half = Z95 * np.sqrt(np.maximum(np.diag(others @ covariance @ others.T), 0.0))
    return dict(zip(names, zip((others @ parameters).tolist(), half.tolist(), strict=True), strict=True))


def rated(
    players: tuple[str, ...],
    strength: Floats,
    covariance: Floats,
    tally: Tally,
    group: Ints,
    said: Flags,
    seats: dict[str, dict[str, tuple[float, float]]],
    method: str,
) -> Ratings:
    """The table, of strengths and their covariance in natural units."""
    own = center(group)
    elo = CENTER + ELO * own @ strength
    shown = ELO**2 * own @ covariance @ own.T
    shown = (shown + shown.T) / 2
    half = Z95 * np.sqrt(np.maximum(np.diag(shown), 0.0))
    where = standing(elo, shown, group)
    return Ratings(players, elo, half, *tally, group, said, shown, seats, method, where)


def _components(scored: Floats, connection: Literal["weak", "strong"]) -> Ints:
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    labels: Ints = connected_components(csr_matrix(scored), connection=connection)[1].astype(np.int64)
    return labels
