"""Formats and episodes for the tests of the pipeline: small ones that show what came where."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from arena.adapters.datasets.format import Format, Row, Unit
from arena.adapters.datasets.tokens import Lacking
from arena.adapters.datasets.trajectory import Trajectory
from arena.episode import Episode
from arena.match import play_sync

__all__ = ["Deals", "Groups", "Moves", "Seats", "Tables", "games"]


class Seats(Format):
    """A row for each seat.

    Options:
        lacks: the agent whose record lacks something.
        barren: the agent of whose seats there is no row.
    """

    name, consumer, checked = "seats", "the tests", "here"

    def __init__(self, lacks: str = "", barren: str = "") -> None:
        self.lacks, self.barren = lacks, barren

    def rows(self, unit: Sequence[Trajectory]) -> Iterator[Row]:
        """What a seat is and came to."""
        for seat in unit:
            if seat.agent == self.lacks:
                raise Lacking(
                    f"episode {seat.episode.id}, seat {seat.player}, ply 0: the {self.lacks} was not recorded"
                )
            if seat.agent != self.barren:
                yield self.row(seat)

    @staticmethod
    def row(seat: Trajectory) -> Row:
        """Of one seat."""
        return {
            "id": seat.id,
            "task_id": seat.task_id,
            "group_id": seat.group_id,
            "game": seat.episode.env,
            "agent": seat.agent,
            "role": seat.role,
            "actions": [turn.action for turn in seat.turns],
            "reward": seat.reward,
            "advantage": seat.advantage,
        }

    def schema(self) -> Any:
        """The columns."""
        import pyarrow as pa

        texts = [(name, pa.string()) for name in ("id", "task_id", "group_id", "game", "agent", "role")]
        numbers = [("reward", pa.float64()), ("advantage", pa.float64())]
        return pa.schema([*texts, ("actions", pa.list_(pa.string())), *numbers])


class Tables(Seats):
    """A row for each episode."""

    name, files = "tables", ("jsonl",)
    unit: ClassVar[Unit] = "episode"

    def rows(self, unit: Sequence[Trajectory]) -> Iterator[Row]:
        """The seats that came, together."""
        yield {"id": unit[0].episode.id, "seats": [row for seat in unit for row in super(Tables, self).rows([seat])]}


class Groups(Tables):
    """A row for each group."""

    name = "groups"
    unit: ClassVar[Unit] = "group"


class Moves(Seats):
    """A row for each turn."""

    name, files = "moves", ("jsonl",)

    def rows(self, unit: Sequence[Trajectory]) -> Iterator[Row]:
        """What was seen and done."""
        for seat in unit:
            for turn in seat.turns:
                yield {"id": seat.id, "ply": turn.ply, "seen": turn.observation, "done": turn.action}


class Deals(Seats):
    """A kind of files of its own: a file a row."""

    name, files = "deals", ("folder", "jsonl")

    def writer(self, kind: str, folder: Path) -> "Deals.Files":
        """See `Format.writer`."""
        assert kind == "folder"
        return self.Files(folder)

    class Files:
        """A file for each row, and one that says that all are there."""

        def __init__(self, folder: Path) -> None:
            folder.mkdir()
            self.folder, self.count = folder, 0

        def write(self, row: Row) -> None:
            """Add a row."""
            (self.folder / f"{self.count}.txt").write_text(str(row["id"]))
            self.count += 1

        def close(self) -> None:
            """All is there."""
            (self.folder / "done").touch()


def games(count: int = 6, *agents: str, game: str = "KuhnPoker-v0", **more: Any) -> list[Episode]:
    """So many real matches, of seeds from 0."""
    return [play_sync(game, list(agents or ("random", "first")), seed, **more) for seed in range(count)]
