"""The benchmarks run and print what they should; how fast anything is, is not asserted here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import crowd, startup, textarena, timing
from benchmarks.report import table
from benchmarks.timing import Figure, Spread
from tests.repository import ROOT

LINES = {
    "openspiel": ("TicTacToe-v0", "Chess-v0"),
    "textarena": ("TicTacToe-v0", "SecretMafia-v0"),
    "aec": ("LeducPoker-v0", "Chess-v0"),
    "gym_make": ("TicTacToe-v0", "LiarsDice-v0"),
    "faces": ("TicTacToe-v0 AEC", "ConnectFour-v0 vector of 64"),
    "match": ("Chess-v0 first", "RockPaperScissors-v0 random"),
    "at_once": ("TicTacToe-v0 200 matches",),
    "rollouts": ("40 at once", "200 at once, each written to a file"),
    "tournament": ("KuhnPoker-v0",),
    "pairing": ("blocks, opening luck 400 Elo, beside single games", "adaptive, close field (sd 200), beside gauntlet"),
    "coverage": ("unbalanced seats", "tasks on a common set"),
    "ratings": ("10 players x 2,000 games: fit + intervals", "10 players x 2,000 games: 100 bootstraps"),
    "store": ("pairs, totals, spent", "64 a transaction"),
    "startup": ("import arena", "arena --help", "python alone"),
}


def test_every_benchmark_is_tried_here() -> None:
    assert set(LINES) == set(command.USUAL)  # those of load: test_benchmarks_load.py


@pytest.mark.parametrize("name", LINES)
def test_a_benchmark_prints_its_table(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    command.main(["--only", name, "--secs", "0.005", "--json", str(tmp_path / "figures.json")])
    told = capsys.readouterr().out
    assert command.BENCHMARKS[name].title in told
    assert all(f"\n{line} " in told for line in LINES[name])
    kept = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))
    assert kept["machine"]["python"] in told
    for figure in kept["tables"][name]:
        if figure["result"] is None:
            assert any(why in figure["note"] for why in ("not installed", "TextArena", "not timed", "MB of file"))
        else:
            assert figure["verdict"] in (("reached", "falls short") if figure["goal"] is not None else ("",))


def test_a_peer_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(timing, "find_spec", lambda name: None)
    command.main(["--only", "openspiel,textarena,aec", "--secs", "0.001"])
    told = capsys.readouterr().out
    assert told.count("pyspiel is not installed") == 5
    assert told.count("textarena is not installed") == 7
    assert told.count("pygame is not installed") == 4
    assert "reached" not in told


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "rulez"], "allowed are openspiel, textarena"),
        (["--secs", "0"], "allowed are numbers above 0"),
        (["--secs", "many"], "allowed are numbers above 0"),
    ],
)
def test_bad_arguments_name_what_is_allowed(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.main(arguments)
    assert said in capsys.readouterr().err


def test_the_command_helps() -> None:
    done = subprocess.run([sys.executable, "-m", "benchmarks", "--help"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0
    assert "--only" in done.stdout


def test_ratios_are_taken_round_by_round() -> None:
    assert timing.ratios([1.0, 2.0, 4.0], [3.0, 6.0, 12.0]) == Spread(3.0, 3.0, 3.0)
    assert timing.differences([5.0, 9.0, 8.0], [1.0, 1.0, 1.0]).middle == 7.0
    assert Spread.of([8, 1, 2, 3, 4, 5, 6, 7]) == Spread(4.5, 3, 6)


def test_loops_take_turns_and_are_asked_for_equal_shares() -> None:
    order: list[str] = []

    def side(name: str) -> timing.Loop:
        def run(seconds: float) -> float:
            order.append(name)
            return seconds

        return run

    spent = timing.interleave([side("a"), side("b")], 9.0, rounds=3)
    assert "".join(order) == "ab" + "ab" + "ba" + "ab"
    assert spent == [[3.0, 3.0, 3.0], [3.0, 3.0, 3.0]]


def test_a_loop_counts_actions() -> None:
    played = []

    def episode() -> int:
        played.append(1)
        return 100

    assert 0 < timing.loop(episode)(0.01) < 1e4
    assert len(played) % 2 == 1  # the clock is looked at after the first and then after every 200 actions


@pytest.mark.parametrize(
    ("middle", "goal", "at_most", "verdict"),
    [
        (2.0, 1.4, False, "reached"),
        (1.3, 1.4, False, "falls short"),
        (5.0, 6.0, True, "reached"),
        (6.1, 6.0, True, "falls short"),
        (6.1, None, True, ""),
    ],
)
def test_the_verdict(middle: float, goal: float | None, at_most: bool, verdict: str) -> None:
    figure = Figure("work", "x", 1.0, 2.0, Spread(middle, middle, middle), goal, at_most)
    assert figure.verdict == verdict
    assert f"{middle:.3g} x" in table("title", ("a", "b"), [figure])


def test_a_crowd_is_measured_in_a_process_of_its_own() -> None:
    result = crowd.measured("TicTacToe-v0", 50)
    assert result.microseconds > 0
    assert 0 <= result.kilobytes < 10_000


def test_a_process_that_fails_is_no_figure() -> None:
    with pytest.raises(RuntimeError, match="unknown game"):
        crowd.measured("Nim", 5)
    assert startup._process(("-c", "pass")) > 0
    with pytest.raises(OSError, match="ended with 3"):
        startup._process(("-c", "raise SystemExit(3)"))


def test_a_game_that_cannot_be_made_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textarena", None)
    with pytest.raises(textarena.Unplayable, match="textarena"):
        textarena.replay("TicTacToe-v0")
