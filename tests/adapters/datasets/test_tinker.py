"""Tinker without the cookbook: the fields of its types, as their source has them."""

from typing import Any

import pytest
from hypothesis import given

from arena.adapters.datasets.format import Row
from arena.adapters.datasets.tinker import Tinker, TinkerGame
from arena.adapters.datasets.trajectory import Trajectory
from tests.adapters.datasets.made import CONVERSATIONS, END, Asked, episode_of, ids, trajectory_of

# tinker_cookbook 0.6.1, rl/types.py and completers.py
GROUP = {"trajectories_G", "final_rewards_G", "metrics_G"}
TRAJECTORY = {"transitions", "final_ob", "stop_reason"}
TRANSITION = {"ob", "ac", "reward", "episode_done", "metrics", "logs"}
ACTION = {"tokens", "maybe_logprobs", "stop_reason"}


def group(*unit: Trajectory) -> Row:
    (found,) = Tinker().rows(unit)
    return found


def test_the_fields_of_a_group() -> None:
    found = group(trajectory_of(Asked("a", "q"), Asked("b", "r"), advantage=0.5))
    assert set(found) == GROUP | {"about_G"}
    (told,) = found["trajectories_G"]
    assert set(told) == TRAJECTORY
    assert all(set(step) == TRANSITION and set(step["ac"]) == ACTION for step in told["transitions"])
    first, second = told["transitions"]
    assert (first["ob"], first["ac"]["tokens"]) == (list(ids("rules 0 q")), [ord("a"), END])
    assert second["ob"] == [*first["ob"], *first["ac"]["tokens"], ord("r")]
    assert [step["episode_done"] for step in told["transitions"]] == [False, True]
    assert found["metrics_G"] == [{"truncated": 0.0, "legal": 1.0, "advantage": 0.5}]
    assert "advantage" not in group(trajectory_of(Asked()))["metrics_G"][0]


@given(CONVERSATIONS)
def test_rewards_add_up_to_the_return(asked: list[Asked]) -> None:
    episode, (expected,) = episode_of(asked, returns=(3.5,))
    found = group(Trajectory(episode, 0))
    steps = found["trajectories_G"][0]["transitions"]
    assert sum(step["reward"] for step in steps) + found["final_rewards_G"][0] == pytest.approx(3.5)
    assert [(tuple(step["ob"]), tuple(step["ac"]["tokens"])) for step in steps] == [
        (e.prompt, e.answer) for e in expected
    ]
    assert [step["logs"]["verdict"] for step in steps] == ["illegal" if one.retry else "legal" for one in asked]


def test_players_of_one_game_are_a_group() -> None:
    episode, _ = episode_of([Asked("a")], [Asked("b"), Asked("c")], returns=(1.0, -1.0))
    (found,) = TinkerGame().rows([Trajectory(episode, 0), Trajectory(episode, 1)])
    assert [about["role"] for about in found["about_G"]] == ["X", "O"]
    assert [len(each["transitions"]) for each in found["trajectories_G"]] == [1, 2]
    assert (TinkerGame.unit, Tinker.unit) == ("episode", "group")


@pytest.mark.parametrize(
    ("finish", "more", "why"),
    [
        ("stop", {}, "completed"),
        ("length", {}, "max_tokens"),
        ("stop", {"outcome": "truncated", "reason": "9 plies were played"}, "max_turns"),
        ("stop", {"outcome": "truncated", "reason": "the context is full"}, None),
    ],
)
def test_why_it_ended(finish: str, more: dict[str, Any], why: str | None) -> None:
    told = group(trajectory_of(Asked("a", more={"finish_reason": finish}), **more))["trajectories_G"][0]
    assert told["stop_reason"] == why
    assert told["transitions"][-1]["ac"]["stop_reason"] == ("length" if finish == "length" else "stop")
