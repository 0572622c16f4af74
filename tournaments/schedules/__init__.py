"""Who meets whom next: every schedule is a generator of blocks over the history of results.

Blocks that were begun come first. Agents do tasks (games of one seat) alone, each of them on every item, whatever the
schedule. A schedule never waits for games that stay void.
"""

from collections.abc import Iterator

from arena.tournaments.history import History
from arena.tournaments.schedule import Block, count
from arena.tournaments.schedules import fixed, knockout, swiss
from arena.tournaments.schedules.knockout import Tie, bracket
from arena.tournaments.schedules.swiss import Place, standings
from arena.tournaments.terms import Adaptive, Gauntlet, Knockout, Listed, Swiss

__all__ = ["Place", "Tie", "blocks", "bracket", "most", "standings"]


def blocks(history: History) -> Iterator[Block | None]:
    """The blocks to play, in order; None: nothing to propose until another game has ended (ask again then).

    A function of the history alone: begun anew over the same results (after a kill, in another process) it proposes
    the same blocks; those that are finished too, where the order is fixed. Who plays skips those.
    """
    begun = set()
    for block in history.unfinished():
        begun.add(history.maker.key(block))
        yield block
    for proposed in _blocks(history):
        if proposed is None or not begun or history.maker.key(proposed) not in begun:
            yield proposed


def _blocks(history: History) -> Iterator[Block | None]:
    match history.tournament.schedule:
        case Gauntlet():
            return fixed.gauntlet(history)
        case Listed():
            return fixed.listed(history)
        case Swiss():
            return swiss.blocks(history)
        case Knockout():
            return knockout.blocks(history)
        case Adaptive():
            from arena.tournaments.schedules.adaptive import blocks as adaptive  # loads numpy

            return adaptive(history)
        case _:
            return fixed.round_robin(history)


def most(history: History) -> list[int]:
    """How many games of every entry at most."""
    match history.tournament.schedule:
        case Gauntlet():
            return fixed.gauntlet_most(history)
        case Listed():
            return fixed.listed_most(history)
        case Swiss():
            return swiss.most(history)
        case Knockout():
            return knockout.most(history)
        case _:
            return count(history.tournament)
