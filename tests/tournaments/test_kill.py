"""kill -9 at random moments: nothing that was finished is lost, nothing is played twice, the ratings are the same."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from arena.tournaments.report import board
from arena.tournaments.store import GameRow, Store

GAMES = ["--game", "TicTacToe", "--game", "LeducPoker", "--game", "KuhnPoker?players=3"]
AGENTS = ["--agent", "random", "--agent", "first", "--agent", "mcts?simulations=40"]
Facts = dict[str, tuple[GameRow, float]]


def command(folder: Path, blocks: int) -> list[str]:
    asked = [*GAMES, *AGENTS, "--blocks", str(blocks), "--workers", "2"]
    return [sys.executable, "-m", "arena", "tournament", "run", *asked, "--out", str(folder)]


def finished(folder: Path) -> Facts:
    """Every finished game, and when it was played."""
    if not (folder / "results.db").exists():
        return {}
    with Store.open(folder) as store:
        rows = store.games()  # first: more may be finished while we look
        played = {episode.match_id: episode.started for episode in store.episodes()}
        return {row.id: (row, played[row.id]) for row in rows}


def kill_and_resume(tmp_path: Path, blocks: int, kills: int, rng: random.Random) -> int:
    """How many of the kills met a run with work left."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    subprocess.run(command(whole, blocks), check=True, capture_output=True)
    before: Facts = {}
    met = 0
    for _ in range(kills):
        with subprocess.Popen(command(broken, blocks), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            until, goal = time.monotonic() + 60, len(before) + rng.randrange(0, 12)
            while process.poll() is None and len(finished(broken)) < goal and time.monotonic() < until:
                time.sleep(rng.random() * 0.05)
            time.sleep(rng.random() * 0.1)
            process.send_signal(signal.SIGKILL)
            met += process.wait() == -signal.SIGKILL
        after = finished(broken)
        assert after.items() >= before.items(), "a finished game was lost, or played again"
        before = after
    last = subprocess.run(command(broken, blocks), check=True, capture_output=True, text=True)
    assert "games finished" in last.stdout
    after = finished(broken)
    assert after.items() >= before.items()
    assert [row for row, _ in after.values()] == [row for row, _ in finished(whole).values()]
    compare_ratings(whole, broken)
    return met


def compare_ratings(whole: Path, broken: Path) -> None:
    with Store.open(whole) as one, Store.open(broken) as other:
        for a, b in zip(board(one).sections, board(other).sections, strict=True):
            assert a.rows == b.rows


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
    """Both play into one store at once; every game is there once, and both end well."""
    runs = [subprocess.Popen(command(tmp_path, 6), stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    for process in runs:
        _, err = process.communicate(timeout=240)
        assert process.returncode == 0, err.decode()
    games = finished(tmp_path)
    assert len(games) == 6 * (6 + 6 + 3)
    with Store.open(tmp_path) as store:
        assert len(list(store.episodes())) == len(games)
        assert len(store.agents()) == 3
        assert len(store.entries()) == 3
