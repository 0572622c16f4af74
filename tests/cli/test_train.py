"""`arena train sb3`: a policy is trained, a kill costs little, and what was learnt plays."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from arena.cli.main import cli
from arena.cli.train import elo, mixture_of
from tests.cli.commands import arena

QUICK = ["--net", "8", "--n-envs", "8", "--eval-games", "4"]


@pytest.mark.parametrize(
    ("named", "mixture"),
    [
        (["self"], {"latest": 0.5, "uniform": 0.5}),
        (["random", "self:near"], {"random": 1.0, "near": 1.0}),
        (["0.5*self:prioritised", "3*minimax?depth=2"], {"prioritised": 0.5, "minimax?depth=2": 3.0}),
        (["2*self", "self:latest"], {"latest": 2.0, "uniform": 1.0}),
        (["sb3:runs/a*b.zip"], {"sb3:runs/a*b.zip": 1.0}),
        (["random", "random"], {"random": 2.0}),
    ],
)
def test_opponents_are_named_with_their_weights(named: list[str], mixture: dict[str, float]) -> None:
    assert mixture_of(named) == mixture


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("self:newest", "allowed are self, self:latest, self:near, self:prioritised, self:uniform"),
        ("1.2.3*self", "'1.2.3' is no weight"),
        ("...*self", "'...' is no weight"),
        ("", "write an agent, or self"),
    ],
)
def test_what_is_no_opponent_says_so(named: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - said below
        mixture_of([named])
    assert said in str(caught.value)


def test_ratings_count_every_game_of_a_row() -> None:
    few, many = (elo([("a", "random", "first", n), ("random", "a", "first", 1)]) for n in (2, 200))
    assert few["random"] == many["random"] == 1000.0
    assert many["a"] > few["a"] > 1000.0


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    done = arena("train", "sb3", "TicTacToe")
    assert done.exit_code == 1
    assert done.output == "arena: arena train sb3 needs torch: pip install 'gymnasium-arena[sb3]'\n"


def trained(*args: str) -> Any:
    pytest.importorskip("sb3_contrib")
    return arena("train", "sb3", *args)


def test_a_policy_is_trained_and_then_sits_in_a_tournament(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = trained("ConnectFour?columns=4&rows=4&connect=3", "--steps", "1000", "--opponent", "random", *QUICK)
    assert done.exit_code == 0, done.output
    said = done.output.splitlines()
    folder = "runs/connectfour-v0-maskableppo"
    assert said[0].startswith("against random: ")
    assert said[1].startswith("trained 1024 steps (")
    game, agent = "'ConnectFour-v0?columns=4&rows=4&connect=3'", f"sb3:{folder}/model.zip"
    assert said[2].endswith(f"arena tournament run --game {game} --agent {agent} --agent random")
    plays = ["--game", game.strip("'"), "--agent", agent, "--agent", "random", "--blocks", "2", "--out", "t"]
    played = arena("tournament", "run", *plays)
    assert played.exit_code == 0, played.output
    wrong = arena("tournament", "run", "--game", "TicTacToe", "--agent", agent, "--agent", "random", "--out", "w")
    assert wrong.exit_code != 0
    assert "the model was trained on ConnectFour-v0" in wrong.output
    again = trained("ConnectFour?columns=4&rows=4&connect=3", "--steps", "2000", "--opponent", "random", *QUICK)
    assert again.output.startswith("going on after step 1024\n")
    assert "trained 2048 steps" in again.output
    over = trained("ConnectFour?columns=4&rows=4&connect=3", "--steps", "50", "--opponent", "random", *QUICK)
    assert over.output.startswith("trained for 2,048 steps already: a larger --steps goes on\n")
    other = trained("ConnectFour?columns=4&rows=4&connect=3", "--opponent", "random", *QUICK, "--lr", "0.5")
    assert other.exit_code == 2
    assert "holds a run with lr None, not 0.5: for another plan, name a new folder" in other.output


def test_a_file_is_told_how_far_it_is_with_and_without_opponents(tmp_path: Path) -> None:
    for game in ("KuhnPoker", "Wordle"):
        done = trained(game, "--steps", "3000", "--eval-every", "1024", *QUICK, "--out", str(tmp_path / game))
        said = done.output.splitlines()
        assert said[0].startswith("1024/3000 steps, reward")
        assert said[1].startswith("2048/3000 steps, reward")
        assert [line for line in said[2:] if "/3000" in line] == []


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["Negotiation"], "numeric=True works for Chess-v0, ConnectFour-v0"),
        (["TikTakTo"], "unknown game 'TikTakTo'. Did you mean"),
        (["TicTacToe:x"], "is no game: write ID or ID?KEY=VALUE"),
        (["TicTacToe?rows=3"], "unknown option of TicTacToe 'rows'"),
        (["TicTacToe?seed=1"], "unknown option of TicTacToe 'seed'"),
        (["TicTacToe", "--net", "64,x"], "--net 64,x: write sizes such as 64,64"),
        (["TicTacToe", "--net", ""], "--net : write sizes"),
        (["TicTacToe", "--algorithm", "SARSA"], "algorithm='SARSA': allowed are A2C, DQN, MaskablePPO, PPO"),
        (["TicTacToe", "--lr", "nan"], "lr=nan: allowed are finite numbers above 0"),
        (["TicTacToe", "--steps", "0"], "steps=0: allowed are numbers from 1"),
        (["TicTacToe", "--n-envs", "-1"], "n_envs=-1"),
        (["TicTacToe", "--seed", "-1"], "seed=-1"),
        (["TicTacToe", "--opponent", "nobody"], "unknown agent 'nobody'"),
        (["TicTacToe", "--opponent", "self:x"], "allowed are self, self:latest"),
        (["TicTacToe", "--opponent", "0*random"], "weight of random: allowed are finite numbers above 0"),
        (["TicTacToe", "--anchor", "nobody"], "unknown agent 'nobody'"),
        (["TicTacToe", "--save-every", "0"], "save_every=0"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(tmp_path: Path, args: list[str], said: str) -> None:
    out = tmp_path / "run"
    done = trained(*args, "--out", str(out))
    assert done.exit_code == 2
    assert said in done.output
    assert done.output.count("\n") == 1
    assert not out.exists()


def started(folder: Path) -> "subprocess.Popen[str]":
    command = ["TicTacToe", "--steps", "100000000", "--save-every", "1024", "--snapshot-every", "2048", *QUICK]
    return subprocess.Popen(
        [sys.executable, "-m", "arena", "train", "sb3", *command, "--out", str(folder)],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def wait_for_checkpoint(process: "subprocess.Popen[str]", folder: Path) -> None:
    while not [path for path in (folder / "checkpoints").glob("step-*") if path.name != "step-0"]:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)


def step_of(folder: Path) -> int:
    return max(int(path.name.partition("-")[2]) for path in (folder / "checkpoints").glob("step-*"))


def test_a_kill_costs_no_more_than_the_steps_since_the_checkpoint(tmp_path: Path) -> None:
    pytest.importorskip("sb3_contrib")
    folder = tmp_path / "run"
    process = started(folder)
    wait_for_checkpoint(process, folder)
    process.kill()
    process.communicate()
    reached = step_of(folder)
    assert reached >= 1024
    done = trained("TicTacToe", "--steps", str(reached + 1), "--snapshot-every", "2048", *QUICK, "--out", str(folder))
    assert done.exit_code == 0, done.output
    assert done.output.startswith(f"going on after step {reached}\n")
    assert f"trained {reached + 1024} steps" in done.output
    metrics = [json.loads(line)["step"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert metrics == sorted(metrics)
    assert metrics[-1] == reached + 1024
    assert {path.name for path in (folder / "opponents").iterdir()} >= {"step-0.zip"}


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    pytest.importorskip("sb3_contrib")
    folder = tmp_path / "run"
    process = started(folder)
    wait_for_checkpoint(process, folder)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=120)[0]
    assert process.returncode == 130, said
    assert "stopping: this rollout ends first" in said
    assert f"stopped at step {step_of(folder):,}, all saved in {folder}: the same command goes on" in said
    assert "Traceback" not in said


def test_help_tells_the_options() -> None:
    assert "train" in cli.list_commands(None)  # type: ignore[arg-type]  # the context is not looked at
    done = arena("train", "sb3", "--help")
    assert done.exit_code == 0
    for option in ("--algorithm", "--n-envs", "--net", "--lr", "--seed", "--save-every", "--eval-every", "--opponent"):
        assert option in done.output
