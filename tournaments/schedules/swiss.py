"""A Swiss tournament: rounds in which agents with like points meet who have not met before.

As in the Dutch system, within a group of equal points the upper half meets the lower half, and the odd one floats down
to the next group. Pairs are made from the top, each the first choice that leaves a pairing for all others, so nobody
meets again as long as that can be done at all (a largest matching tells). With an odd number the lowest agent who can
be left out, of those with the fewest byes, wins a bye: the points that a round gives at most.

For games of more seats, tables are made from the top of the standings. Where agents are no multiple of the seats, some
sit twice to fill the last table, in turns, from the bottom; of two tables of one block an agent keeps the mean.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from math import ceil, log2
from typing import NamedTuple

from arena.tournaments.history import History
from arena.tournaments.schedule import Block, lineups, rotations
from arena.tournaments.schedules.fixed import tasks, tasks_most
from arena.tournaments.schedules.matching import perfect
from arena.tournaments.terms import Swiss

__all__ = ["Place", "blocks", "most", "pair", "standings"]

Pair = tuple[int, int]


class Place(NamedTuple):
    """One line of the standings."""

    agent: int
    points: float
    """A block won is 1, a level one a half; a bye is won."""
    opponents: float
    """The sum of the opponents' points (Buchholz), which decides between equal points."""
    byes: int


class _Round(NamedTuple):
    blocks: list[Block]
    bye: int | None


def blocks(history: History) -> Iterator[Block | None]:
    """Tasks first, then round after round; None while a round is not over."""
    yield from tasks(history)
    played: list[_Round] = []
    for _ in range(_rounds(history) if _pairs(history) or _many(history) else 0):
        now = _next(history, played)
        yield from now.blocks
        waiting = now.blocks
        while waiting := [block for block in waiting if not history.over(block)]:
            seen = len(history.log)
            yield None
            while len(history.log) == seen:
                yield None
        played.append(now)


def standings(history: History) -> list[Place]:
    """The places after the rounds that are over, best first; only agents' numbers decide between those equal in all."""
    return _standings(history, _over(history))


def most(history: History) -> list[int]:
    """Games of every entry, tasks too."""
    asked, seats = history.tournament, history.maker.seats
    agents, games = len(asked.agents), tasks_most(history)
    for entry, game in enumerate(asked.games):
        if seats[entry] > 1:
            tables = agents // 2 if seats[entry] == 2 else max(ceil(agents / seats[entry]), 1)
            table = tuple([seat % agents for seat in range(seats[entry])])
            games[entry] = tables * len(rotations(table)) * asked.blocks_of(game) * asked.repetitions * _rounds(history)
    return games


def _rounds(history: History) -> int:
    schedule, agents = history.tournament.schedule, len(history.tournament.agents)
    assert isinstance(schedule, Swiss)
    return schedule.rounds or max(ceil(log2(max(agents, 2))), 1)


def _pairs(history: History) -> list[int]:
    return [entry for entry, seats in enumerate(history.maker.seats) if seats == 2]


def _many(history: History) -> list[int]:
    return [entry for entry, seats in enumerate(history.maker.seats) if seats > 2]


def _over(history: History) -> list[_Round]:
    played: list[_Round] = []
    for _ in range(_rounds(history)):
        now = _next(history, played)
        if not now.blocks or not all(map(history.over, now.blocks)):
            break
        played.append(now)
    return played


def _next(history: History, played: Sequence[_Round]) -> _Round:
    """Who meets in the round after these."""
    asked, places = history.tournament, _standings(history, played)
    order, number = [place.agent for place in places], len(played)
    bye, met = None, _met(played)
    found: list[Block] = []
    if two := _pairs(history):
        if len(order) % 2:
            bye = _bye(places, met)
        points = {place.agent: place.points for place in places}
        tables = pair([agent for agent in order if agent != bye], points, met)
        found += _blocks(history, two, tables, number)
    for entry in _many(history):
        found += _blocks(history, [entry], _tables(order, history.maker.seats[entry], number, asked.seed), number)
    return _Round(found, bye)


def _blocks(history: History, entries: list[int], tables: Sequence[tuple[int, ...]], number: int) -> list[Block]:
    """Each table plays all blocks of the round, on the round's own seeds."""
    asked = history.tournament
    return [
        Block(entry, number * asked.blocks_of(asked.games[entry]) + again, table)
        for entry in entries
        for again in range(asked.blocks_of(asked.games[entry]))
        for table in tables
    ]


