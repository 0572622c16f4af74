"""What a store tells of its games one by one."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np
import sqlalchemy as sa

from arena.tournaments import tables
from arena.tournaments.columns import Bools, Columns, Floats, Ints
from arena.tournaments.database import Database
from arena.tournaments.history import Result
from arena.tournaments.integrity import damaged
from arena.tournaments.readings import RankedGames

if TYPE_CHECKING:
    from arena.tournaments.reader import Reader

__all__ = ["counting", "ranked", "results"]

T = TypeVar("T")
_LISTS = msgspec.json.Decoder(list[float])
_ROLES = msgspec.json.Decoder(tuple[str, ...])
_INTS = msgspec.json.Decoder(tuple[int, ...])
_FLOATS = msgspec.json.Decoder(tuple[float, ...])


def counting(store: "Reader", entry: int) -> Columns:
    """The games of an entry that count, agents by position."""
    games = store.columns(entry, store.seats()[entry])
    numbers = np.array(list(store.agents()), dtype=np.int64)
    games = games._replace(agents=np.searchsorted(numbers, games.agents))
    return games if store.tournament().truncated == "score" else games.only(~games.truncated)


def ranked(store: "Reader", entry: int) -> RankedGames:
    """Of the games that count. Each text that many games share is decoded once."""
    seats, numbers = store.seats()[entry], np.array(list(store.agents()), dtype=np.int64)
    there = tables.games.c
    names = ("id", "agents", "returns", "forfeits", "block", "seed", "teams", "roles", "ended")
    query = sa.select(*[there[name] for name in names]).where(there.entry == entry)
    if store.tournament().truncated == "drop":
        query = query.where(there.outcome != "truncated")
    rows = store._guarded(lambda: sorted(tuple(row) for row in store._connection.execute(query)))
    _, agents, returns, forfeits, block, seed, teams, roles, ended = zip(*rows, strict=True) if rows else [()] * 9
    try:
        with store._errors():
            sides = _table(_LISTS, teams, None)
            return RankedGames(
                _seated(store, _table(_LISTS, agents, seats).astype(np.int64), numbers),
                _table(_LISTS, returns, seats),
                _marked(forfeits, seats),
                np.unique(np.array(block, dtype=np.str_), return_inverse=True)[1].astype(np.int64),
                np.array(seed, dtype=np.int64),
                sides.astype(np.int64) if sides.size else None,
                list(map(_once(_ROLES), roles)),
                np.array(ended, dtype=np.float64),
            )
    except ValueError as error:
        raise damaged(store.place, str(error)) from error


def _once(decoder: "msgspec.json.Decoder[T]") -> Callable[[str], T]:
    """Decodes each text one time."""
    known: dict[str, T] = {}

    def decode(text: str) -> T:
        if text not in known:
            if not isinstance(text, str):
                raise ValueError("bytes where a list was written")
            known[text] = decoder.decode(text)
        return known[text]

    return decode


def _table(decoder: "msgspec.json.Decoder[list[float]]", texts: Sequence[str], seats: int | None) -> Floats:
    """Lists of equal lengths as rows; `seats`: how long they must be."""
    rows = list(map(_once(decoder), texts))
    for odd in {len(row) for row in rows} - ({seats} if seats is not None else {len(rows[0])} if rows else set()):
        raise ValueError(f"{odd} numbers for a game of {seats} seats")
    return np.array(rows, dtype=np.float64).reshape(len(rows), -1 if rows else seats or 0)


def _marked(forfeits: Sequence[str], seats: int) -> Bools:
    """Positions as marks."""
    marks = np.zeros((len(forfeits), seats), dtype=np.bool_)
    for game, positions in enumerate(map(_once(_INTS), forfeits)):
        for position in positions:
            if position not in range(seats):
                raise ValueError(f"the forfeit of position {position} in a game of {seats} seats")
            marks[game, position] = True
    return marks


def _seated(store: "Reader", agents: Ints, numbers: Ints) -> Ints:
    """By position in `numbers`."""
    store._check_known({int(agent) for agent in np.unique(agents)})
    return np.searchsorted(numbers, agents)


def results(
    connection: sa.Connection, database: Database, after: int, numbers: tuple[dict[int, int], dict[int, int]]
) -> tuple[list[Result], int]:
    """Finished games since a marker, as `Store.results`; `numbers`: of entries and agents."""
    entries, agents = numbers
    marker = database.marker(connection)  # before the games are read: what is stored meanwhile comes again
    names = ("id", "block", "entry", "seed", "agents", "returns", "forfeits", "outcome")
    query = sa.select(*[tables.games.c[name] for name in names]).where(tables.games.c.seq >= after)
    seated: dict[str, tuple[int, ...]] = {}
    found = []
    for key, block, entry, seed, who, returns, forfeits, outcome in connection.execute(
        query.order_by(tables.games.c.seq)
    ):
        if who not in seated:
            seated[who] = tuple([agents[agent] for agent in _INTS.decode(who)])
        values = _FLOATS.decode(returns), _INTS.decode(forfeits)
        found.append(Result(key, block, entries[entry], seed, seated[who], *values, outcome == "truncated"))
    return found, marker
