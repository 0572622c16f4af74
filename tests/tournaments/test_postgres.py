"""The store on a real PostgreSQL server: all that it does in a file, and what only a server has."""

import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from arena.tournaments import migrations, tables
from arena.tournaments.config import parse
from arena.tournaments.schedule import Fixture, fixtures
from arena.tournaments.store import OldSchemaError, Store, StoreError
from tests.tournaments.postgres import Server, fresh, postgres, serving
from tests.tournaments.test_counts import asked, base, compare, drawn, fill

__all__ = ["fresh", "postgres"]

pytestmark = pytest.mark.postgres

PLAIN: dict[str, Any] = {"games": ["TicTacToe"], "agents": ["random", "first"], "blocks": 3}


@pytest.mark.parametrize("seed", range(4))
def test_counted_is_scanned(seed: int, fresh: str) -> None:
    rng = random.Random(seed)
    repetitions, truncated = rng.choice([1, 2, 4]), rng.choice(["score", "drop"])
    fill(fresh, asked(rng, repetitions, truncated), rng, rng.choice([0.3, 1.0]))
    before = compare(fresh)
    fill(fresh, asked(rng, repetitions + 1, truncated, blocks=5), rng, 1.0)
    assert compare(fresh) > before


def test_a_store_in_a_schema(fresh: str, tmp_path: Path) -> None:
    tournament = parse(PLAIN)
    with pytest.raises(StoreError, match="holds no tournament"):
        Store.open(fresh)
    one, other, *_ = fixtures(tournament)
    with Store.resume(fresh, tournament) as store:
        episode = drawn(random.Random(1), one, "TicTacToe-v0")
        assert store.add(one, episode)
        assert not store.add(one, episode)
        store.add_void(other, msgspec.structs.replace(episode, outcome="void", returns=None, reason="lost"))
        found, marker = store.results()
        assert [result.id for result in found] == [one.id]
        assert store.results(marker)[0] == []
        assert store.void_attempts() == {other.id: 1}
    with Store.open(fresh) as store:
        assert store.finished() == {one.id}
        assert [kept.episode for kept in store.kept("")] == [episode]
        assert [kept.id for kept in store.kept(one.id[:5])] == [one.id]
        assert store.tournament() == tournament
        with pytest.raises(StoreError, match="read-only transaction"):
            store._guarded(lambda: store._connection.execute(sa.delete(tables.games)))
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "tournament.toml").write_text(f'store = "{fresh}"\n', encoding="utf-8")
    with Store.open(folder) as store:
        assert store.finished() == {one.id}, "a run folder says where its store is"


def test_tournaments_of_one_database_do_not_meet(postgres: Server) -> None:
    urls = [postgres.url(f"cup_{n}") for n in range(2)]
    for n, url in enumerate(urls):
        with Store.resume(url, parse({**PLAIN, "seed": n})) as store:
            store.add(*game(next(fixtures(parse({**PLAIN, "seed": n})))))
    seeds = []
    for url in urls:
        with Store.open(url) as store:
            seeds.append(store.tournament().seed)
            assert len(store.finished()) == 1
    assert seeds == [0, 1]
    with pytest.raises(StoreError, match="is another tournament's: its seed is 0, not 1"):
        Store.resume(urls[0], parse({**PLAIN, "seed": 1}))


def game(fixture: Fixture) -> tuple[Fixture, Any]:
    return fixture, msgspec.structs.replace(base("TicTacToe-v0"), seed=fixture.seed)


def test_the_password_is_used_and_neither_shown_nor_kept(postgres: Server) -> None:
    good = postgres.url("secret", user="guarded", password="open%20sesame")
    tournament = msgspec.structs.replace(parse(PLAIN), store=good)  # a configuration that is read may have none
    with Store.resume("anywhere", tournament) as store:
        assert "sesame" not in store.place
        assert store.place.startswith("postgresql://guarded@/postgres?")
        assert "sesame" not in store._value("config")
        assert store.tournament().store == store.place
    for url in (postgres.url("secret", "guarded", "wrong%20pass"), postgres.url("secret", "guarded")):
        with pytest.raises(StoreError) as caught:
            Store.open(url)
        assert "guarded" in str(caught.value)
        assert "wrong" not in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    url = f"postgresql://ann:hushhush@/games?host={tmp_path}"
    for begin in (Store.open, partial(Store.resume, tournament=parse(PLAIN))):
        with pytest.raises(StoreError, match=r"cannot be read: connection .*failed: No such file") as caught:
            begin(url)
        assert "hushhush" not in str(caught.value)


