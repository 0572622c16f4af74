"""Tinker: a row is a `TrajectoryGroup` of transitions.

Fields as tinker_cookbook 0.6.1 has them (rl/types.py: TrajectoryGroup, Trajectory, Transition; completers.py:
TokensWithLogprobs): a transition is an answer, `ob` its whole prompt (token ids: `tinker.ModelInput.from_ints(ob)`),
`ac` the `tokens` sampled, their `maybe_logprobs` and `stop_reason` ("stop" or "length"); `reward` is what the turn
earned, at its last answer. `final_rewards_G` has what a seat earned that no turn of it tells, so that totals are the
returns. Whether answers are one sequence the cookbook finds out itself (rl/data_processing.py: `trajectory_to_data`).

A group is either the samples of one seat (`tinker`), or the players of one game (`tinker_game`), as in the cookbook's
text_arena recipe. The cookbook centres rewards in it: between players of one game that mixes the roles. It has no field
for advantages, which `trajectory_to_data` takes as an argument; ours are in `metrics_G`.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from arena.adapters.datasets.columns import about, check_choice, fields, ids_type, logprobs_type, sequences
from arena.adapters.datasets.format import Format, Row, Unit
from arena.adapters.datasets.tokens import Kinds, Segment, Span
from arena.adapters.datasets.trajectory import Trajectory

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Tinker", "TinkerGame"]


class Tinker(Format):
    """Rows that are TrajectoryGroups of the Tinker cookbook, the samples of one seat in each.

    Options:
        kinds: log-probabilities that are taken: the model's "own", at whatever temperature, or "any".
    """

    name = "tinker"
    consumer = "tinker-cookbook 0.6.1 TrajectoryGroup (samples of one seat)"
    checked = "loaded with tinker-cookbook 0.6.1 (trajectory_to_data)"
    unit: ClassVar[Unit] = "group"
    files = ("jsonl", "jsonl.zst", "parquet")

    def __init__(self, kinds: Kinds = "own") -> None:
        check_choice("kinds", kinds, "own", "any")
        self.kinds = kinds

    def rows(self, unit: Sequence[Trajectory]) -> Iterator[Row]:
        """See `Format.rows`."""
        asked = [(each, sequences(each, "rows", self.kinds)) for each in unit]
        found = [(each, several) for each, several in asked if several]
        if not found:
            return
        trajectories = [_trajectory(each, several) for each, several in found]
        yield {
            "trajectories_G": trajectories,
            "final_rewards_G": [
                each.reward - sum(step["reward"] for step in told["transitions"])
                for (each, _), told in zip(found, trajectories, strict=True)
            ],
            "metrics_G": [_metrics(each) for each, _ in found],
            "about_G": [about(each, several[-1]) for each, several in found],
        }

    def schema(self) -> "pa.Schema":
        """See `Format.schema`."""
        import pyarrow as pa

        real, text, flag = pa.float64(), pa.string(), pa.bool_()
        action = [("tokens", ids_type()), ("maybe_logprobs", logprobs_type()), ("stop_reason", text)]
        metrics = pa.struct([("legal", real)])
        transition = pa.struct(
            [
                ("ob", ids_type()),
                ("ac", pa.struct(action)),
                ("reward", real),
                ("episode_done", flag),
                ("metrics", metrics),
                ("logs", pa.struct([("verdict", text), ("ply", pa.int32())])),
            ]
        )
        names = ("transitions", "final_ob", "stop_reason")
        trajectory = pa.struct(list(zip(names, (pa.list_(transition), ids_type(), text), strict=True)))
        totals = pa.struct([("truncated", real), ("legal", real), ("advantage", real)])
        return pa.schema(
            [
                ("trajectories_G", pa.list_(trajectory)),
                ("final_rewards_G", pa.list_(real)),
                ("metrics_G", pa.list_(totals)),
                ("about_G", pa.list_(pa.struct(fields()))),
            ]
        )


class TinkerGame(Tinker):
    """Rows that are TrajectoryGroups of the Tinker cookbook, the players of one game in each.

    Options:
        kinds: log-probabilities that are taken: the model's "own", at whatever temperature, or "any".
    """

    name = "tinker_game"
    consumer = "tinker-cookbook 0.6.1 TrajectoryGroup (players of one game)"
    unit = "episode"


def _metrics(trajectory: Trajectory) -> dict[str, float]:
    found = {"truncated": float(trajectory.truncated), "legal": float(trajectory.legal)}
    return found if trajectory.advantage is None else found | {"advantage": trajectory.advantage}


def _trajectory(trajectory: Trajectory, several: Sequence[Segment]) -> dict[str, Any]:
    steps = [_transition(segment, span) for segment in several for span in segment.spans]
    steps[-1]["episode_done"] = True
    return {"transitions": steps, "final_ob": [], "stop_reason": _stop(trajectory, several[-1].spans[-1])}


def _transition(segment: Segment, span: Span) -> dict[str, Any]:
    action = {
        "tokens": list(segment.response_ids[span.start : span.end]),
        "maybe_logprobs": list(segment.logprobs[span.start : span.end]),
        "stop_reason": "length" if span.call.finish_reason == "length" else "stop",
    }
    return {
        "ob": [*segment.prompt_ids, *segment.response_ids[: span.start]],
        "ac": action,
        "reward": span.reward,
        "episode_done": False,
        "metrics": {"legal": float(span.attempt.verdict == "legal")},
        "logs": {"verdict": span.attempt.verdict, "ply": span.turn.ply},
    }


def _stop(trajectory: Trajectory, last: Span) -> str | None:
    """A value of the cookbook's StopReason; None where it has none for why the episode was cut."""
    if last.call.finish_reason == "length":
        return "max_tokens"
    if not trajectory.truncated:
        return "completed"
    return "max_turns" if trajectory.episode.reason.endswith("plies were played") else None
