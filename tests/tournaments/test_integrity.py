import re
import sqlite3
from pathlib import Path

import pytest

from arena.tournaments.report import board
from arena.tournaments.store import Store, StoreError
from tests.tournaments.test_store import filled, state


def read_all(folder: Path) -> None:
    with Store.open(folder) as store:
        board(store)
        for entry, seats in store.seats().items():
            store.columns(entry, seats)
        store.voids()
        list(store.episodes())


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM tournament WHERE key = 'config'", "its tournament has no config"),
        ("DELETE FROM tournament", "its tournament has no config"),
        ("UPDATE tournament SET value = '{' WHERE key = 'config'", "cannot be read: Input data was truncated"),
        ("UPDATE tournament SET value = '[]' WHERE key = 'versions'", "cannot be read: Expected `object`"),
        ("DELETE FROM agents", "agent 1 played in it and is not listed"),
        ("DELETE FROM agents WHERE id = 2", "agent 2 played in it and is not listed"),
        ("DELETE FROM entries", "a game was played that is not listed"),
        ("UPDATE entries SET written = '7'", "cannot be read: Expected `object`"),
        ("UPDATE games SET forfeits = '[7]'", "the forfeit of position 7 in a game of 2 seats"),
        ("UPDATE games SET forfeits = '[-1]'", "the forfeit of position -1 in a game of 2 seats"),
        ("UPDATE games SET returns = '[1.0]'", "1 numbers for a game of 2 seats"),
        ("UPDATE games SET returns = '[1.0, 2.0, 3.0]'", "3 numbers for a game of 2 seats"),
        ("UPDATE games SET agents = '[1]'", "1 numbers for a game of 2 seats"),
        ("UPDATE games SET agents = '[1, 9]'", "agent 9 played in it and is not listed"),
        ("UPDATE games SET returns = x'5b00'", "bytes where a list was written"),
        ("UPDATE games SET returns = 'nought'", "cannot be read: JSON is malformed"),
        ("UPDATE games SET conduct = '[]'", "the conduct of 0 in a game of 2 seats"),
        ("UPDATE games SET conduct = '[[1,1],[1,1,1,1,1,1,1,1,1,1,1,1]]'", "a conduct of 12 numbers, there are 11"),
        ("UPDATE games SET conduct = '[7]'", "cannot be read: Expected `array`"),
        ("INSERT INTO voids VALUES (1, 'x', 1, '[1,5]', 'r', 0, x'00')", "agent 5 played in it and is not listed"),
        ("INSERT INTO voids VALUES (1, 'x', 1, '?', 'r', 0, x'00')", "cannot be read: JSON is malformed"),
        ("UPDATE episodes SET data = x'00'", "cannot be read: "),
        ("DELETE FROM games WHERE id = (SELECT max(id) FROM games)", "its totals are not those of its games"),
        ("DELETE FROM totals", "its totals are not those of its games"),
        ("DELETE FROM patterns", "its table of finished blocks is not that of its blocks"),
        ("UPDATE patterns SET blocks = blocks + 1", "its table of finished blocks is not that of its blocks"),
    ],
)
def test_damaged_rows_are_told(statement: str, message: str, tmp_path: Path) -> None:
    filled(tmp_path)
    with sqlite3.connect(tmp_path / "results.db") as connection:
        connection.execute(statement)
    connection.close()
    before = state(tmp_path)["results.db"]
    with pytest.raises(StoreError, match=re.escape(message)) as caught:
        read_all(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}/results.db ")
    assert str(caught.value).count("\n") == 0
    assert state(tmp_path)["results.db"] == before


@pytest.mark.parametrize("table", ["tournament", "agents", "entries"])
def test_what_is_damaged_is_not_played_on(table: str, tmp_path: Path) -> None:
    asked = filled(tmp_path)
    with sqlite3.connect(tmp_path / "results.db") as connection:
        connection.execute(f"DELETE FROM {table}")
    connection.close()
    with pytest.raises(StoreError, match=r"results.db is damaged: "):
        Store.resume(tmp_path, asked)
