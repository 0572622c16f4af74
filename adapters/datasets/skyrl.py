"""SkyRL: a row is the `GeneratorOutput` of one group of samples.

Fields as skyrl 0.3.0 has them (train/generators/base.py: GeneratorOutput, TrajectoryID) and checks them
(train/utils/trainer_utils.py: `validate_generator_output`): lists of equal lengths; `rollout_logprobs` 0.0 where a
token was given; `rewards` all numbers, or all one for each token. Step-wise (train/generators/skyrl_gym_generator.py),
every answer is an entry with its whole prompt, the entries of a trajectory follow each other up to `is_last_step`, and
only the rewards of last steps count for advantages (train/trainer.py: `compute_advantages_and_returns`): there the
whole return is. `trajectory_ids.instance_id` is the group. Other keys that hold a list for each entry are kept
(train/generators/utils.py: `concatenate_generator_outputs`): advantages and who played are in such.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from arena.adapters.datasets.columns import Breaks, about, check_choice, ids_type, logprobs_type, sequences
from arena.adapters.datasets.columns import fields as about_fields
from arena.adapters.datasets.format import Format, Row
from arena.adapters.datasets.tokens import Kinds, Segment, Span
from arena.adapters.datasets.trajectory import Trajectory

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SkyRL"]

Steps = Literal["none", "answers", "sequences"]
Rewards = Literal["outcome", "turns"]


class SkyRL(Format):
    """Rows that are SkyRL GeneratorOutputs, one for each group.

    Options:
        steps: "none": an entry for each trajectory, which must be one sequence; "answers": step-wise, an entry for each
            answer; "sequences": step-wise, answers that extend each other merged (as SkyRL's merge_stepwise_output).
        rewards: "outcome": the return, one number for each entry; "turns": what each turn earned, at its last token
            (steps=none only: SkyRL reads no other rewards than the last step's).
        kinds: log-probabilities that are taken: the model's "own", at whatever temperature, or "any".
        logprobs: False: none are taken (`rollout_logprobs` is null).
    """

    name = "skyrl"
    consumer = "SkyRL 0.3.0 GeneratorOutput"
    checked = "validated, concatenated and merged by skyrl 0.3.0"
    unit = "group"
    files = ("jsonl", "jsonl.zst", "parquet")

    def __init__(
        self, steps: Steps = "none", rewards: Rewards = "outcome", kinds: Kinds = "own", logprobs: bool = True
    ) -> None:
        check_choice("steps", steps, "none", "answers", "sequences")
        check_choice("rewards", rewards, "outcome", "turns")
        check_choice("kinds", kinds, "own", "any")
        if rewards == "turns" and steps != "none":
            raise ValueError(f"rewards=turns and steps={steps}: SkyRL reads the rewards of last steps only")
        self.steps, self.rewards, self.kinds, self.logprobs = steps, rewards, kinds, logprobs

    def rows(self, unit: Sequence[Trajectory]) -> Iterator[Row]:
        """See `Format.rows`."""
        entries: list[Row] = []
        repetition = 0
        for trajectory in unit:
            made = self._entries(trajectory, repetition)
            entries += made
            repetition += bool(made)
        if not entries:
            return
        row: Row = {name: [entry[name] for entry in entries] for name in entries[0]}
        if not self.logprobs:
            row["rollout_logprobs"] = None
        if self.steps == "none":
            row["is_last_step"] = None
        yield row | {"rollout_metrics": None, "trajectory_generation_times": None, "rollout_expert_indices": None}

    def _entries(self, trajectory: Trajectory, repetition: int) -> list[Row]:
        breaks: Breaks = "refuse" if self.steps == "none" else "rows"
        found = sequences(trajectory, breaks, self.kinds, self.logprobs, several="steps=sequences, steps=answers")
        if self.steps == "answers":
            found = [_alone(segment, span) for segment in found for span in segment.spans]
        same = {"instance_id": trajectory.group_id, "repetition_id": repetition}
        return [
            {
                "prompt_token_ids": list(segment.prompt_ids),
                "response_ids": list(segment.response_ids),
                "rewards": self._reward(trajectory, segment, last=at == len(found)),
                "loss_masks": list(segment.mask),
                "stop_reasons": _stop(segment.spans[-1]),
                "rollout_logprobs": segment.known(),
                "trajectory_ids": same,
                "is_last_step": at == len(found),
                "env_metrics": {"truncated": float(trajectory.truncated), "legal": float(trajectory.legal)},
                **{_KEYS[name]: value for name, value in about(trajectory, segment).items()},
            }
            for at, segment in enumerate(found, 1)
        ]

    def _reward(self, trajectory: Trajectory, segment: Segment, *, last: bool) -> Any:
        if self.rewards == "turns":
            return segment.rewards()
        return trajectory.reward if last else 0.0

    def schema(self) -> "pa.Schema":
        """See `Format.schema`."""
        import pyarrow as pa

        tokens, numbers, text = pa.list_(ids_type()), pa.list_(logprobs_type()), pa.list_(pa.string())
        identity = pa.struct([("instance_id", pa.string()), ("repetition_id", pa.int32())])
        metrics = pa.struct([("truncated", pa.float64()), ("legal", pa.float64())])
        return pa.schema(
            [
                ("prompt_token_ids", tokens),
                ("response_ids", tokens),
                ("rewards", numbers if self.rewards == "turns" else pa.list_(pa.float64())),
                ("loss_masks", tokens),
                ("stop_reasons", text),
                ("rollout_logprobs", numbers),
                ("trajectory_ids", pa.list_(identity)),
                ("is_last_step", pa.list_(pa.bool_())),
                ("env_metrics", pa.list_(metrics)),
                *[pa.field(_KEYS[field.name], pa.list_(field.type)) for field in about_fields()],
                *[pa.field(name, pa.null()) for name in _NOTHING],
            ]
        )


def _alone(segment: Segment, span: Span) -> Segment:
    """An answer with all that stands before it as its prompt."""
    start, end = span.start, span.end
    prompt = segment.prompt_ids + segment.response_ids[:start]
    moved = span._replace(start=0, end=end - start)
    return Segment(
        prompt, segment.response_ids[start:end], segment.mask[start:end], segment.logprobs[start:end], (moved,)
    )


def _stop(span: Span) -> str:
    """Why the server stopped; a call of tools is an end like any other."""
    reason = span.call.finish_reason
    return "stop" if reason in ("", "tool_calls") else reason


_NOTHING = ("rollout_metrics", "trajectory_generation_times", "rollout_expert_indices")
_PLURAL = {"env": "envs", "kinds": "kinds", "legal": "legal", "truncated": "truncated", "opponents": "opponents"}
_PLURAL |= {"weight_versions": "weight_versions"}
_NAMES = ("episode", "task_id", "group_id", "seat", "role", "agent", "advantage")
_KEYS = _PLURAL | {name: f"{name}s" for name in _NAMES}
