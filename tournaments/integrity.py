"""What a file must hold to be a store that can be believed; where it does not, a StoreError names the file and why."""

from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa

from arena.tournaments import tables
from arena.tournaments.sqlite import OldSchemaError, StoreError

__all__ = ["check_known", "check_schema", "check_whole", "damaged"]

_NUMBERS = msgspec.json.Decoder(tuple[int, ...])


def damaged(path: Path, why: str) -> StoreError:
    """The error to raise."""
    return StoreError(f"{path} is damaged: {why}; it was left as it is")


def check_schema(connection: sa.Connection, path: Path) -> None:
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


def _check_version(path: Path, version: Any) -> None:
    if version == tables.SCHEMA:
        return
    said = f"{path} has schema {version}, this Arena reads {tables.SCHEMA}"
    if version in tables.MIGRATIONS:
        raise OldSchemaError(f"{said}; go on with it once (arena tournament run), and it is brought up to date")
    newer = isinstance(version, int) and version > tables.SCHEMA
    raise StoreError(f"{said}{'; a newer Arena wrote it' * newer}; it was left as it is")


def check_whole(connection: sa.Connection, path: Path) -> None:
    """Every page of the file; that all which games refer to is there. Takes time in a large one."""
    if (found := connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()) != "ok":
        raise damaged(path, str(found))
    games, entries, config = tables.games.c, tables.entries.c, tables.config.c
    if not connection.execute(sa.select(games.id).limit(1)).first():
        return
    if not connection.execute(sa.select(config.key).where(config.key == "config")).first():
        raise damaged(path, "its tournament has no config")
    if connection.execute(sa.select(games.id).where(games.entry.not_in(sa.select(entries.id))).limit(1)).first():
        raise damaged(path, "a game was played that is not listed")
    seated = connection.execute(sa.select(games.agents).distinct()).scalars()
    played = {agent for agents in seated for agent in _NUMBERS.decode(agents)}
    check_known(path, played, set(connection.execute(sa.select(tables.agents.c.id)).scalars()))


def check_known(path: Path, agents: Iterable[int], listed: Container[int]) -> None:
    """That all agents who played are listed."""
    for agent in sorted(agents):
        if agent not in listed:
            raise damaged(path, f"agent {agent} played in it and is not listed")
