"""A person in a tournament: at a terminal, one game at a time, nothing printed over the prompt."""

import io
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from arena.tournaments.config import parse
from arena.tournaments.runner import Refused, run
from arena.tournaments.store import Store

HUMAN = {"games": ["TicTacToe"], "agents": ["human", "first"], "blocks": 1}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_person_needs_a_terminal(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="agent 'human' needs a terminal, and standard input is none"):
        run(parse(HUMAN), lambda: Store.resume(tmp_path / "x", parse(HUMAN)))
    assert list(tmp_path.iterdir()) == []


def test_one_game_at_a_time_and_none_beforehand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("8\n7\n6\n5\n4\n3\n" * 10))
    asked = parse(HUMAN)
    with Store.resume(tmp_path, asked) as store:
        tally = run(asked, store)
        assert (tally.finished, tally.voids, tally.left) == (2, 0, 0)
    seats = [line.split(">")[0][-1] for line in capsys.readouterr().out.splitlines() if line.startswith("player ")]
    assert seats == sorted(seats)
    assert set(seats) == {"0", "1"}
    assert seats.count("0") >= 3, "a probe would be one more line, and a game of its own"


def test_who_leaves_stops_the_run_and_spends_no_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("quit\n" * 9))
    asked = parse(HUMAN)
    with Store.resume(tmp_path, asked) as store:
        tally = run(asked, store)
        assert (tally.stopped, tally.finished, tally.voids, tally.left) == (True, 0, 0, 2)
        assert store.void_attempts() == {}


def read_until(terminal: int, text: bytes, seconds: float = 60) -> bytes:
    seen, until = b"", time.monotonic() + seconds
    while text not in seen and time.monotonic() < until:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                chunk = os.read(terminal, 4096)
            except OSError:  # the other end has closed
                break
            if not chunk:
                break
            seen += chunk
    return seen


def pressed_until(process: "subprocess.Popen[bytes]", terminal: int, text: bytes) -> bytes:
    """Ctrl-C, pressed again where it was not heard: one that comes between prompt and read waits for the next key."""
    seen = b""
    for _ in range(6):
        process.send_signal(signal.SIGINT)
        seen += read_until(terminal, text, 8)
        if text in seen:
            break
    return seen


def test_ctrl_c_at_the_prompt_stops_and_nothing_overwrites_it(tmp_path: Path) -> None:
    import pty

    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "arena", "tournament", "run", "--game", "TicTacToe", "--agent", "human"]
    command += ["--agent", "first", "--blocks", "1", "--out", str(tmp_path / "x")]
    process = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower)
    try:
        os.close(follower)
        seen = read_until(leader, b"player 0>")
        assert b"player 0>" in seen
        quiet = read_until(leader, b"never", 1.0)
        assert quiet.strip() == b"", "no bar, no line while somebody thinks"
        os.write(leader, b"8\n")
        assert b"player 0>" in read_until(leader, b"player 0>")
        end = pressed_until(process, leader, b"--out")
        assert process.wait(30) == 130
    finally:
        process.kill()
        process.wait()
        os.close(leader)
    assert b"stopped with 2 games to go; the same command goes on" in end
    assert b"Traceback" not in end
