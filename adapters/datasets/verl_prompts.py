"""verl: rows of prompts to play from.

They are what `RLHFDataset` loads (verl 0.9.1, utils/dataset/rl_dataset.py: `prompt`, and of `extra_info` `index`,
`tools_kwargs`, `interaction_kwargs`); `data_source` and `reward_model.ground_truth` are read by the reward managers
(experimental/reward_loop/reward_manager), `agent_name` is the agent loop's (experimental/agent_loop/agent_loop.py,
trainer/ppo/v1/agent_loop_tq.py; a column that is not there: the default loop of the configuration).
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from arena.adapters.datasets.chat import exchanges
from arena.adapters.datasets.format import Format, Row
from arena.adapters.datasets.trajectory import Trajectory

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["VerlPrompts"]


class VerlPrompts(Format):
    """Rows of verl's RLHFDataset: the first message of a seat, one row for each group of samples, to be played anew.

    Options:
        agent: the name of the agent loop that plays (`agent_name`); "": verl's default loop.
    """

    name = "verl_prompts"
    consumer = "verl 0.9.1 RLHFDataset"
    checked = "loaded with verl 0.9.1 (RLHFDataset)"
    unit = "group"
    ids = Format.ids - {"seed"}  # which says here what is to be played

    def __init__(self, agent: str = "") -> None:
        self.agent = agent

    def rows(self, unit: Sequence[Trajectory]) -> Iterator[Row]:
        """See `Format.rows`."""
        trajectory, messages = next(((each, told) for each in unit if (told := _opening(each))), (None, []))
        if trajectory is None:
            return
        row: Row = {
            "prompt": messages,
            "data_source": trajectory.episode.env,
            "reward_model": {"style": "rule", "ground_truth": ""},
            "extra_info": {
                "index": trajectory.group_id,
                "interaction_kwargs": {
                    "env": trajectory.episode.env,
                    "options": trajectory.episode.options,
                    "seed": trajectory.episode.seed,
                    "seat": trajectory.player,
                    "role": trajectory.role,
                    "opponents": list(trajectory.opponents),
                },
            },
        }
        yield row | ({"agent_name": self.agent} if self.agent else {})

    def schema(self) -> "pa.Schema":
        """See `Format.schema`."""
        import pyarrow as pa

        text = pa.string()
        names = ("env", "options", "seed", "seat", "role", "opponents")
        kinds = (text, pa.json_(), pa.uint64(), pa.int32(), text, pa.list_(text))
        played = pa.struct(list(zip(names, kinds, strict=True)))
        columns = [
            pa.field("prompt", pa.list_(pa.struct([("role", text), ("content", text)]))),
            pa.field("data_source", text),
            pa.field("reward_model", pa.struct([("style", text), ("ground_truth", text)])),
            pa.field("extra_info", pa.struct([("index", text), ("interaction_kwargs", played)])),
        ]
        return pa.schema([*columns, *([pa.field("agent_name", text)] if self.agent else [])])


def _opening(trajectory: Trajectory) -> list[Row]:
    """The messages before the seat's first answer; none for a seat that was never asked."""
    for exchange in exchanges(trajectory):
        if exchange.own:
            return [{"role": message.role, "content": message.content} for message in exchange.prompt]
    return []
