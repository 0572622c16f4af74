"""Spool: what an export must remember, on disk, so that memory does not grow with what is exported."""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Self

import msgspec
import zstandard

from arena.adapters.datasets.credit import Credit, Earned, group_credit, rae_credit
from arena.adapters.datasets.format import Unit
from arena.adapters.datasets.trajectory import Trajectory, settled
from arena.episode import Episode

__all__ = ["Spool"]

_TABLES = """
PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=-8192;
CREATE TABLE episodes (n INTEGER PRIMARY KEY, data BLOB);
CREATE TABLE seats (n INTEGER, seat INTEGER, chosen INTEGER, ended REAL, grp TEXT, agent TEXT, game TEXT, role TEXT,
  reward REAL, PRIMARY KEY (n, seat)) WITHOUT ROWID;
CREATE TABLE credit (n INTEGER, seat INTEGER, advantage REAL, PRIMARY KEY (n, seat)) WITHOUT ROWID;
CREATE TABLE digests (kind TEXT, digest INTEGER, PRIMARY KEY (kind, digest)) WITHOUT ROWID;
BEGIN;
"""
_EARNED = "SELECT n, seat, grp, agent, game, role, reward FROM seats ORDER BY"
_UNITS: dict[Unit, str] = {
    "seat": "SELECT n, seat, n || '-' || seat FROM seats WHERE chosen ORDER BY n, seat",
    "episode": "SELECT n, seat, n FROM seats WHERE chosen ORDER BY n, seat",
    "group": """SELECT n, seat, grp FROM
      (SELECT n, seat, grp, MIN(n) OVER (PARTITION BY grp) AS first FROM seats WHERE chosen)
      ORDER BY first, grp, n, seat""",
}
"""Chosen seats with the unit they belong to: in the order of the source, a group where its first one is."""


class Spool:
    """A file of one export, for episodes that must be read twice or come together, and for digests of rows.

    What SQLite raises, on a full disk for one, leaves a `with` as OSError.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with _told(path):
            self._db = sqlite3.connect(path, isolation_level=None)
            self._db.executescript(_TABLES)
        self._encode, self._decode = msgspec.json.Encoder().encode, msgspec.json.Decoder(Episode).decode
        self._pack, self._unpack = zstandard.ZstdCompressor(1).compress, zstandard.ZstdDecompressor().decompress

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        with _told(self.path):
            self._db.close()
            if isinstance(error, sqlite3.Error):
                raise error

    def add(self, number: int, episode: Episode, seats: list[tuple[Trajectory, bool]]) -> None:
        """Keep an episode with those of its seats that belong to the export; True: it passes all filters."""
        if any(chosen for _, chosen in seats):
            data = self._pack(self._encode(episode))
            self._db.execute("INSERT INTO episodes VALUES (?, ?)", (number, data))
        game = f"{episode.env} {settled(episode)}"
        rows = [
            (number, seat.player, chosen, episode.ended, seat.group_id, seat.agent, game, seat.role, seat.reward)
            for seat, chosen in seats
        ]
        self._db.executemany("INSERT INTO seats VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def credit(self, asked: Credit) -> None:
        """Work out the advantages of all that were added."""
        if asked.kind == "none":
            return
        if asked.kind == "rae":
            found = rae_credit(self._earned("ended, n, seat"), asked.decay)
        else:
            found = group_credit(self._earned("grp, n, seat"), asked.scale)
        self._db.executemany("INSERT INTO credit VALUES (?, ?, ?)", found)

    def _earned(self, order: str) -> Iterator[Earned]:
        return map(Earned._make, self._db.execute(f"{_EARNED} {order}"))

    def __len__(self) -> int:
        """How many seats were chosen."""
        return int(self._db.execute("SELECT COUNT(*) FROM seats WHERE chosen").fetchone()[0])

    def single(self) -> tuple[int, int]:
        """How many groups there are, and how many of them have one member."""
        query = "SELECT COUNT(*), SUM(size = 1) FROM (SELECT COUNT(*) AS size FROM seats GROUP BY grp)"
        groups, single = self._db.execute(query).fetchone()
        return groups, single or 0

    def units(self, unit: Unit) -> Iterator[list[Trajectory]]:
        """The chosen seats with their advantages, unit by unit."""
        rows = self._db.execute(_UNITS[unit])
        number, episode = -1, None
        for _, members in groupby(rows, lambda row: row[2]):
            made = []
            for n, seat, _ in members:
                if n != number or episode is None:
                    number, episode = n, self._episode(n)
                made.append(Trajectory(episode, seat, self._advantage(n, seat)))
            yield made

    def fresh(self, kind: str, digest: int) -> bool:
        """Whether a digest (64 bits, signed) of this kind has not been asked for before."""
        return self._db.execute("INSERT OR IGNORE INTO digests VALUES (?, ?)", (kind, digest)).rowcount == 1

    def count(self, kind: str) -> int:
        """How many digests of this kind there are."""
        return int(self._db.execute("SELECT COUNT(*) FROM digests WHERE kind = ?", (kind,)).fetchone()[0])

    def _episode(self, number: int) -> Episode:
        (data,) = self._db.execute("SELECT data FROM episodes WHERE n = ?", (number,)).fetchone()
        return self._decode(self._unpack(data))

    def _advantage(self, number: int, seat: int) -> float | None:
        found = self._db.execute("SELECT advantage FROM credit WHERE n = ? AND seat = ?", (number, seat)).fetchone()
        return None if found is None else float(found[0])


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Raises OSError for what SQLite raises."""
    try:
        yield
    except sqlite3.Error as error:
        full = getattr(error, "sqlite_errorname", "") == "SQLITE_FULL"  # Python's own errors have none
        why = f"the export keeps episodes and digests in a file while it runs, which failed: {error}"
        raise OSError(errno.ENOSPC if full else errno.EIO, why, str(path)) from error