def _met(played: Sequence[_Round]) -> Counter[Pair]:
    """How often two have met at tables of two, lower number first."""
    met: Counter[Pair] = Counter()
    for each in played:
        met.update({(min(b.table), max(b.table)) for b in each.blocks if len(b.table) == 2})
    return met


def pair(order: Sequence[int], points: dict[int, float], met: Counter[Pair]) -> list[Pair]:
    """Pair an even number of agents, given best first; those met least often are allowed."""
    if not order:
        return []
    limit = 0
    while not _possible(order, met, limit):
        limit += 1
    pairs, left = [], list(order)
    while left:
        one = left.pop(0)
        for other in _choices(one, left, points):
            rest = [agent for agent in left if agent != other]
            if met[min(one, other), max(one, other)] <= limit and _possible(rest, met, limit):
                pairs.append((one, other))
                left = rest
                break
    return pairs


def _choices(one: int, others: Sequence[int], points: dict[int, float]) -> list[int]:
    """Whom the first would like to meet: in the group the top of the lower half and on, then up; then lower groups."""
    group = [agent for agent in others if points[agent] == points[one]]
    half = len(group) // 2 if len(group) % 2 else max(len(group) // 2 - 1, 0)
    return [*group[half:], *reversed(group[:half]), *[agent for agent in others if points[agent] != points[one]]]


def _possible(agents: Sequence[int], met: Counter[Pair], limit: int) -> bool:
    """Whether all can be paired; where everybody may meet half of the others, they can (Dirac's theorem)."""
    if len(agents) % 2:
        return False
    barred: Counter[int] = Counter()
    for two, times in met.items():
        if times > limit:
            barred.update(two)
    if len(agents) - 1 - max(barred.values(), default=0) >= len(agents) / 2:
        return True
    return perfect(
        [
            [k for k, other in enumerate(agents) if k != i and met[min(one, other), max(one, other)] <= limit]
            for i, one in enumerate(agents)
        ]
    )


def _bye(places: Sequence[Place], met: Counter[Pair]) -> int:
    """The lowest of those with the fewest byes whose absence leaves a pairing without a second meeting, if any does."""
    ranks = sorted(range(len(places)), key=lambda rank: (places[rank].byes, -rank))
    fewest = [places[rank].agent for rank in ranks]
    for agent in fewest:
        if _possible([other for other in fewest if other != agent], met, 0):
            return agent
    return fewest[0]


def _tables(order: Sequence[int], seats: int, number: int, seed: int) -> list[tuple[int, ...]]:
    """Tables from the top; those at the bottom sit twice, in turns, to fill the last one."""
    agents = len(order)
    if agents <= seats:
        return lineups(agents, seats, number, seed + number)
    full = agents // seats * seats
    tables = [tuple(order[at : at + seats]) for at in range(0, full, seats)]
    if left := order[full:]:
        turn = number * (seats - len(left)) % full
        filling = order[:full][::-1]
        tables.append((*left, *[*filling[turn:], *filling[:turn]][: seats - len(left)]))
    return tables


def _standings(history: History, played: Sequence[_Round]) -> list[Place]:
    agents = range(len(history.tournament.agents))
    points, byes = dict.fromkeys(agents, 0.0), dict.fromkeys(agents, 0)
    opponents: defaultdict[int, list[int]] = defaultdict(list)
    for each in played:
        for agent, earned in _earned(history, each).items():
            points[agent] = round(points[agent] + earned, 6)
        if each.bye is not None:
            byes[each.bye] += 1
        for table in dict.fromkeys(block.table for block in each.blocks):
            for agent in table:
                opponents[agent] += [other for other in table if other != agent]
    places = [
        Place(agent, points[agent], round(sum(points[other] for other in opponents[agent]), 6), byes[agent])
        for agent in agents
    ]
    return sorted(places, key=lambda place: (-place.points, -place.opponents, place.agent))


def _earned(history: History, each: _Round) -> dict[int, float]:
    """What a round gave: by entry and number the mean of an agent's tables; a bye all that pairs could win."""
    earned: defaultdict[tuple[int, int, int], list[float]] = defaultdict(list)
    for block in each.blocks:
        for agent, value in history.points(block).items():
            earned[block.entry, block.number, agent].append(value)
    total: defaultdict[int, float] = defaultdict(float)
    for (_, _, agent), values in earned.items():
        total[agent] += sum(values) / len(values)
    if each.bye is not None:
        total[each.bye] += len({(block.entry, block.number) for block in each.blocks if len(block.table) == 2})
    return total
