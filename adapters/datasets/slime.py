"""slime: a row is a `Sample`, as `Sample.from_dict` takes it.

Fields as slime has them (commit 624b824 of 2026-08-21, utils/types.py: Sample; ray/rollout.py:
`_convert_samples_to_train_data`): `tokens` are prompt and response together, `response_length`, `loss_mask` and
`rollout_log_probs` are of the response, and of equal lengths (`_validate_response_metadata_lengths`);
log-probabilities are 0.0 where a token was given (`append_response_tokens`). Sequences of one trajectory share their
`rollout_id`. `weight_versions`: in the order in which they sampled. `status`: "truncated" where the last answer or the
episode was cut, "aborted" where the server gave it up.

The samples of a group follow each other, as its normalisation of rewards wants them; it counts samples, so that a
group with a trajectory of several sequences is no longer normalised alone. An advantage has no field: it is in
`metadata`, where a function for `--custom-reward-post-process-path` finds it (GRPO takes the rewards that come back for
advantages).
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from arena.adapters.datasets.columns import (
    Breaks,
    about,
    check_choice,
    ended,
    fields,
    ids_type,
    logprobs_type,
    number,
    sequences,
)
from arena.adapters.datasets.format import Format, Row
from arena.adapters.datasets.tokens import Kinds, Segment
from arena.adapters.datasets.trajectory import Trajectory, digest

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Slime"]


class Slime(Format):
    """Rows that are slime Samples, those of a group together.

    Options:
        breaks: make "rows" of a conversation that is several sequences, siblings of one rollout, each with the reward;
            or "refuse" it.
        kinds: log-probabilities that are taken: the model's "own", at whatever temperature, or "any".
        logprobs: False: none are taken (`rollout_log_probs` is null).
    """

    name = "slime"
    consumer = "slime Sample (2026-08-21)"
    checked = "loaded with slime, commit 624b824 (Sample.from_dict, append_response_tokens)"
    unit = "group"
    files = ("jsonl", "jsonl.zst", "parquet")
    ids = Format.ids | {"group_index", "rollout_id"}

    def __init__(self, breaks: Breaks = "rows", kinds: Kinds = "own", logprobs: bool = True) -> None:
        check_choice("breaks", breaks, "rows", "refuse")
        check_choice("kinds", kinds, "own", "any")
        self.breaks, self.kinds, self.logprobs = breaks, kinds, logprobs

    def rows(self, unit: Sequence[Trajectory]) -> Iterator[Row]:
        """See `Format.rows`."""
        found = [(each, sequences(each, self.breaks, self.kinds, self.logprobs)) for each in unit]
        for trajectory, several in found:
            for at, segment in enumerate(several):
                yield self._sample(trajectory, segment, at)

    def _sample(self, trajectory: Trajectory, segment: Segment, at: int) -> Row:
        return {
            "group_index": number(trajectory.group_id),
            "index": number(digest(trajectory.id, at)),
            "rollout_id": number(digest(trajectory.id)),
            "prompt": segment.spans[0].call.sent,
            "tokens": [*segment.prompt_ids, *segment.response_ids],
            "response": "\n".join([span.call.received for span in segment.spans]),
            "response_length": len(segment.response_ids),
            "label": None,
            "reward": trajectory.reward,
            "loss_mask": list(segment.mask),
            "weight_versions": [version for _, _, version in segment.versions],
            "rollout_log_probs": segment.known() if self.logprobs else None,
            "remove_sample": False,
            "status": _status(trajectory, segment),
            "metadata": {
                **about(trajectory, segment),
                "source_name": trajectory.episode.env,
                "raw_reward": trajectory.reward,
                "segment": at,
            },
        }

    def schema(self) -> "pa.Schema":
        """See `Format.schema`."""
        import pyarrow as pa

        whole, text, size = pa.int64(), pa.string(), pa.int32()
        more = [("source_name", text), ("raw_reward", pa.float64()), ("segment", size)]
        metadata = pa.struct([*fields(), *more])
        return pa.schema(
            [
                *[(name, whole) for name in ("group_index", "index", "rollout_id")],
                ("prompt", text),
                ("tokens", ids_type()),
                ("response", text),
                ("response_length", size),
                ("label", text),
                ("reward", pa.float64()),
                ("loss_mask", ids_type()),
                ("weight_versions", pa.list_(text)),
                ("rollout_log_probs", logprobs_type()),
                ("remove_sample", pa.bool_()),
                ("status", text),
                ("metadata", metadata),
            ]
        )


def _status(trajectory: Trajectory, segment: Segment) -> str:
    """A value of slime's Sample.Status."""
    if segment.spans[-1].call.finish_reason == "abort":
        return "aborted"
    return "completed" if ended(trajectory, segment) else "truncated"
