"""Leases: every unfinished game is one process's, for a while."""

import multiprocessing
import random
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from arena.tournaments import leases, tables
from arena.tournaments.config import Tournament, parse
from arena.tournaments.schedule import Fixture, fixtures
from arena.tournaments.store import Store, StoreError
from tests.tournaments.test_counts import base

PLAIN: dict[str, Any] = {"games": ["TicTacToe"], "agents": ["random", "first"], "blocks": 4}


@pytest.fixture
def tournament() -> Tournament:
    return parse(PLAIN)


def ids(games: list[Fixture]) -> list[str]:
    return [fixture.id for fixture in games]


def test_a_game_is_leased_to_one_owner(tmp_path: Path, tournament: Tournament) -> None:
    games = list(fixtures(tournament))
    with Store.resume(tmp_path, tournament) as one, Store.resume(tmp_path, tournament) as other:
        assert one.claim(games[:3], "one", 60) == games[:3]
        assert other.claim(games[:5], "other", 60) == games[3:5], "in the order they were asked for"
        assert one.claim(games, "one", 60) == [*games[:3], *games[5:]], "one's own may be claimed again"
        assert one.claim([], "one", 60) == []
        assert one.owners() == ["one", "other"]


def test_a_lease_ends(tmp_path: Path, tournament: Tournament) -> None:
    games = list(fixtures(tournament))
    with Store.resume(tmp_path, tournament) as store:
        store.claim(games[:4], "gone", -1)
        assert store.claim(games[:2], "next", 60) == games[:2]
        assert store.renew("gone", 60) == 2, "what was taken over is not renewed"
        assert store.claim(games[:4], "third", 60) == []
        store.release("gone", ids(games[2:3]))
        assert store.claim(games[:4], "third", 60) == games[2:3]
        store.release("gone")
        assert store.claim(games[:4], "third", 60) == games[2:4]
        store.release("nobody")
        assert store.renew("nobody", 60) == 0


def test_a_finished_game_is_never_leased(tmp_path: Path, tournament: Tournament) -> None:
    games = list(fixtures(tournament))
    with Store.resume(tmp_path, tournament) as store:
        store.claim(games, "one", 60)
        store.add(games[0], base("TicTacToe-v0"))
        assert store.renew("one", 60) == len(games) - 1, "its lease has ended"
        store.claim(games[1:3], "one", -1)
        assert store.add(games[1], base("TicTacToe-v0")), "who was slow may still be the first to finish"
        assert store.claim(games, "other", 60) == games[2:3]
        assert store.claim(games[:2], "one", 60) == []


def test_what_was_finished_while_we_asked_is_given_back(tmp_path: Path, tournament: Tournament) -> None:
    """Between a server's answer that a game is not finished and the lease it may be: the second look tells."""
    games = ids(list(fixtures(tournament)))
    with Store.resume(tmp_path, tournament) as store:
        looks: list[list[str]] = []
        real = leases._finished

        def late(connection: sa.Connection, asked: list[str]) -> set[str]:
            looks.append(asked)
            return real(connection, asked) if len(looks) % 2 else set(games[:1])

        with pytest.MonkeyPatch.context() as patch, store._connection.begin():
            patch.setattr(leases, "_finished", late)
            assert leases.claim(store._connection, games[:3], "one", 60) == set(games[1:3])
        assert store.renew("one", 60) == 2


def test_many_games_at_once(tmp_path: Path) -> None:
    tournament = parse({**PLAIN, "blocks": 700})
    games = list(fixtures(tournament))
    with Store.resume(tmp_path, tournament) as store:
        assert store.claim(games, "one", 60) == games
        store.release("one", ids(games[:1200]))
        assert store.claim(games, "other", 60) == games[:1200]


def work(place: Path, number: int, found: Any) -> None:
    tournament = parse(PLAIN | {"blocks": 30})
    games = list(fixtures(tournament))
    random.Random(number).shuffle(games)
    with Store.resume(place, tournament) as store:
        mine = [game.id for at in range(0, 60, 6) for game in store.claim(games[at : at + 6], str(number), 60)]
        kept = [store.add(game, base("TicTacToe-v0")) for game in games if game.id in mine]
        found.put((mine, all(kept)))


def test_processes_share_a_file(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    found = context.Queue()
    workers = [context.Process(target=work, args=(tmp_path, number, found)) for number in range(3)]
    for worker in workers:
        worker.start()
    shares = [found.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join()
    claimed = [game for mine, _ in shares for game in mine]
    assert len(claimed) == len(set(claimed)) == 60
    assert all(kept for _, kept in shares)
    with Store.open(tmp_path) as store:
        assert store.finished() == set(claimed)


def test_a_tournament_that_is_being_played_is_not_replaced(tmp_path: Path, tournament: Tournament) -> None:
    other = parse({**PLAIN, "agents": ["first", "mcts?simulations=1"]})
    games = list(fixtures(tournament))
    with Store.resume(tmp_path, tournament) as store:
        store.claim(games, "one", 60)
        with pytest.raises(StoreError, match="is another tournament's, which is being played; choose another --out"):
            Store.resume(tmp_path, other)
        with Store.resume(tmp_path, tournament) as second:
            assert second._agents == store._agents, "the same one may be begun twice"
        assert store.add(games[0], base("TicTacToe-v0"))
        assert list(store.agents().values()) == ["random", "first"]


def test_what_came_to_nothing_is_forgotten(tmp_path: Path, tournament: Tournament) -> None:
    games = list(fixtures(tournament))
    with Store.resume(tmp_path, tournament) as store:
        store.claim(games, "gone", -1)
        store.add_void(games[0], base("TicTacToe-v0"))
    with Store.resume(tmp_path, parse({**PLAIN, "agents": ["first", "mcts?simulations=1"]})) as store:
        assert list(store.agents().values()) == ["first", "mcts?simulations=1"]
        for table in (tables.leases, tables.voids, tables.totals, tables.latencies):
            assert store._connection.execute(sa.select(sa.func.count()).select_from(table)).scalar() == 0
