"""The store of finished games: one transaction a game, its episode included; SQLite (WAL) or PostgreSQL.

Everything is portable SQL through SQLAlchemy Core, but for what `arena.tournaments.database` asks of the two.
"""

import secrets
import time
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec
import sqlalchemy as sa
import zstandard

from arena.deal import VERSIONS
from arena.episode import Episode
from arena.tournaments import counts, leases, scanning, tables, totals
from arena.tournaments.conduct import conduct_of
from arena.tournaments.config import Tournament
from arena.tournaments.database import ChangedError, Database, OldSchemaError, StoreError, first_line
from arena.tournaments.history import Result
from arena.tournaments.integrity import agreed, check_same, check_schema, check_whole, key_of, played
from arena.tournaments.postgres import Postgres, without_password
from arena.tournaments.reader import GameRow, Kept, Reader
from arena.tournaments.rows import json_of, row_of
from arena.tournaments.schedule import Fixture, rotations, seats_of
from arena.tournaments.sqlite import Sqlite

__all__ = ["GameRow", "Kept", "OldSchemaError", "Store", "StoreError", "results_file", "without_password"]

T = TypeVar("T")

_NEVER = " (never played, agent "
_FILE = "results.db"
_PAUSES = (0.1, 0.5, 2.0)  # seconds before a server that went away is asked again
_WORKERS = 16  # sets of rows for totals: few, that readers have little to add up; several, that few writers wait


def results_file(run: str | Path) -> Path:
    """The store of a run folder; the path of a file comes back as it is."""
    path = Path(run)
    return path / _FILE if path.is_dir() or not path.suffix else path