def test_schemas_of_other_versions(fresh: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tournament = parse(PLAIN)
    with Store.resume(fresh, tournament) as store:
        store.add(*game(next(fixtures(tournament))))

    def grow(connection: sa.Connection) -> None:
        connection.exec_driver_sql("CREATE TABLE notes (text TEXT)")

    def grow_and_fail(connection: sa.Connection) -> None:
        grow(connection)
        raise ValueError("a game has no episode")

    now = tables.SCHEMA
    with monkeypatch.context() as patch:
        patch.setattr(tables, "SCHEMA", now + 1)
        patch.setitem(migrations.MIGRATIONS, now, grow_and_fail)
        with pytest.raises(StoreError, match="cannot be brought up to date: a game has no episode; it was left"):
            Store.resume(fresh, tournament)
        patch.setitem(migrations.MIGRATIONS, now, grow)
        with pytest.raises(OldSchemaError, match=f"has schema {now}, this Arena reads {now + 1}"):
            Store.open(fresh)
        with Store.resume(fresh, tournament) as store:
            assert store._connection.exec_driver_sql("SELECT * FROM notes").all() == []
            assert len(store.finished()) == 1
    with pytest.raises(StoreError, match=f"has schema {now + 1}, this Arena reads {now}; a newer Arena wrote it"):
        Store.resume(fresh, tournament)


def side_by_side(count: int, work: Callable[[int], Any]) -> list[Any]:
    """In as many threads, all at once."""
    gate = threading.Barrier(count)

    def begun(number: int) -> Any:
        gate.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begun, range(count)))


def test_many_begin_at_once(fresh: str) -> None:
    tournament = parse(PLAIN)

    def begin(_: int) -> tuple[list[int], list[int]]:
        with Store.resume(fresh, tournament) as store:
            return store._agents, store._entries

    found = side_by_side(6, begin)
    assert all(numbers == found[0] for numbers in found)


def test_a_block_that_many_finish_is_counted_once(fresh: str) -> None:
    tournament = parse({**PLAIN, "repetitions": 4, "blocks": 6})
    games = [*fixtures(tournament)] * 2
    random.Random(3).shuffle(games)

    def play(number: int) -> int:
        rng = random.Random(number)
        with Store.resume(fresh, tournament) as store:
            return sum(store.add(fixture, drawn(rng, fixture, "TicTacToe-v0")) for fixture in games[number::4])

    assert sum(side_by_side(4, play)) == 48
    assert compare(fresh) == 48
    with Store.open(fresh) as store:
        patterns, blocks = [store._connection.exec_driver_sql(query).scalar() for query in COUNTED]
        assert patterns == blocks == 6


def test_what_is_read_together_is_of_one_moment(fresh: str) -> None:
    """Games and their counts agree while others play: what is looked through is not taken for damaged."""
    tournament = parse(PLAIN)
    one, other, *_ = fixtures(tournament)
    query = "SELECT (SELECT count(*) FROM games), (SELECT sum(seats) FROM totals)"
    with Store.resume(fresh, tournament) as playing, Store.open(fresh) as seen:
        playing.add(*game(one))
        with seen._connection.begin():
            before = seen._connection.exec_driver_sql(query).one()
            playing.add(*game(other))
            assert seen._connection.exec_driver_sql(query).one() == before == (1, 2)
        with seen._connection.begin():
            assert seen._connection.exec_driver_sql(query).one() == (2, 4)


COUNTED = ("SELECT sum(blocks) FROM patterns", "SELECT count(*) FROM blocks WHERE counted")


def test_each_game_is_leased_to_one(fresh: str) -> None:
    tournament = parse({**PLAIN, "blocks": 40})
    games = list(fixtures(tournament))

    def claim(number: int) -> set[str]:
        with Store.resume(fresh, tournament) as store:
            mine = store.claim(random.Random(number).sample(games, len(games)), f"owner {number}", 60)
            return {fixture.id for fixture in mine}

    found = side_by_side(5, claim)
    assert sum(map(len, found)) == len(set().union(*found)) == len(games)


