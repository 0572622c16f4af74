"""slime and OpenRLHF without them: the fields, as their sources have them."""

from typing import Any

import pytest
from hypothesis import given

from arena.adapters.datasets.openrlhf import OpenRLHF
from arena.adapters.datasets.slime import Slime
from arena.adapters.datasets.trajectory import Trajectory
from tests.adapters.datasets.made import CONVERSATIONS, END, Asked, episode_of, ids, trajectory_of

SAMPLE = {  # slime 624b824, slime/utils/types.py: fields of Sample
    "group_index", "index", "rollout_id", "prompt", "tokens", "multimodal_inputs", "multimodal_train_inputs",
    "multimodal_train_input_id", "apply_chat_template_kwargs", "response", "response_length", "label", "reward",
    "loss_mask", "weight_versions", "rollout_log_probs", "rollout_top_p_token_ids", "rollout_top_p_token_offsets",
    "rollout_routed_experts", "remove_sample", "teacher_log_probs", "status", "metadata", "generate_function_path",
    "custom_rm_path", "train_metadata", "session_id", "non_generation_time", "spec_info", "prefix_cache_info",
}  # fmt: skip
STATUS = {"pending", "completed", "truncated", "aborted", "failed"}  # Sample.Status
RESPONSE = {  # openrlhf 0.11.2, utils/agent.py: final_response of MultiTurnAgentExecutor
    "prompt", "label", "images", "mm_train_inputs", "reward", "scores", "observation_tokens", "action_ranges",
    "rollout_log_probs", "truncated", "extra_logs",
}  # fmt: skip


def samples(*asked: Asked, **more: Any) -> list[dict[str, Any]]:
    return list(Slime().rows([trajectory_of(*asked, **more)]))


@given(CONVERSATIONS)
def test_the_hard_rules_of_a_sample(asked: list[Asked]) -> None:
    episode, _ = episode_of(asked)
    for sample in Slime().rows([Trajectory(episode, 0)]):
        assert set(sample) <= SAMPLE
        assert len(sample["loss_mask"]) == sample["response_length"] == len(sample["rollout_log_probs"])
        assert len(sample["tokens"]) > sample["response_length"]
        assert sample["status"] in STATUS


def test_a_sample() -> None:
    (sample,) = samples(Asked("a", "q"), Asked("b", "r", versions=2), returns=(0.5, 0.0), advantage=0.25)
    assert sample["tokens"] == [*ids("rules 0 qa"), END, ord("r"), ord("b"), END]
    assert (sample["prompt"], sample["response"], sample["response_length"]) == ("q", "a\nb", 5)
    assert (sample["weight_versions"], sample["reward"]) == (["10", "11"], 0.5)
    assert (sample["metadata"]["advantage"], sample["metadata"]["source_name"]) == (0.25, "TicTacToe-v0")


def test_siblings_share_their_rollout_and_others_do_not() -> None:
    one, two = samples(Asked("a"), Asked("b", breaks=True))
    (other,) = samples(Asked("a"), id="e1")
    assert one["rollout_id"] == two["rollout_id"] != other["rollout_id"]
    assert one["group_index"] == two["group_index"] == other["group_index"]
    assert len({each["index"] for each in (one, two, other)}) == 3
    assert all(0 <= each[name] < 2**60 for each in (one, two) for name in ("index", "rollout_id", "group_index"))


@pytest.mark.parametrize(
    ("finish", "more", "status"),
    [
        ("stop", {}, "completed"),
        ("tool_calls", {}, "completed"),
        ("length", {}, "truncated"),
        ("content_filter", {}, "truncated"),
        ("abort", {}, "aborted"),
        ("stop", {"outcome": "truncated", "reason": "9 plies were played"}, "truncated"),
    ],
)
def test_status(finish: str, more: dict[str, Any], status: str) -> None:
    (sample,) = samples(Asked("a", more={"finish_reason": finish}), **more)
    assert sample["status"] == status


def test_samples_of_a_group_follow_each_other() -> None:
    unit = [trajectory_of(Asked("a"), id=f"e{at}", returns=(float(at), 0.0)) for at in range(3)]
    found = list(Slime().rows(unit))
    assert [each["reward"] for each in found] == [0.0, 1.0, 2.0]
    assert len({each["group_index"] for each in found}) == 1


@given(CONVERSATIONS)
def test_ranges_of_actions_are_the_answers(asked: list[Asked]) -> None:
    episode, (expected,) = episode_of(asked)
    answers = []
    for row in OpenRLHF(breaks="rows").rows([Trajectory(episode, 0)]):
        assert set(row) >= RESPONSE
        assert len(row["rollout_log_probs"]) == len(row["observation_tokens"])
        ends = [bound for each in row["action_ranges"] for bound in each]
        assert ends == sorted(ends)
        answers += [tuple(row["observation_tokens"][start:end]) for start, end in row["action_ranges"]]
    assert answers == [one.answer for one in expected]


@pytest.mark.parametrize(("finish", "cut"), [("stop", False), ("length", True), ("abort", False)])
def test_truncated_is_an_answer_cut_by_its_length(finish: str, cut: bool) -> None:
    (row,) = OpenRLHF().rows([trajectory_of(Asked("a", more={"finish_reason": finish}), returns=(0.5, 0.0))])
    assert (row["truncated"], row["cut"]) == (cut, False)
    assert (row["reward"], row["scores"], row["label"]) == (0.5, 0.5, None)
    assert all(isinstance(value, float) for value in row["extra_logs"].values())
