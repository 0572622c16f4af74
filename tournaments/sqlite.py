"""Store files: SQLite databases, checked before they are opened, made complete or not at all, brought up to date."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec
import sqlalchemy as sa
import zstandard

from arena.tournaments import tables
from arena.version import __version__

__all__ = ["OldSchemaError", "StoreError", "check_header", "connect", "create", "migrate"]

_HEADER = b"SQLite format 3\0"


class StoreError(RuntimeError):
    """The file is no store, is another tournament's, or cannot be read; it was left as it is."""


class OldSchemaError(StoreError):
    """The file is a store of an older schema, which `Store.resume` brings up to date."""


def check_header(path: Path) -> None:
    """Raise StoreError for a path that is no SQLite file; nothing else is read."""
    try:
        with path.open("rb") as file:
            header = file.read(len(_HEADER))
    except FileNotFoundError as error:
        raise StoreError(f"{path} does not exist; name a run folder that `arena tournament run` left") from error
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    if header != _HEADER:
        raise StoreError(f"{path} is not an SQLite file; it was left as it is")


def connect(path: Path, *, read_only: bool) -> Callable[[], sqlite3.Connection]:
    """A maker of connections; without a write-ahead log a reader touches nothing, not even beside the file."""

    def made() -> sqlite3.Connection:
        quiet = read_only and not path.with_name(f"{path.name}-wal").exists()
        mode = "mode=ro&immutable=1" if quiet else "mode=ro" if read_only else "mode=rw"
        uri = f"{path.absolute().as_uri()}?{mode}"
        connection = sqlite3.connect(uri, uri=True, timeout=60, check_same_thread=False)
        if not read_only:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
        return connection

    return made


def migrate(path: Path) -> None:
    """Bring a store to the schema of this Arena, in one transaction. Raises StoreError where it is damaged."""
    engine = sa.create_engine("sqlite://", creator=connect(path, read_only=False), poolclass=sa.NullPool)
    try:
        _migrate(engine)
    except (sa.exc.DatabaseError, sqlite3.DatabaseError, zstandard.ZstdError, msgspec.DecodeError, ValueError) as error:
        why = str(getattr(error, "orig", None) or error).split("\n", 1)[0]
        raise StoreError(f"{path} cannot be brought up to date: {why}; it was left as it is") from error
    finally:
        engine.dispose()


def _migrate(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # sqlite3 would not put a change of tables into a transaction
        version = connection.execute(sa.select(tables.schema.c.version)).scalar_one()
        while version < tables.SCHEMA:
            tables.MIGRATIONS[version](connection)
            version += 1
        connection.execute(sa.update(tables.schema).values(version=version))
        connection.commit()


def create(path: Path) -> None:
    """An empty store, complete or not there at all: made beside and linked into place."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    engine = sa.create_engine("sqlite://", creator=lambda: sqlite3.connect(fresh), poolclass=sa.NullPool)
    try:
        with engine.begin() as connection:
            tables.meta.create_all(connection)
            connection.execute(sa.insert(tables.schema).values(version=tables.SCHEMA))
            connection.execute(sa.insert(tables.config).values(key="arena", value=__version__))
        engine.dispose()
        _place(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)


def _place(fresh: Path, path: Path) -> None:
    """Under its name, unless another run was quicker."""
    try:
        os.link(fresh, path)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        if not path.exists():
            os.replace(fresh, path)  # noqa: PTH105 - as os.link above
