"""Which games are played: seed blocks, every rotation of the seats; a round robin, a cyclic design for many seats.

The rule, for a game with k seats that are not the house's and m agents, in every seed block:

- k = 1: every agent alone, on the same seed.
- k = 2: every pair of agents, in both orders.
- k > 2, m >= k: the agents are shuffled (by the seed) and cut into tables of k. Where m is no multiple of k, some sit
  at a second table to fill up the last one: they take turns from block to block, so that all play equally often.
- k > 2, m < k: one table, filled by going round the agents, beginning with a later one in every block.

Each table plays all cyclic rotations of its seats that differ.
"""

import json
from collections.abc import Iterator
from hashlib import blake2b
from itertools import combinations
from random import Random
from typing import Any, NamedTuple

from arena.registry import make_game
from arena.tournaments.config import GameEntry, Tournament

__all__ = ["Block", "Fixture", "Maker", "count", "fixtures", "lineups", "robin", "rotations", "seats_of"]


class Fixture(NamedTuple):
    """One game to be played."""

    id: str
    """Hash (32 hexadecimal digits) of all that decides it: game with version, all options (the defaults too), settings,
    seed, agents in their seats, repetition. The same game has the same id in every run.
    """
    block: str
    """Games that share a seed and a table: the cluster of the statistics."""
    entry: int
    """Number of the game in the tournament."""
    seed: int
    rotation: int
    repetition: int
    agents: tuple[int, ...]
    """Numbers of the agents in the seats that are not the house's."""


def lineups(agents: int, seats: int, block: int, seed: int) -> list[tuple[int, ...]]:
    """The tables of one seed block, before their seats are rotated."""
    if seats == 1:
        return [(agent,) for agent in range(agents)]
    if seats == 2:
        return list(combinations(range(agents), 2))
    if agents < seats:
        return [tuple([(block + seat) % agents for seat in range(seats)])]
    missing = -agents % seats
    twice = [(block * missing + at) % agents for at in range(missing)]
    others = [agent for agent in range(agents) if agent not in twice]
    Random(f"tables {seed}").shuffle(others)  # a str: not the stream of the deal
    order = twice + others + twice
    return [tuple(order[at : at + seats]) for at in range(0, agents, seats)]


def rotations(table: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All cyclic shifts that differ.

    >>> rotations((0, 1)), rotations((0, 1, 0, 1))
    ([(0, 1), (1, 0)], [(0, 1, 0, 1), (1, 0, 1, 0)])
    """
    return list(dict.fromkeys(table[shift:] + table[:shift] for shift in range(len(table))))


def seats_of(entry: GameEntry) -> tuple[int, tuple[int, ...]]:
    """How many seats the game has, and which of them agents take."""
    game = make_game(entry.id, 0, entry.options)
    return game.players, tuple([p for p in range(game.players) if p not in game.house])


def _hash(parts: Any, size: int) -> str:
    return blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=size).hexdigest()


class Block(NamedTuple):
    """One seed and one table of one game: what schedules propose."""

    entry: int
    """Number of the game in the tournament."""
    number: int
    """Its seed is the tournament's and this."""
    table: tuple[int, ...]
    """Numbers of the agents, before the seats are rotated."""


class Maker:
    """Makes the games of blocks; what all their ids share is worked out once."""

    def __init__(self, tournament: Tournament) -> None:
        self.tournament = tournament
        self.names, settings = tournament.identities(), tournament.settings()
        self.seats = [len(seats_of(entry)[1]) for entry in tournament.games]
        self.terms = [[entry.id, entry.terms, settings] for entry in tournament.games]

    def key(self, block: Block) -> str:
        """What the games of a block have in common: game, seed, and who sits at the table."""
        seated = sorted([self.names[agent] for agent in block.table])
        return _hash([*self.terms[block.entry], self.tournament.seed + block.number, seated], 8)

    def size(self, block: Block) -> int:
        """How many games a block has."""
        return len(rotations(block.table)) * self.tournament.repetitions

    def games(self, block: Block) -> list[Fixture]:
        """All repetitions of all rotations."""
        entry, number, table = block
        seed, terms, names = self.tournament.seed + number, self.terms[entry], self.names
        key = self.key(block)
        return [
            Fixture(
                _hash([*terms, seed, [names[agent] for agent in order], repetition], 16),
                key, entry, seed, rotation, repetition, order,
            )
            for repetition in range(self.tournament.repetitions)
            for rotation, order in enumerate(rotations(table))
        ]  # fmt: skip


def fixtures(tournament: Tournament) -> Iterator[Fixture]:
    """All games of a round robin, a block of every game at a time: an unfinished tournament is a balanced one."""
    maker = Maker(tournament)
    for block in robin(tournament, maker.seats):
        yield from maker.games(block)


def robin(tournament: Tournament, seats: list[int]) -> Iterator[Block]:
    """The blocks of a round robin."""
    agents = len(tournament.agents)
    for block in range(max(tournament.blocks_of(entry) for entry in tournament.games)):
        for number, entry in enumerate(tournament.games):
            if block < tournament.blocks_of(entry):
                for table in lineups(agents, seats[number], block, tournament.seed + block):
                    yield Block(number, block, table)


def count(tournament: Tournament) -> list[int]:
    """How many games of every entry."""
    agents = len(tournament.agents)
    totals = []
    for entry in tournament.games:
        games = _games_of_block(agents, len(seats_of(entry)[1]))
        totals.append(games * tournament.blocks_of(entry) * tournament.repetitions)
    return totals


def _games_of_block(agents: int, seats: int) -> int:
    """How many rotations of how many tables `lineups` makes; the same in every block."""
    if seats <= 1:
        return agents * seats
    if seats == 2:
        return agents * (agents - 1)
    if agents < seats:  # where all sit equally often, the rotations repeat themselves
        return agents if seats % agents == 0 else seats
    return -(-agents // seats) * seats
