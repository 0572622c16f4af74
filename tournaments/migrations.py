"""What brings stores of older schemas up to date, a function a schema. They name tables as they were then."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import msgspec
import sqlalchemy as sa
import zstandard

from arena.episode import Episode
from arena.tournaments import counts, tables, totals
from arena.tournaments.conduct import conduct_of
from arena.tournaments.config import Tournament
from arena.tournaments.rows import roles_of, teams_of
from arena.tournaments.schedule import rotations

__all__ = ["MIGRATIONS", "migrate"]

_BATCH = 500  # games read and rewritten at once
_SEATS = msgspec.json.Decoder(tuple[int, ...])
_EPISODE = msgspec.json.Decoder(Episode)


def _add_conduct(connection: sa.Connection) -> None:
    """To 3: `games.conduct`, worked out from the stored episodes. Raises ValueError for a game that has none."""
    connection.exec_driver_sql("ALTER TABLE games ADD COLUMN conduct TEXT NOT NULL DEFAULT '[]'")
    entries = connection.execute(sa.text("SELECT id, seats FROM entries")).all()
    seats = {number: _SEATS.decode(text) for number, text in entries}
    keys = iter(connection.execute(sa.text("SELECT id, entry FROM games ORDER BY id")).all())
    while batch := list(islice(keys, _BATCH)):
        changes = list(_conducts(connection, [tuple(row) for row in batch], seats))
        connection.execute(sa.text("UPDATE games SET conduct = :conduct WHERE id = :id"), changes)


def _conducts(
    connection: sa.Connection, games: list[tuple[Any, ...]], seats: dict[int, tuple[int, ...]]
) -> Iterator[dict[str, str]]:
    unpack, one = zstandard.ZstdDecompressor().decompress, sa.text("SELECT data FROM episodes WHERE game = :game")
    for game, entry in games:
        data = connection.execute(one, {"game": game}).scalar()
        if data is None or entry not in seats:
            raise ValueError(f"game {game} has no {'episode' if data is None else 'entry'}")
        episode = _EPISODE.decode(unpack(data))
        conducts = [conduct_of(episode, seat).numbers() for seat in seats[entry]]
        yield {"id": game, "conduct": msgspec.json.encode(conducts).decode()}


_TABLES = """
CREATE TABLE leases (game TEXT NOT NULL PRIMARY KEY, owner TEXT NOT NULL, taken FLOAT NOT NULL, expires FLOAT NOT NULL);
CREATE TABLE blocks (key TEXT NOT NULL PRIMARY KEY, entry INTEGER NOT NULL, games INTEGER NOT NULL,
  pattern TEXT NOT NULL, counted BOOLEAN NOT NULL, ended FLOAT NOT NULL);
CREATE TABLE patterns (entry INTEGER NOT NULL, pattern TEXT NOT NULL, worker INTEGER NOT NULL,
  blocks INTEGER NOT NULL, PRIMARY KEY (entry, pattern, worker));
CREATE TABLE seatings (entry INTEGER NOT NULL, first INTEGER NOT NULL, second INTEGER NOT NULL,
  worker INTEGER NOT NULL, games INTEGER NOT NULL, fresh INTEGER NOT NULL, sound INTEGER NOT NULL,
  low TEXT NOT NULL, high TEXT NOT NULL, PRIMARY KEY (entry, first, second, worker));
CREATE TABLE totals (entry INTEGER NOT NULL, agent INTEGER NOT NULL, outcome TEXT NOT NULL,
  worker INTEGER NOT NULL, seats INTEGER NOT NULL, games INTEGER NOT NULL, forfeits INTEGER NOT NULL,
  turns FLOAT NOT NULL, replies FLOAT NOT NULL, illegal FLOAT NOT NULL, unreadable FLOAT NOT NULL,
  cut FLOAT NOT NULL, calls FLOAT NOT NULL, prompt_tokens FLOAT NOT NULL, cached_tokens FLOAT NOT NULL,
  completion_tokens FLOAT NOT NULL, seconds FLOAT NOT NULL, cost FLOAT NOT NULL,
  PRIMARY KEY (entry, agent, outcome, worker));
