import errno
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from arena.cli.tournament import tell_unfinished
from arena.registry import AGENTS
from arena.tournaments.config import load, parse
from arena.tournaments.runner import Tally
from arena.tournaments.store import Store
from tests.cli.commands import PAIR, SMALL, arena, finished, run
from tests.tournaments.players import PLAYERS


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_run_leaves_a_folder() -> None:
    done = run(*SMALL, "--out", "runs/x")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "4 of 4 games finished"
    assert lines[2].startswith("TicTacToe-v0 4 games, first seat ")
    assert lines[3].split()[:6] == ["#", "agent", "Elo", "±", "95", "%"]
    assert lines[6:] == ["", "arena leaderboard runs/x   or open runs/x/leaderboard.html"]
    assert done.stderr == "4/4 games\n"
    assert sorted(path.name for path in Path("runs/x").iterdir()) == [
        "leaderboard.html",
        "results.db",
        "tournament.toml",
    ]
    assert finished("runs/x") == 4


def test_the_same_command_goes_on() -> None:
    run(*SMALL, "--out", "runs/x")
    done = run(*SMALL, "--out", "runs/x")
    assert done.stdout.startswith("4 of 4 games finished, 4 of them earlier\n")
    done = run(*SMALL[:-1], "3", "--out", "runs/x")
    assert done.stdout.startswith("6 of 6 games finished, 4 of them earlier\n")


def test_a_config_and_what_options_change() -> None:
    Path("cup.toml").write_text('games = ["TicTacToe"]\nagents = ["random", "first"]\nblocks = 1\n')
    assert run("cup.toml").exit_code == 0
    assert finished("runs/cup") == 2
    assert run("cup.toml", "--blocks", "3", "--seed", "5", "--out", "other").exit_code == 0
    assert finished("other") == 6
    written = load("other/tournament.toml")
    assert (written.blocks, written.seed) == (3, 5)
    assert run("other/tournament.toml", "--out", "other").stdout.startswith("6 of 6 games finished, 6 of them earlier")


def test_all_numbers_reach_the_tournament() -> None:
    numbers = {"blocks": 1, "seed": 4, "repetitions": 2, "concurrency": 3, "workers": 1, "max_turns": 9}
    numbers |= {"deadline": 60, "turn_seconds": 30}
    options = [text for key, value in numbers.items() for text in (f"--{key.replace('_', '-')}", str(value))]
    assert run("--game", "TicTacToe", *PAIR, *options, "--out", "x").exit_code == 0
    written = load("x/tournament.toml")
    assert {key: getattr(written, key) for key in numbers} == numbers


def test_a_dry_run_counts_and_plays_nothing() -> None:
    games = ["--game", "ConnectFour?columns=5", "--game", "Wordle", "--game", "SecretMafia"]
    done = run(*games, *PAIR, "--agent", "mcts", "--dry-run")
    assert done.stdout.splitlines() == [
        "ConnectFour-v0 (columns=5)  60 games in 10 seed blocks",
        "Wordle-v0                   30 games in 10 seed blocks",
        "SecretMafia-v0              70 games in 10 seed blocks",
        "total                       160 games between 3 agents",
    ]
    assert list(Path().iterdir()) == []
    run(*SMALL, "--out", "x")
    assert run(*SMALL, "--out", "x", "--dry-run").stdout.endswith("x/results.db holds 4 finished games\n")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "name a CONFIG.toml, or games and agents"),
        (["--game", "TicTacToe"], "name a CONFIG.toml, or games and agents"),
        (["none.toml"], "none.toml cannot be read"),
        (["cup.toml", "--agent", "random"], "leave out --game and --agent, or the file"),
        (["bad.toml"], "bad.toml: unknown config key 'blokcs'. Did you mean 'blocks'?"),
        (["--game", "TicTac", *PAIR], "unknown game 'TicTac'. Did you mean 'TicTacToe-v0'?"),
        (["--game", "TicTacToe", "--agent", "first", "--agent", "randm"], "unknown agent 'randm'. Did you mean"),
        (["--game", "ConnectFour?rws=5", *PAIR], "unknown option of ConnectFour 'rws'. Did you mean 'rows'?"),
        ([*SMALL, "--blokcs", "3"], "No such option '--blokcs'"),
        ([*SMALL, "--seed", "-1"], "seed=-1: allowed are 0 to 4611686018427387903"),
        (["--game", "KuhnPoker", "--agent", "minimax", "--agent", "first"], "agent 'minimax' cannot play KuhnPoker-v0"),
        ([*SMALL, "--out", "diary"], "diary/results.db is not an SQLite file"),
        ([*SMALL, "--out", "played", "--seed", "9"], "another tournament's: its seed is 0, not 9"),
    ],
)
def test_refusals(args: list[str], message: str) -> None:
    Path("cup.toml").write_text('games = ["TicTacToe"]\nagents = ["random", "first"]\n')
    Path("bad.toml").write_text('games = ["TicTacToe"]\nagents = ["random", "first"]\nblokcs = 1\n')
    Path("diary").mkdir()
    Path("diary/results.db").write_text("dear diary")
    run(*SMALL, "--out", "played")
    before = {path: path.read_bytes() for path in Path().rglob("*.db")}
    done = run(*args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert {path: path.read_bytes() for path in Path().rglob("*.db") if path in before} == before


def test_too_many_voids_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AGENTS, "moody", PLAYERS["moody"])
    done = run("--game", "TicTacToe", "--agent", "moody", "--agent", "first", "--blocks", "100", "--out", "x")
    assert done.exit_code == 1
    assert (
        "attempts were void (limit 25%); most often: ConnectionError: not today; what was finished is kept"
        in done.stderr
    )
    assert done.stderr.endswith("x/results.db, and the same command goes on (with --redo-void: all of it)\n")
    assert Path("x/leaderboard.html").exists()


