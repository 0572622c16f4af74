"""Stores in PostgreSQL: a URL, and in its database a schema for every tournament (`?schema=NAME`, else "arena").

Passwords belong into PGPASSWORD or ~/.pgpass, which libpq reads: one in the URL is used, and neither kept nor shown.
"""

import re
from collections.abc import Callable
from typing import Any

import msgspec
import sqlalchemy as sa
import zstandard

from arena.tournaments import tables
from arena.tournaments.database import Database, StoreError, first_line
from arena.tournaments.migrations import migrate
from arena.version import __version__

__all__ = ["Postgres", "without_password"]

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_DRIVERS = ("postgresql", "postgres", "postgresql+psycopg")
_SECRETS = ("password", "sslpassword")
_LOCK = 0x4152454E41  # "ARENA": one process at a time makes, migrates or registers in a database
_PASSING = ("08", "57P", "40001", "40P01")  # SQLSTATE: lost connections, shutdowns, conflicts of transactions


def without_password(url: str) -> str:
    """The URL as it may be kept and shown.

    >>> without_password("postgresql://ann:secret@db.example/games?schema=cup")
    'postgresql://ann@db.example/games?schema=cup'

    Raises StoreError for what is no URL of PostgreSQL.
    """
    parsed = _parsed(url)
    bare = parsed.difference_update_query(_SECRETS)
    shown = sa.URL.create("postgresql", bare.username, None, bare.host, bare.port, bare.database, query=bare.query)
    return shown.render_as_string(hide_password=False)


def _parsed(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        parsed = None
    if parsed is None or parsed.drivername not in _DRIVERS:  # the URL may hold a password: it is not repeated
        raise StoreError("a store's URL reads postgresql://user@host:port/database?schema=name")
    name = parsed.query.get("schema", "arena")
    if not isinstance(name, str) or not _SCHEMA.fullmatch(name) or name.startswith("pg_"):
        raise StoreError(f"schema={str(name)[:60]!r}: allowed are small letters, digits and _, not a digit first")
    return parsed


class Postgres(Database):
    """A schema of a database."""

    def __init__(self, url: str) -> None:
        parsed = _parsed(url)
        self.name = without_password(url)
        self.schema = str(parsed.query.get("schema", "arena"))
        self._secrets = [str(word) for word in (parsed.password, *map(parsed.query.get, _SECRETS)) if word]
        self._url = parsed.difference_update_query(["schema"]).set(drivername="postgresql+psycopg")

    def engine(self, *, read_only: bool) -> sa.Engine:
        """Its connections see the tournament's schema first."""
        try:
            import psycopg
        except ImportError as error:
            raise StoreError(f"{self.name} needs psycopg: pip install 'gymnasium-arena[postgres]'") from error
        arguments, options = sa.create_engine(self._url).dialect.create_connect_args(self._url)

        def connect() -> Any:
            try:
                connection = psycopg.connect(*arguments, **{"connect_timeout": 10, **options})
            except psycopg.Error as error:
                raise type(error)(self._bare(str(error))) from None
            connection.execute(f'SET search_path TO "{self.schema}"')  # the name is checked
            if read_only:  # all that one transaction reads is of one moment, as in SQLite, whoever plays meanwhile
                connection.execute("SET default_transaction_read_only = on")
                connection.execute("SET default_transaction_isolation = 'repeatable read'")
            connection.commit()
            return connection

        return sa.create_engine("postgresql+psycopg://", creator=connect, poolclass=sa.NullPool)

    def exists(self) -> bool:
        """Whether the schema has any table."""
        return bool(self._asked(lambda connection: self._tables(connection)))

    def check(self) -> None:
        """Raise StoreError where the database cannot be reached, or the schema holds nothing."""
        if not self.exists():
            raise StoreError(f"{self.name} holds no tournament; name what `arena tournament run` was given as store")

    def _tables(self, connection: sa.Connection) -> list[str]:
        query = sa.text("SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = :schema")
        return list(connection.execute(query, {"schema": self.schema}).scalars())

    def _asked(self, work: Callable[[sa.Connection], Any], read_only: bool = True) -> Any:
        engine = self.engine(read_only=read_only)
        try:
            with engine.begin() as connection:
                return work(connection)
        except sa.exc.DBAPIError as error:
            done = "read" if read_only else "written"
            raise StoreError(f"{self.name} cannot be {done}: {self._bare(first_line(error))}") from error
        finally:
            engine.dispose()

    def _bare(self, message: str) -> str:
        """Without what is secret in the URL."""
        for secret in self._secrets:
            message = message.replace(secret, "***")
        return message

    def create(self) -> None:
        """In one transaction, by one process at a time."""

        def make(connection: sa.Connection) -> None:
            self.lock(connection)
            if not self._tables(connection):
                connection.execute(sa.schema.CreateSchema(self.schema, if_not_exists=True))
                tables.fill(connection, __version__)

        self._asked(make, read_only=False)

    def migrate(self) -> None:
        """In one transaction, by one process at a time."""

        def change(connection: sa.Connection) -> None:
            self.lock(connection)
            migrate(connection)

        try:
            self._asked(change, read_only=False)
        except (StoreError, zstandard.ZstdError, msgspec.DecodeError, ValueError) as error:
            why = f"{self.name} cannot be brought up to date: {first_line(error)}; it was left as it is"
            raise StoreError(why) from error

    def lock(self, connection: sa.Connection) -> None:
        """An advisory lock of the database."""
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))

    def sequence(self) -> Any:
        """The number of the transaction: what is stored later has no smaller one."""
        return sa.text("pg_current_xact_id()::text::bigint")

    def marker(self, connection: sa.Connection) -> int:
        """The oldest transaction that still runs: what older ones stored can be seen."""
        query = sa.text("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
        return int(connection.execute(query).scalar_one())

    def passing(self, error: sa.exc.DBAPIError) -> bool:
        """Lost connections, servers that start again, and conflicts between transactions."""
        state = getattr(error.orig, "sqlstate", None)
        if error.connection_invalidated or (state is None and isinstance(error, sa.exc.OperationalError)):
            return True
        return state is not None and state.startswith(_PASSING)
