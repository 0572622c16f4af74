"""What is to be played next: the schedule's games without those that are finished, stay void."""

from collections.abc import Iterable, Iterator

from arena.episode import Episode
from arena.tournaments.config import Tournament
from arena.tournaments.history import History, Result
from arena.tournaments.schedule import Block, Fixture, seats_of
from arena.tournaments.schedules import blocks, most
from arena.tournaments.tally import Tally
from arena.tournaments.terms import Gauntlet, Listed, RoundRobin

__all__ = ["FIXED", "Supply", "result_of"]

FIXED = (RoundRobin, Gauntlet, Listed)
"""Schedules that no result changes."""


class Supply:
    """The games of a run, a block at a time, and what is known of them.

    A fixed schedule without a rule that looks at results keeps only the ids of finished games, so that a million of
    them have room; the others keep a history of results.
    """

    def __init__(self, asked: Tournament, tally: Tally) -> None:
        self.asked, self.tally = asked, tally
        self.fixed = isinstance(asked.schedule, FIXED)
        stop = asked.stop
        self.remembers = not self.fixed or (stop.interval, stop.ranks, stop.sprt) != (None, None, None)
        self.history = History(asked)
        self.seats = [seats_of(entry)[1] for entry in asked.games]
        self.finished: set[str] = set()
        self.spent: dict[str, int] = {}
        """Void attempts by game."""
        self.dry = False
        """The schedule has no more games."""
        self.waits = False
        """It has none until another game has ended."""
        self.news = 0
        """How many results have come."""
        self._redone: dict[str, int] = {}
        self._source: Iterator[Block | None] | None = None
        tally.total, tally.open_ended = sum(most(self.history)), not self.fixed

    def learn(self, finished: Iterable[str], results: Iterable[Result], voids: dict[str, int], redo: bool) -> None:
        """What the store holds when the run begins; `redo`: void attempts so far do not count."""
        self.tally.there += 0 if self.fixed else len(set(finished) - self.finished)
        self.finished.update(finished)
        self._redone = voids if redo else {}
        self.hear(results, voids)

    def hear(self, results: Iterable[Result], voids: dict[str, int]) -> None:
        """What others have finished meanwhile; known results may be among them."""
        self.spent = {game: times - self._redone.get(game, 0) for game, times in voids.items()}
        for result in results:
            self.tally.there += not self.fixed and result.id not in self.finished
            self.finished.add(result.id)
            if self.remembers and self.history.add(result):
                self.news += 1
        self.waits = False

    def played(self, fixture: Fixture, episode: Episode) -> None:
        """A game of this run has ended."""
        if self.remembers:
            self.history.add(result_of(fixture, episode, self.seats[fixture.entry]))
            self.finished.add(fixture.id)
            self.news += 1
        self.waits = False

    def leave(self, fixture: Fixture) -> None:
        """A game stays void."""
        self.tally.given_up += 1
        if self.remembers:
            self.history.leave(fixture)
        self.waits = False

    def lost(self, fixture: Fixture) -> bool:
        """Whether its void attempts are used up."""
        return self.spent.get(fixture.id, 0) > self.asked.void_retries

    def next(self) -> list[Fixture] | None:
        """The games of the next block that are still to be played; None: no block, for now or (`dry`) for good."""
        if self.dry:
            return None
        if self._source is None:
            self._source = blocks(self.history)
        block = next(self._source, self)
        if block is self:
            self.dry = True
            return None
        if not isinstance(block, Block):
            self.waits = True
            return None
        return [fixture for fixture in self.history.maker.games(block) if self._open(fixture)]

    def _open(self, fixture: Fixture) -> bool:
        if fixture.id in self.finished:
            self.tally.there += self.fixed
            return False
        if self.lost(fixture):
            if fixture.id not in self.history.left:
                self.leave(fixture)
            return False
        return True


def result_of(fixture: Fixture, episode: Episode, seats: tuple[int, ...]) -> Result:
    """A finished game as schedules and rules see it."""
    returns = episode.returns or ()
    return Result(
        fixture.id,
        fixture.block,
        fixture.entry,
        fixture.seed,
        fixture.agents,
        tuple([returns[seat] for seat in seats]),
        tuple([at for at, seat in enumerate(seats) if seat in episode.forfeits]),
        episode.outcome == "truncated",
    )
