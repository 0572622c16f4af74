"""What a tournament may spend: games, tokens, dollars, minutes."""

import time
from collections.abc import Callable

from arena.episode import Episode
from arena.tournaments.config import Tournament
from arena.tournaments.stopping import Spent

__all__ = ["Budget", "minus", "plus", "spent_in"]


def spent_in(episode: Episode) -> Spent:
    """Tokens and dollars of one attempt."""
    calls = [call.usage for turn in episode.turns for attempt in turn.attempts for call in attempt.calls]
    tokens = sum(usage.get("prompt_tokens", 0.0) + usage.get("completion_tokens", 0.0) for usage in calls)
    return Spent(int(episode.outcome != "void"), int(tokens), sum(usage.get("cost", 0.0) for usage in calls))


def plus(one: Spent, other: Spent) -> Spent:
    """Both together."""
    return Spent(one.games + other.games, one.tokens + other.tokens, one.dollars + other.dollars)


def minus(one: Spent, other: Spent) -> Spent:
    """What is in one and not in the other."""
    return Spent(one.games - other.games, one.tokens - other.tokens, one.dollars - other.dollars)


class Budget:
    """What is spent, and what may still be, those games foreseen that are under way."""

    def __init__(self, asked: Tournament, clock: Callable[[], float] = time.monotonic) -> None:
        self.stop, self.clock, self.began = asked.stop, clock, clock()
        self.counts = (asked.stop.games, asked.stop.tokens, asked.stop.dollars) != (None, None, None)
        self.base, self.own = Spent(), Spent()

    @property
    def spent(self) -> Spent:
        """By all processes, as far as is known; the minutes are this run's."""
        return plus(self.base, self.own)._replace(minutes=(self.clock() - self.began) / 60)

    def add(self, episode: Episode) -> None:
        """An attempt of this run has ended."""
        if self.counts:
            self.own = plus(self.own, spent_in(episode))

    def room(self, under_way: int) -> int:
        """How many further games may start: none that would go past a budget if all take what games took so far.

        At least one where none is under way: a budget that is not used up is used.
        """
        if not self.counts:
            return 1 << 30
        room, stop, spent = 1 << 30, self.stop, self.spent
        if stop.games is not None:
            room = min(room, stop.games - spent.games - under_way)
        for limit, used in ((stop.tokens, spent.tokens), (stop.dollars, spent.dollars)):
            if limit is not None and used and spent.games:
                room = min(room, int((limit - used) * spent.games / used) - under_way)
        return max(room, int(under_way == 0))
