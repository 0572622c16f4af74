"""Filters: which seats of which episodes are exported. All that are given must hold; each is counted by itself."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import msgspec

from arena.adapters.datasets.trajectory import Trajectory
from arena.episode import Episode
from arena.registry import unknown

__all__ = ["OUTCOMES", "Filters", "Outcome", "Ratings", "Sieve", "label_of", "outcome_of"]

Outcome = Literal["win", "draw", "loss"]
OUTCOMES: tuple[Outcome, ...] = ("win", "draw", "loss")

Ratings = Mapping[tuple[str, str], float]
"""Elo by game (`label_of`) and agent."""


class Filters(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a seat must be and have come to; nothing given lets all through but void episodes, which nothing lets.

    Who played what: `games` to `max_rating`. What came of it: `outcomes` to `min_reward`. Raises ValueError.
    """

    games: tuple[str, ...] = ()
    """Ids with or without version or `arena/`, or labels with options, as boards show them; one of them."""
    agents: tuple[str, ...] = ()
    """The seat's agent has one of these names."""
    seats: tuple[int, ...] = ()
    """It is one of these seats."""
    roles: tuple[str, ...] = ()
    """The seat has one of these roles ("seat 0" where the game names none)."""
    trainable: bool = False
    """The record says that the policy may be trained, and holds a model's answers in this episode
    (`Trajectory.trainable`): a search or a random player has none."""
    min_rating: float | None = None
    """Every opponent has at least this Elo; one that is not rated does not pass. Needs ratings."""
    max_rating: float | None = None
    """Every opponent has at most this Elo; one that is not rated does not pass. Needs ratings."""
    outcomes: tuple[Outcome, ...] = ()
    """The seat's result is one of these (`outcome_of`)."""
    legal: bool = False
    """Every reply of the seat was legal, and it did not forfeit."""
    truncated: bool | None = None
    """The episode was cut before its end (True), or was not (False)."""
    min_reward: float | None = None
    """The seat's return is at least this."""
    max_rows: int | None = None
    """The export ends after so many rows, over both splits; those that come first."""

    def __post_init__(self) -> None:
        for outcome in self.outcomes:
            if outcome not in OUTCOMES:
                raise ValueError(f"outcome {outcome!r}: allowed are {', '.join(OUTCOMES)}")
        for seat in self.seats:
            if seat < 0:
                raise ValueError(f"seat {seat}: allowed are numbers from 0")
        if self.max_rows is not None and self.max_rows < 1:
            raise ValueError(f"max_rows={self.max_rows}: allowed are numbers from 1")

    @property
    def rated(self) -> bool:
        """Whether ratings are asked for."""
        return self.min_rating is not None or self.max_rating is not None


def label_of(episode: Episode) -> str:
    """The game's id, with the options that were given, as boards show it.

    >>> from arena.match import play_sync
    >>> label_of(play_sync("LiarsDice", ["first"] * 3, options={"players": 3}))
    'LiarsDice-v0 (players=3)'
    """
    given = ", ".join(f"{key}={_plain(value)}" for key, value in sorted(episode.options.items()))
    return f"{episode.env} ({given})" if given else episode.env


def outcome_of(trajectory: Trajectory) -> Outcome:
    """What the seat has come to beside the others: the most is a win, all the same a draw, anything else a loss.

    Of several winners each has won. Alone at the table a return above 0 is a win. Raises ValueError for a void episode.
    """
    reward, returns = trajectory.reward, trajectory.episode.returns or ()
    if len(returns) == 1:
        return "win" if reward > 0 else "loss"
    if min(returns) == max(returns):
        return "draw"
    return "win" if reward == max(returns) else "loss"


Test = Callable[[Trajectory], bool]


