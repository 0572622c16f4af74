"""verl without verl: the fields of its AgentLoopOutput, as its source has them."""

from typing import Any

import pytest

from arena.adapters.datasets.trajectory import Trajectory
from arena.adapters.datasets.verl import Verl
from arena.adapters.datasets.verl_prompts import VerlPrompts
from arena.match import play_sync
from tests.adapters.datasets.made import END, Asked, ids, trajectory_of

OUTPUT = {  # verl 0.9.1, experimental/agent_loop/agent_loop.py: class AgentLoopOutput
    "prompt_ids", "response_ids", "response_mask", "response_logprobs", "routed_experts", "multi_modal_data",
    "reward_score", "num_turns", "metrics", "extra_fields", "mm_processor_kwargs", "mm_processor_output",
}  # fmt: skip
METRICS = {"generate_sequences", "tool_calls", "compute_score", "num_preempted"}  # class AgentLoopMetrics
READ = {"turn_scores", "tool_rewards", "min_global_steps", "max_global_steps", "reward_extra_info"}  # of extra_fields


def rows(*asked: Asked, form: Verl | None = None, **more: Any) -> list[dict[str, Any]]:
    return list((form or Verl()).rows([trajectory_of(*asked, **more)]))


def test_the_fields_of_an_output() -> None:
    (row,) = rows(Asked("a", "q"), Asked("bc", "r", samples=1), returns=(0.75, 0.0), advantage=0.5)
    assert set(row) - OUTPUT == {"uid"}
    assert set(row["metrics"]) == METRICS
    assert set(row["extra_fields"]) >= READ
    assert row["prompt_ids"] == list(ids("rules 0 q"))
    assert row["response_ids"] == [ord("a"), END, ord("r"), ord("b"), ord("c"), END]
    assert row["response_mask"] == [1, 1, 0, 1, 1, 1]
    assert (row["reward_score"], row["num_turns"]) == (0.75, 4)
    assert row["metrics"]["generate_sequences"] == 1.0
    assert row["extra_fields"]["advantage"] == 0.5
    assert row["extra_fields"]["turn_scores"] == [0.0, 0.25]
    assert row["uid"] == row["extra_fields"]["group_id"]


def test_sequences_of_one_loop_share_the_reward_and_say_which_they_are() -> None:
    found = rows(Asked("a"), Asked("b", breaks=True), Asked("c", breaks=True), returns=(1.0, 0.0))
    assert [row["reward_score"] for row in found] == [1.0] * 3
    assert [(row["extra_fields"]["segment"], row["extra_fields"]["segments"]) for row in found] == [
        (0, 3),
        (1, 3),
        (2, 3),
    ]
    assert len({row["uid"] for row in found}) == 1


@pytest.mark.parametrize(
    ("versions", "steps"),
    [
        (((0, "7"), (1, "9")), (7, 9)),
        (((0, "12"),), (12, 12)),
        (((0, "default"),), (None, None)),
        (((0, "7"), (1, "base")), (None, None)),
        (((0, "9" * 30),), (None, None)),
        (((0, "²"),), (None, None)),
        ((), (None, None)),
    ],
)
def test_steps_are_the_versions_that_are_numbers(versions: Any, steps: Any) -> None:
    (row,) = rows(Asked("a", more={"weight_versions": versions}))
    assert (row["extra_fields"]["min_global_steps"], row["extra_fields"]["max_global_steps"]) == steps


def test_prompts_are_what_the_seat_was_told_first() -> None:
    episode = play_sync("TicTacToe-v0", ["first", "random"], 2**63 + 5)
    for seat, agent in ((0, ""), (1, "arena_agent")):
        (row,) = VerlPrompts(agent).rows([Trajectory(episode, seat)] * 3)
        assert row.get("agent_name", "") == agent
        assert [message["role"] for message in row["prompt"]] == ["system", "user"]
        assert "Tic-tac-toe" in row["prompt"][0]["content"] or "TicTacToe" in row["prompt"][0]["content"]
        assert row["extra_info"]["interaction_kwargs"]["seed"] == 2**63 + 5
        assert row["extra_info"]["interaction_kwargs"]["seat"] == seat
        assert (row["data_source"], row["reward_model"]["style"]) == ("TicTacToe-v0", "rule")


def test_prompts_of_a_seat_that_was_never_asked() -> None:
    unasked = Trajectory(play_sync("TicTacToe-v0", ["first", "random"], 1, max_turns=1), 1)
    asked = Trajectory(play_sync("TicTacToe-v0", ["first", "random"], 1), 1)
    assert not list(VerlPrompts().rows([unasked, unasked]))
    assert list(VerlPrompts().rows([unasked, asked])) == list(VerlPrompts().rows([asked]))
