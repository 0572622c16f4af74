"""Reads a store: its games and episodes, and what they come to. One connection; calls from threads take turns."""

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

import msgspec
import numpy as np
import sqlalchemy as sa
import zstandard

from arena.episode import Episode
from arena.tournaments import counts, scanning, tables, totals
from arena.tournaments.columns import Columns
from arena.tournaments.config import GameEntry, Tournament
from arena.tournaments.database import Database, StoreError, first_line
from arena.tournaments.integrity import check_known, damaged
from arena.tournaments.readings import Answers, PairCounts, RankedGames, Spent, Timeline, Totals

__all__ = ["GameRow", "Kept", "Reader"]

T = TypeVar("T")


class GameRow(NamedTuple):
    """One finished game, for statistics. Agents and entries are the store's numbers."""

    id: str
    block: str
    entry: int
    agents: tuple[int, ...]
    returns: tuple[float, ...]
    forfeits: tuple[int, ...]
    truncated: bool
    digest: str


class Kept(NamedTuple):
    """A stored episode."""

    id: str
    """Of the game; attempts that were void have their game's."""
    episode: Episode


class Reader:
    """A tournament's games."""

    def __init__(self, database: Database, *, read_only: bool) -> None:
        self.database, self.place = database, database.name
        self.engine = database.engine(read_only=read_only)
        self._lock = threading.RLock()
        with self._errors():
            self._connection = self.engine.connect()

    @property
    def path(self) -> Path:
        """Where the store is, for those who show it; of a server's, `place` is its URL without the password."""
        return Path(self.place)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database."""
        self._connection.close()
        self.engine.dispose()

    def tournament(self) -> Tournament:
        """What was last asked of this store."""
        with self._errors():
            return msgspec.json.decode(self._value("config"), type=Tournament)

    def versions(self) -> dict[str, str]:
        """The versions of the packages that played the first game."""
        with self._errors():
            return msgspec.json.decode(self._value("versions"), type=dict[str, str])

    def finished(self) -> set[str]:
        """The ids of all finished games."""
        return self._guarded(lambda: set(self._connection.execute(sa.select(tables.games.c.id)).scalars()))

    def void_attempts(self) -> dict[str, int]:
        """How often each unfinished game was void."""
        query = (
            sa.select(tables.voids.c.game, sa.func.count())
            .where(tables.voids.c.game.not_in(sa.select(tables.games.c.id)))
            .group_by(tables.voids.c.game)
        )
        return self._guarded(lambda: {row[0]: row[1] for row in self._connection.execute(query)})

    def agents(self) -> dict[int, str]:
        """Names by number."""
        query = sa.select(tables.agents.c.id, tables.agents.c.name).order_by(tables.agents.c.id)
        return self._guarded(lambda: {row[0]: row[1] for row in self._connection.execute(query)})

    def entries(self) -> dict[int, GameEntry]:
        """Games by number."""
        query = sa.select(tables.entries.c.id, tables.entries.c.env, tables.entries.c.written).order_by(
            tables.entries.c.id
        )
        rows = self._guarded(lambda: self._connection.execute(query).all())
        with self._errors():
            return {number: GameEntry(env, msgspec.json.decode(written, type=dict)) for number, env, written in rows}

    def seats(self) -> dict[int, int]:
        """How many seats agents take in the games, by number."""
        query = sa.select(tables.entries.c.id, tables.entries.c.seats)
        rows = self._guarded(lambda: self._connection.execute(query).all())
        with self._errors():
            return {number: len(_INTS.decode(seats)) for number, seats in rows}

    def pairs(self, entry: int) -> PairCounts:
        """The two-player games of an entry that count."""
        return self._guarded(lambda: counts.pairs(self._connection, entry, np.array(list(self.agents()))))

    def ranked(self, entry: int) -> RankedGames:
        """The games of an entry that count, singly."""
        return scanning.ranked(self, entry)

    def answers(self, entry: int) -> Answers:
        """The games of an entry of one seat that count."""
        games = self.ranked(entry)
        if games.agents.shape[1] != 1:
            raise ValueError(f"entry {entry} has {games.agents.shape[1]} seats, answers come from one")
        agent, value, forfeit = games.agents[:, 0], games.returns[:, 0], games.forfeits[:, 0]
        return Answers(agent, games.seed, value, forfeit, games.cluster)

    def timeline(self, entry: int) -> Timeline:
        """The two-player games of an entry that count, block by block in the order in which they ended."""
        return self._guarded(lambda: counts.timeline(self._connection, entry, np.array(list(self.agents()))))

    def totals(self) -> Totals:
        """What is counted of every agent in every entry."""
        positions = {number: at for at, number in enumerate(self.agents())}
        dropping = self.tournament().truncated == "drop"
        return self._guarded(lambda: totals.totals(self._connection, self.seats(), positions, dropping))

    def spent(self) -> Spent:
        """What all attempts have taken so far."""
        return self._guarded(lambda: totals.spent(self._connection, self.seats()))

    def games(self) -> list[GameRow]:
        """Every finished game, in the order of the ids, which is the same whenever they were played."""
        query = sa.select(*[tables.games.c[name] for name in _ROW]).order_by(tables.games.c.id)
        return self._guarded(lambda: [_row(*row) for row in self._connection.execute(query)])

    def columns(self, entry: int, seats: int) -> Columns:
        """The finished games of one entry, in the order of the ids; `seats`: those that agents take."""
        names = ("agents", "returns", "forfeits", "block", "outcome", "digest", "conduct")
        query = sa.select(*[tables.games.c[name] for name in names]).where(tables.games.c.entry == entry)
        rows = self._guarded(lambda: self._connection.execute(query.order_by(tables.games.c.id)).all())
        try:
            with self._errors():
                games = Columns.of(rows, seats)
        except ValueError as error:
            raise damaged(self.place, str(error)) from error
        self._check_known({int(agent) for agent in np.unique(games.agents)})
        return games

    def voids(self) -> list[tuple[int, tuple[int, ...], str]]:
        """Entry, agents and reason of every void attempt."""
        query = sa.select(tables.voids.c.entry, tables.voids.c.agents, tables.voids.c.reason).order_by(
            tables.voids.c.id
        )
        rows = self._guarded(lambda: self._connection.execute(query).all())
        with self._errors():
            voids = [(entry, _INTS.decode(agents), reason) for entry, agents, reason in rows]
        self._check_known({agent for _, agents, _ in voids for agent in agents})
        return voids

    def episodes(self, entries: Iterable[int] | None = None, agent: int | None = None) -> Iterator[Episode]:
        """The episodes of finished games, those of some entries or with one agent only, in the order of the ids."""
        return (kept.episode for kept in self.kept("", entries, agent))

    def kept(
        self, beginning: str, entries: Iterable[int] | None = None, agent: int | None = None, *, void: bool = False
    ) -> Iterator[Kept]:
        """As `episodes`, of the games whose ids begin so, with the ids; `void`: the attempts that were void instead."""
        table, game = (tables.voids, tables.voids.c.game) if void else (tables.games, tables.games.c.id)
        query = sa.select(game, table.c.agents, tables.voids.c.data if void else tables.episodes.c.data)
        query = query if void else query.join(tables.episodes, tables.episodes.c.game == game)
        if beginning:
            query = query.where(game.startswith(beginning, autoescape=True))
        if entries is not None:
            query = query.where(table.c.entry.in_(list(entries)))
        query = query.order_by(game, table.c.ended).execution_options(stream_results=True)
        unpack = zstandard.ZstdDecompressor().decompress
        with self._errors(), self._transaction():
            for key, agents, data in self._connection.execute(query):
                if agent is None or agent in _INTS.decode(agents):
                    yield Kept(key, _EPISODE.decode(unpack(data)))

    def _value(self, key: str) -> str:
        query = sa.select(tables.config.c.value).where(tables.config.c.key == key)
        value = self._guarded(lambda: self._connection.execute(query).scalar())
        if value is None:
            raise damaged(self.place, f"its tournament has no {key}")
        return str(value)

    def _guarded(self, work: Callable[[], T]) -> T:
        """Run it in a transaction; the database's errors as StoreError."""
        with self._lock, self._errors():
            if self._connection.in_transaction():
                return work()
            try:
                with self._transaction():
                    return work()
            except sa.exc.DBAPIError as error:
                if not self.database.passing(error):
                    raise
            with self._transaction():  # on a new connection: the old one was lost
                return work()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sa.exc.DBAPIError, sqlite3.DatabaseError, zstandard.ZstdError, msgspec.DecodeError) as error:
            raise StoreError(f"{self.place} cannot be read: {first_line(error)}; it was left as it is") from error

    def _check_known(self, agents: set[int]) -> None:
        check_known(self.place, agents, self.agents())

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """A new one to read, or the one that is open."""
        if self._connection.in_transaction():
            yield
            return
        with self._connection.execution_options(writing=False).begin():
            yield


_EPISODE = msgspec.json.Decoder(Episode)
_INTS = msgspec.json.Decoder(tuple[int, ...])
_FLOATS = msgspec.json.Decoder(tuple[float, ...])
_ROW = ("id", "block", "entry", "agents", "returns", "forfeits", "outcome", "digest")


def _row(
    key: str, block: str, entry: int, agents: str, returns: str, forfeits: str, outcome: str, digest: str
) -> GameRow:
    lists = _INTS.decode(agents), _FLOATS.decode(returns), _INTS.decode(forfeits)
    return GameRow(key, block, entry, *lists, outcome == "truncated", digest)
