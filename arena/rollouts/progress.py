"""How far a collection of episodes is."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

__all__ = ["Following", "Progress", "following"]


class Progress(NamedTuple):
    """So far; `total` is None where the seeds do not tell how many they are."""

    episodes: int = 0
    """Done, those that were kept of an earlier run included."""
    groups: int = 0
    void: int = 0
    """Of the episodes: given up."""
    again: int = 0
    """Void matches that were played once more."""
    kept: int = 0
    """Of the episodes: found in the file."""
    total: int | None = None
    """Episodes there will be."""


Following = Callable[[Progress], object]


@contextmanager
def following(progress: Following | bool | None) -> Iterator[Following | None]:
    """What to call after each episode: the function that was given, or (True) a bar on standard error."""
    if progress is not True:
        yield progress or None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, TimeRemainingColumn(), TextColumn("{task.fields[facts]}"), console=Console(stderr=True)) as bar:
        task = bar.add_task("episodes", total=None, facts="")

        def update(now: Progress) -> None:
            bar.update(task, completed=now.episodes, total=now.total, facts=_facts(now))

        yield update


def _facts(now: Progress) -> str:
    """What went otherwise than planned.

    >>> _facts(Progress(9, 2, void=1, kept=4))
    '2 groups, 1 void, 4 of an earlier run'
    """
    told = [(now.void, "void"), (now.again, "played again"), (now.kept, "of an earlier run")]
    return ", ".join([f"{now.groups:,} groups", *[f"{count:,} {what}" for count, what in told if count]])
