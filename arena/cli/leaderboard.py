"""`arena leaderboard`: the ratings of a run, in the terminal or as a page."""

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from arena.cli.errors import plain, refusing
from arena.cli.output import stdout
from arena.tournaments.report import Board, Section, board

__all__ = ["leaderboard", "print_board"]


@click.command()
@click.argument("run", type=click.Path())
@click.option("--html", "page", type=click.Path(dir_okay=False), metavar="FILE", help="Write one self-contained page.")
@click.option("--game", help="Only this game.")
def leaderboard(run: str, page: str | None, game: str | None) -> None:
    """Show who is best in RUN (a run folder or a store file), and how sure that is.

    \b
    arena leaderboard runs/demo
    arena leaderboard runs/demo --game ConnectFour-v0
    arena leaderboard runs/demo --html leaderboard.html
    """
    from arena.tournaments.store import Store

    with refusing(), Store.open(run) as store:
        shown = board(store)
        if page is not None:
            from arena.tournaments.leaderboard import write_html

            click.echo(f"wrote {write_html(shown, page)}")
            return
        _only(shown, game)
    print_board(shown, stdout())


def _only(shown: Board, game: str | None) -> None:
    if game is None:
        return
    from arena.registry import unknown

    kept = [section for section in shown.sections if game in (section.label, section.label.split(" ")[0])]
    if not kept:
        raise unknown("game of this run", game, [section.label for section in shown.sections])
    shown.sections, shown.overall = kept, None


def print_board(shown: Board, console: Console) -> None:
    """The tables of a board."""
    console.print(f"[bold]{escape(plain(shown.title))}[/bold]: {shown.finished} of {shown.planned} games finished")
    if shown.overall is not None and len(shown.sections) > 1:
        _print(shown, shown.overall, console)
    for section in shown.sections:
        _print(shown, section, console)
    if shown.voids:
        reasons = "; ".join(f"{times} x {reason[:200]}" for reason, times in shown.void_reasons)
        console.print(plain(f"{shown.voids} void attempts: {reasons}"), markup=False)
    for note in shown.notes:
        console.print(plain(f"note: {note}"), markup=False)


def _print(shown: Board, section: Section, console: Console) -> None:
    console.print(f"\n[bold]{escape(plain(section.label))}[/bold] [dim]{escape(_about(section))}[/dim]")
    if not section.games:
        console.print("no game is finished yet")
        return
    console.print(_rated(shown, section) if section.ratings is not None else _paid(shown, section))


def _about(section: Section) -> str:
    about = f"{section.games} games"
    about += f", {section.truncated} truncated" if section.truncated else ""
    if section.ratings is not None and len(section.ratings.seats) == 1:
        ((worth, half),) = section.ratings.seats.values()
        about += f", first seat {worth:+.0f} ± {half:.0f} Elo"
    return about


def _rated(shown: Board, section: Section) -> Table:
    rated = section.ratings
    assert rated is not None
    faults = _faults(section)
    table = _table("#", "agent", "Elo", "± 95 %", "games", "won", "drawn", "lost", *faults, "")
    for rank, k in enumerate(section.order, 1):
        counts = [rated.played[k], rated.wins[k], rated.draws[k], rated.losses[k], *[row[k] for row in faults.values()]]
        table.add_row(
            str(rank),
            escape(plain(shown.agents[k].name)),
            f"[bold]{rated.elo[k]:.0f}[/bold]",
            f"{rated.half[k]:.0f}",
            *[str(number) for number in counts],
            f"[yellow]{', '.join(rated.flags[k])}[/yellow]",
        )
    return table


def _paid(shown: Board, section: Section) -> Table:
    faults = _faults(section)
    table = _table("#", "agent", "mean return", "± 95 %", "games", *faults)
    for rank, k in enumerate(section.order, 1):
        mean = section.means[k]
        assert mean is not None
        half = "?" if mean.half is None else f"{mean.half:.3f}"
        counts = [mean.games, *[row[k] for row in faults.values()]]
        table.add_row(
            str(rank), escape(plain(shown.agents[k].name)), f"[bold]{mean.mean:.3f}[/bold]", half, *map(str, counts)
        )
    return table


def _faults(section: Section) -> dict[str, list[int]]:
    """Columns that are worth their room only where there is something in them."""
    columns = {"forfeits": section.forfeits, "voids": section.voids}
    return {name: counts for name, counts in columns.items() if any(counts)}


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        text = column in ("agent", "")
        table.add_column(column, justify="left" if text else "right", no_wrap=not text, overflow="fold")
    return table
