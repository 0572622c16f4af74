"""Leases: which process plays which unfinished game, until when; so that several share one tournament.

A lease is a row with an owner and a time by the database's clock. Who finds it expired may take it over; a finished
game has none, and is never leased.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa

from arena.tournaments import tables
from arena.tournaments.database import upsert

__all__ = ["claim", "living", "now", "owners", "release", "renew"]

_LEASES = tables.leases.c
_MOST = 500  # ids in one question


def now(connection: sa.Connection) -> Any:
    """The database's clock as an SQL expression: seconds since the epoch."""
    if connection.dialect.name == "postgresql":
        return sa.cast(sa.func.extract("epoch", sa.func.clock_timestamp()), sa.Float)
    return (sa.func.julianday("now") - 2440587.5) * 86400.0


def claim(connection: sa.Connection, games: Sequence[str], owner: str, seconds: float) -> set[str]:
    """Lease those of the games that are neither finished nor leased by another; the caller's transaction writes."""
    mine: set[str] = set()
    for at in range(0, len(games), _MOST):
        mine |= _claim(connection, list(games[at : at + _MOST]), owner, seconds)
    return mine


def _claim(connection: sa.Connection, games: list[str], owner: str, seconds: float) -> set[str]:
    over = _finished(connection, games)
    taken = float(connection.execute(sa.select(now(connection))).scalar_one())
    rows = [{"game": game, "owner": owner, "taken": taken, "expires": taken + seconds} for game in games]
    if not (rows := [row for row in rows if row["game"] not in over]):
        return set()
    mine = set(connection.execute(_taking(connection.dialect.name), rows).scalars())
    if lost := _finished(connection, list(mine)):  # another process was storing it while we asked
        release(connection, owner, sorted(lost))
    return mine - lost


@cache
def _taking(dialect: str) -> Any:
    """Insert leases, or take over those that are expired or our own."""
    fresh = upsert(dialect, tables.leases)
    return fresh.on_conflict_do_update(
        index_elements=[_LEASES.game],
        set_={name: fresh.excluded[name] for name in ("owner", "taken", "expires")},
        where=sa.or_(_LEASES.expires < fresh.excluded.taken, _LEASES.owner == fresh.excluded.owner),
    ).returning(_LEASES.game)


def _finished(connection: sa.Connection, games: list[str]) -> set[str]:
    query = sa.select(tables.games.c.id).where(tables.games.c.id.in_(games))
    return set(connection.execute(query).scalars())


def renew(connection: sa.Connection, owner: str, seconds: float) -> int:
    """Move the end of all leases of an owner; how many it has."""
    later = sa.update(tables.leases).where(_LEASES.owner == owner).values(expires=now(connection) + seconds)
    return connection.execute(later).rowcount


def release(connection: sa.Connection, owner: str, games: Sequence[str] | None = None) -> None:
    """Give up leases: these, or all of an owner."""
    mine = sa.delete(tables.leases).where(_LEASES.owner == owner)
    if games is None:
        connection.execute(mine)
        return
    for at in range(0, len(games), _MOST):
        connection.execute(mine.where(_LEASES.game.in_(list(games[at : at + _MOST]))))


def living(connection: sa.Connection) -> int:
    """How many leases have not expired."""
    query = sa.select(sa.func.count()).select_from(tables.leases).where(_LEASES.expires >= now(connection))
    return int(connection.execute(query).scalar() or 0)


def owners(connection: sa.Connection) -> list[str]:
    """Who has leases, expired ones too."""
    return list(connection.execute(sa.select(_LEASES.owner).distinct().order_by(_LEASES.owner)).scalars())
