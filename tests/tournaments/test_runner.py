import gc
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from arena.episode import Episode, validate
from arena.replaying import replay
from arena.tournaments.config import parse
from arena.tournaments.recorder import Recorder
from arena.tournaments.report import board
from arena.tournaments.runner import Aborted, Refused, Tally, run
from arena.tournaments.schedule import Fixture
from arena.tournaments.store import GameRow, Store, StoreError
from tests.tournaments.players import Counted, Watched

PLAIN: dict[str, Any] = {"games": ["TicTacToe", "KuhnPoker"], "agents": ["random", "first"], "blocks": 3}


def play(folder: Path, **change: Any) -> Tally:
    asked = parse({**PLAIN, **change})
    with Store.resume(folder, asked) as store:
        return run(asked, store)


def rows(folder: Path) -> list[GameRow]:
    with Store.open(folder) as store:
        return store.games()


def test_plays_all_and_only_what_is_missing(tmp_path: Path) -> None:
    tally = play(tmp_path)
    assert (tally.total, tally.there, tally.finished, tally.left) == (12, 0, 12, 0)
    first = rows(tmp_path)
    tally = play(tmp_path)
    assert (tally.total, tally.there, tally.finished, tally.left) == (12, 12, 0, 0)
    tally = play(tmp_path, blocks=4)
    assert (tally.total, tally.there, tally.finished, tally.left) == (16, 12, 4, 0)
    assert [row for row in rows(tmp_path) if row in first] == first


def test_order_and_concurrency_change_nothing(tmp_path: Path) -> None:
    agents = ["random", "mcts?simulations=4", "first"]
    play(tmp_path / "one", agents=agents, concurrency=1, workers=1)
    play(tmp_path / "many", agents=agents, concurrency=50, workers=2)
    assert rows(tmp_path / "one") == rows(tmp_path / "many")


@pytest.mark.parametrize(("before", "during"), [(700, 100_000), (200_000, 200_000), (0, 0)])
def test_garbage_is_collected_rarely_while_games_run(before: int, during: int, tmp_path: Path) -> None:
    usual, seen = gc.get_threshold(), []
    asked = parse(PLAIN)
    gc.set_threshold(before, *usual[1:])
    try:
        with Store.resume(tmp_path, asked) as store:
            run(asked, store, lambda _: seen.append(gc.get_threshold()[0]))
        assert (set(seen), gc.get_threshold()[0]) == ({during}, before)
    finally:
        gc.set_threshold(*usual)


def test_episodes_are_true_records(tmp_path: Path) -> None:
    play(tmp_path, agents=[{"spec": "random", "name": "dice"}, "first"])
    with Store.open(tmp_path) as store:
        for row, episode in zip(store.games(), store.episodes(), strict=True):
            validate(episode)
            replay(episode)
            assert (episode.match_id, episode.group_id) == (row.id, row.block)
            assert {seat.agent for seat in episode.seats} == {"dice", "first"}


@pytest.mark.parametrize("concurrency", [1, 3, 8])
def test_no_more_games_at_once_than_asked(concurrency: int, tmp_path: Path) -> None:
    play(tmp_path, agents=["watched", "first"], blocks=4, concurrency=concurrency)
    assert Watched.most == concurrency


def test_thousands_pending_are_not_made_at_once(tmp_path: Path) -> None:
    asked = parse({**PLAIN, "blocks": 100_000})
    with Store.resume(tmp_path, asked) as store:
        started = time.process_time()

        def report(tally: Tally) -> None:
            if tally.finished > 20:
                tally.stopped = True

        tally = run(asked, store, report, tick=0.01)
    assert 20 < tally.finished < 5_000
    assert tally.left == tally.total - tally.finished
    assert time.process_time() - started < 10