def test_games_that_stay_void_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AGENTS, "moody", PLAYERS["moody"])
    Path("cup.toml").write_text(
        'games = ["TicTacToe"]\nagents = ["moody", "first"]\nblocks = 4\nvoid_limit = 1.0\nvoid_retries = 0\n'
    )
    done = run("cup.toml", "--out", "x")
    assert done.exit_code == 1
    assert "4 of 8 games finished, 4 void attempts\n" in done.stdout
    again = "arena tournament run x/tournament.toml --out x --redo-void\n"
    assert f"4 games stayed void (ConnectionError: not today); to play them again: {again}" in done.stdout
    done = run("cup.toml", "--out", "x")
    assert done.exit_code == 1
    assert f"4 games stayed void; to play them again: {again}" in done.stdout
    assert done.stdout.endswith("arena leaderboard x   or open x/leaderboard.html\n")
    assert "4 void attempts\n" in run("cup.toml", "--out", "x", "--redo-void").stdout
    assert "8 void attempts: 8 x ConnectionError: not today" in arena("leaderboard", "x").output


@pytest.mark.parametrize(
    ("tally", "code", "said"),
    [
        (Tally(total=4, there=1, finished=3), 0, ""),
        (Tally(total=4, finished=3), 1, "1 games were not played; the same command goes on: arena tournament run "),
        (Tally(total=4, finished=3, stopped=True), 130, "stopped with 1 games to go; the same command goes on: "),
        (Tally(total=4, finished=3, given_up=1, stopped=True), 1, "1 games stayed void; to play them again: "),
    ],
)
def test_what_is_unfinished_is_told(tally: Tally, code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("x").mkdir()
    Path("x/tournament.toml").touch()
    assert tell_unfinished(tally, Path("x")) == code
    assert capsys.readouterr().out.startswith(said)


def test_a_record_that_cannot_be_kept_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "_packed", lambda *_: "\ud800".encode())
    done = run(*SMALL, "--out", "x")
    assert done.exit_code == 1
    assert done.stderr.splitlines()[-1].startswith("arena: x/results.db cannot be written: UnicodeEncodeError: ")


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> list[bool]:
        raise sa.exc.OperationalError("INSERT", {}, Exception("database or disk is full"))

    monkeypatch.setattr(Store, "add_all", full)
    done = run(*SMALL, "--out", "x")
    assert done.exit_code == 1
    assert "x/results.db cannot be written" in done.stderr
    assert "disk is full" in done.stderr


def test_a_full_disk_is_told_even_where_the_page_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> list[bool]:
        raise sa.exc.OperationalError("INSERT", {}, Exception("database or disk is full"))

    def no_room(*_: object) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("arena.cli.tournament.write_html", no_room)
    done = run(*SMALL, "--out", "x")
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (2, "arena: x/leaderboard.html: No space left on device")
    monkeypatch.setattr(Store, "add_all", full)
    done = run(*SMALL, "--out", "y")
    assert done.exit_code == 1
    assert "y/results.db cannot be written" in done.stderr
    assert "disk is full" in done.stderr


