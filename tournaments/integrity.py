"""What a file must hold to be a store that can be believed and played on; else a StoreError names it and says why."""

from collections.abc import Container, Iterable
from typing import Any

import msgspec
import sqlalchemy as sa

from arena.tournaments import leases, tables
from arena.tournaments.config import GameEntry, Tournament
from arena.tournaments.database import Database, OldSchemaError, StoreError
from arena.tournaments.migrations import MIGRATIONS

__all__ = ["agreed", "check_known", "check_same", "check_schema", "check_whole", "damaged", "key_of", "played"]

_NUMBERS = msgspec.json.Decoder(tuple[int, ...])


def damaged(path: str, why: str) -> StoreError:
    """The error to raise."""
    return StoreError(f"{path} is damaged: {why}; it was left as it is")


def check_schema(connection: sa.Connection, path: str) -> None:
    """All tables and columns of this schema. Raises OldSchemaError where it can be brought up to date."""
    inspector = sa.inspect(connection)
    names = set(inspector.get_table_names())
    if tables.schema.name not in names:
        raise StoreError(f"{path} is a database, but not a store of tournaments; it was left as it is")
    _check_version(path, connection.execute(sa.select(tables.schema.c.version)).scalar())
    for name, table in tables.meta.tables.items():
        there = {column["name"] for column in inspector.get_columns(name)} if name in names else set()
        if missing := set(table.columns.keys()) - there:
            raise damaged(path, f"{name} has no {', '.join(sorted(missing))}")


def _check_version(path: str, version: Any) -> None:
    if version == tables.SCHEMA:
        return
    said = f"{path} has schema {version}, this Arena reads {tables.SCHEMA}"
    if version in MIGRATIONS:
        raise OldSchemaError(f"{said}; go on with it once (arena tournament run), and it is brought up to date")
    newer = isinstance(version, int) and version > tables.SCHEMA
    raise StoreError(f"{said}{'; a newer Arena wrote it' * newer}; it was left as it is")


def check_whole(connection: sa.Connection, database: Database) -> None:
    """Every page of a file; that all which games refer to is there. Takes time in a large one."""
    path = database.name
    if found := database.damage(connection):
        raise damaged(path, found)
    games, entries, config = tables.games.c, tables.entries.c, tables.config.c
    if not connection.execute(sa.select(games.id).limit(1)).first():
        return
    if not connection.execute(sa.select(config.key).where(config.key == "config")).first():
        raise damaged(path, "its tournament has no config")
    if connection.execute(sa.select(games.id).where(games.entry.not_in(sa.select(entries.id))).limit(1)).first():
        raise damaged(path, "a game was played that is not listed")
    _check_counted(connection, path)
    seated = connection.execute(sa.select(games.agents).distinct()).scalars()
    played = {agent for agents in seated for agent in _NUMBERS.decode(agents)}
    check_known(path, played, set(connection.execute(sa.select(tables.agents.c.id)).scalars()))


def _check_counted(connection: sa.Connection, path: str) -> None:
    """That the tables of what games came to have counted them."""
    games, entries, totals = tables.games.c, tables.entries.c, tables.totals.c
    played = sa.select(games.entry, sa.func.count()).group_by(games.entry)
    counted = sa.select(totals.entry, sa.func.sum(totals.seats)).where(totals.outcome != "void").group_by(totals.entry)
    seats = {
        number: len(_NUMBERS.decode(text)) for number, text in connection.execute(sa.select(entries.id, entries.seats))
    }
    there = {number: count * seats[number] for number, count in connection.execute(played)}
    if there != {number: int(count) for number, count in connection.execute(counted)}:
        raise damaged(path, "its totals are not those of its games")
    blocks, patterns = tables.blocks.c, tables.patterns.c
    whole = sa.select(sa.func.count()).where(blocks.counted == sa.true(), blocks.pattern != "[]")
    known = connection.execute(sa.select(sa.func.coalesce(sa.func.sum(patterns.blocks), 0))).scalar()
    if connection.execute(whole).scalar() != known:
        raise damaged(path, "its table of finished blocks is not that of its blocks")


def check_known(path: str, agents: Iterable[int], listed: Container[int]) -> None:
    """That all agents who played are listed."""
    for agent in sorted(agents):
        if agent not in listed:
            raise damaged(path, f"agent {agent} played in it and is not listed")


def check_same(connection: sa.Connection, path: str, new: Tournament) -> None:
    """That what was played in the store belongs to this tournament, too."""
    row = connection.execute(sa.select(tables.config.c.value).where(tables.config.c.key == "config")).scalar()
    if row is None or not played(connection):
        return
    old = msgspec.json.decode(row, type=Tournament)
    terms = [("seed", old.seed, new.seed), ("truncated", old.truncated, new.truncated)]
    terms += [(key, value, new.settings()[key]) for key, value in old.settings().items()]
    for key, before, now in terms:
        if before != now:
            raise _other(path, f"its {key} is {_json(before)}, not {_json(now)}")
    _check_players(connection, path, new)
    asked = {key_of(entry): new.blocks_of(entry) * new.repetitions for entry in new.games}
    for game in old.games:
        if asked.get(key_of(game), 0) < old.blocks_of(game) * old.repetitions:
            raise _other(path, f"it holds {old.blocks_of(game)} blocks of {game.label}")


def agreed(connection: sa.Connection, new: Tournament) -> bool:
    """Whether all agents and games that are listed belong to this tournament."""
    named, asked = {*new.identities()}, {key_of(entry) for entry in new.games}
    agents, entries = tables.agents.c, tables.entries.c
    rows = connection.execute(sa.select(entries.env, entries.options)).all()
    known = all(name in named for name in connection.execute(sa.select(agents.identity)).scalars())
    return known and all(tuple(row) in asked for row in rows)


def _check_players(connection: sa.Connection, path: str, new: Tournament) -> None:
    """All that played must be there still, under their old names; while others play, all that they listed."""
    named = dict(zip(new.identities(), new.agents, strict=True))
    listed = sa.select(tables.agents.c.identity, tables.agents.c.name)
    if not leases.living(connection):  # one that was refused before its first game binds nobody
        listed = listed.where(tables.agents.c.id.in_(sa.select(tables.totals.c.agent)))
    for name, called in connection.execute(listed):
        if name not in named:
            raise _other(path, f"agent {called!r} played in it")
        if named[name].name != called:
            raise _other(path, f"agent {named[name].name!r} is called {called!r} in it")


def played(connection: sa.Connection) -> bool:
    """Whether a game is finished."""
    return bool(connection.execute(sa.select(sa.func.count()).select_from(tables.games)).scalar())


def key_of(entry: GameEntry) -> tuple[str, str]:
    """The columns that tell a game from every other."""
    return entry.id, _json(entry.terms)


def _other(path: str, why: str) -> StoreError:
    return StoreError(f"{path} is another tournament's: {why}; it was left as it is. Choose another --out")


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
