"""SkyRL without SkyRL: the fields of its GeneratorOutput, as its source has them."""

from typing import Any

import pytest

from arena.adapters.datasets.skyrl import SkyRL
from arena.adapters.datasets.tokens import Lacking
from tests.adapters.datasets.made import END, Asked, ids, trajectory_of

OUTPUT = {  # skyrl 0.3.0, train/generators/base.py: class GeneratorOutput, without images
    "prompt_token_ids", "response_ids", "rewards", "loss_masks", "stop_reasons", "rollout_metrics", "rollout_logprobs",
    "trajectory_ids", "trajectory_generation_times", "rollout_expert_indices", "is_last_step", "env_metrics",
}  # fmt: skip
BROKEN = (Asked("a", "q"), Asked("b", "r"), Asked("c", breaks=True))


def output(*members: tuple[Asked, ...], **options: Any) -> dict[str, Any]:
    """Of a group whose members earn 1, 2, ..."""
    unit = [
        trajectory_of(*asked, id=f"e{at}", returns=(at + 1.0, 0.0), advantage=at / 2)
        for at, asked in enumerate(members)
    ]
    (found,) = SkyRL(**options).rows(unit)
    return found


def test_the_fields_of_an_output() -> None:
    found = output((Asked("a", "q"), Asked("b", "r")), (Asked("c", "q"),))
    assert set(found) >= OUTPUT
    assert all(value is None or len(value) == 2 for value in found.values())
    assert found["prompt_token_ids"] == [list(ids("rules 0 q"))] * 2
    assert found["response_ids"] == [[ord("a"), END, ord("r"), ord("b"), END], [ord("c"), END]]
    assert found["loss_masks"] == [[1, 1, 0, 1, 1], [1, 1]]
    assert found["rewards"] == [1.0, 2.0]
    assert [each["repetition_id"] for each in found["trajectory_ids"]] == [0, 1]
    assert len({each["instance_id"] for each in found["trajectory_ids"]}) == 1
    assert (found["is_last_step"], found["stop_reasons"]) == (None, ["stop", "stop"])
    assert (found["advantages"], found["episodes"]) == ([0.0, 0.5], ["e0", "e1"])
    for extra in set(found) - OUTPUT:
        assert isinstance(found[extra], list), "what is no list would be taken apart by index"


def test_every_answer_is_a_step_with_its_whole_prompt() -> None:
    found = output(BROKEN, (Asked("d"),), steps="answers")
    whole = list(ids("rules 0 q"))
    assert found["prompt_token_ids"][:2] == [whole, [*whole, ord("a"), END, ord("r")]]
    assert found["response_ids"] == [[ord(said), END] for said in "abcd"]
    assert found["loss_masks"] == [[1, 1]] * 4
    assert found["is_last_step"] == [False, False, True, True]
    assert found["rewards"] == [0.0, 0.0, 1.0, 2.0]
    assert [each["repetition_id"] for each in found["trajectory_ids"]] == [0, 0, 0, 1]


def test_sequences_are_steps_when_asked() -> None:
    found = output(BROKEN, (Asked("d"),), steps="sequences")
    assert [len(mask) for mask in found["loss_masks"]] == [5, 2, 2]
    assert (found["is_last_step"], found["rewards"]) == ([False, True, True], [0.0, 1.0, 2.0])


def test_versions_of_a_step_are_counted_from_its_own_beginning() -> None:
    found = output((Asked("a"), Asked("bcd", versions=2)), steps="answers")
    assert found["weight_versions"] == [
        [],
        [{"start": 0, "end": 2, "version": "10"}, {"start": 2, "end": 4, "version": "11"}],
    ]


def test_rewards_of_turns_stand_at_their_last_tokens() -> None:
    found = output((Asked("a", "q"), Asked("x", "s", retry=True), Asked("b", "r")), rewards="turns")
    assert found["rewards"] == [[0.0, 0.0, 0, 0, 0, 0, 0.0, 0.25]]


@pytest.mark.parametrize(
    ("reason", "told"), [("length", "length"), ("abort", "abort"), ("tool_calls", "stop"), ("", "stop")]
)
def test_why_it_stopped(reason: str, told: str) -> None:
    assert output((Asked("a", more={"finish_reason": reason}),))["stop_reasons"] == [told]


def test_several_sequences_need_steps() -> None:
    with pytest.raises(Lacking, match=r"2 sequences, .*steps=sequences, steps=answers"):
        output(BROKEN)
