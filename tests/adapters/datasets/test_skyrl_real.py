"""SkyRL's own code checks, joins and merges our outputs. It is installed apart (its pins exclude ours)."""

import typing
from typing import Any

import pytest
import typing_extensions

from arena.adapters.datasets.skyrl import SkyRL
from tests.adapters.datasets.made import Asked, trajectory_of
from tests.adapters.datasets.test_skyrl import OUTPUT

pytestmark = pytest.mark.train
with pytest.MonkeyPatch.context() as patch:  # pydantic asks for it before Python 3.12, and skyrl has the other
    patch.setattr(typing, "TypedDict", typing_extensions.TypedDict)
    BASE: Any = pytest.importorskip("skyrl.train.generators.base", reason="skyrl 0.3.0 is not installed")
    UTILS: Any = pytest.importorskip("skyrl.train.generators.utils")
    CHECKS: Any = pytest.importorskip("skyrl.train.utils.trainer_utils")
BROKEN = (Asked("a", "q"), Asked("bc", "r", samples=1), Asked("d", breaks=True), Asked("e", retry=True), Asked("f"))
PLAIN = (Asked("a", "q"), Asked("bc", "r"))


def output(*members: tuple[Asked, ...], seed: int = 1, **options: Any) -> dict[str, Any]:
    """A row as it is read back."""
    unit = [trajectory_of(*asked, id=f"e{at}", seed=seed, returns=(at + 1.0, 0.0)) for at, asked in enumerate(members)]
    (row,) = SkyRL(**options).rows(unit)
    return row | {"trajectory_ids": [BASE.TrajectoryID(**each) for each in row["trajectory_ids"]]}


def test_the_field_list_of_our_tests_is_the_real_one() -> None:
    assert set(BASE.GeneratorOutput.__annotations__) == OUTPUT | {"pixel_values", "image_grid_thw"}


@pytest.mark.parametrize("options", [{}, {"rewards": "turns"}, {"logprobs": False}])
def test_trajectories_pass_its_checks_and_are_joined(options: dict[str, Any]) -> None:
    row = output(PLAIN, PLAIN[:1], **options)
    CHECKS.validate_generator_output(2, row)
    joined = UTILS.concatenate_generator_outputs([row, output(PLAIN, **options)])
    assert len(joined["response_ids"]) == 3
    assert joined["roles"] == ["X"] * 3


@pytest.mark.parametrize("steps", ["answers", "sequences"])
def test_steps_pass_its_checks(steps: str) -> None:
    row = output(BROKEN, PLAIN, steps=steps)
    CHECKS.validate_generator_output(2, row, step_wise=True)
    joined = UTILS.concatenate_generator_outputs([row, output(PLAIN, seed=2, steps=steps)], step_wise=True)
    assert joined["is_last_step"][-1]
    assert sum(joined["is_last_step"]) == 3


def test_merging_answers_gives_our_sequences() -> None:
    """What it merges by prefixes is what the calls on record say extends each other."""
    merged = UTILS.merge_stepwise_output(output(BROKEN, PLAIN, steps="answers"))
    ours = output(BROKEN, PLAIN, steps="sequences")
    for name in ("prompt_token_ids", "response_ids", "loss_masks", "rollout_logprobs", "rewards", "is_last_step"):
        assert merged[name] == ours[name]
    assert len(merged["response_ids"]) == 3
