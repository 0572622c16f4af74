"""A real GRPOTrainer trains on games: what was sampled is what it learns from, and it learns."""

from pathlib import Path
from random import Random
from typing import Any, Self

import pytest

pytest.importorskip("trl")

import torch  # after importorskip: the extra may be missing

from arena.adapters.trl import Rollouts, rollout_func
from arena.game import NOBODY, SEAT, Action, IllegalAction, Player, TurnGame
from arena.referee import Referee
from tests.adapters.models import tiny
from tests.adapters.trl.training import DIGITS, short, trainer

pytestmark = pytest.mark.train
GAME = "TicTacToe-v0"
LENIENT = Referee("random")  # what is illegal is replaced, so that games of a model that knows nothing have many turns


class Kept:
    """A rollout function that keeps what it gave."""

    __name__ = "kept"

    def __init__(self, rollouts: Rollouts) -> None:
        self.rollouts, self.given = rollouts, list[dict[str, list[Any]]]()

    def __call__(self, prompts: Any, trainer: Any) -> dict[str, list[Any]]:
        self.given.append(self.rollouts(prompts, trainer))
        return self.given[-1]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Kept]:
    """Three steps on games of many turns."""
    folder = tmp_path_factory.mktemp("trained")
    kept = Kept(rollout_func(GAME, prompting=short(folder), referee=LENIENT))
    made = trainer(folder, kept, GAME)
    made.train()
    return made, kept


def rows_of(kept: Kept, step: int, inputs: dict[str, torch.Tensor]) -> list[int]:
    """Which row of the rollout each row of a batch is: the trainer shuffles them."""
    given = kept.given[step]
    known = {
        tuple(p + c): at for at, (p, c) in enumerate(zip(given["prompt_ids"], given["completion_ids"], strict=True))
    }
    found = []
    for at in range(len(inputs["prompt_ids"])):
        prompt = inputs["prompt_ids"][at][inputs["prompt_mask"][at] == 1].tolist()
        completion = inputs["completion_ids"][at][inputs["completion_mask"][at] == 1].tolist()
        found.append(known[tuple(prompt + completion)])
    return found


def test_what_was_told_reaches_the_loss_as_what_it_is(trained: tuple[Any, Kept]) -> None:
    made, kept = trained
    assert len(made.seen) == len(kept.given) == 3
    for step, seen in enumerate(made.seen):
        inputs, given = seen["inputs"], kept.given[step]
        mask = inputs["completion_mask"] * inputs["tool_mask"]
        for at, row in enumerate(rows_of(kept, step, inputs)):
            length = len(given["completion_ids"][row])
            assert mask[at, :length].tolist() == given["env_mask"][row]
            assert not mask[at, length:].any()
        assert 0 < mask.sum() < inputs["completion_mask"].sum()


def test_the_loss_is_of_sampled_tokens_alone(trained: tuple[Any, Kept]) -> None:
    made, _ = trained
    for seen in made.seen:
        inputs = seen["inputs"]
        mask = inputs["completion_mask"] * inputs["tool_mask"]
        by_hand = -(inputs["advantages"][:, None] * mask).sum() / mask.sum()  # on-policy: every ratio is 1
        assert seen["loss"] == pytest.approx(float(by_hand), abs=1e-5)
        everything = inputs["completion_mask"]
        wrong = -(inputs["advantages"][:, None] * everything).sum() / everything.sum()
        assert abs(float(wrong - by_hand)) > 1e-3


def test_tokens_that_were_told_get_no_gradient(trained: tuple[Any, Kept]) -> None:
    made, _ = trained
    for seen in made.seen:
        inputs, (logps,) = seen["inputs"], seen["logps"]
        mask = (inputs["completion_mask"] * inputs["tool_mask"]).bool()
        moved = (inputs["advantages"] != 0)[:, None] & mask
        assert not logps.grad[~mask].any()
        assert bool((logps.grad[moved] != 0).all())
        assert moved.any()


