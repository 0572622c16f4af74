"""The store of finished games: one transaction a game, its episode included; SQLite (WAL) or PostgreSQL.

Everything is portable SQL through SQLAlchemy Core, but for what `arena.tournaments.database` asks of the two.
"""

import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import msgspec
import sqlalchemy as sa
import zstandard

from arena.deal import VERSIONS
from arena.episode import Episode
from arena.registry import make_game
from arena.tournaments import leases, scanning, tables
from arena.tournaments.conduct import conduct_of
from arena.tournaments.config import Tournament
from arena.tournaments.database import Database, OldSchemaError, StoreError
from arena.tournaments.history import Result
from arena.tournaments.integrity import check_same, check_schema, check_whole, key_of, played
from arena.tournaments.reader import GameRow, Kept, Reader, json_of
from arena.tournaments.schedule import Fixture, seats_of
from arena.tournaments.sqlite import Sqlite

__all__ = ["GameRow", "Kept", "OldSchemaError", "Store", "StoreError", "results_file"]

_FILE = "results.db"


def results_file(run: str | Path) -> Path:
    """The store of a run folder; the path of a file comes back as it is."""
    path = Path(run)
    return path / _FILE if path.is_dir() or not path.suffix else path


def database_of(run: str | Path, url: str = "") -> Database:
    """Where a tournament is kept: at the URL, else in the file or run folder (its `tournament.toml` may name a URL)."""
    url = url or (run if isinstance(run, str) and "://" in run else "")
    if not url and (path := results_file(run)) == Path(run) / _FILE and not path.exists():
        url = _named(Path(run) / "tournament.toml")
    if url:
        raise StoreError("PostgreSQL comes in a moment")
    return Sqlite(results_file(run))


def _named(config: Path) -> str:
    """The URL that a run folder's configuration names, if it does."""
    try:
        return str(tomllib.loads(config.read_text(encoding="utf-8")).get("store", ""))
    except (OSError, ValueError):
        return ""


