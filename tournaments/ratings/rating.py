"""All that can be told of a table of results: its ratings, game by game where asked, and what is told beside them."""

from collections.abc import Mapping
from typing import NamedTuple, cast

from arena.tournaments.ratings.beside import Beside, beside
from arena.tournaments.ratings.columns import AnyResults, Given
from arena.tournaments.ratings.pairs import Method, Ratings, Results, rate
from arena.tournaments.ratings.ranked import RankedResults, rate_ranked
from arena.tournaments.ratings.tasks import TaskResults, rate_tasks
from arena.tournaments.ratings.teams import TeamResults, rate_teams

__all__ = ["Rated", "rate_table"]

Anchors = Mapping[str, float | tuple[float, float]]


class Rated(NamedTuple):
    """The ratings of a table."""

    ratings: Ratings
    beside: Beside | None
    """Of games of two."""
    games: dict[str, Ratings]
    """Each game's own, where they were asked for."""


def rate_table(given: Given, anchors: Anchors, method: str = "auto", each: Mapping[str, Given] | None = None) -> Rated:
    """Rate what a table gives; `each`: what it gives game by game, rated apart with the anchors that are there."""
    results, how = given.results, cast("Method", method)
    ratings = _rate(results, how, anchors)
    told = beside(results, ratings) if isinstance(results, Results) else None
    games = {}
    for name, own in (each or {}).items():
        there = {player: elo for player, elo in anchors.items() if player in own.results.players}
        games[name] = _rate(own.results, how, there)
    return Rated(ratings, told, games)


def _rate(results: AnyResults, method: Method, anchors: Anchors) -> Ratings:
    match results:
        case Results():
            return rate(results, method, anchors=anchors)
        case RankedResults():
            return rate_ranked(results, method, anchors=anchors)
        case TeamResults():
            return rate_teams(results, method, anchors=anchors)
        case TaskResults():
            return rate_tasks(results, method, anchors=anchors)