class Sieve:
    """Filters at work, and what they have done so far."""

    def __init__(self, filters: Filters, ratings: Ratings | None = None) -> None:
        """Raises ValueError where ratings are asked for and there are none."""
        if filters.rated and not ratings:
            raise ValueError("a filter by rating needs ratings, and none are known of these episodes")
        self.filters, self.ratings = filters, ratings or {}
        self.who = {name: test for name, (given, test) in self._who().items() if given}
        self.result = {name: test for name, (given, test) in self._result().items() if given}
        self.seen, self.belonging = 0, 0
        self.passed: Counter[str] = Counter()
        """Of every filter, by itself: how many it lets pass; filters of what came of it are asked last."""
        self.left_out: Counter[str] = Counter()
        """By the first filter that did not let it pass."""
        self._names: dict[str, set[str]] = {name: set() for name in _NAMES}

    @property
    def active(self) -> bool:
        """Whether any filter is given."""
        return bool(self.who or self.result)

    def belongs(self, trajectory: Trajectory) -> bool:
        """Whether it is one of those that are asked for, whatever came of it."""
        self.seen += 1
        for name, of in _NAMES.items():
            if len(self._names[name]) < _KNOWN:
                self._names[name].add(of(trajectory))
        belongs = self._all(self.who, trajectory)
        self.belonging += belongs
        return belongs

    def chosen(self, trajectory: Trajectory) -> bool:
        """Of one that belongs: whether it came to what is asked for."""
        return self._all(self.result, trajectory)

    def nothing(self) -> ValueError:
        """Why nothing has passed: which filters let nothing pass, and what there was."""
        if not self.seen:
            return ValueError("there is nothing to export: no finished episode was read")
        for name, asked in (("game", self.filters.games), ("agent", self.filters.agents), ("role", self.filters.roles)):
            if asked and not self.passed[name]:
                return unknown(f"{name} of these episodes", ", ".join(asked), self._names[name])
        closed = [f"{name} (of {self._asked(name)})" for name in (*self.who, *self.result) if not self.passed[name]]
        if closed:
            return ValueError(f"no seat of {self.seen} passed: nothing passed the filters {', '.join(closed)}")
        return ValueError(f"no seat of {self.seen} passed all filters, though each let some pass")

    def _asked(self, name: str) -> int:
        return self.seen if name in self.who else self.belonging

    def _all(self, tests: Mapping[str, Test], trajectory: Trajectory) -> bool:
        failed = ""
        for name, test in tests.items():
            if test(trajectory):
                self.passed[name] += 1
            else:
                failed = failed or name
        if failed:
            self.left_out[failed] += 1
        return not failed

    def _who(self) -> dict[str, tuple[Any, Test]]:
        of = self.filters
        return {
            "game": (of.games, lambda seat: any(_named(game, seat.episode) for game in of.games)),
            "agent": (of.agents, lambda seat: seat.agent in of.agents),
            "seat": (of.seats, lambda seat: seat.player in of.seats),
            "role": (of.roles, lambda seat: seat.role in of.roles),
            "trainable": (of.trainable, lambda seat: seat.trainable),
            "rating": (of.rated, self._met),
        }

    def _result(self) -> dict[str, tuple[Any, Test]]:
        of, least = self.filters, self.filters.min_reward
        return {
            "outcome": (of.outcomes, lambda seat: outcome_of(seat) in of.outcomes),
            "legal": (of.legal, lambda seat: seat.legal),
            "truncated": (of.truncated is not None, lambda seat: seat.truncated is of.truncated),
            "reward": (least is not None, lambda seat: least is None or seat.reward >= least),
        }

    def _met(self, trajectory: Trajectory) -> bool:
        """Whether all opponents are rated as asked; alone at the table nobody is met."""
        game, (low, high) = label_of(trajectory.episode), (self.filters.min_rating, self.filters.max_rating)
        rated = [self.ratings.get((game, name)) for name in trajectory.opponents]
        return bool(rated) and all(
            elo is not None and (low is None or elo >= low) and (high is None or elo <= high) for elo in rated
        )


_KNOWN = 1000  # names of each kind that an error may list
_NAMES: dict[str, Callable[[Trajectory], str]] = {
    "game": lambda seat: label_of(seat.episode),
    "agent": lambda seat: seat.agent,
    "role": lambda seat: seat.role,
}


def _named(game: str, episode: Episode) -> bool:
    names: Iterable[str] = (episode.env, episode.env.rpartition("-v")[0], label_of(episode))
    return game.removeprefix("arena/") in names


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
