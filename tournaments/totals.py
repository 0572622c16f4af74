"""Totals by entry, agent and outcome, kept while games are stored: games, forfeits, conduct, latencies.

Every process writes rows of its own number (`worker`), so that none waits for another; they add up.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from arena.episode import Episode
from arena.tournaments import tables
from arena.tournaments.conduct import Conduct
from arena.tournaments.database import adding
from arena.tournaments.readings import AgentCount, EntryCount, Latency, Spent, Totals

__all__ = ["Attempt", "count", "spent", "totals"]

_FIELDS = Conduct.__struct_fields__
_SUMS = ("seats", "games", "forfeits", *_FIELDS)


class Attempt(NamedTuple):
    """One attempt at a game, finished or void. The entry and agents are the store's numbers."""

    entry: int
    agents: Sequence[int]
    seats: Sequence[int]
    """Where they sat."""
    episode: Episode
    conducts: Sequence[Conduct]
    """How they answered."""


def count(connection: sa.Connection, attempts: Iterable[Attempt], worker: int) -> None:
    """Add attempts to the rows of this worker."""
    sums: defaultdict[tuple[int, int, str], list[float]] = defaultdict(lambda: [0] * len(_SUMS))
    bins: Counter[tuple[int, int, str, int]] = Counter()
    for entry, agents, seats, episode, conducts in attempts:
        for agent in set(agents):
            key, at = (entry, agent, episode.outcome), [place for place, who in enumerate(agents) if who == agent]
            mine, conduct = [seats[place] for place in at], sum([conducts[place] for place in at], Conduct())
            numbers = (len(mine), 1, sum(seat in episode.forfeits for seat in mine), *msgspec.structs.astuple(conduct))
            sums[key] = [one + more for one, more in zip(sums[key], numbers, strict=True)]
            for seconds in _seconds(episode, mine):
                bins[(*key, Latency.bin(seconds))] += 1
    dialect = connection.dialect.name  # in order: two processes that add to the same rows cannot wait for each other
    rows = [{**_key(key, worker), **dict(zip(_SUMS, numbers, strict=True))} for key, numbers in sorted(sums.items())]
    answers = [{**_key(key[:3], worker), "bin": key[3], "answers": n} for key, n in sorted(bins.items())]
    connection.execute(adding(dialect, tables.totals, _SUMS), rows)
    if answers:
        connection.execute(adding(dialect, tables.latencies, ("answers",)), answers)


def _key(key: tuple[int, int, str], worker: int) -> dict[str, Any]:
    entry, agent, outcome = key
    return {"entry": entry, "agent": agent, "outcome": outcome, "worker": worker}


def _seconds(episode: Episode, seats: list[int]) -> Iterable[float]:
    """Of every answer that was timed."""
    for turn in episode.turns:
        if turn.seat in seats:
            for attempt in turn.attempts:
                if attempt.latency > 0:
                    yield attempt.latency


def totals(connection: sa.Connection, seats: dict[int, int], positions: dict[int, int], dropping: bool) -> Totals:
    """What is counted, as `Store.totals`.

    `seats` by entry, `positions` of agents by number; `dropping`: truncated games do not count.
    """
    agents: defaultdict[tuple[int, int], AgentCount] = defaultdict(AgentCount)
    games: Counter[tuple[int, str]] = Counter()
    timed = _timed(connection)
    for row in connection.execute(_summed(tables.totals, _SUMS)):
        games[row.entry, row.outcome] += int(row.seats)
        at, out = (row.entry, positions[row.agent]), row.outcome
        was = agents[at]
        if out == "void":
            wasted = Conduct.of([row._mapping[name] for name in _FIELDS])
            agents[at] = was._replace(voids=int(row.games), wasted=wasted)
        elif not (dropping and out == "truncated"):
            agents[at] = was._replace(
                games=was.games + int(row.seats),
                forfeits=was.forfeits + int(row.forfeits),
                truncated=was.truncated + int(row.seats) * (out == "truncated"),
                conduct=was.conduct + Conduct.of([row._mapping[name] for name in _FIELDS]),
                latency=was.latency.plus(Latency(timed[row.entry, row.agent, out])),
            )
    return Totals(dict(agents), {entry: _entry(games, entry, taken, dropping) for entry, taken in seats.items()})


def _summed(table: sa.Table, names: Sequence[str], *more: sa.Column[Any]) -> Any:
    by = [table.c.entry, table.c.agent, table.c.outcome, *more]
    return sa.select(*by, *[sa.func.sum(table.c[name]).label(name) for name in names]).group_by(*by).order_by(*by)


def _timed(connection: sa.Connection) -> defaultdict[tuple[int, int, str], dict[int, int]]:
    bins: defaultdict[tuple[int, int, str], dict[int, int]] = defaultdict(dict)
    for row in connection.execute(_summed(tables.latencies, ("answers",), tables.latencies.c.bin)):
        bins[row.entry, row.agent, row.outcome][row.bin] = int(row.answers)
    return bins


def _entry(games: Counter[tuple[int, str]], entry: int, seats: int, dropping: bool) -> EntryCount:
    """From the seats that were taken in all its games, by outcome."""
    whole, cut, void = [games[entry, outcome] // seats for outcome in ("terminated", "truncated", "void")]
    return EntryCount(whole, 0, cut, void) if dropping else EntryCount(whole + cut, cut, 0, void)


def spent(connection: sa.Connection, seats: dict[int, int]) -> Spent:
    """What all attempts have taken."""
    games, tokens, dollars = 0, 0, 0.0
    for row in connection.execute(_summed(tables.totals, _SUMS)):
        tokens += int(row.prompt_tokens + row.completion_tokens)
        dollars += row.cost
    by = sa.select(tables.totals.c.entry, sa.func.sum(tables.totals.c.seats)).where(tables.totals.c.outcome != "void")
    for entry, taken in connection.execute(by.group_by(tables.totals.c.entry)):
        games += int(taken) // seats[entry]
    return Spent(games, tokens, dollars)
