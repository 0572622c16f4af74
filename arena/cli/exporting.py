"""What `arena export` is told and tells: where episodes and ratings come from, the bar, the summary, the formats."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from arena.adapters.datasets.card import Summary
from arena.adapters.datasets.exporting import Progress
from arena.adapters.datasets.filters import Ratings
from arena.adapters.datasets.formats import FORMATS, load_format, options_of_format
from arena.adapters.datasets.writers import kinds_of
from arena.cli.catalogue import default_of, meanings, summary, type_of
from arena.cli.errors import plain
from arena.cli.options import games_named
from arena.cli.output import stdout
from arena.episode import Episode
from arena.registry import unknown
from arena.tournaments.report import board
from arena.tournaments.store import Store

__all__ = ["StoreSource", "following", "list_formats", "ratings_of", "tell", "wanted"]

_EVERY = 10.0  # seconds between plain lines
_DRAWN = 0.1  # seconds between two states of the bar


def wanted(store: Store, games: Iterable[str], agent: str | None) -> tuple[list[int] | None, int | None]:
    """Entries and agent as the store numbers them, None where all are meant. Raises ValueError for unknown names."""
    labels, names = {key: entry.label for key, entry in store.entries().items()}, store.agents()
    entries = [key for game in games for key in games_named(game, labels)]
    seated = [key for key, name in names.items() if name == agent]
    if agent is not None and not seated:
        raise unknown("agent of this run", agent, names.values())
    return entries or None, seated[0] if seated else None


class StoreSource:
    """The episodes of a run, void attempts last; those of some games and with some agents. Can be read again."""

    def __init__(self, store: Store, games: Sequence[str], agents: Sequence[str]) -> None:
        """Raises ValueError for names that the run has not."""
        found = [wanted(store, games, agent) for agent in agents or (None,)]
        self.store, self.entries = store, found[0][0]
        self.agent = found[0][1] if len(agents) == 1 else None

    def __iter__(self) -> Iterator[Episode]:
        """In the order of the games' ids."""
        void = (kept.episode for kept in self.store.kept("", self.entries, self.agent, void=True))
        return chain(self.store.episodes(self.entries, self.agent), void)

    def __length_hint__(self) -> int:
        """How many there are; 0 where only a count of all would tell."""
        counted = self.store.totals().entries
        chosen = [of for key, of in counted.items() if self.entries is None or key in self.entries]
        return 0 if self.agent is not None else sum(of.games + of.dropped + of.voids for of in chosen)


def ratings_of(store: Store) -> Ratings:
    """The Elo of the run's board, by game and agent. Raises ValueError where none of its games is rated."""
    sections = [section for section in board(store, whole=False).sections if section.rated]
    found = {(section.label, row.name): row.value for section in sections for row in section.rows}
    if not found:
        raise ValueError("none of the run's games is rated: they are told apart by mean returns")
    return found


@contextmanager
def following(console: Console) -> Iterator[Callable[[Progress], None]]:
    """What to call with the state of an export: a bar on a terminal, a line now and then elsewhere."""
    if console.is_terminal:
        facts = TextColumn("{task.fields[rows]} rows")
        with Bars(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), facts,
            console=console, transient=True,
        ) as bars:  # fmt: skip
            yield _Bar(bars)
    else:
        yield _Lines(console)


class _Bar:
    """A bar for each stage."""

    def __init__(self, bars: Bars) -> None:
        self.bars, self.stage, self.next = bars, "", 0.0

    def __call__(self, state: Progress) -> None:
        now = time.monotonic()
        if state.stage != self.stage:
            self.stage, self.next = state.stage, 0.0
            self.task = self.bars.add_task(_doing(state), total=state.total, rows=state.rows)
        if now >= self.next or state.done == state.total:
            self.next = now + _DRAWN
            self.bars.update(self.task, completed=state.done, total=state.total, rows=state.rows)


class _Lines:
    """A line every few seconds."""

    def __init__(self, console: Console) -> None:
        self.console, self.last = console, time.monotonic()

    def __call__(self, state: Progress) -> None:
        now = time.monotonic()
        if now - self.last >= _EVERY:
            self.last = now
            total = "" if state.total is None else f"/{state.total}"
            self.console.print(f"{_doing(state)} {state.done}{total}, {state.rows} rows", markup=False)


def _doing(state: Progress) -> str:
    return "reading episodes" if state.stage == "reading" else "writing seats"


def tell(told: Summary, out: str) -> None:
    """What was written, what was left out and why, on standard output."""
    split = ", ".join([f"{side} {count}" for side, count in told.rows.items()])
    rows, files = sum(told.rows.values()), sum(map(len, told.files.values()))
    click.echo(
        f"wrote {rows} rows ({split}) of {told.exported} seats of {told.episodes} episodes to {out}: "
        f"{files} {told.kind} file{'s' * (files != 1)}"
    )
    left = [f"{told.void} void episodes"] * bool(told.void)
    left += [f"{count} seats by {name}" for name, count in told.left_out.items()]
    left += [f"{told.barren} seats of which there is no row"] * bool(told.barren)
    left += [f"{told.duplicates} duplicate rows"] * bool(told.duplicates)
    if left:
        click.echo(f"left out: {', '.join(left)}")
    for reason, count in told.lacking.items():
        click.echo(plain(f"left out: {count} seats: {reason}"))
    for note in told.notes:
        click.echo(plain(f"note: {note}"))


def list_formats() -> None:
    """Every format: for whom, of what, as which files, how it is checked, with which options."""
    console = stdout()
    console.print("[bold]jsonl[/bold]  whole episodes, one JSON line each, for `arena.episode.read`\n")
    for name in sorted(FORMATS):
        try:
            cls = load_format(name)
            options = options_of_format(name)
        except ImportError as error:
            console.print(f"[bold]{escape(name)}[/bold]  needs {escape(str(error.name))}", style="dim")
            continue
        console.print(f"[bold]{escape(name)}[/bold]  {escape(summary(cls))}")
        console.print(f"    for {cls.consumer}; {cls.checked}", markup=False)
        console.print(f"    rows of each {cls.unit}; files: {', '.join(kinds_of(cls))}", markup=False)
        means = meanings(cls)
        for key, parameter in options.items():
            console.print(
                f"    ?{key}: {type_of(parameter).removeprefix('typing.')}{default_of(parameter)}", markup=False
            )
            if key in means:
                console.print(f"        {means[key]}", markup=False, style="dim")
