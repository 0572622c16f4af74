"""OpenRLHF: a row is the response of one agent execution.

Keys as openrlhf 0.11.2 writes them (utils/agent.py: MultiTurnAgentExecutor) and reads them
(trainer/ppo_utils/samples_generator.py: `_process_response_into_experience`): `observation_tokens` are prompt and
response together, `action_ranges` the (first, end) of every answer in them, `rollout_log_probs` has one for each of
them, 0.0 where a token was given; `truncated`: the last answer was cut by its length. It has no field for advantages,
which it works out itself; ours is a column beside.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from arena.adapters.datasets.columns import Breaks, about, check_choice, fields, ids_type, logprobs_type, sequences
from arena.adapters.datasets.format import Format, Row
from arena.adapters.datasets.tokens import Kinds
from arena.adapters.datasets.trajectory import Trajectory

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["OpenRLHF"]


class OpenRLHF(Format):
    """Rows that are responses of OpenRLHF's agent executors.

    Options:
        breaks: "refuse" a conversation that is several sequences (the default: an execution is one), or make "rows" of
            them, each with the whole reward.
        kinds: log-probabilities that are taken: the model's "own", at whatever temperature, or "any".
        logprobs: False: none are taken (`rollout_log_probs` is null).
    """

    name = "openrlhf"
    consumer = "OpenRLHF 0.11.2 agent executors"
    checked = "loaded with openrlhf 0.11.2 (SamplesGenerator, without vllm)"

    def __init__(self, breaks: Breaks = "refuse", kinds: Kinds = "own", logprobs: bool = True) -> None:
        check_choice("breaks", breaks, "refuse", "rows")
        check_choice("kinds", kinds, "own", "any")
        self.breaks, self.kinds, self.logprobs = breaks, kinds, logprobs

    def rows(self, unit: Sequence[Trajectory]) -> Iterator[Row]:
        """See `Format.rows`."""
        (trajectory,) = unit
        for segment in sequences(trajectory, self.breaks, self.kinds, self.logprobs):
            given, known = len(segment.prompt_ids), [0.0] * len(segment.prompt_ids)
            yield {
                "prompt": segment.spans[0].call.sent,
                "label": None,
                "images": None,
                "mm_train_inputs": None,
                "reward": trajectory.reward,
                "scores": trajectory.reward,
                "observation_tokens": [*segment.prompt_ids, *segment.response_ids],
                "action_ranges": [[given + span.start, given + span.end] for span in segment.spans],
                "rollout_log_probs": [*known, *segment.known()] if self.logprobs else None,
                "extra_logs": {"legal": float(trajectory.legal), "answers": float(len(segment.spans))},
                **about(trajectory, segment),
                "truncated": segment.spans[-1].call.finish_reason == "length",
                "cut": trajectory.truncated,
            }

    def schema(self) -> "pa.Schema":
        """See `Format.schema`."""
        import pyarrow as pa

        nothing = [pa.field(name, pa.null()) for name in ("label", "images", "mm_train_inputs")]
        return pa.schema(
            [
                pa.field("prompt", pa.string()),
                *nothing,
                pa.field("reward", pa.float64()),
                pa.field("scores", pa.float64()),
                pa.field("observation_tokens", ids_type()),
                pa.field("action_ranges", pa.list_(ids_type())),
                pa.field("rollout_log_probs", logprobs_type()),
                pa.field("extra_logs", pa.struct([("legal", pa.float64()), ("answers", pa.float64())])),
                *fields(),
                pa.field("cut", pa.bool_()),
            ]
        )
