"""Ratings of games that rank two players or more: Plackett-Luce with seat terms and ties (module `luce`).

A game of two is Davidson's model, as in `arena.tournaments.ratings.pairs`. A forfeit is the return -inf: last of all.

>>> rows = [("Pig", ["ann", "bob", "cat"], [1.0, 0.0, -1.0], seed) for seed in range(9)]
>>> table = rate_ranked(RankedResults.of([*rows, ("Pig", ["cat", "ann", "bob"], [1.0, 0.0, 0.0], 9)]))
>>> table.players, [round(elo) for elo in table.elo], table.wins.tolist()
(('ann', 'bob', 'cat'), [1182, 1087, 731], [9, 0, 1])
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.ratings.anchors import Anchors, anchored
from arena.tournaments.ratings.davidson import Prior
from arena.tournaments.ratings.luce import Rankings, dense
from arena.tournaments.ratings.pairs import FIRST, Method, Ratings
from arena.tournaments.ratings.sides import Fitted, checked, column, fit, scored, tally, told
from arena.tournaments.ratings.verdict import flags, groups, offs, rated

__all__ = ["RankedResults", "RankedTable", "Row", "fit_ranked", "rank", "rate_ranked"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Row = tuple[str, Sequence[str], Sequence[float], object]
"""Game, players by seat, their returns, cluster."""


class RankedTable(NamedTuple):
    """Games of k seats in columns; numbers index the players and games of the results."""

    game: Ints
    agents: Ints
    """Shape (rows, k), by seat."""
    ranks: Ints
    """Shape (rows, k): 0 is best, equal ranks are ties."""
    cluster: Ints
    """Games that share a seed depend on each other: they have one number, in whatever table."""
    weight: Floats | None = None
    times: Floats | None = None
    """As in `pairs.Results`."""


class RankedResults(NamedTuple):
    """Results of ranked games: one table for every number of seats."""

    players: tuple[str, ...]
    games: tuple[str, ...]
    tables: tuple[RankedTable, ...]

    @classmethod
    def of(cls, rows: Iterable[Row], players: Sequence[str] = ()) -> "RankedResults":
        """From rows; `players`: those to list first, played or not.

        Raises ValueError where returns are not as many as players, or NaN, or one player has all seats.
        """
        listed = [(game, list(agents), list(returns), cluster) for game, agents, returns, cluster in rows]
        for _, agents, returns, _ in listed:
            if len(agents) != len(returns):
                raise ValueError(f"{len(agents)} players and {len(returns)} returns: there must be as many")
        names = tuple(dict.fromkeys([*players, *[name for row in listed for name in row[1]]]))
        games = tuple(dict.fromkeys([row[0] for row in listed]))
        number = {name: k for k, name in enumerate(names)}
        place = {name: k for k, name in enumerate(games)}
        cluster = {key: k for k, key in enumerate(dict.fromkeys([row[3] for row in listed]))}
        tables = []
        for seats in sorted({len(row[1]) for row in listed}):
            same = [row for row in listed if len(row[1]) == seats]
            tables.append(
                RankedTable(
                    np.array([place[row[0]] for row in same], dtype=np.int64),
                    np.array([[number[name] for name in row[1]] for row in same], dtype=np.int64),
                    rank(np.array([row[2] for row in same], dtype=np.float64)),
                    np.array([cluster[row[3]] for row in same], dtype=np.int64),
                )
            )
        return cls(names, games, tuple(tables))


def rank(returns: Floats, forfeits: NDArray[np.bool_] | None = None) -> Ints:
    """Ranks of returns, shape (rows, k): the highest return is 0, equal returns are ties, forfeits are last together.

    Raises ValueError for NaN.
    """
    if np.isnan(returns).any():
        raise ValueError("a return is NaN: allowed are numbers, and -inf for a forfeit")
    return dense(-(returns if forfeits is None else np.where(forfeits, -np.inf, returns)))


def rate_ranked(
    results: RankedResults, method: Method = "auto", prior: Prior | None = None, *, anchors: Anchors | None = None
) -> Ratings:
    """Fit all results at once; intervals and `anchors` as in `pairs.rate`. Raises ValueError if nobody played.

    Wins are sole firsts, draws shared firsts, losses the rest.
    """
    fixed = anchored(results.players, anchors or {})
    fitted = fit_ranked(results, method, prior, fixed)
    rankings, places = _rankings(results)
    n = len(results.players)
    met, counts = scored(n, rankings), tally(n, rankings)
    group = groups(met)
    said = flags(met, group, told(n, rankings), [player for player, _, _ in fixed])
    strength, covariance = fitted.fit.parameters[:n], fitted.covariance[:n, :n]
    seats = _seats(results, places, n, fitted)
    return rated(results.players, strength, covariance, counts, group, said, seats, fitted.method, fixed)


def fit_ranked(
    results: RankedResults,
    method: Method = "auto",
    prior: Prior | None = None,
    fixed: Sequence[tuple[int, float, float]] = (),
) -> Fitted:
    """The fit that `rate_ranked` shows."""
    rankings, places = _rankings(results)
    return fit(len(results.players), sum(seats for _, seats in places), rankings, method, prior, fixed)


def _rankings(results: RankedResults) -> tuple[list[Rankings], list[tuple[int, int]]]:
    """Games as rankings, and (game, seats) of every table that has terms, in their order."""
    made: list[Rankings] = []
    places: list[tuple[int, int]] = []
    terms = 0
    for columns in results.tables:
        rows, seats = columns.agents.shape
        if len(columns.game) != rows:
            raise ValueError(f"{len(columns.game)} games and {rows} rows of players: there must be as many")
        own = np.unique(columns.game)
        number = np.searchsorted(own, columns.game)
        term = terms + number[:, None] * seats + np.arange(seats)
        weight, times = column(columns.weight, rows), column(columns.times, rows)
        ranking = Rankings(
            len(places) + number, columns.agents[:, :, None], term, columns.ranks, columns.cluster, weight, times
        )
        made.append(checked(len(results.players), ranking))
        if (columns.agents == columns.agents[:, :1]).all(axis=1).any():
            raise ValueError("a player cannot play against itself alone")
        places += [(int(game), seats) for game in own]
        terms += len(own) * seats
    return made, places


def _seats(
    results: RankedResults, places: list[tuple[int, int]], players: int, fitted: Fitted
) -> dict[str, dict[str, tuple[float, float]]]:
    """Over the mean of the other seats; the first of two stands for both."""
    shown: dict[str, dict[str, tuple[float, float]]] = {name: {} for name in results.games}
    at = players
    for game, seats in places:
        several = len([place for place in places if place[0] == game]) > 1
        of = f" of {seats}" * several
        terms = np.eye(len(fitted.covariance))[at : at + seats]
        worth = offs([f"seat {seat}{of}" for seat in range(seats)], terms, fitted.fit.parameters, fitted.covariance)
        shown[results.games[game]] |= {FIRST + of: worth["seat 0" + of]} if seats == 2 else worth
        at += seats
    return shown