class Store(Reader):
    """A tournament's games. `open` for reading, `resume` for playing on."""

    def __init__(self, database: Database, *, read_only: bool) -> None:
        super().__init__(database, read_only=read_only)
        self._encode = msgspec.json.Encoder().encode
        self._compress = zstandard.ZstdCompressor(level=3).compress
        self._agents: list[int] = []
        self._entries: list[int] = []
        self._seats: list[tuple[int, ...]] = []

    @classmethod
    def open(cls, run: str | Path) -> Self:
        """Open for reading: a run folder, a file or a `postgresql://` URL.

        Raises StoreError, and changes no byte, where it is not a store of this version. Small files are read through
        to see that they are whole; a larger one is checked where it is read, and as a whole by `resume`.
        """
        return cls._opened(database_of(run), whole=False)

    @classmethod
    def _opened(cls, database: Database, *, whole: bool) -> Self:
        database.check()
        store = cls(database, read_only=True)
        try:
            store._guarded(lambda: check_schema(store._connection, database.name))
            if whole or database.small:
                store._guarded(lambda: check_whole(store._connection, database))
        except StoreError:
            store.close()
            raise
        return store

    @classmethod
    def resume(cls, run: str | Path, tournament: Tournament) -> Self:
        """Open to play on, or begin a new one; at the tournament's `store`, if it names one.

        A store of an older schema is brought up to date. A tournament may grow (more blocks, games or agents); what
        was played under other terms is refused with StoreError, and untouched.
        """
        database = database_of(run, tournament.store)
        if not database.exists():
            database.create()
        try:
            seen = cls._opened(database, whole=True)
        except OldSchemaError:
            database.migrate()
            seen = cls._opened(database, whole=True)
        with seen:
            seen._guarded(lambda: check_same(seen._connection, database.name, tournament))
        store = cls(database, read_only=False)
        with store._errors(), store._writing():
            store._register(tournament)
        return store

    def claim(self, fixtures: Sequence[Fixture], owner: str, seconds: float) -> list[Fixture]:
        """Lease games for so many seconds: those that nobody has finished and no other living lease holds."""
        with self._writing():
            mine = leases.claim(self._connection, [fixture.id for fixture in fixtures], owner, seconds)
        return [fixture for fixture in fixtures if fixture.id in mine]

    def renew(self, owner: str, seconds: float) -> int:
        """Move the end of all leases of this owner to so many seconds from now; how many it has."""
        with self._writing():
            return leases.renew(self._connection, owner, seconds)

    def release(self, owner: str, ids: Sequence[str] | None = None) -> None:
        """Give up leases: of these games, or all of this owner. Those of finished games have ended by themselves."""
        with self._writing():
            leases.release(self._connection, owner, ids)

    def owners(self) -> list[str]:
        """Who has leases, expired ones too."""
        return self._guarded(lambda: leases.owners(self._connection))

    def results(self, after: int = 0) -> tuple[list[Result], int]:
        """Finished games since a marker, and the next marker; agents and entries as numbers of the tournament.

        Of a store that was opened with `resume`. A game may come twice, never not at all.
        """
        return self._guarded(lambda: scanning.results(self._connection, self.database, after, self._numbers()))

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
            "returns": json_of([(episode.returns or ())[seat] for seat in seats]),
            "forfeits": json_of([at for at, seat in enumerate(seats) if seat in episode.forfeits]),
            "outcome": episode.outcome,
            "reason": episode.reason,
            "plies": episode.turns[-1].ply + 1 if episode.turns else 0,
            "digest": episode.turns[-1].hash if episode.turns else "",
            "conduct": json_of([conduct_of(episode, seat).numbers() for seat in seats]),
            "started": episode.started,
            "ended": episode.ended,
            "roles": json_of(_roles(episode, seats)),
            "teams": json_of(_teams(episode, seats)),
        }
        insert = sa.insert(tables.games).values(seq=self.database.sequence())
        try:
            with self._writing():
                self._connection.execute(insert, row)
                self._connection.execute(_INSERT_EPISODE, {"game": fixture.id, "data": self._packed(episode)})
                self._connection.execute(sa.delete(tables.leases).where(tables.leases.c.game == fixture.id))
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
        with self._writing():
            self._connection.execute(_INSERT_VOID, row)

    def _packed(self, episode: Episode) -> bytes:
        return self._compress(self._encode(episode))

    def _seated(self, fixture: Fixture) -> str:
        return json_of([self._agents[agent] for agent in fixture.agents])

    def _numbers(self) -> tuple[dict[int, int], dict[int, int]]:
        """The tournament's numbers of the store's entries and agents."""
        entries, agents = [{number: at for at, number in enumerate(own)} for own in (self._entries, self._agents)]
        return entries, agents

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._lock, self._connection.execution_options(writing=True).begin():
            yield

    def _register(self, tournament: Tournament) -> None:
        """Write the tournament down; learn the numbers of its agents and games."""
        self.database.lock(self._connection)
        if not played(self._connection):  # what was tried before came to nothing
            for table in (tables.voids, tables.agents, tables.entries):
                self._connection.execute(sa.delete(table))
        self._put("config", msgspec.json.encode(tournament).decode(), replace=True)
        self._put("versions", json_of(VERSIONS), replace=False)
        self._put("created", str(time.time()), replace=False)
        for name, agent in zip(tournament.identities(), tournament.agents, strict=True):
            self._agents.append(
                self._number(tables.agents, {"identity": name}, {"name": agent.name, "spec": agent.spec})
            )
        for entry in tournament.games:
            players, seats = seats_of(entry)
            facts = {"written": json_of(entry.options), "players": players, "seats": json_of(seats)}
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


def _roles(episode: Episode, seats: Sequence[int]) -> list[str]:
    roles = [episode.seats[seat].role for seat in seats]
    return roles if any(roles) else []


def _teams(episode: Episode, seats: Sequence[int]) -> list[int]:
    """The deal may decide them, so the game is dealt again."""
    teams = make_game(episode.env, episode.seed, episode.options).teams() if len(seats) > 2 else None
    return [] if teams is None else [teams[seat] for seat in seats]


_INSERT_EPISODE, _INSERT_VOID = sa.insert(tables.episodes), sa.insert(tables.voids)
