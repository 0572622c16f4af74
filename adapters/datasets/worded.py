"""Worded: what formats of messages share: how seats were asked, messages as rows have them, and what a row is of."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from arena.adapters.datasets.chat import Dialogue, Exchange, dialogues, exchanges
from arena.adapters.datasets.format import Format, Row
from arena.adapters.datasets.scribe import merged, scribe_of, written
from arena.adapters.datasets.tokens import Lacking
from arena.adapters.datasets.trajectory import Trajectory
from arena.agents.prompting import Prompting
from arena.model import Message

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Worded"]


class Worded(Format):
    """A format of messages. Raises ValueError for options of `Prompting` that cannot be meant."""

    def __init__(self, anew: bool, system: bool, **prompting: Any) -> None:
        self.prompting = Prompting(**prompting)
        scribe_of(self.prompting)  # a mistake in its templates is found before anything is written
        self.anew, self.system = anew, system

    def exchanges(self, trajectory: Trajectory) -> list[Exchange]:
        """Every answer of the seat with what it was told before."""
        return list(exchanges(trajectory, self.prompting, anew=self.anew))

    def dialogues(self, trajectory: Trajectory) -> list[Dialogue]:
        """The conversations of the seat."""
        return dialogues(trajectory, self.prompting, anew=self.anew)

    def said(self, messages: Sequence[Message]) -> list[Row]:
        """Messages as a row has them."""
        whole = tuple(messages)
        return [written(message) for message in (whole if self.system else merged(whole))]

    def about(self, trajectory: Trajectory, tools: Sequence[Row]) -> Row:
        """Which tools there were, whose row it is, and what the seat earned."""
        if trajectory.episode.returns is None:
            raise Lacking(f"episode {trajectory.episode.id} is void: it has no returns")
        return {
            "tools": list(tools) or None,
            "episode": trajectory.episode.id,
            "env": trajectory.episode.env,
            "task_id": trajectory.task_id,
            "group_id": trajectory.group_id,
            "seat": trajectory.player,
            "role": trajectory.role,
            "agent": trajectory.agent,
            "opponents": list(trajectory.opponents),
            "reward": trajectory.reward,
            "advantage": trajectory.advantage,
        }

    def columns(self, *messages: str) -> "Iterator[pa.Field]":
        """The columns of lists of messages, and those of `about`."""
        import pyarrow as pa

        for name in (*messages, "tools"):
            yield pa.field(name, pa.list_(pa.json_()))
        for name in ("episode", "env", "task_id", "group_id"):
            yield pa.field(name, pa.string())
        yield pa.field("seat", pa.int32())
        for name in ("role", "agent"):
            yield pa.field(name, pa.string())
        yield pa.field("opponents", pa.list_(pa.string()))
        for name in ("reward", "advantage"):
            yield pa.field(name, pa.float64())