def test_a_void_game_is_played_again_on_the_same_seed(tmp_path: Path) -> None:
    tally = play(tmp_path, games=["TicTacToe"], agents=["moody", "first"], blocks=2, void_limit=1.0, void_retries=2)
    assert (tally.finished, tally.given_up, tally.voids) == (2, 2, 6)
    with Store.open(tmp_path) as store:
        assert sorted(store.void_attempts().values()) == [3, 3]
        assert {reason for _, _, reason in store.voids()} == {"ConnectionError: not today"}
    assert tally.reasons == {"ConnectionError: not today": 6}


def test_given_up_games_wait_for_redo_void(tmp_path: Path) -> None:
    asked = parse(
        {"games": ["TicTacToe"], "agents": ["moody", "first"], "blocks": 2, "void_limit": 1.0, "void_retries": 1}
    )
    with Store.resume(tmp_path, asked) as store:
        assert run(asked, store).voids == 4
    with Store.resume(tmp_path, asked) as store:
        tally = run(asked, store)
        assert (tally.there, tally.finished, tally.voids, tally.given_up, tally.left) == (2, 0, 0, 2, 0)
    with Store.resume(tmp_path, asked) as store:
        assert run(asked, store, redo_void=True).voids == 4


def test_one_void_attempt_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.tournaments.runner.probe", _no_preflight)
    tally = play(tmp_path, agents=["flaky?times=2", "first"])
    assert (tally.finished, tally.voids, tally.given_up) == (12, 2, 0)


async def _no_preflight(*_: object) -> None:
    return None


def test_too_many_voids_end_the_run(tmp_path: Path) -> None:
    with pytest.raises(Aborted, match=r"of \d+ attempts were void \(limit 25%\); most often: ConnectionError: not"):
        play(tmp_path, games=["TicTacToe"], agents=["moody", "first"], blocks=200)
    assert 0 < len(rows(tmp_path)) < 40


def test_concurrency_costs_nothing_beyond_the_games(tmp_path: Path) -> None:
    started = time.process_time()
    assert play(tmp_path, concurrency=100_000).left == 0
    assert play(tmp_path, concurrency=100_000, blocks=4).left == 0
    assert time.process_time() - started < 5


def test_forfeits_are_losses_and_counted_apart(tmp_path: Path) -> None:
    tally = play(tmp_path, games=["TicTacToe"], agents=["scripted:nonsense", "first"], blocks=2)
    assert (tally.finished, tally.forfeits, tally.voids) == (4, 4, 0)
    assert {row.returns[row.forfeits[0]] for row in rows(tmp_path)} == {-1.0}


def test_truncated_games_are_counted_apart(tmp_path: Path) -> None:
    tally = play(tmp_path, games=["TicTacToe"], max_turns=3)
    assert (tally.finished, tally.truncated) == (6, 6)
    assert all(row.truncated for row in rows(tmp_path))


def test_a_deadline_makes_slow_games_void(tmp_path: Path) -> None:
    agents = ["slow?seconds=30", "first"]
    with pytest.raises(Refused, match="the deadline passed at ply 0"):
        play(tmp_path, games=["TicTacToe"], agents=agents, blocks=1, deadline=0.1, void_retries=0)


