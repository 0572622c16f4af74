"""What a tournament has come to so far, as schedules and stopping rules see it; it grows while games end."""

from collections import defaultdict
from typing import NamedTuple

from arena.tournaments.config import Tournament
from arena.tournaments.schedule import Block, Fixture, Maker

__all__ = ["History", "Result"]


class Result(NamedTuple):
    """One finished game, agents as numbers of the tournament's list."""

    id: str
    block: str
    entry: int
    seed: int
    agents: tuple[int, ...]
    """In the seats that are not the house's."""
    returns: tuple[float, ...]
    """Of those seats."""
    forfeits: tuple[int, ...]
    """Positions in `agents`."""
    truncated: bool


class History:
    """The results by block. Schedules are functions of it: after a kill the same history gives the same games."""

    def __init__(self, tournament: Tournament) -> None:
        self.tournament, self.maker = tournament, Maker(tournament)
        self.blocks: defaultdict[str, dict[str, Result]] = defaultdict(dict)
        """By block and game."""
        self.left: set[str] = set()
        """Games that stay void: nobody waits for them."""
        self.finished = 0

    def add(self, result: Result) -> bool:
        """A game has ended; False if that was known."""
        games = self.blocks[result.block]
        if result.id in games:
            return False
        games[result.id] = result
        self.left.discard(result.id)
        self.finished += 1
        return True

    def leave(self, fixture: Fixture) -> None:
        """A game stays void."""
        self.left.add(fixture.id)

    def over(self, block: Block) -> bool:
        """Whether nothing of it is to be played any more."""
        games = self.maker.games(block)
        there = self.blocks.get(games[0].block, {})
        return all(game.id in there or game.id in self.left for game in games)

    def results(self, block: Block) -> list[Result]:
        """What is finished of a block."""
        return list(self.blocks.get(self.maker.games(block)[0].block, {}).values())
