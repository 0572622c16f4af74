"""kill -9 at random moments: nothing that was finished is lost, nothing is played twice, the ratings are the same."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from arena.tournaments.board import Row
from arena.tournaments.report import board
from arena.tournaments.store import GameRow, Store, database_of
from tests.tournaments.postgres import fresh, postgres

__all__ = ["fresh", "postgres"]  # fixtures

GAMES = ["--game", "TicTacToe", "--game", "LeducPoker", "--game", "KuhnPoker?players=3"]
AGENTS = ["--agent", "random", "--agent", "first", "--agent", "mcts?simulations=20"]
SEEN = ["--game", "TicTacToe", "--agent", "random", "--agent", "minimax?depth=2", "--agent", "mcts?simulations=20"]
Facts = dict[str, tuple[GameRow, float]]


def command(folder: Path, blocks: int, *more: str) -> list[str]:
    asked = [*(SEEN if "--schedule" in more else [*GAMES, *AGENTS]), "--blocks", str(blocks), "--workers", "2"]
    return [sys.executable, "-m", "arena", "tournament", "run", *asked, *more, "--out", str(folder)]


def finished(folder: Path) -> Facts:
    """Every finished game, and when it was played."""
    return finished_at(folder / "results.db")


def finished_at(place: Path | str) -> Facts:
    if not database_of(place).exists():
        return {}
    with Store.open(place) as store:
        rows = store.games()  # first: more may be finished while we look
        played = {episode.match_id: episode.started for episode in store.episodes()}
        return {row.id: (row, played[row.id]) for row in rows}


def killed(folder: Path, blocks: int, before: Facts, rng: random.Random, more: Sequence[str] = ()) -> Facts:
    """What is finished after a run was killed at a random moment."""
    asked = command(folder, blocks, *more)
    with subprocess.Popen(asked, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        until, goal = time.monotonic() + 60, len(before) + rng.randrange(0, 12)
        while process.poll() is None and len(finished(folder)) < goal and time.monotonic() < until:
            time.sleep(rng.random() * 0.05)
        time.sleep(rng.random() * 0.1)
        process.send_signal(signal.SIGKILL)
        process.wait()
    after = finished(folder)
    assert after.items() >= before.items(), "a finished game was lost, or played again"
    return after


def kill_and_resume(tmp_path: Path, blocks: int, kills: int, rng: random.Random) -> int:
    """How many of the kills met a run with work left."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    subprocess.run(command(whole, blocks), check=True, capture_output=True)
    games, before, met = len(finished(whole)), Facts(), 0
    for _ in range(kills):
        before = killed(broken, blocks, before, rng)
        met += len(before) < games
    last = subprocess.run(command(broken, blocks), check=True, capture_output=True, text=True)
    assert last.stdout.startswith(f"{games} of {games} games finished")
    after = finished(broken)
    assert after.items() >= before.items()
    assert [row for row, _ in after.values()] == [row for row, _ in finished(whole).values()]
    compare_ratings(whole, broken)
    return met


def compare_ratings(whole: Path, broken: Path | str) -> None:
    with Store.open(whole) as one, Store.open(broken) as other:
        for a, b in zip(board(one).sections, board(other).sections, strict=True):
            assert [timeless(row) for row in a.rows] == [timeless(row) for row in b.rows]


def timeless(row: Row) -> Row:
    """Without how long answers took, which no two runs share."""
    return replace(row, p50=None, p95=None)


def test_kill_and_resume(tmp_path: Path) -> None:
    assert kill_and_resume(tmp_path, blocks=8, kills=4, rng=random.Random(os.urandom(8))) > 0


@pytest.mark.slow
def test_kill_and_resume_often(tmp_path: Path, scale: int) -> None:
    assert kill_and_resume(tmp_path, blocks=20 * scale, kills=10 * scale, rng=random.Random(os.urandom(8))) > 4 * scale