CREATE TABLE latencies (entry INTEGER NOT NULL, agent INTEGER NOT NULL, outcome TEXT NOT NULL,
  worker INTEGER NOT NULL, bin INTEGER NOT NULL, answers INTEGER NOT NULL,
  PRIMARY KEY (entry, agent, outcome, worker, bin));
ALTER TABLE games ADD COLUMN seq BIGINT NOT NULL DEFAULT 0;
ALTER TABLE games ADD COLUMN roles TEXT NOT NULL DEFAULT '[]';
ALTER TABLE games ADD COLUMN teams TEXT NOT NULL DEFAULT '[]';
CREATE INDEX games_alike ON games (block, digest);
CREATE INDEX ix_games_seq ON games (seq)
"""
_WORKER = 0


def _add_counts(connection: sa.Connection) -> None:
    """To 4: leases, tables of what games and void attempts come to, roles and teams, from the stored episodes."""
    for statement in _TABLES.split(";"):
        connection.exec_driver_sql(statement)
    keys = connection.execute(sa.text("SELECT id FROM games ORDER BY ended, id")).scalars().all()
    voids = connection.execute(sa.text("SELECT id FROM voids ORDER BY id")).scalars().all()
    if not keys and not voids:
        return
    text = connection.execute(sa.text("SELECT value FROM tournament WHERE key = 'config'")).scalar()
    if text is None:
        raise ValueError("its tournament has no config")
    asked = msgspec.json.decode(text, type=Tournament)
    entries = connection.execute(sa.text("SELECT id, seats FROM entries")).all()
    seats = {number: _SEATS.decode(text) for number, text in entries}
    for seq, key in enumerate(keys, 1):
        _count_game(connection, key, seq, asked, seats)
    for void in voids:
        row = connection.execute(sa.text("SELECT entry, agents, data FROM voids WHERE id = :id"), {"id": void}).one()
        _count(connection, row, _episode(row.data), seats)


def _count_game(
    connection: sa.Connection, key: str, seq: int, asked: Tournament, seats: dict[int, tuple[int, ...]]
) -> None:
    query = "SELECT games.*, episodes.data FROM games LEFT JOIN episodes ON episodes.game = games.id WHERE id = :id"
    row = connection.execute(sa.text(query), {"id": key}).one()
    if row.data is None or row.entry not in seats:
        raise ValueError(f"game {key} has no {'episode' if row.data is None else 'entry'}")
    episode, taken = _episode(row.data), seats[row.entry]
    change = {"id": key, "seq": seq, "roles": roles_of(episode, taken), "teams": teams_of(episode, taken)}
    connection.execute(sa.text("UPDATE games SET seq = :seq, roles = :roles, teams = :teams WHERE id = :id"), change)
    _count(connection, row, episode, seats)
    if len(taken) == 2:
        agents, forfeits, returns = [msgspec.json.decode(text) for text in (row.agents, row.forfeits, row.returns)]
        game = counts.Game(
            key, row.block, row.entry, tuple(agents), tuple(returns), tuple(forfeits), row.digest, row.ended,
            size=len(rotations(tuple(agents))) * asked.repetitions,
            truncated=row.outcome == "truncated", dropping=asked.truncated == "drop",
        )  # fmt: skip
        counts.count(connection, [game], _WORKER)


def _count(connection: sa.Connection, row: Any, episode: Episode, seats: dict[int, tuple[int, ...]]) -> None:
    taken, agents = seats[row.entry], _SEATS.decode(row.agents)
    if len(agents) != len(taken):
        raise ValueError(f"{len(agents)} agents in a game of {len(taken)} seats")
    conducts = [conduct_of(episode, seat) for seat in taken]
    attempt = totals.Attempt(row.entry, agents, taken, episode, conducts)
    totals.count(connection, [attempt], _WORKER)


def _episode(data: bytes) -> Episode:
    return _EPISODE.decode(zstandard.ZstdDecompressor().decompress(data))


MIGRATIONS: dict[int, Callable[[sa.Connection], None]] = {2: _add_conduct, 3: _add_counts}
"""By schema: what brings a store from it to the next one."""


def migrate(connection: sa.Connection) -> None:
    """Bring the tables to this schema."""
    version = connection.execute(sa.select(tables.schema.c.version)).scalar_one()
    while version < tables.SCHEMA:
        MIGRATIONS[version](connection)
        version += 1
    connection.execute(sa.update(tables.schema).values(version=version))
