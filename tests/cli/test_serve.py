import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.cli.commands import arena
from tests.tournaments.played import played


def test_a_run_is_served_until_ctrl_c(tmp_path: Path) -> None:
    played(tmp_path, games=["TicTacToe"], agents=["random", "first"], blocks=1)
    code = "from arena.cli.main import main; main()"
    command = [sys.executable, "-c", code, "serve", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            said = process.stdout.readline()
            found = re.search(r"http://127\.0\.0\.1:\d+/", said)
            assert found, said
            with httpx.Client(base_url=found[0], timeout=60) as client, client.stream("GET", "/events") as events:
                assert "2 of 2 games finished" in client.get("/").text
                next(events.iter_lines())
                os.kill(process.pid, signal.SIGINT)
                assert process.wait(60) == 0
            assert "Traceback" not in process.stderr.read()
        finally:
            process.kill()


def test_what_cannot_be_served_is_said_in_one_line(tmp_path: Path) -> None:
    none = arena("serve", str(tmp_path / "none"))
    assert none.exit_code == 2
    assert "does not exist" in none.output
    played(tmp_path, games=["TicTacToe"], agents=["random", "first"], blocks=1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        busy = arena("serve", str(tmp_path), "--port", str(port))
    assert busy.exit_code == 1
    assert f"cannot listen at 127.0.0.1:{port}" in busy.output
    assert "another --port?" in busy.output
    assert arena("serve", str(tmp_path), "--port", "70000").exit_code == 2
    assert "arena serve runs/demo" in arena("serve", "--help").output


def test_without_the_extra_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played(tmp_path, games=["TicTacToe"], agents=["random", "first"], blocks=1)
    for name in ("fastapi", "arena.tournaments.site.web"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    told = arena("serve", str(tmp_path))
    assert told.exit_code == 1
    assert "pip install 'gymnasium-arena[serve]'" in told.output
