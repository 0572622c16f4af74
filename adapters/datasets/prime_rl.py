"""prime-rl: a row is a `TrainingSample`, one sequence of token ids.

Fields as prime-rl has them (commit 559b447 of 2026-08-21, transports/rollouts/types.py: TrainingSample; filled in
orchestrator/trajectories.py and train_sink.py): `token_ids`, `mask`, `logprobs`, `temperatures` and `advantages` have
equal lengths; there is no prompt apart. Where a token was given, the mask is False, its log-probability and advantage
are 0.0, as `verifiers.v1.trace.Branch.spread` writes them, and its temperature is 1.0, which the trainer masks.
`temperatures` are those of the distribution that the log-probabilities are of: the trainer divides its logits by them
before it compares.

prime-rl makes its samples of verifiers' traces (format `verifiers`); this is what its trainer is given. Beside the
fields is `about`: take it out before `TrainingSample(**row)`.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from arena.adapters.datasets.columns import Breaks, about, check_choice, fields, ids_type, logprobs_type, sequences
from arena.adapters.datasets.format import Format, Row
from arena.adapters.datasets.tokens import Kinds, Segment
from arena.adapters.datasets.trajectory import Trajectory

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PrimeRL"]

_MARK = "temperature="


class PrimeRL(Format):
    """Rows that are prime-rl TrainingSamples.

    Options:
        env_name: what prime-rl's configuration calls the environment; "": the id of the game.
        breaks: make "rows" of a conversation that is several sequences, or "refuse" it.
        kinds: log-probabilities that are taken: the model's "own", at whatever temperature, or "any".
    """

    name = "prime_rl"
    consumer = "prime-rl TrainingSample (2026-08-21)"
    checked = "field list of prime-rl's transports/rollouts/types.py (commit 559b447)"
    files = ("jsonl", "parquet")

    def __init__(self, env_name: str = "", breaks: Breaks = "rows", kinds: Kinds = "own") -> None:
        check_choice("breaks", breaks, "rows", "refuse")
        check_choice("kinds", kinds, "own", "any")
        self.env_name, self.breaks, self.kinds = env_name, breaks, kinds

    def rows(self, unit: Sequence[Trajectory]) -> Iterator[Row]:
        """See `Format.rows`."""
        for trajectory in unit:
            for segment in sequences(trajectory, self.breaks, self.kinds):
                yield self._sample(trajectory, segment)

    def _sample(self, trajectory: Trajectory, segment: Segment) -> Row:
        given, advantage = len(segment.prompt_ids), trajectory.advantage
        mask = [False] * given + [bool(each) for each in segment.mask]
        return {
            "token_ids": [*segment.prompt_ids, *segment.response_ids],
            "mask": mask,
            "logprobs": [0.0] * given + segment.known(),
            "temperatures": [1.0] * given + _temperatures(segment),
            "env_name": self.env_name or trajectory.episode.env,
            "advantages": None if advantage is None else [advantage if each else 0.0 for each in mask],
            "about": about(trajectory, segment),
        }

    def schema(self) -> "pa.Schema":
        """See `Format.schema`."""
        import pyarrow as pa

        return pa.schema(
            [
                ("token_ids", ids_type()),
                ("mask", pa.list_(pa.bool_())),
                ("logprobs", logprobs_type()),
                ("temperatures", logprobs_type()),
                ("env_name", pa.string()),
                ("advantages", logprobs_type()),
                ("about", pa.struct(fields())),
            ]
        )


def _temperatures(segment: Segment) -> list[float]:
    """Of the response, token by token: of the distribution on record, 1.0 where the token was given."""
    found = [1.0] * len(segment.mask)
    for span in segment.spans:
        found[span.start : span.end] = [_temperature(span.call.logprob_kind)] * (span.end - span.start)
    return found


def _temperature(kind: str) -> float:
    """The temperature that log-probabilities of this kind (`arena.model.logprob_kind`) are of."""
    first = kind.partition(",")[0]
    return float(first.removeprefix(_MARK)) if first.startswith(_MARK) else 1.0
