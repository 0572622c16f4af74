"""Who meets whom next: every schedule is a generator of blocks over the history of results."""

from collections.abc import Iterator

from arena.tournaments.history import History
from arena.tournaments.schedule import Block, count, robin
from arena.tournaments.terms import RoundRobin

__all__ = ["blocks", "most"]


def blocks(history: History) -> Iterator[Block | None]:
    """The blocks to play, in order; None: nothing to propose until another game has ended (ask again then).

    A function of the history alone: begun anew over the same results (after a kill, in another process) it proposes
    the same blocks, those that are finished too. Who plays skips those.
    """
    asked = history.tournament
    if isinstance(asked.schedule, RoundRobin):
        yield from robin(asked, history.maker.seats)
        return
    raise NotImplementedError(asked.schedule)


def most(history: History) -> list[int]:
    """How many games of every entry at most."""
    return count(history.tournament)