def test_a_search_that_never_ends_does_not_hold_the_run(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(Aborted, match="the deadline passed"):
        play(tmp_path, games=["TicTacToe"], agents=["stuck", "first"], blocks=12, deadline=3, void_retries=0, workers=8)
    assert time.monotonic() - started < 60


def test_a_worker_that_dies_makes_its_games_void_and_no_more(tmp_path: Path) -> None:
    with pytest.raises(Aborted, match="WorkerDied"):
        play(
            tmp_path,
            games=["TicTacToe"],
            agents=["suicidal", "mcts?simulations=1"],
            blocks=30,
            concurrency=2,
            workers=1,
        )


def test_one_killed_worker_costs_one_attempt(tmp_path: Path) -> None:
    agents = [f"mortal:{tmp_path / 'died'}", "mcts?simulations=2"]
    tally = play(tmp_path, games=["TicTacToe"], agents=agents, blocks=16, concurrency=32, workers=2)
    assert (tally.finished, tally.voids, tally.given_up) == (32, 1, 0)
    (reason,) = tally.reasons
    assert reason == "WorkerDied: a worker process ended before it answered (SIGKILL, out of memory?)"


def test_only_the_search_that_overruns_forfeits(tmp_path: Path) -> None:
    agents = [{"spec": "mcts?seconds=3", "name": "slow"}, "mcts?simulations=5", "mcts?simulations=6"]
    change: dict[str, Any] = {"games": ["ConnectFour"], "agents": agents, "workers": 1, "turn_seconds": 1.0}
    tally = play(tmp_path, **change, blocks=1)
    assert (tally.finished, tally.voids) == (6, 0)
    forfeited = [row.agents[at] for row in rows(tmp_path) for at in row.forfeits]
    assert forfeited == [1] * 4


def test_answers_that_are_timed_do_not_wait_for_workers(tmp_path: Path) -> None:
    tally = play(tmp_path, games=["TicTacToe"], agents=["mcts?simulations=2", "first"], turn_seconds=20, workers=1)
    assert (tally.finished, tally.forfeits) == (6, 0)


def test_reports_end_with_all(tmp_path: Path) -> None:
    asked, seen = parse(PLAIN), []
    with Store.resume(tmp_path, asked) as store:
        run(asked, store, lambda tally: seen.append(tally.done))
    assert seen[-1] == 12
    assert seen == sorted(seen)


def interrupt(times: int, tmp_path: Path, **change: Any) -> tuple[Tally, float]:
    """Run slow games and press Ctrl-C after a moment."""
    asked = parse(
        {**PLAIN, "games": ["TicTacToe"], "agents": ["slow", "first"], "blocks": 50, "concurrency": 2, **change}
    )
    pressed: list[float] = []

    def report(tally: Tally) -> None:
        if tally.finished >= 2 and len(pressed) < times:
            pressed.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

    with Store.resume(tmp_path, asked) as store:
        tally = run(asked, store, report, tick=0.05)
    return tally, time.monotonic() - pressed[-1]


def test_ctrl_c_finishes_what_runs(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    tally, _ = interrupt(1, tmp_path)
    assert tally.stopped
    assert 2 <= tally.finished < 10
    assert tally.left == 100 - tally.finished
    assert len(rows(tmp_path)) == tally.finished
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_ctrl_c_ends_at_once(tmp_path: Path) -> None:
    play(tmp_path, games=["TicTacToe"], agents=["slow?seconds=0.01", "first"], blocks=1)
    tally, took = interrupt(2, tmp_path / "again")
    assert tally.stopped
    assert took < 5
    assert len(rows(tmp_path / "again")) == tally.finished


def test_it_runs_beside_the_main_thread(tmp_path: Path) -> None:
    done: list[Tally] = []
    thread = threading.Thread(target=lambda: done.append(play(tmp_path)))
    thread.start()
    thread.join(60)
    assert done[0].finished == 12


def test_a_full_disk_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add = Store.add_all
    kept: list[str] = []

    def full(self: Store, games: Sequence[tuple[Fixture, Episode]]) -> list[bool]:
        if len(kept) > 3:
            raise sa.exc.OperationalError("INSERT", {}, Exception("database or disk is full"))
        kept.extend([fixture.id for fixture, _ in games])
        return add(self, games)

    monkeypatch.setattr(Store, "add_all", full)
    with pytest.raises(StoreError, match=r"cannot be written: .*database or disk is full"):
        play(tmp_path, blocks=2000)
    assert sorted(kept) == [row.id for row in rows(tmp_path)]


@pytest.mark.parametrize("blocks", [2, 2000])
def test_a_record_that_cannot_be_kept_ends_the_run(
    blocks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unfit(self: Store, episode: Episode) -> bytes:
        return episode.id.encode() if episode.seed == 0 else "\ud800".encode()

    monkeypatch.setattr(Store, "_packed", unfit)
    with pytest.raises(StoreError, match="cannot be written: UnicodeEncodeError"):
        play(tmp_path, games=["TicTacToe"], blocks=blocks, concurrency=1)
    assert len(rows(tmp_path)) == 2


def test_a_recorder_that_is_gone_does_not_hold_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recorder, "_work", lambda _: None)
    with pytest.raises(StoreError, match="is not written any more"):
        play(tmp_path, games=["TicTacToe"], blocks=100)


@pytest.mark.parametrize("spec", ["counted", "leaving"])
def test_agents_are_made_once_and_closed(spec: str, tmp_path: Path) -> None:
    play(tmp_path, agents=[spec, "first"])
    assert (Counted.made, Counted.open) == (1, 0)
    play(tmp_path, agents=[spec, "first"])
    assert Counted.made == 1, "all is played: nobody is needed"


def test_what_another_run_has_finished_is_not_left(tmp_path: Path) -> None:
    """It does so while this one still asks its agents."""
    asked = parse({**PLAIN, "agents": ["slow?seconds=0.1", "first"]})
    others: list[threading.Thread] = []

    def report(tally: Tally) -> None:
        if not others:
            others.append(threading.Thread(target=lambda: play(tmp_path, agents=["slow?seconds=0.1", "first"])))
            others[0].start()

    with Store.resume(tmp_path, asked) as store:
        tally = run(asked, store, report, tick=0.05)
    others[0].join(60)
    assert (tally.done, tally.left) == (12, 0)
    assert tally.there + tally.finished == 12
    assert len(rows(tmp_path)) == 12


def test_an_agent_that_fails_to_close_is_told_and_takes_nothing_away(tmp_path: Path) -> None:
    said = "agent 'failing' failed to close: ConnectionError: the line is dead"
    with pytest.raises(Aborted, match=said):
        play(tmp_path, agents=["counted", "failing", "leaving"])
    assert Counted.open == 0, "the others are closed, and so is what it had open"
    assert len(rows(tmp_path)) == 36


def test_an_agent_that_calls_exit_does_not_end_the_run_in_silence(tmp_path: Path) -> None:
    with pytest.raises(Aborted, match=r"called exit\(0\)"):
        play(tmp_path, games=["TicTacToe"], agents=["exiting", "counted"], concurrency=1)
    assert Counted.open == 0
    assert len(rows(tmp_path)) == 2, "what was finished is kept"


def test_agents_are_closed_when_another_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="simulations and plies must be at least 1"):
        play(tmp_path, agents=["counted", "mcts?simulations=0"])
    assert (Counted.made, Counted.open) == (1, 0)


def test_random_waits_at_high_concurrency_change_nothing(tmp_path: Path) -> None:
    change: dict[str, Any] = {"games": ["TicTacToe"], "agents": ["dreamy", "random", "first"], "blocks": 40}
    tally = play(tmp_path / "many", **change, concurrency=200)
    assert (tally.finished, tally.left, tally.voids) == (240, 0, 0)
    play(tmp_path / "one", **change, concurrency=1)
    assert rows(tmp_path / "many") == rows(tmp_path / "one")
    ratings = []
    for folder in ("many", "one"):
        with Store.open(tmp_path / folder) as store:
            assert len(list(store.episodes())) == 240
            rated = board(store).sections[0].ratings
            assert rated is not None
            ratings.append((rated.elo.tolist(), rated.half.tolist()))
    assert ratings[0] == ratings[1]


def test_every_kind_of_game(tmp_path: Path) -> None:
    games = ["Arithmetic", "LiarsDice?players=3", "SecretMafia", "Negotiation", "RockPaperScissors", "CalculatorTask"]
    tally = play(tmp_path, games=games, agents=["random", "first"], blocks=1)
    assert (tally.left, tally.given_up) == (0, 0)
    seats = Counter(len(row.agents) for row in rows(tmp_path))
    assert seats == {1: 4, 2: 4, 3: 3, 7: 7}
