import hashlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from arena.episode import Episode
from arena.match import play_sync
from arena.replaying import replay
from arena.tournaments import sqlite, tables
from arena.tournaments import store as store_module
from arena.tournaments.config import Tournament, parse
from arena.tournaments.report import board
from arena.tournaments.runner import run
from arena.tournaments.schedule import Fixture, fixtures
from arena.tournaments.sqlite import Sqlite
from arena.tournaments.store import Store, StoreError, results_file

PLAIN: dict[str, Any] = {"games": ["TicTacToe"], "agents": ["random", "first"], "blocks": 2}


def played(asked: Tournament, fixture: Fixture) -> Episode:
    entry = asked.games[fixture.entry]
    return play_sync(entry.id, [asked.agents[agent].spec for agent in fixture.agents], fixture.seed, entry.options)


def filled(folder: Path, **change: Any) -> Tournament:
    asked = parse({**PLAIN, **change})
    with Store.resume(folder, asked) as store:
        run(asked, store)
    return asked


def state(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_a_game_and_its_episode_are_kept(tmp_path: Path) -> None:
    asked = parse(PLAIN)
    fixture = next(fixtures(asked))
    episode = played(asked, fixture)
    with Store.resume(tmp_path, asked) as store:
        assert store.finished() == set()
        assert store.add(fixture, episode)
        assert store.finished() == {fixture.id}
    with Store.open(tmp_path) as store:
        (row,) = store.games()
        assert (row.id, row.block, row.returns, row.truncated) == (fixture.id, fixture.block, episode.returns, False)
        assert [store.agents()[agent] for agent in row.agents] == ["random", "first"]
        assert store.entries()[row.entry].id == "TicTacToe-v0"
        (kept,) = store.episodes()
        assert kept == episode
        replay(kept)


def test_the_same_game_is_kept_once(tmp_path: Path) -> None:
    asked = parse(PLAIN)
    fixture = next(fixtures(asked))
    with Store.resume(tmp_path, asked) as store:
        assert store.add(fixture, played(asked, fixture))
        assert not store.add(fixture, played(asked, fixture))
        assert len(store.games()) == len(list(store.episodes())) == 1


def test_two_writers_do_not_double(tmp_path: Path) -> None:
    asked = parse(PLAIN)
    fixture = next(fixtures(asked))
    with Store.resume(tmp_path, asked) as one, Store.resume(tmp_path, asked) as other:
        assert one.add(fixture, played(asked, fixture))
        assert not other.add(fixture, played(asked, fixture))
        assert one.finished() == other.finished() == {fixture.id}


def test_void_attempts_stay_apart(tmp_path: Path) -> None:
    asked = parse(PLAIN)
    first, second, *_ = fixtures(asked)
    void = play_sync("TicTacToe-v0", ["first", "moody"], seed=1)
    assert void.outcome == "void"
    with Store.resume(tmp_path, asked) as store:
        store.add_void(first, void)
        store.add_void(first, void)
        store.add_void(second, void)
        store.add(second, played(asked, second))
        assert store.void_attempts() == {first.id: 2}
        assert store.finished() == {second.id}
        assert [reason for _, _, reason in store.voids()] == [void.reason] * 3


def test_episodes_by_game_and_agent(tmp_path: Path) -> None:
    filled(tmp_path, games=["TicTacToe", "KuhnPoker"], agents=["random", "first", "mcts?simulations=1"], blocks=1)
    with Store.open(tmp_path) as store:
        assert len(list(store.episodes())) == 12
        assert {episode.env for episode in store.episodes([2])} == {"KuhnPoker-v0"}
        mine = list(store.episodes([1], agent=3))
        assert len(mine) == 4
        assert all("mcts?simulations=1" in [seat.agent for seat in episode.seats] for episode in mine)


def test_a_path_is_a_folder_or_a_file(tmp_path: Path) -> None:
    assert results_file(tmp_path) == tmp_path / "results.db"
    assert results_file("runs/x") == Path("runs/x/results.db")
    assert results_file("some/where.db") == Path("some/where.db")


def not_sqlite(path: Path) -> None:
    path.write_bytes(b"hello, I am a diary\n" * 100)


def empty(path: Path) -> None:
    path.touch()


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()


def later_schema(path: Path) -> None:
    filled(path.parent)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE arena_schema SET version = 99")
    connection.close()


def lost_column(path: Path) -> None:
    filled(path.parent)
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE games DROP COLUMN plies")
    connection.close()


def cut_short(path: Path) -> None:
    filled(path.parent, blocks=40)
    os.truncate(path, path.stat().st_size // 2)


def scribbled(path: Path) -> None:
    filled(path.parent, blocks=40)
    with path.open("r+b") as file:
        for page in range(4096, path.stat().st_size, 4096):
            file.seek(page)
            file.write(os.urandom(512))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (not_sqlite, "is not an SQLite file"),
        (empty, "is not an SQLite file"),
        (foreign, "is a database, but not a store of tournaments"),
        (later_schema, "has schema 99, this Arena reads 4; a newer Arena wrote it; it was left"),
        (lost_column, "is damaged: games has no plies"),
        (cut_short, "malformed|damaged"),
        (scribbled, "malformed|damaged|cannot be read"),
    ],
)
def test_what_is_no_store_is_refused_and_untouched(spoil: Callable[[Path], None], message: str, tmp_path: Path) -> None:
    spoil(results_file(tmp_path))
    before = state(tmp_path)
    with pytest.raises(StoreError, match=message):
        Store.open(tmp_path)
    with pytest.raises(StoreError, match=message):
        Store.resume(tmp_path, parse(PLAIN))
    assert state(tmp_path) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "its seed is 0, not 1"),
        ({"truncated": "drop"}, 'its truncated is "score", not "drop"'),
        ({"max_turns": 4}, "its max_turns is null, not 4"),
        ({"referee": {"retries": 2}}, r"its referee is .*not .*retries"),
        ({"agents": ["random", "mcts"]}, "agent 'first' played in it"),
        ({"agents": [{"spec": "random", "name": "dice"}, "first"]}, "agent 'dice' is called 'random' in it"),
        ({"games": ["KuhnPoker"]}, "it holds 2 blocks of TicTacToe-v0"),
        ({"blocks": 1}, "it holds 2 blocks of TicTacToe-v0"),
    ],
)
def test_another_tournament_is_refused_and_untouched(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    filled(tmp_path)
    before = state(tmp_path)
    with pytest.raises(StoreError, match=message):
        Store.resume(tmp_path, parse({**PLAIN, **change}))
    assert state(tmp_path) == before


@pytest.mark.parametrize(
    ("change", "games"),
    [
        ({}, 4),
        ({"blocks": 3}, 6),
        ({"repetitions": 2}, 8),
        ({"agents": ["random", "mcts?simulations=1", "first"]}, 12),
        ({"games": ["KuhnPoker", "TicTacToe"]}, 8),
        ({"concurrency": 1, "name": "again", "deadline": 60, "void_retries": 0}, 4),
    ],
)
def test_a_tournament_may_grow(change: dict[str, Any], games: int, tmp_path: Path) -> None:
    filled(tmp_path)
    with Store.open(tmp_path) as store:
        before = store.games()
    asked = filled(tmp_path, **change)
    with Store.open(tmp_path) as store:
        after = {row.id: row for row in store.games()}
        assert store.tournament() == asked
        assert len(after) == games
        assert all(after[row.id] == row for row in before)


def test_nothing_played_binds_nobody(tmp_path: Path) -> None:
    Store.resume(tmp_path, parse(PLAIN)).close()
    filled(tmp_path, games=["KuhnPoker"], agents=["first", "mcts?simulations=1"], seed=5)
    with Store.open(tmp_path) as store:
        assert list(store.agents().values()) == ["first", "mcts?simulations=1"]
        assert [entry.id for entry in store.entries().values()] == ["KuhnPoker-v0"]


def test_a_store_without_a_tournament_yet(tmp_path: Path) -> None:
    Sqlite(tmp_path / "results.db").create()
    with Store.open(tmp_path) as store, pytest.raises(StoreError, match="its tournament has no config"):
        board(store)
    with Store.resume(tmp_path, parse(PLAIN)) as store:
        assert store.tournament() == parse(PLAIN)


def test_a_store_that_cannot_be_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise sa.exc.OperationalError("CREATE", {}, Exception("database or disk is full"))

    monkeypatch.setattr(tables, "fill", full)
    with pytest.raises(StoreError, match=r"results.db cannot be written: database or disk is full"):
        Store.resume(tmp_path, parse(PLAIN))


def test_there_must_be_a_store_to_open(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"results\.db does not exist; name a run folder"):
        Store.open(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_reading_leaves_no_trace(tmp_path: Path) -> None:
    filled(tmp_path)
    before = state(tmp_path)
    with Store.open(tmp_path) as store:
        assert len(store.games()) == 4
        assert len(list(store.episodes())) == 4
        assert store.versions()["arena"]
    assert state(tmp_path) == before


def test_reading_while_another_writes(tmp_path: Path) -> None:
    asked = parse(PLAIN)
    fixture = next(fixtures(asked))
    with Store.resume(tmp_path, asked) as writer:
        writer.add(fixture, played(asked, fixture))
        with Store.open(tmp_path) as reader:
            assert [row.id for row in reader.games()] == [fixture.id]


def refuse(*_: object) -> None:
    raise OSError("not here")


def test_no_half_made_store_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.tournaments.sqlite.os.link", refuse)
    monkeypatch.setattr("arena.tournaments.sqlite.os.replace", refuse)
    with pytest.raises(OSError, match="not here"):
        Store.resume(tmp_path, parse(PLAIN))
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.tournaments.sqlite.os.link", refuse)
    filled(tmp_path)
    with Store.open(tmp_path) as store:
        assert len(store.games()) == 4


@pytest.mark.parametrize("links", [True, False])
def test_another_run_may_be_quicker(links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not links:
        monkeypatch.setattr("arena.tournaments.sqlite.os.link", refuse)
    filled(tmp_path)
    before = state(tmp_path)
    Sqlite(results_file(tmp_path)).create()
    assert state(tmp_path) == before


def test_a_large_store_is_read_through_before_it_is_written_only(tmp_path: Path) -> None:
    filled(tmp_path, blocks=40)
    size = results_file(tmp_path).stat().st_size
    assert pages_read(tmp_path, size, Store.open) == 1
    assert pages_read(tmp_path, size - 1, Store.open) == 0
    assert pages_read(tmp_path, size - 1, lambda run: Store.resume(run, parse({**PLAIN, "blocks": 40}))) == 1


def pages_read(folder: Path, small: int, opened: Callable[[Path], Store]) -> int:
    """How often the whole file was checked."""
    checks: list[Path] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite, "SMALL", small)
        patch.setattr(store_module, "check_whole", lambda _, database: checks.append(database.path))
        opened(folder).close()
    return len(checks)


@pytest.mark.parametrize("game", ["ConnectFour?columns=7", "ConnectFour?rows=6&connect=4"])
def test_defaults_written_out_are_the_same_tournament(game: str, tmp_path: Path) -> None:
    agents = ["mcts?simulations=1", "first"]
    filled(tmp_path, games=["ConnectFour"], agents=agents)
    with Store.open(tmp_path) as store:
        before = store.games()
    agents = ["mcts?simulations=1&c=1", "first"]
    filled(tmp_path, games=[game], agents=[{"spec": agents[0], "name": "mcts?simulations=1"}, "first"])
    with Store.open(tmp_path) as store:
        assert store.games() == before
        assert [entry.label for entry in store.entries().values()] == ["ConnectFour-v0"]


def test_an_odd_path(tmp_path: Path) -> None:
    folder = tmp_path / "100 % ?mode=ro#x 'q'"
    folder.mkdir()
    filled(folder)
    with Store.open(folder) as store:
        assert len(store.games()) == 4
