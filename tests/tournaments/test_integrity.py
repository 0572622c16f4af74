import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from arena.tournaments.config import parse
from arena.tournaments.report import board
from arena.tournaments.schedule import fixtures
from arena.tournaments.store import Store, StoreError
from tests.tournaments.played import played
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


def test_an_agent_that_was_refused_before_its_first_game_binds_nobody(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"games": ["TicTacToe"], "agents": ["random", "first"], "blocks": 2}
    played(tmp_path, **asked)
    joined = parse({**asked, "agents": ["random", "first", {"spec": "scripted:1", "name": "new"}]})
    Store.resume(tmp_path, joined).close()  # and then its preflight fails
    other = parse({**asked, "agents": ["random", "first", {"spec": "scripted:2", "name": "new"}]})
    for again in (parse(asked), other, joined, other):
        with Store.resume(tmp_path, again) as store:
            names = list(store.agents().values())
            assert names.count("new") == len(again.agents) - 2
            assert len(set(names)) == len(names)
            assert {"random", "first"} <= set(names)
            assert len(board(store).sections[0].rows) == 2
    with pytest.raises(StoreError, match="agent 'first' played in it"):
        Store.resume(tmp_path, parse({**asked, "agents": ["random", "scripted:1"]}))


def test_who_is_listed_by_others_that_play_is_not_left_out(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"games": ["TicTacToe"], "agents": ["random", "first"], "blocks": 2}
    played(tmp_path, **asked)
    joined = parse({**asked, "agents": ["random", "first", "scripted:1"]})
    with Store.resume(tmp_path, joined) as store:
        assert store.claim(list(fixtures(joined)), "another", 60.0)
        with pytest.raises(StoreError, match="agent 'scripted:1' played in it"):
            Store.resume(tmp_path, parse(asked))
        store.release("another")
    Store.resume(tmp_path, parse(asked)).close()
