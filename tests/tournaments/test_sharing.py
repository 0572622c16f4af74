"""Several runs of one tournament, what ends them, and agents that join later."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from arena.episode import Episode
from arena.match import play_sync
from arena.tournaments.budget import Budget
from arena.tournaments.config import Tournament, parse
from arena.tournaments.history import History
from arena.tournaments.owners import gone, new_owner
from arena.tournaments.runner import Tally, run
from arena.tournaments.schedule import fixtures
from arena.tournaments.stopping import Spent
from arena.tournaments.store import Store
from arena.tournaments.supply import Supply

PLAIN: dict[str, Any] = {"games": ["TicTacToe"], "agents": ["random", "first"], "blocks": 3}


def asked(**change: Any) -> Tournament:
    return parse({**PLAIN, **change})


def play(folder: Path, tournament: Tournament, **options: Any) -> Tally:
    with Store.resume(folder, tournament) as store:
        return run(tournament, store, **options)


def ids(folder: Path) -> list[str]:
    with Store.open(folder) as store:
        return [row.id for row in store.games()]


def test_what_another_machine_has_leased_is_waited_for_and_taken_over(tmp_path: Path) -> None:
    tournament, waited = asked(), []
    with Store.resume(tmp_path, tournament) as other:
        leased = other.claim(list(fixtures(tournament))[:4], "elsewhere/boot/1/99/token", 3.0)
        assert len(leased) == 4
        tally = play(tmp_path, tournament, report=lambda tally: waited.append((tally.waiting, tally.done)), tick=0.05)
    assert (True, 2) in waited, "all that was left was leased to another"
    assert (tally.finished, tally.left, tally.waiting) == (6, 0, False)
    assert len(ids(tmp_path)) == 6


def test_what_a_dead_process_of_this_machine_has_leased_is_taken_over_at_once(tmp_path: Path) -> None:
    tournament = asked()
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    owner = new_owner()
    dead = owner.replace(f"/{os.getpid()}/", f"/{process.pid}/")
    assert gone(dead, owner)
    with Store.resume(tmp_path, tournament) as other:
        assert len(other.claim(list(fixtures(tournament)), dead, 10_000.0)) == 6
    assert play(tmp_path, tournament).finished == 6


def test_who_is_gone_is_known_only_here() -> None:
    mine, other = new_owner(), new_owner()
    assert not gone(mine, mine)
    assert not gone(other, mine), "another run of this process"
    assert gone(mine[:-8] + "00000000", mine), "our number, but not our run: a process before us had it"
    assert not gone(mine.replace(f"/{os.getpid()}/", "/1/"), mine), "it runs"
    assert not gone("elsewhere/boot/1/99/token", mine)
    assert not gone("nonsense", mine)


def test_two_runs_share_and_no_game_is_played_twice(tmp_path: Path) -> None:
    tournament = asked(agents=["slow?seconds=0.01", "first", "random"], blocks=10, concurrency=4)
    tallies: list[Tally] = []
    threads = [threading.Thread(target=lambda: tallies.append(play(tmp_path, tournament))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert [tally.done for tally in tallies] == [60, 60]
    assert sum(tally.finished for tally in tallies) == 60
    assert min(tally.finished for tally in tallies) > 0
    with Store.open(tmp_path) as store:
        assert store.owners() == []
        assert store.voids() == []


def test_what_another_run_left_void_is_left(tmp_path: Path) -> None:
    """Its leases end, its void attempts stay: they are not played again here."""
    tournament = asked(agents=["moody", "first"], blocks=2, void_limit=1.0, void_retries=0)
    with Store.resume(tmp_path, tournament) as other:
        odd = [fixture for fixture in fixtures(tournament) if fixture.seed % 2]
        assert len(other.claim(odd, "elsewhere/boot/1/99/token", 10_000.0)) == 2
        void = play_sync("TicTacToe", ["flaky?times=100", "first"])
        left = list(odd)

        def report(tally: Tally) -> None:
            while tally.waiting and left:
                other.add_void(left.pop(), void)

        tally = play(tmp_path, tournament, report=report, tick=0.05)
    assert (tally.finished, tally.given_up, tally.voids, tally.left) == (2, 2, 0, 0)


@pytest.mark.parametrize("schedule", ["swiss?rounds=2", "knockout?extra=1", "adaptive"])
def test_schedules_that_depend_on_results_end(schedule: str, tmp_path: Path) -> None:
    tournament = asked(agents=["random", "first", "dreamy", "scripted:5"], schedule=schedule, blocks=2)
    tally = play(tmp_path, tournament)
    assert tally.left == 0
    assert 0 < tally.done == tally.total == len(ids(tmp_path))
    again = play(tmp_path, tournament)
    assert (again.there, again.finished, again.left) == (tally.done, 0, 0)


def test_games_that_stay_void_hold_no_schedule(tmp_path: Path) -> None:
    tournament = asked(
        agents=["moody", "first", "random", "dreamy"], schedule="swiss", blocks=2, void_limit=1.0, void_retries=1
    )
    tally = play(tmp_path, tournament)
    assert tally.given_up > 0
    assert (tally.left, tally.total) == (0, tally.done + tally.given_up)


def test_an_agent_that_joins_is_placed_and_old_games_are_kept(tmp_path: Path) -> None:
    agents = ["random", "first", "mcts?simulations=8"]
    assert play(tmp_path, asked(agents=agents, blocks=4)).finished == 24
    old = ids(tmp_path)
    joined = asked(agents=[*agents, "mcts?simulations=16"], blocks=4, schedule="adaptive?uniform=0.0", stop="games=36")
    tally = play(tmp_path, joined)
    assert (tally.there, tally.finished, tally.left) == (24, 12, 0)
    with Store.open(tmp_path) as store:
        assert set(old) < {row.id for row in store.games()}
        newcomer = max(store.agents())
        assert sum(newcomer in row.agents for row in store.games() if row.id not in old) >= 10


def test_a_budget_of_games_is_kept_to_the_game(tmp_path: Path) -> None:
    tally = play(tmp_path, asked(blocks=50, stop="games=21", concurrency=8))
    assert (tally.done, tally.left) == (21, 0)
    assert tally.ended == "budget: 21 of 21 games are spent"
    assert len(ids(tmp_path)) == 21
    again = play(tmp_path, asked(blocks=50, stop="games=21", concurrency=8))
    assert (again.there, again.finished, again.ended) == (21, 0, tally.ended)


def test_tokens_are_foreseen_for_games_under_way(tmp_path: Path) -> None:
    tally = play(tmp_path, asked(agents=["modelled", "first"], blocks=500, stop="tokens=40000", concurrency=8))
    assert tally.ended.startswith("budget: ")
    with Store.open(tmp_path) as store:
        spent = store.spent()
    most = max(spent.tokens / spent.games, 1.0)
    assert 40_000 <= spent.tokens < 40_000 + 8 * 3 * most


def test_a_sequential_test_ends_the_run(tmp_path: Path) -> None:
    tally = play(tmp_path, asked(agents=["mcts?simulations=30", "random"], blocks=400, stop="sprt=0:100"))
    assert "sequential test: mcts?simulations=30 is +100 Elo to random" in tally.ended
    assert tally.done < 400
    assert tally.distance.startswith("log likelihood ratio")


def test_minutes_are_the_runs(tmp_path: Path) -> None:
    tally = play(tmp_path, asked(agents=["slow", "first"], blocks=5000, stop="minutes=0.01", concurrency=2))
    assert "minutes are spent" in tally.ended
    assert 0 < tally.done < 10_000


def test_room_for_games() -> None:
    budget = Budget(asked(stop="tokens=1000,games=30"))
    assert (budget.room(0), budget.room(10), budget.room(30)) == (30, 20, 0)
    budget.base = Spent(10, 500, 0.0)
    assert (budget.room(0), budget.room(4), budget.room(10)) == (10, 6, 0)
    budget.own = Spent(10, 490, 0.0)
    assert (budget.room(0), budget.room(1)) == (1, 0), "what is left is used, one at a time"
    assert Budget(asked()).room(10_000) > 10_000


def test_a_supply_skips_what_is_finished_and_remembers_only_if_it_must() -> None:
    tournament, tally = asked(blocks=2), Tally(0)
    supply, games = Supply(tournament, tally), list(fixtures(tournament))
    assert (tally.total, tally.open_ended, supply.remembers) == (4, False, False)
    supply.learn([games[1].id], [], {games[2].id: 3, games[3].id: 1}, redo=False)
    assert supply.next() == [games[0]]
    assert supply.next() == [games[3]]
    assert (supply.next(), supply.dry, tally.there, tally.given_up) == (None, True, 1, 1)
    supply.played(games[0], finished_episode())
    assert supply.history.finished == 0
    redo = Supply(tournament, Tally(0))
    redo.learn([], [], {games[2].id: 3}, redo=True)
    assert [fixture for _ in range(2) for fixture in redo.next() or ()] == games
    redo.hear([], {games[2].id: 6})
    assert redo.lost(games[2]), "void attempts since count"


def test_a_supply_learns_from_results() -> None:
    tournament = asked(blocks=2, schedule="adaptive")
    supply = Supply(tournament, Tally(0))
    fixture = (supply.next() or [])[0]
    supply.played(fixture, finished_episode())
    supply.played(fixture, finished_episode())
    assert supply.history.finished == 1
    assert isinstance(supply.history, History)


def finished_episode() -> Episode:
    return play_sync("TicTacToe", ["first", "first"])