def test_workers_do_not_outlive_a_killed_run(tmp_path: Path) -> None:
    with subprocess.Popen(command(tmp_path, 400), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        until = time.monotonic() + 60
        while len(finished(tmp_path)) < 5 and time.monotonic() < until:
            time.sleep(0.1)
        children = descendants(process.pid)
        assert len(children) >= 2
        process.kill()
        process.wait()
    until = time.monotonic() + 20
    while any(alive(child) for child in children) and time.monotonic() < until:
        time.sleep(0.1)
    assert [child for child in children if alive(child)] == []


def descendants(pid: int) -> list[int]:
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in path.read_text().split():
            found += [int(child), *descendants(int(child))]
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_two_runs_of_one_tournament_do_not_double(tmp_path: Path) -> None:
    """Both play into one store at once; every game is played and kept once, and both end well, and together."""
    runs = [subprocess.Popen(command(tmp_path, 6), stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    told = []
    for process in runs:
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, err.decode()
        told.append(out.decode().splitlines()[0])
    games = finished(tmp_path)
    assert len(games) == 6 * (6 + 6 + 3)
    assert [line.partition(",")[0] for line in told] == [f"{len(games)} of {len(games)} games finished"] * 2
    with Store.open(tmp_path) as store:
        assert len(list(store.episodes())) == len(games)
        assert len(store.agents()) == 3
        assert len(store.entries()) == 3
        assert store.owners() == [], "no lease outlives its run"


@pytest.mark.parametrize("schedule", ["swiss", "adaptive", "knockout?extra=2"])
def test_a_schedule_that_depends_on_results_ends_whole(schedule: str, tmp_path: Path) -> None:
    """Killed again and again: what was finished stays, no game is there twice, and the end is a whole tournament."""
    asked = ["--schedule", schedule]
    before: Facts = {}
    for _ in range(3):
        before = killed(tmp_path, 4, before, random.Random(os.urandom(8)), asked)
    done = subprocess.run(command(tmp_path, 4, *asked), check=True, capture_output=True, text=True)
    after = finished(tmp_path)
    assert after.items() >= before.items()
    assert done.stdout.startswith(f"{len(after)} of {len(after)} games finished")
    with Store.open(tmp_path) as store:
        assert len(list(store.episodes())) == len(after)
        assert store.owners() == []


@pytest.mark.postgres
def test_two_workers_on_postgres_killed_in_turn(tmp_path: Path, fresh: str, scale: int) -> None:
    """Either is killed at random moments while the other plays on; the ratings are those of an unbroken run."""
    rng, kills = random.Random(os.urandom(8)), 10 * scale
    blocks = 20 * scale
    subprocess.run(command(tmp_path / "whole", blocks), check=True, capture_output=True)
    shared = command(tmp_path / "broken", blocks, "--store", fresh)
    before: Facts = {}
    errors = tmp_path / "errors.txt"
    workers = [start(shared, errors), start(shared, errors)]
    for _ in range(kills):
        time.sleep(rng.random() * 2)
        at = rng.randrange(2)
        workers[at].kill()
        workers[at].wait()
        after = finished_at(fresh)
        assert after.items() >= before.items(), "a finished game was lost, or played again"
        before = after
        workers[at] = start(shared, errors)
    for worker in workers:
        assert worker.wait(600) == 0, errors.read_text(encoding="utf-8")
    with Store.open(fresh) as store:
        games = store.games()
        assert len(list(store.episodes())) == len(games)
        assert store.owners() == []
    assert finished_at(fresh).items() >= before.items()
    with Store.open(tmp_path / "whole") as store:
        assert [row.id for row in games] == [row.id for row in store.games()]
    compare_ratings(tmp_path / "whole", fresh)


def start(asked: list[str], errors: Path) -> subprocess.Popen[bytes]:
    """A worker; what it complains of is added to a file."""
    with errors.open("ab") as file:
        return subprocess.Popen(asked, stdout=subprocess.DEVNULL, stderr=file)
