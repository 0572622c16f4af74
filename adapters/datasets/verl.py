"""verl: rows of the shape of an agent loop's output.

Fields of `AgentLoopOutput` and `AgentLoopMetrics` (verl 0.9.1, experimental/agent_loop/agent_loop.py): `prompt_ids`,
`response_ids`, `response_mask` (1: the model's, 0: given), `response_logprobs` (0.0 where given), `reward_score` (put
on the last token of the response by `as_dict`), `num_turns` (of a chat: told and said), `metrics`, `extra_fields`.
Of the latter the trainer reads `turn_scores`, `tool_rewards`, `min_global_steps`, `max_global_steps` (the weights that
began and ended it) and, of a loop with several outputs, `reward_extra_info` (trainer/ppo/v1/agent_loop_tq.py, where
every output of a loop has the reward of the last). `uid` is the key of the group in a batch. It works advantages out
itself; ours is in `extra_fields`.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from arena.adapters.datasets.columns import Breaks, about, check_choice, fields, ids_type, logprobs_type, sequences
from arena.adapters.datasets.format import Format, Row
from arena.adapters.datasets.tokens import Kinds, Segment
from arena.adapters.datasets.trajectory import Trajectory

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Verl"]


class Verl(Format):
    """Rows of the shape of verl's AgentLoopOutput.

    Options:
        breaks: make "rows" of a conversation that is several sequences, each with the reward, as verl's trainer does
            with several outputs of a loop; or "refuse" it.
        kinds: log-probabilities that are taken: the model's "own", at whatever temperature, or "any".
        logprobs: False: none are taken (`response_logprobs` is null), for trainers that work them out again.
    """

    name = "verl"
    consumer = "verl 0.9.1 AgentLoopOutput"
    checked = "loaded with verl 0.9.1 (AgentLoopOutput, as_dict)"
    ids = Format.ids | {"generate_sequences"}  # seconds

    def __init__(self, breaks: Breaks = "rows", kinds: Kinds = "own", logprobs: bool = True) -> None:
        check_choice("breaks", breaks, "rows", "refuse")
        check_choice("kinds", kinds, "own", "any")
        self.breaks, self.kinds, self.logprobs = breaks, kinds, logprobs

    def rows(self, unit: Sequence[Trajectory]) -> Iterator[Row]:
        """See `Format.rows`."""
        (trajectory,) = unit
        found = sequences(trajectory, self.breaks, self.kinds, self.logprobs)
        for at, segment in enumerate(found):
            yield {
                "uid": trajectory.group_id,
                "prompt_ids": list(segment.prompt_ids),
                "response_ids": list(segment.response_ids),
                "response_mask": list(segment.mask),
                "response_logprobs": segment.known() if self.logprobs else None,
                "reward_score": trajectory.reward,
                "num_turns": 2 * len(segment.spans),
                "metrics": {
                    "generate_sequences": sum(attempt.latency for attempt in _attempts(segment)),
                    "tool_calls": 0.0,
                    "compute_score": 0.0,
                    "num_preempted": -1,
                },
                "extra_fields": {
                    "turn_scores": [span.reward for span in segment.spans],
                    "tool_rewards": [],
                    **_steps(segment),
                    "reward_extra_info": {"truncated": float(trajectory.truncated), "legal": float(trajectory.legal)},
                    "segment": at,
                    "segments": len(found),
                    **about(trajectory, segment),
                },
            }

    def schema(self) -> "pa.Schema":
        """See `Format.schema`."""
        import pyarrow as pa

        number, whole = pa.float64(), pa.int32()
        names = ("generate_sequences", "tool_calls", "compute_score")
        metrics = pa.struct([*[(name, number) for name in names], ("num_preempted", whole)])
        extra = pa.struct(
            [
                pa.field("turn_scores", pa.list_(number)),
                pa.field("tool_rewards", pa.list_(number)),
                *[pa.field(name, whole) for name in ("min_global_steps", "max_global_steps")],
                pa.field("reward_extra_info", pa.struct([("truncated", number), ("legal", number)])),
                *[pa.field(name, whole) for name in ("segment", "segments")],
                *fields(),
            ]
        )
        return pa.schema(
            [
                ("uid", pa.string()),
                ("prompt_ids", ids_type()),
                ("response_ids", ids_type()),
                ("response_mask", ids_type()),
                ("response_logprobs", logprobs_type()),
                ("reward_score", number),
                ("num_turns", whole),
                ("metrics", metrics),
                ("extra_fields", extra),
            ]
        )


def _attempts(segment: Segment) -> list[Any]:
    """The attempts that a sequence's answers were given in, each once."""
    return list({id(span.attempt): span.attempt for span in segment.spans}.values())


def _steps(segment: Segment) -> dict[str, int | None]:
    """The training steps that the weights are of, where their versions are such numbers."""
    versions = [version for _, _, version in segment.versions]
    steps = [int(version) for version in versions if version.isdecimal() and len(version) < 10]
    if not steps or len(steps) < len(versions):
        return {"min_global_steps": None, "max_global_steps": None}
    return {"min_global_steps": min(steps), "max_global_steps": max(steps)}
