"""Ratings of players by the results of their sides: strengths of members add up, and each side of a game has its term.

The sum, not the mean, as in Huang, Weng & Lin (*Ranking individuals by group comparisons*, ICML 2006) and in TrueSkill:
a member who is 400 points better makes the odds of his side ten times as good, whether he plays with one or with ten,
so that every member of every side has the same share in what happened. What sizes and roles are worth, the side term
holds: it is the advantage of a side whose members are all average (Mafia against a town of five). A side whose members
are all one player plays as that player would with his rating times their number.

More than two sides are ranked as in `arena.tournaments.ratings.luce`; two are Davidson's model.

>>> rows = [("Mafia", {"town": ["ann", "bob"], "mafia": ["cat"]}, "town", seed) for seed in range(9)]
>>> table = rate_teams(TeamResults.of([*rows, ("Mafia", {"town": ["cat", "bob"], "mafia": ["ann"]}, "draw", 9)]))
>>> [round(elo) for elo in table.elo], table.flags[1], list(table.seats["Mafia"])
([1123, 1197, 680], (), ['town', 'mafia'])
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.ratings.anchors import Anchors, anchored
from arena.tournaments.ratings.davidson import Prior
from arena.tournaments.ratings.luce import Rankings
from arena.tournaments.ratings.pairs import Method, Ratings
from arena.tournaments.ratings.ranked import rank
from arena.tournaments.ratings.sides import Fitted, checked, column, fit, scored, tally, told
from arena.tournaments.ratings.verdict import flags, groups, offs, rated

__all__ = ["Row", "TeamResults", "TeamTable", "fit_teams", "rate_teams"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Row = tuple[str, Mapping[str, Sequence[str]], str | Sequence[float], object]
"""Game, members of each side, the side that won or "draw" or the returns of the sides, cluster."""

TOGETHER = "never apart from a team-mate"
"""The flag of players whom no game tells apart: they were always on one side, as often as each other."""


class TeamTable(NamedTuple):
    """Games of k sides of at most q members in columns; numbers index the players, games and sides of the results."""

    game: Ints
    members: Ints
    """Shape (rows, k, q); -1 where a side has fewer. A player who holds several seats of a side counts as often."""
    side: Ints
    """Shape (rows, k)."""
    ranks: Ints
    """Shape (rows, k): 0 is best, equal ranks are ties."""
    cluster: Ints
    """Games that share a seed depend on each other: they have one number, in whatever table."""
    weight: Floats | None = None
    times: Floats | None = None
    """As in `pairs.Results`."""


class TeamResults(NamedTuple):
    """Results of games between sides: one table for every number of sides."""

    players: tuple[str, ...]
    games: tuple[str, ...]
    sides: tuple[str, ...]
    tables: tuple[TeamTable, ...]

    @classmethod
    def of(cls, rows: Iterable[Row], players: Sequence[str] = ()) -> "TeamResults":
        """From rows; `players`: those to list first, played or not.

        Raises ValueError for an outcome that is neither a side nor "draw" nor as many returns as there are sides.
        """
        listed = [(game, dict(teams), _returns(teams, outcome), cluster) for game, teams, outcome, cluster in rows]
        members = [name for row in listed for team in row[1].values() for name in team]
        names = tuple(dict.fromkeys([*players, *members]))
        games = tuple(dict.fromkeys([row[0] for row in listed]))
        sides = tuple(dict.fromkeys([side for row in listed for side in row[1]]))
        number, place, which = [{name: k for k, name in enumerate(table)} for table in (names, games, sides)]
        cluster = {key: k for k, key in enumerate(dict.fromkeys([row[3] for row in listed]))}
        tables = []
        for count in sorted({len(row[1]) for row in listed}):
            same = [row for row in listed if len(row[1]) == count]
            most = max(len(team) for row in same for team in row[1].values())
            padded = [
                [[*(number[n] for n in team), *[-1] * (most - len(team))] for team in r[1].values()] for r in same
            ]
            tables.append(
                TeamTable(
                    np.array([place[row[0]] for row in same], dtype=np.int64),
                    np.array(padded, dtype=np.int64),
                    np.array([[which[side] for side in row[1]] for row in same], dtype=np.int64),
                    rank(np.array([row[2] for row in same], dtype=np.float64)),
                    np.array([cluster[row[3]] for row in same], dtype=np.int64),
                )
            )
        return cls(names, games, sides, tuple(tables))


def rate_teams(
    results: TeamResults, method: Method = "auto", prior: Prior | None = None, *, anchors: Anchors | None = None
) -> Ratings:
    """Fit all results at once; intervals and `anchors` as in `pairs.rate`. Raises ValueError if nobody played.

    Every member has the result of his side: wins are sole firsts, draws shared firsts, losses the rest.
    """
    fixed = anchored(results.players, anchors or {})
    fitted = fit_teams(results, method, prior, fixed)
    rankings, terms = _rankings(results)
    n = len(results.players)
    met, counts = scored(n, rankings), tally(n, rankings)
    group = groups(met)
    said = flags(met, group, told(n, rankings), [player for player, _, _ in fixed])
    alike = _inseparable(n, rankings)
    said = tuple([(*words, *[TOGETHER] * bool(alike[k])) for k, words in enumerate(said)])
    strength, covariance = fitted.fit.parameters[:n], fitted.covariance[:n, :n]
    seats = _seats(results, terms, _sums(n, rankings, fitted), fitted)
    return rated(results.players, strength, covariance, counts, group, said, seats, fitted.method, fixed)


def fit_teams(
    results: TeamResults,
    method: Method = "auto",
    prior: Prior | None = None,
    fixed: Sequence[tuple[int, float, float]] = (),
) -> Fitted:
    """The fit that `rate_teams` shows."""
    rankings, terms = _rankings(results)
    return fit(len(results.players), len(terms), rankings, method, prior, fixed)


def _returns(teams: Mapping[str, Sequence[str]], outcome: str | Sequence[float]) -> list[float]:
    if isinstance(outcome, str):
        if outcome not in (*teams, "draw"):
            raise ValueError(f"outcome {outcome!r}: allowed are {', '.join(teams)}, draw")
        return [float(side == outcome) for side in teams]
    if len(outcome) != len(teams):
        raise ValueError(f"{len(teams)} sides and {len(outcome)} returns: there must be as many")
    return list(outcome)


def _padded(team: Sequence[str], number: Mapping[str, int], most: int) -> list[int]:
    return [*(number[name] for name in team), *[-1] * (most - len(team))]


def _rankings(results: TeamResults) -> tuple[list[Rankings], list[tuple[int, int, int]]]:
    """Games as rankings, and (number of sides, game, side) of every term, in their order."""
    made: list[Rankings] = []
    terms: list[tuple[int, int, int]] = []
    tables = 0
    for columns in results.tables:
        rows, sides = columns.side.shape
        if len(columns.game) != rows:
            raise ValueError(f"{len(columns.game)} games and {rows} rows of sides: there must be as many")
        own, number = np.unique(columns.game, return_inverse=True)
        pairs = columns.game[:, None] * len(results.sides) + columns.side
        used, term = np.unique(pairs, return_inverse=True)
        weight, times = column(columns.weight, rows), column(columns.times, rows)
        term = len(terms) + term.reshape(rows, sides)
        ranking = Rankings(tables + number, columns.members, term, columns.ranks, columns.cluster, weight, times)
        made.append(checked(len(results.players), ranking))
        terms += [(sides, *divmod(int(pair), len(results.sides))) for pair in used]
        tables += len(own)
    return made, terms


def _seats(
    results: TeamResults, terms: list[tuple[int, int, int]], sums: Floats, fitted: Fitted
) -> dict[str, dict[str, tuple[float, float]]]:
    """What a side is worth over the mean of the others, all members average."""
    shown: dict[str, dict[str, tuple[float, float]]] = {name: {} for name in results.games}
    for table in dict.fromkeys([term[:2] for term in terms]):
        sides, game = table
        own = [k for k, term in enumerate(terms) if term[:2] == table]
        several = len({term[0] for term in terms if term[1] == game}) > 1
        names = [results.sides[terms[k][2]] + f" of {sides}" * several for k in own]
        shown[results.games[game]] |= offs(names, sums[own], fitted.fit.parameters, fitted.covariance)
    return shown


def _sums(players: int, rankings: Sequence[Rankings], fitted: Fitted) -> Floats:
    """Shape (terms, parameters): of every term, itself and as many average players as its side has members."""
    size = len(fitted.fit.parameters)
    count, members, played = np.zeros(size), np.zeros(size), np.zeros(players + 1)
    for ranking in rankings:
        at = players + ranking.term.ravel()
        count += np.bincount(at, minlength=size)
        members += np.bincount(at, (ranking.members >= 0).sum(axis=2).ravel(), size)
        played[ranking.members] = 1.0
    terms = np.flatnonzero(count)
    sums = np.eye(size)[terms]
    sums[:, :players] = (members / np.maximum(count, 1))[terms, None] * played[:players] / played[:players].sum()
    return sums


def _inseparable(players: int, rankings: Sequence[Rankings]) -> NDArray[np.bool_]:
    """Players who played, but were on each side as often as another one in every game.

    Who sat where is projected at random, which keeps equal columns equal and no others.
    """
    rng, prints, played = np.random.default_rng(0), np.zeros(players + 1), np.zeros(players + 1)
    for ranking in rankings:
        members = np.where(ranking.members < 0, players, ranking.members)
        marks = np.broadcast_to(rng.integers(1, 2**40, members.shape[:2])[:, :, None], members.shape)
        prints += np.bincount(members.ravel(), marks.ravel(), players + 1)
        played += np.bincount(members.ravel(), minlength=players + 1)
    _, same, count = np.unique(prints[:players], return_inverse=True, return_counts=True)
    return (count[same] > 1) & (played[:players] > 0)
