import os
import resource
import subprocess
import sys
from collections.abc import Callable

import click
import pytest
from click.testing import CliRunner, Result

from arena.cli.errors import Failure
from arena.cli.main import COMMANDS, cli
from arena.registry import agent_names, game_ids

ARENA = [sys.executable, "-m", "arena"]


def arena(*args: str) -> Result:
    return CliRunner().invoke(cli, args)


def test_help_lists_every_command_in_a_line() -> None:
    done = arena("--help")
    assert done.exit_code == 0
    for name, (_, text) in COMMANDS.items():
        assert f"  {name}" in done.output
        assert text[:30] in done.output


def test_no_command_is_help() -> None:
    done = arena()
    assert done.exit_code == 0
    assert "Usage:" in done.output


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_teaches_with_an_example(name: str) -> None:
    done = arena(name, "--help")
    assert done.exit_code == 0
    assert f"arena {name}" in done.output or name in ("agents", "demo")


def test_version() -> None:
    assert arena("--version").output.startswith("arena, version ")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["tornament"], "unknown command 'tornament'. Did you mean 'tournament'? Allowed: agents, demo,"),
        (["tournament", "rum"], "unknown command 'rum'. Did you mean 'run'? Allowed: run"),
        (["--colour"], "No such option"),
        (["games", "Ches"], "unknown game 'Ches'. Did you mean 'Chess-v0'? Allowed: "),
        (["games", "--tag", "bored"], "unknown tag 'bored'. Allowed: "),
        (["leaderboard"], "Missing argument 'RUN'"),
    ],
)
def test_errors_are_one_line_on_stderr_and_code_2(args: list[str], message: str) -> None:
    done = arena(*args)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("arena: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def raising(error: Exception) -> Callable[[], None]:
    def command() -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (Failure("it did\nnot work"), 1, "arena: it did not work\n"),
        (click.ClickException("no"), 2, "arena: no\n"),
        (click.ClickException("\x1b[2J\u202egone"), 2, "arena: \\x1b[2J\\u202egone\n"),
        (click.Abort(), 130, "stopped\n"),
    ],
)
def test_exit_codes(error: Exception, code: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command = click.Command("agents", callback=raising(error))
    monkeypatch.setattr("arena.cli.catalogue.agents", command)
    done = arena("agents")
    assert (done.exit_code, done.stderr) == (code, said)


def test_a_bug_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.cli.catalogue.agents", click.Command("agents", callback=raising(ZeroDivisionError())))
    assert isinstance(arena("agents").exception, ZeroDivisionError)


def test_help_is_quick_and_imports_no_command() -> None:
    """The least of five: other processes can only slow it down."""
    spent = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*ARENA, "--help"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    print(f"arena --help: {min(spent):.2f} CPU-s")
    assert min(spent) < 0.5
    code = "import sys\nfrom arena.cli.main import cli\ntry: cli(['--help'])\nfinally: print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {f"'{name}'" for name in ("rich", "sqlalchemy", "numpy.linalg.x", "scipy", "jinja2")} & set(
        loaded.replace("[", "").replace("]", "").split(", ")
    )


def test_a_reader_may_go_away() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        done = subprocess.run([*ARENA, "games"], stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_games_are_listed() -> None:
    done = arena("games")
    assert done.exit_code == 0
    for game_id in game_ids():
        assert game_id in done.output
    tagged = arena("games", "--tag", "dice").output
    assert "LiarsDice-v0" in tagged
    assert "Chess-v0" not in tagged


def test_a_game_is_shown_with_its_options() -> None:
    done = arena("games", "ConnectFour")
    assert done.output.startswith("ConnectFour-v0  2 players, board, abstract, zero-sum, perfect information")
    assert "columns: int = 7" in done.output
    assert "arena play ConnectFour-v0" in done.output
    assert "  none" in arena("games", "TicTacToe").output


def test_agents_are_listed_with_their_options() -> None:
    done = arena("agents")
    assert done.exit_code == 0
    for name in agent_names():
        assert f"{name}  " in done.output
    assert "    simulations: int = 200" in done.output
    assert "    target: str" in done.output
