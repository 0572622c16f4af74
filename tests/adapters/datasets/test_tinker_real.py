"""The Tinker cookbook's own types and data processing take our groups."""

from typing import Any

import pytest

from arena.adapters.datasets.columns import sequences
from arena.adapters.datasets.format import Row
from arena.adapters.datasets.tinker import Tinker, TinkerGame
from arena.adapters.datasets.trajectory import Trajectory
from tests.adapters.datasets.made import Asked, episode_of, trajectory_of

pytestmark = pytest.mark.train
TYPES: Any = pytest.importorskip("tinker_cookbook.rl.types", reason="tinker-cookbook 0.6.1 is not installed")
DATA: Any = pytest.importorskip("tinker_cookbook.rl.data_processing")
ANSWER: Any = pytest.importorskip("tinker_cookbook.completers").TokensWithLogprobs
INPUT: Any = pytest.importorskip("tinker").ModelInput
BROKEN = (Asked("a", "q"), Asked("bc", "r", samples=1), Asked("d", breaks=True), Asked("e", retry=True), Asked("f"))
PLAIN = (Asked("a", "q"), Asked("bc", "r"))


def group_of(row: Row) -> Any:
    """A row as the cookbook's object."""
    members = [
        TYPES.Trajectory(
            [_transition(step) for step in told["transitions"]],
            INPUT.from_ints(told["final_ob"]),
            told["stop_reason"],
        )
        for told in row["trajectories_G"]
    ]
    return TYPES.TrajectoryGroup(members, row["final_rewards_G"], row["metrics_G"])


def _transition(step: dict[str, Any]) -> Any:
    kept = {name: step[name] for name in ("reward", "episode_done", "metrics", "logs")}
    return TYPES.Transition(INPUT.from_ints(step["ob"]), ANSWER(**step["ac"]), **kept)


def test_datums_are_our_sequences() -> None:
    unit = [trajectory_of(*asked, id=f"e{at}", returns=(at + 1.0, 0.0)) for at, asked in enumerate((BROKEN, PLAIN))]
    (row,) = Tinker().rows(unit)
    group = group_of(row)
    assert group.get_total_rewards() == pytest.approx([1.0, 2.0])
    advantages = DATA.compute_advantages([group])
    assert advantages[0].tolist() == pytest.approx([-0.5, 0.5])
    data, told = DATA.assemble_training_data([group], advantages)
    expected = [segment for each in unit for segment in sequences(each, "rows", "own")]
    assert len(data) == len(expected) == 3
    assert [each["traj_idx"] for each in told] == [0, 0, 1]
    for datum, segment in zip(data, expected, strict=True):
        whole, given = [*segment.prompt_ids, *segment.response_ids], len(segment.prompt_ids)
        inputs = datum.loss_fn_inputs
        assert inputs["target_tokens"].data == whole[1:]
        assert inputs["mask"].data == [0.0] * (given - 1) + [float(counts) for counts in segment.mask]
        assert inputs["logprobs"].data == [0.0] * (given - 1) + segment.known()
        assert datum.model_input.to_ints() == whole[:-1]


def test_players_of_one_game() -> None:
    episode, _ = episode_of([Asked("a")], [Asked("b"), Asked("c")], returns=(1.0, -1.0))
    (row,) = TinkerGame().rows([Trajectory(episode, 0), Trajectory(episode, 1)])
    assert group_of(row).get_total_rewards() == pytest.approx([1.0, -1.0])


@pytest.mark.parametrize(("finish", "plies"), [("length", False), ("stop", False), ("stop", True)])
def test_reasons_are_the_cookbook_s(finish: str, plies: bool) -> None:
    cut: dict[str, Any] = {"outcome": "truncated", "reason": "3 plies were played"} if plies else {}
    (row,) = Tinker().rows([trajectory_of(Asked("a", more={"finish_reason": finish}), **cut)])
    assert group_of(row).trajectories_G[0].stop_reason in set(TYPES.StopReason)
