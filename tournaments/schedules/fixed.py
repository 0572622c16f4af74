"""Schedules that are known beforehand: round robin, gauntlet, a list of tables."""

from collections.abc import Callable, Iterator
from itertools import combinations
from random import Random

from arena.tournaments.history import History
from arena.tournaments.schedule import Block, lineups, robin
from arena.tournaments.terms import Gauntlet, Listed

__all__ = [
    "gauntlet",
    "gauntlet_most",
    "listed",
    "listed_most",
    "round_robin",
    "tasks",
    "tasks_most",
]

Tables = Callable[[int, int], list[tuple[int, ...]]]
"""Entry and number of a block to its tables."""


def round_robin(history: History) -> Iterator[Block]:
    """Every pair; tables that change from block to block where there are more seats."""
    return robin(history.tournament, history.maker.seats)


def gauntlet(history: History) -> Iterator[Block]:
    """The anchors against all others and each other; tables of more seats hold at least one anchor."""
    return _by_number(history, _gauntlet_tables(history))


def gauntlet_most(history: History) -> list[int]:
    """Games of every entry."""
    return _games(history, _gauntlet_tables(history))


def listed(history: History) -> Iterator[Block]:
    """The tables of the configuration, each where it fits."""
    return _by_number(history, _listed_tables(history))


def listed_most(history: History) -> list[int]:
    """Games of every entry."""
    return _games(history, _listed_tables(history))


def _numbers(history: History) -> dict[str, int]:
    """The agents' numbers by name."""
    return {agent.name: number for number, agent in enumerate(history.tournament.agents)}


def _alone(history: History) -> list[tuple[int, ...]]:
    """The tables of a task: everybody alone."""
    return [(agent,) for agent in range(len(history.tournament.agents))]


def tasks(history: History) -> Iterator[Block]:
    """All blocks of the games of one seat."""
    asked, seats = history.tournament, history.maker.seats
    for number in range(max(map(asked.blocks_of, asked.games))):
        for entry, game in enumerate(asked.games):
            if seats[entry] == 1 and number < asked.blocks_of(game):
                for table in _alone(history):
                    yield Block(entry, number, table)


def tasks_most(history: History) -> list[int]:
    """Games of every entry of one seat; 0 of the others."""
    asked, single = history.tournament, [seats == 1 for seats in history.maker.seats]
    games = [asked.blocks_of(game) * len(asked.agents) * asked.repetitions for game in asked.games]
    return [count * alone for count, alone in zip(games, single, strict=True)]


def _by_number(history: History, tables: Tables) -> Iterator[Block]:
    """A block of every game at a time: an unfinished tournament is a balanced one."""
    asked = history.tournament
    for number in range(max(map(asked.blocks_of, asked.games))):
        for entry, game in enumerate(asked.games):
            if number < asked.blocks_of(game):
                for table in tables(entry, number):
                    yield Block(entry, number, table)


def _games(history: History, tables: Tables) -> list[int]:
    """A block of an entry has as many games as any other of it."""
    asked, maker = history.tournament, history.maker
    sizes = [sum(maker.size(Block(entry, 0, table)) for table in tables(entry, 0)) for entry in range(len(asked.games))]
    return [size * asked.blocks_of(game) for size, game in zip(sizes, asked.games, strict=True)]


def _gauntlet_tables(history: History) -> Tables:
    asked = history.tournament
    assert isinstance(asked.schedule, Gauntlet)
    by_name, agents = _numbers(history), len(asked.agents)
    anchors = sorted(by_name[name] for name in asked.schedule.anchors) or [0]
    pairs: list[tuple[int, ...]] = [pair for pair in combinations(range(agents), 2) if set(pair) & set(anchors)]
    others = [agent for agent in range(agents) if agent not in anchors]

    def tables(entry: int, number: int) -> list[tuple[int, ...]]:
        seats = history.maker.seats[entry]
        if seats == 2:
            return pairs
        if seats == 1 or agents <= seats or not others:
            return lineups(agents, seats, number, asked.seed + number)
        return _anchored(anchors, others, seats, number, asked.seed + number)

    return tables


def _anchored(anchors: list[int], others: list[int], seats: int, number: int, seed: int) -> list[tuple[int, ...]]:
    """Tables of one anchor each, who take turns; what is free at the last one goes to more anchors, then to others."""
    challengers = list(others)
    Random(f"tables {seed}").shuffle(challengers)  # a str: not the stream of the deal
    turn = number % len(others)
    filling = others[turn:] + others[:turn]
    tables = []
    for place, start in enumerate(range(0, len(challengers), seats - 1)):
        first = (number + place) % len(anchors)
        table = [anchors[first], *challengers[start : start + seats - 1]]
        spare = [*anchors[first + 1 :], *anchors[:first], *[agent for agent in filling if agent not in table]]
        tables.append(tuple(table + spare[: seats - len(table)]))
    return tables


def _listed_tables(history: History) -> Tables:
    asked = history.tournament
    assert isinstance(asked.schedule, Listed)
    by_name = _numbers(history)
    tables = [tuple([by_name[name] for name in table]) for table in asked.schedule.tables]

    def fitting(entry: int, number: int) -> list[tuple[int, ...]]:
        seats = history.maker.seats[entry]
        return _alone(history) if seats == 1 else [table for table in tables if len(table) == seats]

    return fitting
