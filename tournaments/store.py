"""The store of finished games: one transaction a game, its episode included; SQLite (WAL) through SQLAlchemy Core.

Only `arena.tournaments.sqlite` knows SQLite; everything here is portable SQL but the check of a file's pages.
"""

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import msgspec
import numpy as np
import sqlalchemy as sa
import zstandard

from arena.deal import VERSIONS
from arena.episode import Episode
from arena.tournaments import tables
from arena.tournaments.columns import Columns
from arena.tournaments.conduct import conduct_of
from arena.tournaments.config import GameEntry, Tournament
from arena.tournaments.integrity import check_known, check_same, check_schema, check_whole, damaged, key_of, played
from arena.tournaments.schedule import Fixture, seats_of
from arena.tournaments.sqlite import OldSchemaError, StoreError, check_header, connect, create, migrate

__all__ = ["GameRow", "Kept", "OldSchemaError", "Store", "StoreError", "results_file"]

T = TypeVar("T")

_FILE = "results.db"
_SMALL = 16 << 20  # bytes up to which a file is checked page by page at every opening


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


def results_file(run: str | Path) -> Path:
    """The store of a run folder; the path of a file comes back as it is."""
    path = Path(run)
    return path / _FILE if path.is_dir() or not path.suffix else path


class Store:
    """A tournament's games. `open` for reading, `resume` for playing on. Not for two threads at once."""

    def __init__(self, path: Path, read_only: bool) -> None:
        self.path = path
        self.engine = sa.create_engine("sqlite://", creator=connect(path, read_only=read_only), poolclass=sa.NullPool)
        self._connection = self.engine.connect()
        self._encode = msgspec.json.Encoder().encode
        self._compress = zstandard.ZstdCompressor(level=3).compress
        self._agents: list[int] = []
        self._entries: list[int] = []
        self._seats: list[tuple[int, ...]] = []

    @classmethod
    def open(cls, run: str | Path) -> Self:
        """Open for reading. Raises StoreError, and changes no byte, where it is not a store of this version.

        Small files are read through to see that they are whole; a larger one is checked where it is read, and as a
        whole by `resume`.
        """
        return cls._opened(results_file(run), whole=False)

    @classmethod
    def _opened(cls, path: Path, *, whole: bool) -> Self:
        check_header(path)
        store = cls(path, read_only=True)
        try:
            store._guarded(lambda: check_schema(store._connection, path))
            if whole or path.stat().st_size <= _SMALL:
                store._guarded(lambda: check_whole(store._connection, path))
        except StoreError:
            store.close()
            raise
        return store

    @classmethod
    def resume(cls, run: str | Path, tournament: Tournament) -> Self:
        """Open to play on, or begin a new one. A store of an older schema is brought up to date.

        A tournament may grow (more blocks, games or agents); what was played under other terms is refused
        with StoreError, and untouched.
        """
        path = results_file(run)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            cls._create(path)
        try:
            seen = cls._opened(path, whole=True)
        except OldSchemaError:
            migrate(path)
            seen = cls._opened(path, whole=True)
        with seen:
            seen._guarded(lambda: check_same(seen._connection, path, tournament))
        store = cls(path, read_only=False)
        store._guarded(lambda: store._register(tournament))
        return store

    @staticmethod
    def _create(path: Path) -> None:
        try:
            create(path)
        except sa.exc.DatabaseError as error:
            raise StoreError(f"{path} cannot be written: {_first_line(error)}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
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

    def add(self, fixture: Fixture, episode: Episode) -> bool:
        """Keep a finished game and its episode in one transaction; False if it was there already."""
        seats = self._seats[fixture.entry]
        row = {
            "id": fixture.id,
            "block": fixture.block,
            "entry": self._entries[fixture.entry],
            "seed": fixture.seed,
            "rotation": fixture.rotation,
            "repetition": fixture.repetition,
            "agents": self._seated(fixture),
            "returns": _json([(episode.returns or ())[seat] for seat in seats]),
            "forfeits": _json([at for at, seat in enumerate(seats) if seat in episode.forfeits]),
            "outcome": episode.outcome,
            "reason": episode.reason,
            "plies": episode.turns[-1].ply + 1 if episode.turns else 0,
            "digest": episode.turns[-1].hash if episode.turns else "",
            "conduct": _json([conduct_of(episode, seat).numbers() for seat in seats]),
            "started": episode.started,
            "ended": episode.ended,
        }
        try:
            with self._connection.begin():
                self._connection.execute(_INSERT_GAME, row)
                self._connection.execute(_INSERT_EPISODE, {"game": fixture.id, "data": self._packed(episode)})
        except sa.exc.IntegrityError:
            return False
        return True

    def add_void(self, fixture: Fixture, episode: Episode) -> None:
        """Keep an attempt that came to nothing."""
        row = {
            "game": fixture.id,
            "entry": self._entries[fixture.entry],
            "agents": self._seated(fixture),
            "reason": episode.reason,
            "ended": episode.ended,
            "data": self._packed(episode),
        }
        with self._connection.begin():
            self._connection.execute(_INSERT_VOID, row)

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
            raise damaged(self.path, str(error)) from error
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
        query = query.order_by(game, table.c.ended)
        unpack = zstandard.ZstdDecompressor().decompress
        with self._errors(), self._transaction():
            for key, agents, data in self._connection.execution_options(stream_results=True).execute(query):
                if agent is None or agent in _INTS.decode(agents):
                    yield Kept(key, _EPISODE.decode(unpack(data)))

    def _packed(self, episode: Episode) -> bytes:
        return self._compress(self._encode(episode))

    def _seated(self, fixture: Fixture) -> str:
        return _json([self._agents[agent] for agent in fixture.agents])

    def _value(self, key: str) -> str:
        query = sa.select(tables.config.c.value).where(tables.config.c.key == key)
        value = self._guarded(lambda: self._connection.execute(query).scalar())
        if value is None:
            raise damaged(self.path, f"its tournament has no {key}")
        return str(value)

    def _guarded(self, work: Callable[[], T]) -> T:
        """Run it in a transaction; the database's errors as StoreError."""
        with self._errors(), self._transaction():
            return work()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sa.exc.DatabaseError, sqlite3.DatabaseError, zstandard.ZstdError, msgspec.DecodeError) as error:
            raise StoreError(f"{self.path} cannot be read: {_first_line(error)}; it was left as it is") from error

    def _check_known(self, agents: set[int]) -> None:
        check_known(self.path, agents, self.agents())

    def _transaction(self) -> AbstractContextManager[object]:
        """A new one, or the one that is open."""
        return nullcontext() if self._connection.in_transaction() else self._connection.begin()

    def _register(self, tournament: Tournament) -> None:
        """Write the tournament down; learn the numbers of its agents and games."""
        if not played(self._connection):  # what was tried before came to nothing
            for table in (tables.voids, tables.agents, tables.entries):
                self._connection.execute(sa.delete(table))
        self._put("config", msgspec.json.encode(tournament).decode(), replace=True)
        self._put("versions", _json(VERSIONS), replace=False)
        self._put("created", str(time.time()), replace=False)
        for name, agent in zip(tournament.identities(), tournament.agents, strict=True):
            self._agents.append(
                self._number(tables.agents, {"identity": name}, {"name": agent.name, "spec": agent.spec})
            )
        for entry in tournament.games:
            players, seats = seats_of(entry)
            facts = {"written": _json(entry.options), "players": players, "seats": _json(seats)}
            env, options = key_of(entry)
            self._entries.append(self._number(tables.entries, {"env": env, "options": options}, facts))
            self._seats.append(seats)

    def _put(self, key: str, value: str, replace: bool) -> None:
        there = self._connection.execute(sa.select(tables.config.c.value).where(tables.config.c.key == key)).scalar()
        if there is None:
            self._connection.execute(sa.insert(tables.config).values(key=key, value=value))
        elif replace and there != value:
            self._connection.execute(sa.update(tables.config).where(tables.config.c.key == key).values(value=value))

    def _number(self, table: sa.Table, key: dict[str, str], facts: dict[str, Any]) -> int:
        same = sa.and_(*[table.c[name] == value for name, value in key.items()])
        number = self._connection.execute(sa.select(table.c.id).where(same)).scalar()
        if number is None:
            result = self._connection.execute(sa.insert(table).values(**key, **facts))
            (number,) = result.inserted_primary_key or (0,)
        return int(number)


_INSERT_GAME, _INSERT_EPISODE, _INSERT_VOID = (
    sa.insert(tables.games),
    sa.insert(tables.episodes),
    sa.insert(tables.voids),
)
_EPISODE = msgspec.json.Decoder(Episode)
_INTS = msgspec.json.Decoder(tuple[int, ...])
_FLOATS = msgspec.json.Decoder(tuple[float, ...])


_ROW = ("id", "block", "entry", "agents", "returns", "forfeits", "outcome", "digest")


def _row(
    key: str, block: str, entry: int, agents: str, returns: str, forfeits: str, outcome: str, digest: str
) -> GameRow:
    lists = _INTS.decode(agents), _FLOATS.decode(returns), _INTS.decode(forfeits)
    return GameRow(key, block, entry, *lists, outcome == "truncated", digest)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _first_line(error: BaseException) -> str:
    return str(getattr(error, "orig", None) or error).split("\n", 1)[0]
