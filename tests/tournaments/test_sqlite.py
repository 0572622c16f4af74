"""A store file that others open, write to and close at the same moment."""

import os
import sqlite3
import threading
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from arena.tournaments import sqlite
from arena.tournaments.config import Tournament, parse
from arena.tournaments.database import ChangedError
from arena.tournaments.runner import run
from arena.tournaments.sqlite import Sqlite
from arena.tournaments.store import Store


def asked(blocks: int) -> Tournament:
    return parse({"games": ["TicTacToe"], "agents": ["random", "first"], "blocks": blocks})


def played(folder: Path, blocks: int) -> None:
    with Store.resume(folder, asked(blocks)) as store:
        run(asked(blocks), store)


def journal(path: Path) -> str:
    connection = sqlite3.connect(path)
    try:
        return str(connection.execute("PRAGMA journal_mode").fetchone()[0])
    finally:
        connection.close()


def written(database: Sqlite) -> None:
    engine = database.engine(read_only=False)
    with engine.connect() as connection:
        connection.execute(sa.text("SELECT 1"))
    engine.dispose()


def rolled_back(path: Path) -> sqlite3.Connection:
    """A connection to a store that has no write-ahead log, as one of an older version may be."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=DELETE")
    return connection


def test_a_new_store_has_its_log_from_the_beginning(tmp_path: Path) -> None:
    """So that those who open it first, all at once, have nothing to change."""
    database = Sqlite(tmp_path / "results.db")
    database.create()
    assert journal(database.path) == "wal"
    assert [path.name for path in tmp_path.iterdir()] == ["results.db"]


def test_who_turns_the_log_on_waits_for_others(tmp_path: Path) -> None:
    database = Sqlite(tmp_path / "results.db")
    database.create()
    other = rolled_back(database.path)
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.2, lambda: other.execute("COMMIT"))
    timer.start()
    written(database)
    timer.join()
    other.close()
    assert journal(database.path) == "wal"


def test_who_turns_the_log_on_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_WAIT", 0.1)
    database = Sqlite(tmp_path / "results.db")
    database.create()
    other = rolled_back(database.path)
    other.execute("BEGIN IMMEDIATE")
    begun = time.monotonic()
    with pytest.raises(sa.exc.OperationalError, match="database is locked"):
        written(database)
    assert time.monotonic() - begun >= 0.1
    other.close()


def test_a_store_at_rest_that_is_written_to_while_it_is_read(tmp_path: Path) -> None:
    """Such a reader holds no lock: what it read may be of several moments, and is not taken for the truth."""
    played(tmp_path, 1)
    with Store.open(tmp_path) as reader:
        assert len(reader.finished()) == 2
        episodes = reader.episodes()
        next(episodes)
        played(tmp_path, 2)
        with pytest.raises(ChangedError, match=r"results\.db was written to while it was read; read it again"):
            list(episodes)
        with pytest.raises(ChangedError):
            reader.finished()
    with Store.open(tmp_path) as reader:
        assert len(list(reader.episodes())) == 4


@pytest.mark.parametrize("seen", ["", "pages of two moments"])
@pytest.mark.parametrize("times", [2, 99])
def test_who_joins_while_another_writes_looks_again(
    times: int, seen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played(tmp_path, 1)
    plain, left = Sqlite.damage, list(range(times))

    def damage(self: Sqlite, connection: sa.Connection) -> str:
        if not left:
            return plain(self, connection)
        left.pop()  # another writes while the pages are looked at
        status = self.path.stat()
        os.utime(self.path, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000))
        return seen

    monkeypatch.setattr(Sqlite, "damage", damage)
    if times > 2:
        with pytest.raises(ChangedError):
            Store.resume(tmp_path, asked(1))
        return
    with Store.resume(tmp_path, asked(1)) as store:
        assert len(store.finished()) == 2


def test_many_open_one_new_store_at_once(tmp_path: Path) -> None:
    barrier, opened = threading.Barrier(8), list[Path]()

    def join() -> None:
        barrier.wait()
        with Store.resume(tmp_path, asked(1)) as store:
            opened.append(store.path)

    threads = [threading.Thread(target=join) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert opened == [tmp_path / "results.db"] * 8
