"""Format: a view of episodes as the rows of one consumer. Everything else about an export is the pipeline's."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from arena.adapters.datasets.trajectory import Trajectory

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Format", "Row", "Rows", "Unit"]

Row = dict[str, Any]
Unit = Literal["seat", "episode", "group"]
"""What a format makes rows of: one trajectory; those of one episode (the seats that pass the filters); those of one
group (`Trajectory.group_id`)."""


class Rows(Protocol):
    """Where rows go: the files of one split."""

    def write(self, row: Row) -> None:
        """Add a row."""

    def close(self) -> None:
        """Write what is still to be written."""


class Format(ABC):
    """One consumer's shape. Objects hold the options of one export and nothing of what was exported.

    Options are keyword arguments of `__init__`, JSON values with defaults, described in the class's docstring under
    "Options:" as agents' are; `arena export --format 'name?key=value'` sets them.
    """

    name: ClassVar[str]
    consumer: ClassVar[str]
    """Whom it is for, with the version that was read or loaded, such as "TRL 1.16 SFTTrainer"."""
    checked: ClassVar[str]
    """How it is tested: "loaded with trl 1.16.0", or "field list of verl 0.9.1's agent_loop.py"."""
    unit: ClassVar[Unit] = "seat"
    files: ClassVar[tuple[str, ...]] = ("parquet", "jsonl")
    """What it can be written as, the default first: parquet (zstd), jsonl, jsonl.zst, or a name of the consumer's own
    (`writer`)."""
    ids: ClassVar[frozenset[str]] = frozenset(
        (
            "id",
            "index",
            "uid",
            "episode",
            "episode_id",
            "match_id",
            "trajectory_id",
            "group_id",
            "task_id",
            "seed",
            "sample",
        )
    )
    """Keys of a row, and of dicts in it, that say which one it is and not what is in it: rows that differ in them only
    are the same (`--dedup`). Lists, and what is in them, are compared whole."""
    learned: ClassVar[frozenset[str]] = frozenset()
    """Keys of a row that hold all its trainer learns from, where there are such: rows that differ in others only are
    the same. Empty: all but `ids`."""

    @abstractmethod
    def rows(self, unit: Sequence[Trajectory]) -> Iterator[Row]:
        """The rows of one unit, none or many; values are JSON's. A seat comes as a sequence of one.

        Raises `arena.adapters.datasets.tokens.Lacking` where the record has not what the format needs.
        """

    def schema(self) -> "pa.Schema | None":
        """The columns of its parquet files; None: it has none (`files` does not name parquet).

        A field of type `pa.json_()` takes any JSON value (`arena.adapters.datasets.tables`).
        """
        return None

    def writer(self, kind: str, folder: Path) -> Rows:
        """For a kind of `files` that is not parquet or JSON lines: what writes a split into this folder.

        The folder is not there yet; its name is the split's ("train", "validation").
        """
        raise NotImplementedError(f"{self.name} is not written as {kind}")
