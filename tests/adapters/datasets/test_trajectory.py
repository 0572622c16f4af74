"""One seat of one episode: what it says of itself, and with whom it may be compared."""

from typing import Any

import pytest

from arena.adapters.datasets.trajectory import Trajectory, digest, settled
from arena.agent import AgentInfo
from arena.episode import Attempt, Seat
from arena.match import play_sync
from arena.referee import Referee
from arena.rollouts.branching import branch_sync
from tests.adapters.datasets.made import Asked, episode_of, trajectory_of
from tests.adapters.datasets.talks import llm, played
from tests.agents.toy_model import ToyModel


def test_a_seat_of_a_real_match() -> None:
    episode = play_sync("TicTacToe-v0", ["first", "random"], 3)
    first, second = (Trajectory(episode, player) for player in (0, 1))
    assert (first.agent, first.opponents, second.agent, second.opponents) == (
        "first",
        ("random",),
        "random",
        ("first",),
    )
    assert [turn for turn in episode.turns if turn.seat == 0] == list(first.turns) == list(first.played)
    assert (first.reward, second.reward) == episode.returns
    assert (first.role, second.role) == ("seat 0", "seat 1")
    assert (first.legal, first.truncated, first.forfeited) == (True, False, False)
    assert first.id != second.id
    assert len(first.turns) + len(second.turns) == len(episode.turns)
    assert first.turns is first.turns  # worked out once


def test_roles_that_a_game_does_not_name_are_numbers_of_seats() -> None:
    episode, _ = episode_of([Asked()], [Asked()], seats=(Seat("a"), Seat("b", "dealer")))
    assert [Trajectory(episode, at).role for at in (0, 1)] == ["seat 0", "dealer"]


def test_void_earns_nothing() -> None:
    void = trajectory_of(Asked(), outcome="void", returns=None, reason="the server is down")
    with pytest.raises(ValueError, match="episode e0 is void"):
        _ = void.reward


def test_illegal_tries_and_forfeits_are_not_legal() -> None:
    assert trajectory_of(Asked()).legal
    assert not trajectory_of(Asked(retry=True), Asked()).legal
    given_up = trajectory_of(Asked(), forfeits=(0,))
    assert (given_up.forfeited, given_up.legal) == (True, False)
    assert not trajectory_of(Asked(), forfeits=(1,)).forfeited


def test_policy_and_calls() -> None:
    trajectory = trajectory_of(Asked(samples=2), Asked(retry=True), Asked())
    assert trajectory.policy == AgentInfo("m")
    assert [call.kind for call in trajectory.calls] == ["sample", "sample", "generate", "generate", "generate"]
    assert [len(turn.attempts) for turn in trajectory.turns] == [1, 2]
    assert len(trajectory.attempts) == 3
    assert all(isinstance(attempt, Attempt) for _, attempt in trajectory.attempts)


SAME: dict[str, dict[str, Any]] = {
    "another id": {"id": "e1"},
    "another sample": {"sample": 4},
    "later": {"started": 9.0},
}
OTHER: dict[str, dict[str, Any]] = {
    "another seed": {"seed": 2},
    "another game": {"env": "Nim-v0"},
    "other options": {"options": {"rows": 4}},
    "another opponent": {"seats": (Seat("llm:0", "X"), Seat("else", "O"))},
    "another role": {"seats": (Seat("llm:0", "Z"), Seat("llm:1", "O"))},
    "played on from another": {"parent": "p", "fork": 2},
    "told otherwise": {"referee": Referee(show_legal=False)},
}


@pytest.mark.parametrize("what", SAME)
def test_groups_hold_samples_of_one_task(what: str) -> None:
    assert trajectory_of(Asked("a"), **SAME[what]).group_id == trajectory_of(Asked("b")).group_id


@pytest.mark.parametrize("what", OTHER)
def test_groups_do_not_mix(what: str) -> None:
    assert trajectory_of(Asked(), **OTHER[what]).group_id != trajectory_of(Asked()).group_id


def test_forks_are_grouped_by_where_they_were_played_on_from() -> None:
    one = trajectory_of(Asked(), id="a", parent="p", fork=2)
    assert one.group_id == trajectory_of(Asked(), id="b", parent="p", fork=2).group_id
    assert one.group_id != trajectory_of(Asked(), id="b", parent="p", fork=4).group_id
    assert one.task_id == trajectory_of(Asked()).task_id


def test_what_was_forced_differs_by_what_it_was() -> None:
    whole = played(["first", "random"])
    forks = [branch_sync(whole, 0, 1, ["first", "random"], actions=forced)[0] for forced in ({0: "1"}, {0: "5"}, {})]
    again = branch_sync(whole, 0, 1, ["first", "random"], actions={0: "5"})[0]
    groups = [Trajectory(episode, 1).group_id for episode in (*forks, again)]
    assert len(set(groups)) == 3
    assert groups[1] == groups[3]


def test_options_that_hold_anyway_make_no_other_task() -> None:
    def task(**options: Any) -> str:
        return Trajectory(play_sync("LiarsDice-v0", ["random"] * options.get("players", 2), 5, options), 0).task_id

    assert task() == task(players=2) != task(players=3)
    assert settled(play_sync("LiarsDice-v0", ["random"] * 3, 5, {"players": 3, "wild": 0})) == {"players": 3}
    orders = [{"players": 3, "dice": 2}, {"dice": 2, "players": 3}]
    assert len({str(settled(play_sync("LiarsDice-v0", ["random"] * 3, 5, options))) for options in orders}) == 1
    unknown = trajectory_of(Asked(), env="Unknown-v0", options={"players": 2}).episode
    assert settled(unknown) == {"players": 2}


def test_seats_are_groups_of_their_own() -> None:
    episode, _ = episode_of([Asked()], [Asked()], seats=(Seat("a", "X"), Seat("a", "X")))
    assert Trajectory(episode, 0).group_id != Trajectory(episode, 1).group_id


def test_digests_do_not_depend_on_the_order_of_keys() -> None:
    assert digest({"a": 1, "b": 2}, 3) == digest({"b": 2, "a": 1}, 3) != digest({"a": 1, "b": 2}, 4)
    assert len(digest()) == 16


def test_trainable_is_what_a_model_answered_in_this_episode() -> None:
    episode = played([llm(ToyModel("<answer>5</answer>", "<answer>9</answer>", "<answer>7</answer>")), "random"])
    assert [Trajectory(episode, at).trainable for at in (0, 1)] == [True, False]
    (after,) = branch_sync(episode, 2, 1, ["random", "random"])
    assert Trajectory(after, 0).calls, "the beginning is the model's"
    assert not Trajectory(after, 0).trainable


@pytest.mark.parametrize("kind", ["score", "tool", "sample"])
def test_other_calls_are_no_answers_that_can_be_trained(kind: str) -> None:
    assert trajectory_of(Asked()).trainable
    assert not trajectory_of(Asked(more={"kind": kind})).trainable
    frozen = Seat("m", policy=AgentInfo(trainable=False))
    assert not trajectory_of(Asked(), seats=(frozen, frozen)).trainable
