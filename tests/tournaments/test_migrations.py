"""Stores as older Arenas wrote them (`stores/`, made by that code) are brought up to date, or refused whole."""

import re
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
import zstandard

from arena.tournaments import migrations, tables
from arena.tournaments.config import Tournament, parse
from arena.tournaments.schedule import fixtures
from arena.tournaments.store import OldSchemaError, Store, StoreError
from tests.tournaments.test_counts import base, compare

STORES = Path(__file__).parent / "stores"
VERSIONS = [2, 3]
WRITTEN = ("id, block, entry, seed, rotation, repetition, agents, returns, forfeits, outcome, reason, plies, digest,"
           " started, ended")  # fmt: skip


def old(folder: Path, version: int) -> Path:
    """A store of that schema, as it was written then."""
    path = folder / "results.db"
    data = zstandard.ZstdDecompressor().decompress((STORES / f"schema_{version}.db.zst").read_bytes())
    path.write_bytes(data)
    return path


def query(path: Path, text: str) -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(text).fetchall()
    finally:
        connection.close()


def tournament_of(path: Path) -> Tournament:
    ((text,),) = query(path, "SELECT value FROM tournament WHERE key = 'config'")
    return msgspec.json.decode(text, type=Tournament)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_old_store_is_brought_up_to_date(version: int, tmp_path: Path) -> None:
    path = old(tmp_path, version)
    tournament = tournament_of(path)
    games, voids = query(path, f"SELECT {WRITTEN} FROM games ORDER BY id"), query(path, "SELECT * FROM voids")
    assert len(games) > 40
    assert len(voids) == 1
    with pytest.raises(OldSchemaError, match=f"has schema {version}, this Arena reads 4; go on with it once"):
        Store.open(path)
    with Store.resume(path, tournament) as store:
        found, marker = store.results()
        assert len(found) == len(games)
        assert store.results(marker)[0] == []
    assert query(path, f"SELECT {WRITTEN} FROM games ORDER BY id") == games
    assert query(path, "SELECT * FROM voids") == voids
    assert compare(path) == len(games)
    assert query(path, "SELECT version FROM arena_schema") == [(4,)]
    with Store.open(path) as store:
        assert {kept.id for kept in store.kept("")} == {row[0] for row in games}
        turns = [turn for episode in store.episodes() for turn in episode.turns]
        answers = sum(attempt.latency > 0 for turn in turns for attempt in turn.attempts)
        assert sum(sum(count.latency.counts.values()) for count in store.totals().agents.values()) == answers > 100


def test_roles_teams_and_conduct_come_from_the_episodes(tmp_path: Path) -> None:
    path = old(tmp_path, 3)
    with Store.resume(path, tournament_of(path)) as store:
        (mafia,) = [number for number, entry in store.entries().items() if entry.id == "SecretMafia-v0"]
        games = store.ranked(mafia)
        assert games.teams is not None
        assert [[int(role == "Mafia") for role in roles] for roles in games.roles] == games.teams.tolist()
        assert any(count.conduct.cost for count in store.totals().agents.values())
        assert store.spent().dollars > 0
    kept = query(path, "SELECT conduct FROM games ORDER BY id")
    fresh = tmp_path / "older"
    fresh.mkdir()
    path = old(fresh, 3)
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE games DROP COLUMN conduct")
        connection.execute("UPDATE arena_schema SET version = 2")
    connection.close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrations, "_BATCH", 5)
        Store.resume(path, tournament_of(path)).close()
    assert query(path, "SELECT conduct FROM games ORDER BY id") == kept, "worked out as it was counted then"


@pytest.mark.parametrize("version", VERSIONS)
def test_an_old_tournament_goes_on(version: int, tmp_path: Path) -> None:
    path = old(tmp_path, version)
    tournament = tournament_of(path)
    grown = msgspec.structs.replace(tournament, blocks=3, repetitions=3)
    with Store.resume(path, grown) as store:
        there = store.finished()
        games = [fixture for fixture in fixtures(grown) if fixture.entry == 0]
        assert {fixture.id for fixture in games} & there
        for fixture in games:
            assert store.add(fixture, base("TicTacToe-v0")) == (fixture.id not in there)
    assert compare(path) > len(there)


def test_the_migrated_tables_are_the_ones_that_are_made_anew(tmp_path: Path) -> None:
    path, made = old(tmp_path, 3), tmp_path / "made.db"
    Store.resume(path, tournament_of(path)).close()
    Store.resume(made, parse({"games": ["TicTacToe"], "agents": ["random", "first"]})).close()

    def shape(path: Path) -> dict[str, Any]:
        inspector = sa.inspect(sa.create_engine(f"sqlite:///{path}"))
        return {
            name: (
                {column["name"]: (str(column["type"]), column["nullable"]) for column in inspector.get_columns(name)},
                sorted(inspector.get_pk_constraint(name)["constrained_columns"]),
                {(str(index["name"]), *index["column_names"]) for index in inspector.get_indexes(name)},
            )
            for name in inspector.get_table_names()
        }

    assert shape(path) == shape(made)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM episodes WHERE game = (SELECT max(id) FROM games)", "game [0-9a-f]{32} has no episode"),
        ("UPDATE games SET entry = 7 WHERE id = (SELECT max(id) FROM games)", "game [0-9a-f]{32} has no entry"),
        ("UPDATE episodes SET data = x'00'", ""),
        ("UPDATE entries SET seats = '?'", "JSON is malformed"),
        ("DROP TABLE entries", "no such table"),
        ("DELETE FROM tournament WHERE key = 'config'", "its tournament has no config"),
        ("UPDATE games SET agents = '[]'", "0 agents in a game of [1236] seats"),
    ],
)
def test_a_damaged_old_store_is_refused_and_stays(version: int, statement: str, message: str, tmp_path: Path) -> None:
    path = old(tmp_path, version)
    tournament = tournament_of(path)
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
    columns = query(path, "SELECT sql FROM sqlite_master ORDER BY name")
    with pytest.raises(StoreError, match=f"cannot be brought up to date: .*{message}.*; it was left as it is"):
        Store.resume(path, tournament)
    assert query(path, "SELECT version FROM arena_schema") == [(version,)]
    assert query(path, "SELECT sql FROM sqlite_master ORDER BY name") == columns


def grow(connection: sa.Connection) -> None:
    connection.exec_driver_sql("CREATE TABLE notes (text TEXT)")
    connection.exec_driver_sql("INSERT INTO notes SELECT name FROM agents")


def grow_and_fail(connection: sa.Connection) -> None:
    grow(connection)
    raise RuntimeError("the power is out")


def test_the_next_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tournament = parse({"games": ["TicTacToe"], "agents": ["random", "first"], "blocks": 2})
    one, *_ = fixtures(tournament)
    with Store.resume(tmp_path, tournament) as store:
        store.add(one, base("TicTacToe-v0"))
    now, results = tables.SCHEMA, tmp_path / "results.db"
    monkeypatch.setattr(tables, "SCHEMA", now + 1)
    monkeypatch.setitem(migrations.MIGRATIONS, now, grow_and_fail)
    with pytest.raises(RuntimeError, match="the power is out"):
        Store.resume(tmp_path, tournament)
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        query(results, "SELECT * FROM notes")
    monkeypatch.setitem(migrations.MIGRATIONS, now, grow)
    with pytest.raises(OldSchemaError, match=re.escape(f"has schema {now}, this Arena reads {now + 1}; go on")):
        Store.open(tmp_path)
    with Store.resume(tmp_path, tournament) as store:
        assert store.finished() == {one.id}
    assert query(results, "SELECT text FROM notes") == [("random",), ("first",)]
