"""Schedules, stopping rules, anchors, caps and stores as options of `arena tournament run`."""

import shlex
from pathlib import Path

import pytest

from arena.cli.terms import asked_for
from arena.tournaments.config import load, parse
from arena.tournaments.store import Store
from arena.tournaments.terms import Adaptive, Sprt, Stop
from tests.cli.commands import PAIR, SMALL, arena, finished, run


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_all_terms_reach_the_tournament() -> None:
    options = "--schedule adaptive?uniform=0.1 --stop interval=100 --stop games=4 --anchor first --cap random=3"
    done = run(*SMALL, *shlex.split(options), "--stalled", "60", "--lease", "5", "--out", "x")
    assert done.exit_code == 0, done.output
    written = load("x/tournament.toml")
    assert written.schedule == Adaptive(uniform=0.1)
    assert written.stop == Stop(interval=100, games=4)
    assert (written.anchors, written.stalled) == ({"first": 1000.0}, 60.0)
    assert [entry.concurrency for entry in written.agents] == [3, None]


def test_names_may_have_equals_signs() -> None:
    agents = ["random", "mcts?simulations=20"]
    terms = {"anchor": ("mcts?simulations=20", "random=800"), "cap": ("mcts?simulations=20=2",), "blocks": None}
    asked = asked_for(None, ["TicTacToe"], agents, terms)
    assert asked.anchors == {"mcts?simulations=20": 1000.0, "random": 800.0}
    assert [entry.concurrency for entry in asked.agents] == [None, 2]


def test_options_change_a_file() -> None:
    Path("cup.toml").write_text('games = ["TicTacToe"]\nagents = ["random", "first"]\nstop = "games=2"\n')
    asked = asked_for("cup.toml", (), (), {"stop": ("sprt=0:50",), "endpoint": ("127.0.0.1:30000=8",)})
    assert asked.stop == Stop(sprt=Sprt(0, 50))
    assert asked.endpoints == {"127.0.0.1:30000": 8}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--schedule swis", "unknown schedule 'swis'. Did you mean 'swiss'?"),
        ("--stop game=3", "unknown stopping rule 'game'. Did you mean 'games'?"),
        ("--cap randm=3", "unknown agent 'randm'. Did you mean 'random'?"),
        ("--cap random", "--cap 'random': write NAME=NUMBER, such as random=4"),
        ("--cap random=0", "agents[0].concurrency=0: allowed are"),
        ("--anchor nobody=1", "unknown agent 'nobody'"),
        ("--endpoint 127.0.0.1:30000", "--endpoint '127.0.0.1:30000': write NAME=NUMBER"),
        ("--endpoint 127.0.0.1:30000=8", "no agent asks 127.0.0.1:30000; endpoints of this tournament: none"),
        ("--store mysql://x", "store"),
        ("--lease 0", "--lease"),
        ("--lease nan", "lease=nan: allowed are seconds above 0"),
        ("--lease inf", "lease=inf: allowed are seconds above 0"),
    ],
)
def test_refusals(options: str, message: str) -> None:
    done = run(*SMALL, *shlex.split(options), "--out", "x")
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert not Path("x").exists()


def test_a_rule_that_holds_is_told_and_nothing_is_left() -> None:
    done = run(*SMALL, "--blocks", "50", "--stop", "games=10", "--out", "x")
    assert done.exit_code == 0
    assert done.stdout.startswith("10 of 100 games finished\nended: budget: 10 of 10 games are spent\n")
    done = run(*SMALL, "--blocks", "50", "--stop", "games=10", "--out", "x")
    assert done.stdout.startswith("10 of 100 games finished, 10 of them earlier\nended: budget: 10 of 10")
    assert finished("x") == 10


def test_a_dry_run_says_at_most() -> None:
    agents = ["--agent", "random", "--agent", "first", "--agent", "scripted:5"]
    asked = ["--game", "TicTacToe", *agents, "--blocks", "2"]
    done = run(*asked, "--schedule", "adaptive", "--stop", "interval=100", "--stop", "sprt=0:50", "--dry-run")
    assert done.stdout.splitlines() == [
        "TicTacToe-v0  at most 12 games in 6 seed blocks",
        "total         at most 12 games between 3 agents",
        "ends earlier as soon as one holds: interval=100, sprt=0:50",
    ]
    done = run(*asked, "--schedule", "gauntlet", "--dry-run")
    assert done.stdout.splitlines()[0] == "TicTacToe-v0  8 games in 4 seed blocks"


def test_an_agent_joins_a_finished_tournament() -> None:
    assert run(*SMALL, "--blocks", "6", "--out", "x").exit_code == 0
    with Store.open("x") as store:
        old = {row.id for row in store.games()}
    toml = Path("x/tournament.toml").read_text() + '\n[[agents]]\nspec = "scripted:5"\nname = "newcomer"\n'
    Path("x/tournament.toml").write_text(toml)
    done = run("x/tournament.toml", "--out", "x", "--schedule", "adaptive")
    assert done.exit_code == 0, done.output
    with Store.open("x") as store:
        rows = store.games()
        (newcomer,) = [number for number, name in store.agents().items() if name == "newcomer"]
    assert old < {row.id for row in rows}
    assert any(newcomer in row.agents for row in rows)
    assert "newcomer" in arena("leaderboard", "x").output


def test_the_help_teaches() -> None:
    said = run("--help").output
    for word in ("--schedule adaptive", "--stop interval=120", "--endpoint 127.0.0.1:30000=64", "Started twice"):
        assert word in said


def test_terms_without_caps_are_left_as_they_are() -> None:
    asked = parse({"games": ["TicTacToe"], "agents": PAIR[1::2]})
    assert asked_for(None, ["TicTacToe"], PAIR[1::2], {"cap": (), "anchor": (), "stop": ()}) == asked
