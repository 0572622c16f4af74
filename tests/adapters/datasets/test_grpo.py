"""TRL's GRPO, without TRL: fields, EOS, and recorded rows in place of play."""

from types import SimpleNamespace
from typing import Any

import pytest

from arena.adapters.datasets.grpo import GRPO, Recorded
from tests.adapters.datasets.made import END, Asked, ids, trajectory_of

EOS = 3


def row(*asked: Asked, advantage: float | None = None, form: GRPO | None = None, **more: Any) -> dict[str, Any]:
    (found,) = (form or GRPO()).rows([trajectory_of(*asked, advantage=advantage, **more)])
    return found


def test_the_fields_of_a_rollout() -> None:
    found = row(Asked("a", "q"), Asked("bc", "r", samples=1, versions=1), advantage=0.5, returns=(0.75, 0.0))
    assert found["prompt_ids"] == list(ids("rules 0 q"))
    assert found["completion_ids"] == [ord("a"), END, ord("r"), ord("b"), ord("c"), END]
    assert found["env_mask"] == [1, 1, 0, 1, 1, 1]
    assert found["logprobs"][2] == 0.0
    assert all(found["logprobs"][at] < 0 for at in (0, 1, 3, 4, 5))
    assert (found["reward"], found["advantage"], found["segment"], found["segments"]) == (0.75, 0.5, 0, 1)
    assert found["weight_versions"] == [{"start": 3, "end": 6, "version": "10"}]


def test_a_row_for_each_sequence_when_asked() -> None:
    trajectory = trajectory_of(Asked("a"), Asked("b", breaks=True), Asked("c"), returns=(1.0, 0.0))
    found = list(GRPO(breaks="rows").rows([trajectory]))
    assert [(each["segment"], each["segments"], each["reward"]) for each in found] == [(0, 2, 1.0), (1, 2, 1.0)]
    assert [sum(each["env_mask"]) for each in found] == [2, 4]


@pytest.mark.parametrize(
    ("asked", "more", "added"),
    [
        (Asked("a"), {}, True),
        (Asked("a", more={"finish_reason": "length"}), {}, False),
        (Asked("a", more={"finish_reason": "abort"}), {}, False),
        (Asked("a", more={"finish_reason": "tool_calls"}), {}, True),
        (Asked("a"), {"outcome": "truncated", "reason": "9 plies were played"}, False),
    ],
)
def test_eos_is_added_to_whole_answers_only_and_never_trained_on(
    asked: Asked, more: dict[str, Any], added: bool
) -> None:
    plain, ended = row(asked, **more), row(asked, form=GRPO(eos=EOS), **more)
    if not added:
        assert ended == plain
        return
    assert ended["completion_ids"] == [*plain["completion_ids"], EOS]
    assert ended["env_mask"] == [*plain["env_mask"], 0]
    assert ended["logprobs"] == [*plain["logprobs"], 0.0]


def test_eos_that_is_there_is_not_added() -> None:
    assert row(Asked("a"), form=GRPO(eos=END)) == row(Asked("a"))


class Trainer:
    """As much of one as a rollout function sees."""

    accelerator = SimpleNamespace(num_processes=1)


def recorded(*sizes: int, generations: int = 2) -> Recorded:
    rows = [
        {"group_id": f"g{group}", "reward": n, "x": (group, n)} for group, size in enumerate(sizes) for n in range(size)
    ]
    return Recorded(rows[::-1], generations)


def test_each_prompt_gets_the_rows_of_its_group_in_turn() -> None:
    found = recorded(2, 3, 1)
    assert found.prompts == [{"prompt": "g1"}, {"prompt": "g0"}]
    asked = ["g0", "g0", "g1", "g1"]
    given = found(asked, Trainer())
    assert given["x"] == [(0, 1), (0, 0), (1, 2), (1, 1)]
    assert given["group_id"] == asked
    assert found(asked, Trainer())["x"] == [(0, 1), (0, 0), (1, 0), (1, 2)]
    assert found.earned([1, 2], completions=["", ""]) == [1, 2]


def test_groups_that_are_too_small() -> None:
    with pytest.raises(ValueError, match=r"no group has 4 rows .*, the largest has 3"):
        recorded(2, 3, generations=4)
    with pytest.raises(ValueError, match="the largest has 0"):
        recorded()


def test_several_processes_are_refused() -> None:
    trainer = SimpleNamespace(accelerator=SimpleNamespace(num_processes=2))
    with pytest.raises(ValueError, match="for one process"):
        recorded(2)(["g0"], trainer)


def test_of_one_conversation_no_sequence_is_beside_another() -> None:
    rows = [{"group_id": "g", "segment": at, "reward": n, "n": n} for n in range(2) for at in range(3 - n)]
    found = Recorded(rows, 2)
    assert found.prompts == [{"prompt": "g"}, {"prompt": "g/1"}]
    assert found(["g/1", "g/1"], Trainer())["n"] == [0, 1]
