"""A run in a folder: what it leaves there, and that it goes on with what was learnt and counted."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sb3_contrib")

import torch

from arena.adapters.sb3 import ArenaVecEnv, SB3Agent
from arena.adapters.sb3.saving import generators, replacing, restore_generators
from arena.adapters.sb3.training import Plan, Progress, Stopped, Training, settings
from arena.cli.train import elo

SMALL: dict[str, Any] = {"save_every": 1024, "eval_every": 2048, "games": 4}


def plan(**changes: Any) -> Plan:
    return Plan(
        **{"game": "TicTacToe-v0", "net": (8,), "every": 512, "opponents": {"uniform": 1, "random": 1}, **changes}
    )


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_run_leaves_all_that_is_needed_to_use_it(tmp_path: Path) -> None:
    told: list[Progress] = []
    run = Training(plan(), tmp_path / "run", rate=elo, watch=told.append, **SMALL)
    done = run.run(2000)
    assert done.step == 2048  # whole rollouts
    assert done.scores["random"].games == 4
    assert done.reward is not None
    assert done.rating is not None
    assert [progress.step for progress in told] == [0, 1024, 2048]
    files = {path.name for path in (tmp_path / "run").iterdir() if not path.name.startswith(".")}
    assert files - {"tensorboard"} == {
        "checkpoints", "metrics.jsonl", "model.zip", "opponents", "ratings.jsonl", "run.json",
    }  # fmt: skip
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["step-2048"]
    assert len(list((tmp_path / "run" / "opponents").iterdir())) == 5
    agent = SB3Agent(str(tmp_path / "run" / "model.zip"))
    assert agent.training is not None
    assert agent.training.game == "TicTacToe-v0"
    assert [line["step"] for line in lines(tmp_path / "run" / "ratings.jsonl")] == [512, 1024, 1536, 2048]
    metrics = lines(tmp_path / "run" / "metrics.jsonl")
    assert metrics[-1] == {"step": 2048, "eval/random": done.scores["random"].mean}
    assert [line["step"] for line in metrics[:-1]] == [1024, 2048]
    assert {"rollout/ep_rew_mean", "train/loss", "selfplay/rating"} <= set().union(*metrics)


def counts(run: Training) -> Any:
    pool = run.pool
    steps = [known.step for known in pool.snapshots]
    return run.model.num_timesteps, run.model._n_updates, steps, pool.records, run.selfplay.rows, pool.ratings


def weights(run: Training) -> list[Any]:
    optimizer = run.model.policy.optimizer.state_dict()["state"]
    moments = [value for state in optimizer.values() for value in state.values()]
    return [*run.model.policy.state_dict().values(), *moments]


def test_it_goes_on_with_the_same_counts_weights_and_generators(tmp_path: Path) -> None:
    first = Training(plan(), tmp_path, rate=elo, **SMALL)
    first.run(1024)
    drawn = random.random(), np.random.random(), torch.rand(1).item()
    again = Training(plan(), tmp_path, rate=elo, **SMALL)
    assert again.step() == 1024
    again.run(1024)  # done already: nothing is trained
    assert (random.random(), np.random.random(), torch.rand(1).item()) == drawn
    assert counts(again) == counts(first)
    for one, other in zip(weights(first), weights(again), strict=True):
        assert torch.equal(torch.as_tensor(one), torch.as_tensor(other))
    assert again.env.state() == first.env.state()
    assert again.pool.rng.getstate() == first.pool.rng.getstate()
    more = Training(plan(), tmp_path, rate=elo, **SMALL)
    assert more.run(2048).step == 2048
    assert [known.step for known in more.pool.snapshots] == [0, 512, 1024, 1536, 2048]
    assert more.model._n_updates == 2 * first.model._n_updates
    assert more.selfplay.rows[: len(first.selfplay.rows)] == first.selfplay.rows
    assert [line["step"] for line in lines(tmp_path / "ratings.jsonl")] == [512, 1024, 1536, 2048]


def test_the_same_plan_learns_the_same(tmp_path: Path) -> None:
    runs = [Training(plan(seed=seed), tmp_path / str(i), **SMALL) for i, seed in enumerate((3, 3, 4))]
    for run in runs:
        run.run(1024)
    same = [torch.equal(a, b) for a, b in zip(weights(runs[0])[:4], weights(runs[1])[:4], strict=True)]
    other = [torch.equal(a, b) for a, b in zip(weights(runs[0])[:4], weights(runs[2])[:4], strict=True)]
    assert all(same)
    assert not any(other)
    assert counts(runs[0])[3] == counts(runs[1])[3]


def test_what_was_written_after_the_checkpoint_is_cut_off(tmp_path: Path) -> None:
    Training(plan(), tmp_path, rate=elo, **SMALL).run(1024)
    for name in ("metrics.jsonl", "ratings.jsonl"):
        with (tmp_path / name).open("a") as file:
            file.write('{"step": 1500}\n{"step": 15')
    (tmp_path / "opponents" / "step-1500.zip").write_bytes(b"of a run that was killed")
    (tmp_path / "opponents" / ".new-step-1600.zip").write_bytes(b"half")
    (tmp_path / "checkpoints" / ".new-step-2048").mkdir()
    (tmp_path / "checkpoints" / ".new-step-2048" / "model.zip").write_bytes(b"half")
    again = Training(plan(), tmp_path, rate=elo, **SMALL)
    assert again.step() == 1024
    again.run(1024)
    assert [line["step"] for line in lines(tmp_path / "ratings.jsonl")] == [512, 1024]
    assert lines(tmp_path / "metrics.jsonl")[-1]["step"] == 1024
    assert not (tmp_path / "opponents" / "step-1500.zip").exists()
    assert Training(plan(), tmp_path, rate=elo, **SMALL).run(2048).step == 2048


def test_a_kill_after_the_checkpoint_leaves_the_model_of_that_checkpoint(tmp_path: Path) -> None:
    run = Training(plan(), tmp_path, **SMALL)
    run.run(1024)
    (tmp_path / "model.zip").unlink()  # as where the process ended before it was put there
    Training(plan(), tmp_path, **SMALL).run(1024)
    (checkpoint,) = (tmp_path / "checkpoints").iterdir()
    assert (tmp_path / "model.zip").read_bytes() == (checkpoint / "model.zip").read_bytes()


class Killed(Training):
    """Ends between the last rollout and the last checkpoint."""

    def evaluate(self) -> None:
        if self.model.num_timesteps >= self.steps:
            raise SystemExit


def test_a_kill_before_the_checkpoint_leaves_the_snapshots_of_the_last_one(tmp_path: Path) -> None:
    often = plan(every=64)
    first = Training(often, tmp_path, **SMALL)
    first.run(1024)
    with pytest.raises(SystemExit):
        Killed(often, tmp_path, **SMALL).run(2048)
    again = Training(often, tmp_path, **SMALL)
    again.run(1024)
    assert again.pool.snapshots
    assert [known.step for known in again.pool.snapshots] == [known.step for known in first.pool.snapshots]


def test_a_stop_saves_after_the_rollout(tmp_path: Path) -> None:
    def stop(progress: Progress) -> None:
        run.stopping = progress.step >= 1024

    run = Training(plan(), tmp_path, watch=stop, save_every=10**9)
    with pytest.raises(Stopped):
        run.run(10**6)
    assert run.step() == run.progress().step == 1024
    again = Training(plan(), tmp_path)
    assert again.run(2048).step == 2048


def test_another_plan_or_folder_is_refused_and_so_is_a_second_process(tmp_path: Path) -> None:
    run = Training(plan(), tmp_path / "run", **SMALL)
    run.run(1024)
    with pytest.raises(ValueError, match=r"holds a run with lr None, not 0.1, seed 0, not 5: for another plan"):
        Training(plan(lr=0.1, seed=5), tmp_path / "run")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "letter.txt").write_text("dear")
    with pytest.raises(ValueError, match="holds other things than a run"):
        Training(plan(), tmp_path / "notes")
    waiting = Training(plan(), tmp_path / "run", **SMALL)

    def intrude(progress: Progress) -> None:
        with pytest.raises(ValueError, match="another process trains in"):
            waiting.run(4096)

    Training(plan(), tmp_path / "run", watch=intrude, **SMALL).run(2048)


def test_what_is_damaged_or_gone_is_named_and_nothing_is_written_over(tmp_path: Path) -> None:
    Training(plan(), tmp_path / "run", **SMALL).run(1024)
    (state,) = (tmp_path / "run").glob("checkpoints/*/state.json")
    whole, model = state.read_bytes(), (tmp_path / "run" / "model.zip").read_bytes()
    state.write_bytes(b"{")
    with pytest.raises(ValueError, match=r"step-1024 cannot be read \(.*\): name a new folder"):
        Training(plan(), tmp_path / "run", **SMALL).run(2048)
    state.write_bytes(whole)
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    with pytest.raises(ValueError, match="has a model and no checkpoint to go on from"):
        Training(plan(), tmp_path / "run", **SMALL).run(2048)
    assert (tmp_path / "run" / "model.zip").read_bytes() == model
    (tmp_path / "run" / "run.json").write_text("{")
    with pytest.raises(ValueError, match=r"run\.json cannot be read"):
        Training(plan(), tmp_path / "run", **SMALL)


@pytest.mark.parametrize("algorithm", ["A2C", "DQN", "PPO"])
def test_algorithms_without_masks_train_too(tmp_path: Path, algorithm: str) -> None:
    changes = {"algorithm": algorithm, "game": "KuhnPoker-v0", "n_envs": 4}
    done = Training(plan(**changes), tmp_path, rate=elo, **SMALL).run(1100)
    assert done.step >= 1100
    assert SB3Agent(str(tmp_path / "model.zip")).masked is False
    assert Training(plan(**changes), tmp_path, rate=elo, **SMALL).run(1500).step >= 1500


def test_a_game_for_one_trains_too(tmp_path: Path) -> None:
    done = Training(plan(game="Wordle-v0"), tmp_path, **SMALL).run(1024)
    assert done.scores == {}
    assert done.reward is not None


def test_settings_fit_the_number_of_games() -> None:
    assert settings("MaskablePPO", 16)["n_steps"] == 64
    assert settings("PPO", 4096)["n_steps"] == 2
    assert settings("A2C", 16) == {"policy_kwargs": {}}


@pytest.mark.parametrize(
    ("changes", "arguments", "said"),
    [
        ({"algorithm": "SARSA"}, {}, "algorithm='SARSA': allowed are A2C, DQN, MaskablePPO, PPO"),
        ({"opponents": {}}, {}, "the mixture is empty"),
        ({"opponents": {"nobody": 1.0}}, {}, "unknown agent 'nobody'"),
        ({"opponents": {"human": 1.0}}, {}, "human cannot be trained against"),
        ({}, {"anchors": ("human",)}, "human cannot be trained against"),
        ({"n_envs": 0}, {}, "n_envs=0"),
        ({"game": "Negotiation-v0"}, {}, "numeric=True works for"),
        ({"options": {"rows": 3}}, {}, "unknown option of TicTacToe 'rows'"),
        ({"options": {"seed": 1}}, {}, "unknown option of TicTacToe 'seed'"),  # ArenaVecEnv has one of this name
        ({"options": {"opponents": "first"}}, {}, "unknown option of TicTacToe 'opponents'"),
        ({"every": 0}, {}, "every=0"),
        ({"lr": -1.0}, {}, "lr=-1.0"),
        ({"seed": -1}, {}, "seed=-1"),
        ({"net": (0,)}, {}, "net="),
        ({}, {"save_every": 0}, "save_every=0"),
        ({}, {"games": 0.5}, "games=0.5"),
        ({}, {"anchors": ("nobody",)}, "unknown agent 'nobody'"),
    ],
)
def test_odd_plans_are_refused_before_anything_is_written(
    tmp_path: Path, changes: dict[str, Any], arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        Training(plan(**changes), tmp_path / "run", **arguments)
    assert not (tmp_path / "run").exists()
    with pytest.raises(ValueError, match="steps=0"):
        Training(plan(), tmp_path / "run").run(0)
    assert not (tmp_path / "run").exists()


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with pytest.raises(UnicodeEncodeError), replacing(path) as written:
        written.write_text("half \udc80", encoding="utf-8")
    assert not path.exists()
    with replacing(path) as written:
        written.write_text("whole")
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]
    with replacing(tmp_path / "folder") as written:
        written.mkdir()
        (written / "b.txt").write_text("b")
    assert (tmp_path / "folder" / "b.txt").read_text() == "b"


def test_generators_come_back_from_json() -> None:
    state = json.loads(json.dumps(generators()))
    drawn = random.random(), random.gauss(0, 1), np.random.random(), torch.rand(2).tolist()
    restore_generators(state)
    assert (random.random(), random.gauss(0, 1), np.random.random(), torch.rand(2).tolist()) == drawn


def test_streams_of_an_environment_come_back_from_json() -> None:
    env = ArenaVecEnv("LeducPoker-v0", 3, seed=1)
    env.reset()
    state = json.loads(json.dumps(env.state()))
    dealt = env.reset(), env.get_attr("seat")
    other = ArenaVecEnv("LeducPoker-v0", 3, seed=9)
    other.restore(state)
    assert np.array_equal(other.reset(), dealt[0])
    assert other.get_attr("seat") == dealt[1]
    with pytest.raises(ValueError, match="the state is that of 3 games, here are 2"):
        ArenaVecEnv("LeducPoker-v0", 2).restore(state)
