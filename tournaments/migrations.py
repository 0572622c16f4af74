"""What brings stores of older schemas up to date, a function a schema. They name tables as they were then."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import msgspec
import sqlalchemy as sa
import zstandard

from arena.episode import Episode
from arena.tournaments.conduct import conduct_of

__all__ = ["MIGRATIONS"]

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


def _add_leases(connection: sa.Connection) -> None:
    """To 4."""
    connection.exec_driver_sql("ALTER TABLE games ADD COLUMN seq BIGINT NOT NULL DEFAULT 0")
    connection.exec_driver_sql("ALTER TABLE games ADD COLUMN roles TEXT NOT NULL DEFAULT '[]'")
    connection.exec_driver_sql("ALTER TABLE games ADD COLUMN teams TEXT NOT NULL DEFAULT '[]'")
    connection.exec_driver_sql(
        "CREATE TABLE leases (game TEXT NOT NULL PRIMARY KEY, owner TEXT NOT NULL, taken FLOAT, expires FLOAT)"
    )


MIGRATIONS: dict[int, Callable[[sa.Connection], None]] = {2: _add_conduct, 3: _add_leases}
"""By schema: what brings a store from it to the next one."""