def test_results_miss_no_game_that_was_being_stored(fresh: str) -> None:
    """A transaction that began earlier and ends later than another one's games."""
    tournament = parse(PLAIN)
    one, other, *_ = fixtures(tournament)
    with Store.resume(fresh, tournament) as slow, Store.resume(fresh, tournament) as quick:
        with slow._connection.begin():
            slow._connection.exec_driver_sql("SELECT pg_current_xact_id()")
            quick.add(*game(other))
            found, marker = quick.results()
            assert [result.id for result in found] == [other.id]
        slow.add(*game(one))
        assert one.id in [result.id for result in quick.results(marker)[0]]


def test_a_lost_connection_loses_no_game(postgres: Server, fresh: str) -> None:
    tournament = parse(PLAIN)
    games = list(fixtures(tournament))
    with Store.resume(fresh, tournament) as store:
        for fixture in games:
            kill(postgres)
            assert store.add(*game(fixture))
        kill(postgres)
        assert store.finished() == {fixture.id for fixture in games}
    assert compare(fresh) == len(games)


def kill(server: Server) -> None:
    """Every connection but the one that says so."""
    server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")


def test_a_commit_whose_answer_was_lost_is_not_done_twice(
    postgres: Server, fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tournament = parse(PLAIN)
    one, other, *_ = fixtures(tournament)
    with Store.resume(fresh, tournament) as store:
        dialect = store.engine.dialect
        commit, lost = dialect.do_commit, list[int]()

        def cut_off(connection: Any) -> None:
            commit(connection)
            if not lost:
                lost.append(1)
                kill(postgres)
                connection.execute("SELECT 1")

        monkeypatch.setattr(dialect, "do_commit", cut_off)
        assert store.add(*game(one)), "it is ours, and there"
        lost.clear()
        store.add_void(other, msgspec.structs.replace(game(other)[1], outcome="void", returns=None, reason="x"))
        assert lost
    with Store.open(fresh) as store:
        assert store.finished() == {one.id}
        assert store.void_attempts() == {other.id: 1}
        assert store.totals().entries[1][:1] == (1,)
        assert store.totals().entries[1].voids == 1


def test_a_server_that_stays_away_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.tournaments.store._PAUSES", (0.01,))
    tournament = parse(PLAIN)
    one, other, *_ = fixtures(tournament)
    with serving() as server:
        store = Store.resume(server.url(), tournament)
        store.add(*game(one))
        server.control("stop", "-m", "immediate")
        with pytest.raises(StoreError, match=r"postgresql://tester@/postgres.* cannot be written: "):
            store.add(*game(other))
        with pytest.raises(StoreError, match="cannot be read: "):
            store.finished()
        server.control("start")
        assert store.add(*game(other)), "the same store goes on"
        assert store.finished() == {one.id, other.id}
        store.close()


WORKER = """
import random, sys
from arena.tournaments.config import parse
from arena.tournaments.schedule import fixtures
from arena.tournaments.store import Store
from tests.tournaments.test_counts import drawn
from tests.tournaments.test_postgres import PLAIN
tournament = parse({**PLAIN, "blocks": 60})
rng, games = random.Random(int(sys.argv[2])), list(fixtures(tournament))
rng.shuffle(games)
with Store.resume(sys.argv[1], tournament) as store:
    for fixture in games:
        if store.claim([fixture], sys.argv[2], 0.2):
            store.add(fixture, drawn(rng, fixture, "TicTacToe-v0"))
"""


def test_processes_that_are_killed_leave_whole_games(fresh: str, scale: int) -> None:
    tournament = parse({**PLAIN, "blocks": 60})
    Store.resume(fresh, tournament).close()
    before: set[str] = set()
    for turn in range(2 + scale):
        workers = [
            subprocess.Popen([sys.executable, "-c", WORKER, fresh, str(2 * turn + k)], stderr=subprocess.PIPE)
            for k in range(2)
        ]
        try:
            goal = min(len(before) + random.Random(turn).randrange(5, 40), 120)
            while len(before_now := finished(fresh)) < goal and any(worker.poll() is None for worker in workers):
                pass
        finally:
            for worker in workers:
                worker.send_signal(signal.SIGKILL)
                worker.communicate()
        assert before_now >= before
        compare(fresh)
        before = finished(fresh)
    last = subprocess.run([sys.executable, "-c", WORKER, fresh, "99"], capture_output=True, check=False)
    assert last.returncode == 0, last.stderr
    with Store.resume(fresh, tournament) as store:
        for fixture in fixtures(tournament):  # those whose leases of the dead had not expired
            store.add(*game(fixture))
    assert compare(fresh) == 120


def finished(place: str) -> set[str]:
    with Store.open(place) as store:
        return store.finished()
