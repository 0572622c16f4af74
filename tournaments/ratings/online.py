"""Online Elo: how a leaderboard would have read while games ended. Drawn as history, never the rating.

Elo, *The Rating of Chessplayers* (1978). What it says depends on the order of the games and on K: with agents that do
not change, the fit of all games (`arena.tournaments.ratings.rate`) is the rating.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["START", "OnlineElo", "curve"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

START = 1000.0
"""Elo before the first game."""
_SCALE = 400.0


class OnlineElo(NamedTuple):
    """Online Elo at some moments of a tournament, in the order of time."""

    games: Ints
    """Games that had ended, shape (moments,)."""
    times: Floats
    """When the last of them ended, shape (moments,)."""
    elo: Floats
    """Shape (moments, players)."""
    begun: Ints
    """The first moment by which each player had a game, shape (players,); before it, `elo` says nothing."""


def curve(
    players: int,
    ended: Floats,
    agents: Ints,
    points: Floats,
    *,
    k: float = 16.0,
    moments: int = 200,
) -> OnlineElo:
    """Online Elo over games, sampled at no more than `moments` of them, the last included.

    `ended`: when each game ended, shape (games,), in any order; equal times keep the order of rows.
    `agents`: who played, shape (games, seats), -1 where a seat is no player's.
    `points`: what each seat earned, shape (games, seats): more is better, equal is a draw. Of more than two seats every
    pair is a comparison, and a player moves by the mean of its own. An agent does not play against itself.
    """
    if agents.shape != points.shape or len(ended) != len(agents):
        raise ValueError(
            f"agents {agents.shape}, points {points.shape}, ended {ended.shape}: allowed is one row a game"
        )
    if not len(ended) or not players:
        return OnlineElo(
            np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros((0, players)), np.zeros(players, dtype=np.int64)
        )
    order = np.argsort(ended, kind="stable")
    agents, points = agents[order], points[order]
    asked = np.unique(np.linspace(1, len(order), min(moments, len(order))).round().astype(np.int64))
    step = _two if agents.shape[1] == 2 and bool((agents >= 0).all()) else _many
    begun = np.searchsorted(asked, _first(players, agents) + 1)
    return OnlineElo(
        asked, np.asarray(ended, dtype=np.float64)[order][asked - 1], step(players, agents, points, k, asked), begun
    )


def _first(players: int, agents: Ints) -> Ints:
    """The row of each player's first game; beyond the last for those who have none."""
    first = np.full(players, len(agents), dtype=np.int64)
    row, seat = np.nonzero(agents >= 0)
    np.minimum.at(first, agents[row, seat], row)
    return first


def _two(players: int, agents: Ints, points: Floats, k: float, asked: Ints) -> Floats:
    """Two seats, both played: plain floats, as nothing can be done at once."""
    ratings, kept = [START] * players, []
    scores = (0.5 + 0.5 * np.sign(points[:, 0] - points[:, 1])).tolist()
    firsts, seconds = agents.T.tolist()
    for begin, end in _spans(asked):
        for a, b, score in zip(firsts[begin:end], seconds[begin:end], scores[begin:end], strict=True):
            here, there = ratings[a], ratings[b]
            move = k * (score - 1.0 / (1.0 + 10.0 ** ((there - here) / _SCALE)))
            ratings[a], ratings[b] = here + move, there - move
        kept.append(ratings.copy())
    return np.array(kept)


def _many(players: int, agents: Ints, points: Floats, k: float, asked: Ints) -> Floats:
    """Any number of seats: all against all, as one round."""
    ratings, kept = [START] * players, []
    everybody, earnings = agents.tolist(), points.tolist()
    for begin, end in _spans(asked):
        for who, earned in zip(everybody[begin:end], earnings[begin:end], strict=True):
            game = [(player, ratings[player], paid) for player, paid in zip(who, earned, strict=True) if player >= 0]
            share = k / max(len(game) - 1, 1)
            for (a, here, mine), (b, there, theirs) in combinations(game, 2):
                score = 0.5 + 0.5 * ((mine > theirs) - (mine < theirs))
                move = share * (score - 1.0 / (1.0 + 10.0 ** ((there - here) / _SCALE)))
                ratings[a] += move
                ratings[b] -= move
        kept.append(ratings.copy())
    return np.array(kept)


def _spans(asked: Ints) -> list[tuple[int, int]]:
    """The rows between moments."""
    ends = asked.tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True))
