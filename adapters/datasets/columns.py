"""Columns that formats of token sequences share: what a row is of, beside the fields of its consumer."""

from typing import TYPE_CHECKING, Literal

from arena.adapters.datasets.format import Row
from arena.adapters.datasets.tokens import Kinds, Lacking, Segment, segments
from arena.adapters.datasets.trajectory import Trajectory

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Breaks", "about", "check_choice", "ended", "fields", "ids_type", "logprobs_type", "number", "sequences"]

Breaks = Literal["rows", "refuse"]
"""A conversation that is several sequences. rows: each is a row; refuse: it is lacking one sequence."""


def check_choice(name: str, value: str, *allowed: str) -> None:
    """Raise ValueError for an option that has no such value."""
    if value not in allowed:
        raise ValueError(f"{name}={value!r}: allowed are {', '.join(allowed)}")


def sequences(
    trajectory: Trajectory, breaks: Breaks, kinds: Kinds, logprobs: bool = True, several: str = "breaks=rows"
) -> list[Segment]:
    """The sequences of a trajectory; none of a seat that was never asked.

    `several`: the format's options that take several. Raises Lacking where the options or the record do not allow it.
    """
    found = segments(trajectory, logprobs=logprobs, kinds=kinds)
    if breaks == "refuse" and len(found) > 1:
        where = f"episode {trajectory.episode.id}, seat {trajectory.player}"
        raise Lacking(f"{where}: the conversation is {len(found)} sequences, not one (style=chat plays one; {several})")
    return found


def about(trajectory: Trajectory, segment: Segment) -> Row:
    """Whose sequence it is, what it was played for, and how it was sampled."""
    return {
        "episode": trajectory.episode.id,
        "env": trajectory.episode.env,
        "task_id": trajectory.task_id,
        "group_id": trajectory.group_id,
        "seat": trajectory.player,
        "role": trajectory.role,
        "agent": trajectory.agent,
        "opponents": list(trajectory.opponents),
        "advantage": trajectory.advantage,
        "truncated": trajectory.truncated,
        "legal": trajectory.legal,
        "kinds": list(segment.kinds),
        "weight_versions": [{"start": a, "end": b, "version": version} for a, b, version in segment.versions],
    }


def ended(trajectory: Trajectory, segment: Segment) -> bool:
    """Whether its last answer was whole, and nobody cut the episode after it."""
    last = segment.spans[-1].call.finish_reason in ("stop", "tool_calls", "")
    return last and not trajectory.truncated


def number(identity: str) -> int:
    """An id of hexadecimal digits as a number below 2**60, for consumers whose ids are integers.

    >>> number("00000000000000ff")
    15
    """
    return int(identity[:15], 16)


def ids_type() -> "pa.DataType":
    """A list of token ids, or of a mask."""
    import pyarrow as pa

    return pa.list_(pa.int32())


def logprobs_type() -> "pa.DataType":
    """A list of log-probabilities, rewards or advantages."""
    import pyarrow as pa

    return pa.list_(pa.float32())


def fields() -> "list[pa.Field]":
    """The columns of `about`."""
    import pyarrow as pa

    version = pa.struct([("start", pa.int32()), ("end", pa.int32()), ("version", pa.string())])
    return [
        *[pa.field(name, pa.string()) for name in ("episode", "env", "task_id", "group_id")],
        pa.field("seat", pa.int32()),
        *[pa.field(name, pa.string()) for name in ("role", "agent")],
        pa.field("opponents", pa.list_(pa.string())),
        pa.field("advantage", pa.float64()),
        pa.field("truncated", pa.bool_()),
        pa.field("legal", pa.bool_()),
        pa.field("kinds", pa.list_(pa.string())),
        pa.field("weight_versions", pa.list_(version)),
    ]