def test_the_trainer_computes_the_logprobs_that_were_recorded(trained: tuple[Any, Kept]) -> None:
    made, kept = trained
    for step, seen in enumerate(made.seen):
        inputs, (logps,) = seen["inputs"], seen["logps"]
        for at, row in enumerate(rows_of(kept, step, inputs)):
            given = kept.given[step]
            for place, (logprob, sampled) in enumerate(
                zip(given["logprobs"][row], given["env_mask"][row], strict=True)
            ):
                if sampled:
                    assert float(logps[at, place]) == pytest.approx(logprob, abs=1e-4)
                else:
                    assert logprob == 0.0


@pytest.mark.parametrize("temperature", [0.7, 1.3])
def test_they_agree_at_another_temperature(tmp_path: Path, temperature: float) -> None:
    kept = Kept(rollout_func(GAME, prompting=short(tmp_path), referee=LENIENT))
    made = trainer(tmp_path, kept, GAME, max_steps=1, temperature=temperature)
    made.train()
    inputs, (logps,) = made.seen[0]["inputs"], made.seen[0]["logps"]
    mask = (inputs["completion_mask"] * inputs["tool_mask"]).bool()
    assert (logps - inputs["sampling_per_token_logps"])[mask].abs().max() < 1e-4
    assert {kind for row in kept.given[0]["kinds"] for kind in row} == {f"temperature={temperature:g}"}


def test_advantages_are_within_groups_of_one_task(trained: tuple[Any, Kept]) -> None:
    made, kept = trained
    for step, seen in enumerate(made.seen):
        given, groups = kept.given[step], dict[str, list[tuple[float, float]]]()
        for advantage, row in zip(
            seen["inputs"]["advantages"].tolist(), rows_of(kept, step, seen["inputs"]), strict=True
        ):
            groups.setdefault(given["group_id"][row], []).append((advantage, given["reward"][row]))
        assert {len(rows) for rows in groups.values()} == {4}
        for rows in groups.values():
            mean = sum(reward for _, reward in rows) / 4
            assert sum(advantage for advantage, _ in rows) == pytest.approx(0, abs=1e-4)
            assert all((advantage > 0) == (reward > mean) for advantage, reward in rows if reward != mean)


def test_weights_change_between_rollouts_and_are_told_by_version(trained: tuple[Any, Kept]) -> None:
    made, kept = trained
    versions = [{v["version"] for row in given["weight_versions"] for v in row} for given in kept.given]
    assert versions == [{"0"}, {"1"}, {"2"}]
    assert {log["game/truncated"] for log in made.state.log_history if "game/truncated" in log} == {0.0}


class Door(TurnGame):
    """One move: the third of three doors is the right one."""

    players = 1

    opened: str = ""

    @classmethod
    def initial(cls, rng: Random) -> Self:
        return cls()

    def to_act(self) -> tuple[Player, ...]:
        return NOBODY if self.opened else SEAT[0]

    def rules(self, player: Player) -> str:
        return "Which door?"

    def observation(self, player: Player) -> str:
        return "1 2 3"

    def legal_actions(self, player: Player) -> tuple[Action, ...]:
        return () if self.opened else ("1", "2", "3")

    def play(self, action: Action) -> Self:
        if action not in self.legal_actions(0):
            raise IllegalAction("write 1, 2 or 3")
        return type(self)(action)

    def returns(self) -> tuple[float, ...]:
        return (1.0 if self.opened == "3" else 0.0,)

    def reward_range(self) -> tuple[float, float]:
        return -1.0, 1.0


def test_the_right_door_is_learned(tmp_path: Path) -> None:
    kept = Kept(rollout_func(Door, prompting=short(tmp_path)))
    changes = {"per_device_train_batch_size": 64, "num_generations": 16, "max_steps": 50, "learning_rate": 1e-2}
    trainer(tmp_path, kept, Door, tiny.model(1, characters=DIGITS), **changes).train()
    first, last = kept.given[0], kept.given[-1]
    assert sum(first["illegal"]) / 64 > 0.5
    assert sum(last["reward"]) / 64 > 0.9
