"""What a store needs of a database, beside portable SQL; `sqlite` and `postgres` are the two there are."""

from abc import ABC, abstractmethod
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

__all__ = ["ChangedError", "Database", "OldSchemaError", "StoreError", "adding", "first_line", "upsert"]


class StoreError(RuntimeError):
    """There is no store, it is another tournament's, or it cannot be reached or read; it was left as it is."""


class OldSchemaError(StoreError):
    """A store of an older schema, which `Store.resume` brings up to date."""


class ChangedError(StoreError):
    """A store at rest that somebody began to write to while it was read; it can be read again."""


class Database(ABC):
    """Where the tables of one tournament are."""

    name: str
    """What errors call it; no secrets."""

    @property
    def small(self) -> bool:
        """Whether all of it is looked through at every opening."""
        return False

    @abstractmethod
    def exists(self) -> bool:
        """Whether anything is there: a store, or what is none. Raises StoreError where that cannot be found out."""

    @abstractmethod
    def check(self) -> None:
        """Raise StoreError for what is no database that could hold a store; nothing is changed."""

    @abstractmethod
    def create(self) -> None:
        """An empty store, complete or not there at all; one that is there stays."""

    @abstractmethod
    def migrate(self) -> None:
        """Bring the store to the schema of this Arena, in one transaction. Raises StoreError where it is damaged."""

    @abstractmethod
    def engine(self, *, read_only: bool) -> sa.Engine:
        """Makes connections; a transaction with the execution option `writing` is to write."""

    def damage(self, connection: sa.Connection) -> str:
        """What is wrong with the bytes; "": nothing, or the server watches over them."""
        return ""

    def lock(self, connection: sa.Connection) -> None:  # noqa: B027 - a writer of SQLite is alone without it
        """Until the transaction ends, no other process makes, migrates or registers."""

    @abstractmethod
    def sequence(self) -> Any:
        """SQL expression of `games.seq` for a game that is being stored."""

    @abstractmethod
    def marker(self, connection: sa.Connection) -> int:
        """All games that are or will be seen first after this moment have this `seq`, or a greater one."""

    def passing(self, error: sa.exc.DBAPIError) -> bool:
        """Whether the same may succeed when it is tried again."""
        return False


def upsert(dialect: str, table: sa.Table) -> Any:
    """An INSERT that can say what is done on conflict: both databases say it in the same words."""
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql  # takes as long to load as the smaller half of SQLAlchemy

        return postgresql.insert(table)
    return sqlite.insert(table)


@cache
def adding(dialect: str, table: sa.Table, sums: tuple[str, ...]) -> Any:
    """Insert a row, or add these columns to the one that is there."""
    row = upsert(dialect, table)
    more = {name: table.c[name] + row.excluded[name] for name in sums}
    return row.on_conflict_do_update(index_elements=list(table.primary_key.columns), set_=more)


def first_line(error: BaseException) -> str:
    """What a database says is wrong, in one line."""
    return str(getattr(error, "orig", None) or error).strip().split("\n", 1)[0]