def test_what_is_refused_leaves_nothing_behind() -> None:
    done = run("--game", "KuhnPoker", "--agent", "minimax", "--agent", "first", "--out", "runs/x")
    assert done.exit_code == 2
    assert list(Path().iterdir()) == []
    run(*SMALL, "--out", "y")
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    done = run("--game", "TicTacToe", *PAIR, "--agent", "sb3:nowhere.zip", "--blocks", "2", "--out", "y")
    assert done.exit_code == 2
    assert set(Path().rglob("*.*")) == set(before)


def test_runs_of_their_own_have_folders_of_their_own() -> None:
    assert run(*SMALL).exit_code == 0
    assert run(*SMALL, "--blocks", "3").stdout.startswith("6 of 6 games finished, 4 of them earlier\n")
    assert run(*SMALL, "--seed", "7").exit_code == 0
    assert run("--game", "TicTacToe?", *PAIR, "--blocks", "2", "--max-turns", "4").exit_code == 0
    folders = [path.name for path in Path("runs").iterdir()]
    assert len(folders) == 3
    assert all(re.fullmatch("tictactoe-random-first-[0-9a-f]{6}", name) for name in folders)
    many = [word for seed in range(9) for word in ("--agent", f"scripted:{seed}")]
    run("--game", "KuhnPoker", "--game", "LeducPoker", *many, "--blocks", "1", "--dry-run")
    assert len(list(Path("runs").iterdir())) == 3


def test_notes_and_empty_games_are_shown() -> None:
    with Store.resume("x", parse({"games": ["TicTacToe"], "agents": ["random", "first"]})):
        assert "no game is finished yet" in arena("leaderboard", "x").output
    Path("cup.toml").write_text(
        'games = ["TicTacToe"]\nblocks = 4\nagents = ["first", { spec = "first", name = "twin" }]\n'
    )
    run("cup.toml", "--out", "y")
    assert "note: TicTacToe-v0: nothing is random between first – twin" in arena("leaderboard", "y").output


def started(*args: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "arena", "tournament", "run", *args]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_games(folder: str, games: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if Path(folder, "results.db").exists() and finished(folder) >= games:
            return
        time.sleep(0.05)
    raise AssertionError(f"not {games} games in a minute")


LONG = ["--game", "LeducPoker", "--agent", "random", "--agent", "mcts?simulations=60", "--blocks", "500", "--out", "x"]


def test_ctrl_c_says_how_to_go_on() -> None:
    with started(*LONG) as process:
        wait_for_games("x", 3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "stopping: running games finish" in err
    kept = finished("x")
    assert f"{kept} of 1000 games finished" in out
    again = f"{sys.executable} -m arena tournament run x/tournament.toml --out x"
    assert f"{1000 - kept} games to go; the same command goes on: {again}" in out
    done = run("x/tournament.toml", "--out", "x", "--dry-run")
    assert done.stdout.endswith(f"x/results.db holds {kept} finished games\n")


@pytest.mark.parametrize("args", [["tournament", "run", *SMALL, "--out", "x"], ["demo", "--out", "x"]])
def test_a_stop_before_the_first_game_leaves_nothing(args: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.cli.tournament.run", lambda *_, **__: Tally(total=4, stopped=True))
    done = arena(*args)
    assert done.exit_code == 130
    assert done.stdout.endswith("stopped with 4 games to go; the same command goes on\n")
    assert list(Path().iterdir()) == []


def test_two_ctrl_c_end_at_once() -> None:
    with started(*LONG, "--concurrency", "500") as process:
        wait_for_games("x", 1)
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            time.sleep(0.3)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in err


def test_a_bar_on_a_terminal() -> None:
    import pty

    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "arena", "tournament", "run", *SMALL, "--out", "x"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=follower, env={**os.environ, "TERM": "xterm"}
    ) as process:
        os.close(follower)
        seen = b""
        while chunk := read_some(leader):
            seen += chunk
        assert process.wait(60) == 0
    assert b"\x1b[" in seen
    assert b"4/4" in seen


def read_some(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the other end has closed
        return b""
