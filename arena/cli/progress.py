"""How far a tournament is: a bar on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from arena.tournaments.runner import Tally

__all__ = ["following"]

_EVERY = 10.0  # seconds between plain lines


@contextmanager
def following(console: Console, *, bar: bool = True) -> Iterator[Callable[[Tally], None]]:
    """What to call with every new state of the tally; without a `bar`, lines on a terminal too."""
    if console.is_terminal and bar:
        with _bar(console) as progress:
            task = progress.add_task("games", total=None, facts="")
            yield lambda tally: progress.update(task, total=tally.total, completed=tally.done, facts=_facts(tally))
    else:
        yield _Lines(console)


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[facts]}", markup=False),
        console=console,
    )


def _facts(tally: Tally) -> str:
    facts = [f"{tally.forfeits} forfeits"] * bool(tally.forfeits) + [f"{tally.voids} void"] * bool(tally.voids)
    facts += ["stopping: running games finish, Ctrl-C again ends at once"] * tally.stopped
    return ", ".join(facts)


class _Lines:
    """A line every few seconds, one at once when a stop is asked for, and one at the end."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.last, self.stopped, self.shown = time.monotonic(), False, -1

    def __call__(self, tally: Tally) -> None:
        now = time.monotonic()
        stopping = tally.stopped and not self.stopped
        ended = tally.left == 0 and tally.done != self.shown
        if stopping or ended or now - self.last >= _EVERY:
            self.last, self.stopped, self.shown = now, tally.stopped, tally.done
            facts = _facts(tally)
            self.console.print(f"{tally.done}/{tally.total} games{', ' * bool(facts)}{facts}", markup=False)
