"""What a store tells of its games one by one."""

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import sqlalchemy as sa

from arena.tournaments import tables
from arena.tournaments.columns import Columns
from arena.tournaments.database import Database
from arena.tournaments.history import Result
from arena.tournaments.readings import RankedGames

if TYPE_CHECKING:
    from arena.tournaments.reader import Reader

__all__ = ["counting", "ranked", "results"]

_TEAMS = msgspec.json.Decoder(list[list[int]])
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
    """Of the games that count."""
    games = counting(store, entry)
    names = [tables.games.c[name] for name in ("seed", "teams", "roles", "outcome", "ended")]
    query = sa.select(*names).where(tables.games.c.entry == entry).order_by(tables.games.c.id)
    rows = store._guarded(lambda: store._connection.execute(query).all())
    if store.tournament().truncated == "drop":
        rows = [row for row in rows if row.outcome != "truncated"]
    teams = _TEAMS.decode(f"[{','.join(row.teams for row in rows)}]")
    return RankedGames(
        games.agents,
        games.returns,
        games.forfeits,
        games.block,
        np.array([row.seed for row in rows], dtype=np.int64),
        np.array(teams, dtype=np.int64) if any(teams) else None,
        [_ROLES.decode(row.roles) for row in rows],
        np.array([row.ended for row in rows], dtype=np.float64),
    )


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
