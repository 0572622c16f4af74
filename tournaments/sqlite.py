"""Store files: SQLite databases, checked before they are opened, made complete or not at all, brought up to date."""

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from typing import Any

import msgspec
import sqlalchemy as sa
import zstandard

from arena.tournaments import tables
from arena.tournaments.database import ChangedError, Database, StoreError, first_line
from arena.tournaments.migrations import migrate
from arena.version import __version__

__all__ = ["SMALL", "Sqlite"]

SMALL = 16 << 20
"""Bytes up to which a file is checked page by page at every opening."""
_WAIT = 60.0  # seconds for others who write
_HEADER = b"SQLite format 3\0"


class Sqlite(Database):
    """One file."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)

    @property
    def small(self) -> bool:
        """Whether reading all of it takes no time."""
        return self.path.stat().st_size <= SMALL

    def exists(self) -> bool:
        """Whether there is a file."""
        return self.path.exists()

    def check(self) -> None:
        """Raise StoreError for a path that is no SQLite file; nothing else is read."""
        path = self.path
        try:
            with path.open("rb") as file:
                header = file.read(len(_HEADER))
        except FileNotFoundError as error:
            raise StoreError(f"{path} does not exist; name a run folder that `arena tournament run` left") from error
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}") from error
        if header != _HEADER:
            raise StoreError(f"{path} is not an SQLite file; it was left as it is")

    def engine(self, *, read_only: bool) -> sa.Engine:
        """A writing transaction takes the write lock as it begins: two that have read cannot both go on to write.

        A reader of a store without a write-ahead log touches nothing, not even beside the file. As it holds no lock,
        it raises ChangedError after what it reads while the file is written to: that may be of several moments.
        """
        quiet = read_only and not self.path.with_name(f"{self.path.name}-wal").exists()
        stamp = _stamp(self.path) if quiet else None
        mode = "mode=ro&immutable=1" if quiet else "mode=ro" if read_only else "mode=rw"
        engine = sa.create_engine("sqlite://", creator=_connect(self.path, mode), poolclass=sa.NullPool)

        @sa.event.listens_for(engine, "begin")
        def begin(connection: sa.Connection) -> None:
            writing = connection.get_execution_options().get("writing", False)
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

        def ended(_: sa.Connection) -> None:
            if _stamp(self.path) != stamp:
                raise ChangedError(f"{self.path} was written to while it was read; read it again")

        if quiet:
            sa.event.listen(engine, "commit", ended)
            sa.event.listen(engine, "rollback", ended)
        return engine

    def create(self) -> None:
        """Made beside and linked into place."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_name(f".{self.path.name}.{os.getpid()}.{token_hex(4)}")
        fresh.unlink(missing_ok=True)
        engine = sa.create_engine("sqlite://", creator=lambda: _logged(sqlite3.connect(fresh)), poolclass=sa.NullPool)
        try:
            with engine.begin() as connection:
                tables.fill(connection, __version__)
            engine.dispose()
            _place(fresh, self.path)
        except sa.exc.DatabaseError as error:
            raise StoreError(f"{self.path} cannot be written: {first_line(error)}") from error
        finally:
            fresh.unlink(missing_ok=True)

    def migrate(self) -> None:
        """In one transaction."""
        engine = self.engine(read_only=False)
        try:
            with engine.connect() as connection, connection.execution_options(writing=True).begin():
                migrate(connection)
        except (sa.exc.DatabaseError, zstandard.ZstdError, msgspec.DecodeError, ValueError) as error:
            why = f"{self.path} cannot be brought up to date: {first_line(error)}; it was left as it is"
            raise StoreError(why) from error
        finally:
            engine.dispose()

    def damage(self, connection: sa.Connection) -> str:
        """What a look at every page finds."""
        found = str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar())
        return "" if found == "ok" else found

    def sequence(self) -> Any:
        """One more than the last: writers take turns."""
        return sa.select(sa.func.coalesce(sa.func.max(tables.games.c.seq), 0) + 1).scalar_subquery()

    def marker(self, connection: sa.Connection) -> int:
        """One more than the last."""
        return int(connection.execute(sa.select(self.sequence())).scalar() or 1)


def _connect(path: Path, mode: str) -> Callable[[], sqlite3.Connection]:
    """A maker of connections."""

    def made() -> sqlite3.Connection:
        uri = f"{path.absolute().as_uri()}?{mode}"
        connection = sqlite3.connect(uri, uri=True, timeout=_WAIT, check_same_thread=False, isolation_level=None)
        if mode == "mode=rw":
            _logged(connection).execute("PRAGMA synchronous=NORMAL")
        return connection

    return made


def _stamp(path: Path) -> tuple[int, ...]:
    """Another one after the file was written to; () without a file."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return (status.st_ino, status.st_size, status.st_mtime_ns)


def _logged(connection: sqlite3.Connection) -> sqlite3.Connection:
    """With a write-ahead log, which the file keeps from then on.

    SQLite does not wait for others here, whatever the time-out: each holds what another who asks the same waits for.
    """
    end = time.monotonic() + _WAIT
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                connection.close()
                raise
            time.sleep(0.01)
        else:
            return connection


def _place(fresh: Path, path: Path) -> None:
    """Under its name, unless another run was quicker."""
    try:
        os.link(fresh, path)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        if not path.exists():
            os.replace(fresh, path)  # noqa: PTH105 - as os.link above