def database_of(run: str | Path, url: str = "") -> Database:
    """Where a tournament is kept: at the URL, else in the file or run folder (its `tournament.toml` may name a URL)."""
    url = url or (run if isinstance(run, str) and "://" in run else "")
    if not url and (path := results_file(run)) == Path(run) / _FILE and not path.exists():
        url = _named(Path(run) / "tournament.toml")
    return Postgres(url) if url else Sqlite(results_file(run))


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
        self._repetitions, self._dropping = 1, False
        self._insert = sa.insert(tables.games).values(seq=database.sequence())
        self._worker = secrets.randbelow(_WORKERS)

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
    def _check(cls, database: Database, tournament: Tournament) -> None:
        with cls._opened(database, whole=True) as seen:
            seen._guarded(lambda: check_same(seen._connection, database.name, tournament))

    @classmethod
    def resume(cls, run: str | Path, tournament: Tournament) -> Self:
        """Open to play on, or begin a new one; at the tournament's `store`, if it names one.

        A store of an older schema is brought up to date. A tournament may grow (more blocks, games or agents); what
        was played under other terms is refused with StoreError, and untouched.
        """
        database = database_of(run, tournament.store)
        if not database.exists():
            database.create()
        for again in (True, True, False):
            try:
                cls._check(database, tournament)
                break
            except (OldSchemaError, ChangedError) as error:  # changed by another run of it, which has begun just now
                if not again:
                    raise
                if isinstance(error, OldSchemaError):
                    database.migrate()
        store = cls(database, read_only=False)
        with store._errors():
            store._write(lambda _: store._register(tournament))
        return store

    def claim(self, fixtures: Sequence[Fixture], owner: str, seconds: float) -> list[Fixture]:
        """Lease games for so many seconds: those that nobody has finished and no other living lease holds."""
        ids = [fixture.id for fixture in fixtures]
        mine = self._write(lambda _: leases.claim(self._connection, ids, owner, seconds))
        return [fixture for fixture in fixtures if fixture.id in mine]

    def renew(self, owner: str, seconds: float) -> int:
        """Move the end of all leases of this owner to so many seconds from now; how many it has."""
        return self._write(lambda _: leases.renew(self._connection, owner, seconds))

    def release(self, owner: str, ids: Sequence[str] | None = None) -> None:
        """Give up leases: of these games, or all of this owner. Those of finished games have ended by themselves."""
        self._write(lambda _: leases.release(self._connection, owner, ids))

    def owners(self) -> list[str]:
        """Who has leases, expired ones too."""
        return self._guarded(lambda: leases.owners(self._connection))

    def results(self, after: int = 0) -> tuple[list[Result], int]:
        """Finished games since a marker, and the next marker; agents and entries as numbers of the tournament.

        Of a store that was opened with `resume`. A game may come twice, never not at all.
        """
        return self._guarded(lambda: scanning.results(self._connection, self.database, after, self._numbers()))

    def add(self, fixture: Fixture, episode: Episode) -> bool:
        """Keep a finished game and its episode, and count it, in one transaction; False if it was there already."""
        return self.add_all([(fixture, episode)])[0]

    def add_all(self, games: Sequence[tuple[Fixture, Episode]]) -> list[bool]:
        """As `add`, many games in one transaction, which takes a third of the time."""
        attempts = [self._attempt(*game) for game in games]
        rows = [row_of(fixture, *attempt) for (fixture, _), attempt in zip(games, attempts, strict=True)]
        packed = [{"game": fixture.id, "data": self._packed(episode)} for fixture, episode in games]

        def work(unsure: bool) -> list[bool]:
            if unsure and self._stored(rows):  # the connection was lost when all was said
                return [True] * len(games)
            self._connection.execute(self._insert, rows)
            self._connection.execute(_INSERT_EPISODE, packed)
            self._connection.execute(_END_LEASE, [{"of": fixture.id} for fixture, _ in games])
            self._count(games, attempts)
            return [True] * len(games)

        try:
            return self._write(work)
        except sa.exc.IntegrityError:
            return [self.add(*game) for game in games] if len(games) > 1 else [False]

    def _stored(self, rows: list[dict[str, Any]]) -> bool:
        """Whether the first of these very games is in the store, not another play of it; so are all, or none is."""
        game, there = rows[0], tables.games.c
        same = [there[name] == game[name] for name in ("id", "started", "ended", "digest")]
        return bool(self._connection.execute(sa.select(there.id).where(*same)).first())

    def _count(self, games: Sequence[tuple[Fixture, Episode]], attempts: list[totals.Attempt]) -> None:
        repetitions, dropping = self._repetitions, self._dropping
        pairs = [
            counts.Game.of(fixture, attempt, len(rotations(fixture.agents)) * repetitions, dropping=dropping)
            for (fixture, _), attempt in zip(games, attempts, strict=True)
            if len(attempt.seats) == 2
        ]
        counts.count(self._connection, pairs, self._worker)
        totals.count(self._connection, attempts, self._worker)

    def add_void(self, fixture: Fixture, episode: Episode) -> None:
        """Keep an attempt that came to nothing, and count it."""
        attempt = self._attempt(fixture, episode)
        row = {
            "game": fixture.id,
            "entry": attempt.entry,
            "agents": json_of(attempt.agents),
            "reason": episode.reason,
            "ended": episode.ended,
            "data": self._packed(episode),
        }
        there = tables.voids.c

        def work(unsure: bool) -> None:
            same = sa.select(there.id).where(there.game == fixture.id, there.ended == episode.ended)
            if unsure and self._connection.execute(same).first():
                return
            self._connection.execute(_INSERT_VOID, row)
            totals.count(self._connection, [attempt], self._worker)

        self._write(work)

    def _attempt(self, fixture: Fixture, episode: Episode) -> totals.Attempt:
        """With the store's numbers."""
        seats = self._seats[fixture.entry]
        agents = [self._agents[agent] for agent in fixture.agents]
        conducts = [conduct_of(episode, seat) for seat in seats]
        return totals.Attempt(self._entries[fixture.entry], agents, seats, episode, conducts)

    def _packed(self, episode: Episode) -> bytes:
        return self._compress(self._encode(episode))

    def _numbers(self) -> tuple[dict[int, int], dict[int, int]]:
        """The tournament's numbers of the store's entries and agents."""
        entries, agents = [{number: at for at, number in enumerate(own)} for own in (self._entries, self._agents)]
        return entries, agents

    def _write(self, work: Callable[[bool], T]) -> T:
        """Run it in a transaction that writes; again, on a new connection, where that may help.

        `work` is told whether an attempt before was cut off when all of it was said: it may be in the store.
        Raises StoreError when the database stays away; what was stored before is kept.
        """
        unsure = False
        for pause in (*_PAUSES, None):
            committing = False
            try:
                with self._lock, self._connection.execution_options(writing=True).begin():
                    result = work(unsure)
                    committing = True
            except sa.exc.DBAPIError as error:
                if not self.database.passing(error):
                    raise
                if pause is None:
                    raise StoreError(f"{self.place} cannot be written: {first_line(error)}") from error
                unsure |= committing
                time.sleep(pause)
            else:
                return result
        raise AssertionError("the last attempt returns or raises")

    def _register(self, tournament: Tournament) -> None:
        """Write the tournament down; learn the numbers of its agents and games."""
        self.database.lock(self._connection)
        self._agents, self._entries, self._seats = [], [], []
        self._repetitions, self._dropping = tournament.repetitions, tournament.truncated == "drop"
        if not played(self._connection):  # what was tried before came to nothing
            self._forget(tournament)
        if tournament.store:
            tournament = msgspec.structs.replace(tournament, store=without_password(tournament.store))
        self._put("config", msgspec.json.encode(tournament).decode(), replace=True)
        self._put("versions", json_of(VERSIONS), replace=False)
        self._put("created", str(time.time()), replace=False)
        self._seat(tournament)
        for entry in tournament.games:
            players, seats = seats_of(entry)
            facts = {"written": json_of(entry.options), "players": players, "seats": json_of(seats)}
            env, options = key_of(entry)
            self._entries.append(self._number(tables.entries, {"env": env, "options": options}, facts))
            self._seats.append(seats)

    def _seat(self, tournament: Tournament) -> None:
        """Number the agents. One that is listed no more has not played: its name says so, and is free for another."""
        names = tournament.identities()
        rows = self._connection.execute(sa.select(tables.agents.c.id, tables.agents.c.identity, tables.agents.c.name))
        for number, identity, called in rows.all():
            if identity not in names and _NEVER not in called:
                self._call(number, f"{called}{_NEVER}{number})")
        for name, agent in zip(names, tournament.agents, strict=True):
            number = self._number(tables.agents, {"identity": name}, {"name": agent.name, "spec": agent.spec})
            self._call(number, agent.name)
            self._agents.append(number)

    def _call(self, agent: int, name: str) -> None:
        """The name of an agent that has not played, or had this one already."""
        change = sa.update(tables.agents).where(tables.agents.c.id == agent, tables.agents.c.name != name)
        self._connection.execute(change.values(name=name))

    def _forget(self, tournament: Tournament) -> None:
        """Take out what another tournament has left that finished no game; not what this one did."""
        if agreed(self._connection, tournament):
            return
        if leases.living(self._connection):
            raise StoreError(f"{self.place} is another tournament's, which is being played; choose another --out")
        for table in (tables.voids, tables.agents, tables.entries, tables.totals, tables.latencies, tables.leases):
            self._connection.execute(sa.delete(table))

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


_INSERT_EPISODE, _INSERT_VOID = sa.insert(tables.episodes), sa.insert(tables.voids)
_END_LEASE = sa.delete(tables.leases).where(tables.leases.c.game == sa.bindparam("of"))
