"""TRL's GRPO: a row is what a rollout function returns for one prompt.

Fields as `GRPOTrainer` reads them (trl 1.16.0, trainer/grpo_trainer.py: `_generate`, `_generate_and_score_completions`,
`_compute_loss`): `prompt_ids`, `completion_ids` and `logprobs` are required, `env_mask` is 1 where the model sampled,
all other columns go to the reward functions. Log-probabilities of tokens that were given are 0.0: the trainer masks
them, and its own tool loop writes 0.0 there.

It is told that an answer was cut by its last token (`is_truncated`: neither EOS nor padding), and takes one sequence
for each prompt. It works its advantages out of the rewards of `num_generations` rows that follow each other;
`advantage` is only a column. Without vLLM it takes what it trains on for sampled by the present weights: recorded
log-probabilities are read for `off_policy_mask_threshold` alone, and there is no correction for older weights.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from arena.adapters.datasets.columns import (
    Breaks,
    about,
    check_choice,
    ended,
    fields,
    ids_type,
    logprobs_type,
    sequences,
)
from arena.adapters.datasets.format import Format, Row
from arena.adapters.datasets.tokens import Kinds
from arena.adapters.datasets.trajectory import Trajectory

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["GRPO", "Recorded"]


class GRPO(Format):
    """Rows for TRL's GRPOTrainer.

    Options:
        breaks: "refuse" a conversation that is several sequences (the default: the trainer has one place for each
            prompt), or make "rows" of them, each with the whole reward.
        kinds: log-probabilities that are taken: the model's "own", at whatever temperature, or "any".
        eos: the tokenizer's EOS, added (not trained on) after an answer that was whole and ended in another token, so
            that the trainer does not take it for cut; -1: nothing is added.
    """

    name = "grpo"
    consumer = "TRL 1.16 GRPOTrainer (rollout_func)"
    checked = "a training step of trl 1.16.0 on exported rows; parquet loaded with datasets 5.2.0"

    def __init__(self, breaks: Breaks = "refuse", kinds: Kinds = "own", eos: int = -1) -> None:
        check_choice("breaks", breaks, "refuse", "rows")
        check_choice("kinds", kinds, "own", "any")
        self.breaks, self.kinds, self.eos = breaks, kinds, eos

    def rows(self, unit: Sequence[Trajectory]) -> Iterator[Row]:
        """See `Format.rows`."""
        (trajectory,) = unit
        found = sequences(trajectory, self.breaks, self.kinds)
        for at, segment in enumerate(found):
            ids, mask, logprobs = list(segment.response_ids), list(segment.mask), segment.known()
            if self.eos >= 0 and ids[-1] != self.eos and ended(trajectory, segment):
                ids, mask, logprobs = [*ids, self.eos], [*mask, 0], [*logprobs, 0.0]
            yield {
                "prompt_ids": list(segment.prompt_ids),
                "completion_ids": ids,
                "logprobs": logprobs,
                "env_mask": mask,
                "reward": trajectory.reward,
                "segment": at,
                "segments": len(found),
                **about(trajectory, segment),
            }

    def schema(self) -> "pa.Schema":
        """See `Format.schema`."""
        import pyarrow as pa

        return pa.schema(
            [
                ("prompt_ids", ids_type()),
                ("completion_ids", ids_type()),
                ("logprobs", logprobs_type()),
                ("env_mask", ids_type()),
                ("reward", pa.float64()),
                ("segment", pa.int32()),
                ("segments", pa.int32()),
                *fields(),
            ]
        )


class Recorded:
    """Exported rows in place of play: the prompts of a GRPOTrainer's data set, its `rollout_func` and `reward_funcs`.

        recorded = Recorded(rows, generations=8)
        GRPOTrainer(model, recorded.earned, train_dataset=Dataset.from_list(recorded.prompts), rollout_func=recorded,
                    args=GRPOConfig(num_generations=8, ...))

    Groups of fewer rows than `generations` are left out; of larger ones each visit takes the next rows. Where
    conversations are several sequences (`breaks=rows`), first ones are compared with first ones, second with second.
    The rows should be of the weights that are trained, or nearly so (see above). One process only.
    """

    __name__ = "recorded"

    def __init__(self, rows: Iterable[Mapping[str, Any]], generations: int) -> None:
        """Raises ValueError where no group is large enough."""
        groups: dict[str, list[Mapping[str, Any]]] = {}
        for row in rows:
            at = row.get("segment", 0)  # of one conversation all sequences have the same reward: none beside its own
            groups.setdefault(f"{row['group_id']}/{at}" if at else row["group_id"], []).append(row)
        self.groups = {key: each for key, each in groups.items() if len(each) >= generations}
        if not self.groups:
            most = max(map(len, groups.values()), default=0)
            raise ValueError(f"no group has {generations} rows (generations), the largest has {most}")
        self.prompts = [{"prompt": key} for key in self.groups]
        self._taken = Counter[str]()

    def __call__(self, prompts: Sequence[str], trainer: Any) -> dict[str, list[Any]]:
        """A row of its group for each prompt. Raises ValueError with several processes: each would take the same."""
        if trainer.accelerator.num_processes > 1:
            raise ValueError("recorded rows are for one process: several would all train on the same ones")
        rows = [self._next(prompt) for prompt in prompts]
        return {key: [row[key] for row in rows] for key in rows[0]}

    def _next(self, group: str) -> Mapping[str, Any]:
        rows, at = self.groups[group], self._taken[group]
        self._taken[group] += 1
        return rows[at % len(rows)]

    @staticmethod
    def earned(reward: Sequence[float], **_: Any) -> list[float]:
        """A reward function: what the record says."""
        return list(reward)
