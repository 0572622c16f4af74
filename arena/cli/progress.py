"""How far a tournament is: a bar on a terminal, plain lines elsewhere."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from arena.cli.errors import plain
from arena.tournaments.tally import Tally

__all__ = ["following"]

_EVERY = 10.0  # seconds between plain lines
_RATED = 60.0  # seconds over which games a second are counted
_SHOWN = 4  # agents that are named


@contextmanager
def following(console: Console, *, bar: bool = True) -> Iterator[Callable[[Tally], None]]:
    """What to call with every new state of the tally; without a `bar`, lines on a terminal too."""
    if console.is_terminal and bar:
        with _bar(console) as progress:
            yield _Bar(progress)
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


class _Bar:
    """The bar, with games a second, what went wrong, who plays, and how far it is to a stopping rule."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.task = progress.add_task("games", total=None, facts="")
        self.rate = _Rate()

    def __call__(self, tally: Tally) -> None:
        facts = [self.rate(tally), _facts(tally), _running(tally)]
        self.progress.update(
            self.task,
            description="games, at most" if tally.open_ended else "games",
            total=tally.total,
            completed=tally.done,
            facts=", ".join(filter(None, facts)),
        )


class _Rate:
    """Games of this run a second, over the last minute."""

    def __init__(self) -> None:
        self.seen: deque[tuple[float, int]] = deque()

    def __call__(self, tally: Tally) -> str:
        now = time.monotonic()
        self.seen.append((now, tally.finished))
        while now - self.seen[0][0] > _RATED:
            self.seen.popleft()
        since, before = self.seen[0]
        a_second = (tally.finished - before) / (now - since) if now > since else 0.0
        if not a_second:
            return ""
        return f"{a_second:.1f} games/s" if a_second >= 1 else f"{a_second * 60:.1f} games/min"


def _running(tally: Tally) -> str:
    """Who sits in how many games just now, the busiest first."""
    busiest = [f"{plain(name)} {games}" for name, games in tally.running.most_common(_SHOWN)]
    more = len(tally.running) - len(busiest)
    return f"at the table: {', '.join(busiest)}{f' and {more} more' * (more > 0)}" if busiest else ""


def _facts(tally: Tally) -> str:
    facts = [f"{tally.forfeits} forfeits"] * bool(tally.forfeits) + [f"{tally.voids} void"] * bool(tally.voids)
    facts += [plain(tally.distance)] * bool(tally.distance)
    facts += [f"waiting for {tally.elsewhere} games that other processes play"] * tally.waiting
    facts += ["stopping: running games finish, Ctrl-C again ends at once"] * tally.stopped
    return ", ".join(facts)


class _Lines:
    """A line every few seconds, one at once when a stop is asked for or others are waited for, and one at the end."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.last, self.stopped, self.shown = time.monotonic(), False, -1
        self.waited = False

    def __call__(self, tally: Tally) -> None:
        now = time.monotonic()
        stopping = tally.stopped and not self.stopped
        ended = tally.left == 0 and tally.done != self.shown
        waits = tally.waiting and not self.waited
        if stopping or ended or waits or now - self.last >= _EVERY:
            self.last, self.stopped, self.shown, self.waited = now, tally.stopped, tally.done, tally.waiting
            facts = _facts(tally)
            self.console.print(f"{tally.done}/{tally.total} games{', ' * bool(facts)}{facts}", markup=False)
