"""`arena leaderboard`: the ratings of a run, in the terminal or as a page."""

import click
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from arena.cli.errors import naming, plain, refusing
from arena.cli.options import games_named
from arena.cli.output import stdout
from arena.tournaments.board import Board, Section
from arena.tournaments.conduct import percent, table
from arena.tournaments.report import board

__all__ = ["leaderboard", "print_board"]

_TEXT = ("agent", "")
_FOLDED = 20  # columns that a name or mark must have before it is folded
_VALUE = 2  # the column that counts
_LEAST = 4  # columns that are never told beneath the table
_NOTHING = ("", "0", "0 %", "–")  # what is not told beneath it


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

    `illegal` is the share of replies that were illegal, unreadable or cut, retried or not. Where a model was asked,
    another table tells more. Columns that a narrow terminal has no room for are told beneath.
    """
    from arena.tournaments.store import Store

    with refusing(), Store.open(run) as store:
        shown = board(store)
        _only(shown, game)
        if page is not None:
            from arena.tournaments.leaderboard import write_html

            with naming(page):
                click.echo(f"wrote {write_html(shown, page)}")
            return
    print_board(shown, stdout())


def _only(shown: Board, game: str | None) -> None:
    if game is None:
        return
    kept = games_named(game, {k: section.label for k, section in enumerate(shown.sections)})
    shown.sections, shown.overall = [shown.sections[k] for k in kept], None


def print_board(shown: Board, console: Console, *, heading: bool = True) -> None:
    """The tables of a board."""
    if heading:
        console.print(f"[bold]{escape(plain(shown.title))}[/bold]: {shown.finished} of {shown.planned} games finished")
    if shown.overall is not None and len(shown.sections) > 1:
        _print(shown.overall, console)
    for section in shown.sections:
        _print(section, console)
    _print_conduct(shown, console)
    if shown.voids:
        reasons = "; ".join(f"{times} x {reason[:200]}" for reason, times in shown.void_reasons)
        console.print(plain(f"{shown.voids} void attempts: {reasons}"), markup=False)
    for note in shown.notes:
        console.print(plain(f"note: {note}"), markup=False)


def _print(section: Section, console: Console) -> None:
    console.print(f"\n[bold]{escape(plain(section.label))}[/bold] [dim]{escape(_about(section))}[/dim]")
    if not section.rows:
        console.print("no game is finished yet")
        return
    _tabulate(_cells(section), console, _VALUE)


def _print_conduct(shown: Board, console: Console) -> None:
    """How agents answered, where any asked a model."""
    rows = [(agent.name, conduct) for agent, conduct in zip(shown.agents, shown.conduct, strict=True) if conduct.turns]
    if any(conduct.calls for _, conduct in rows):
        console.print(
            "\n[bold]How they answered[/bold] [dim]shares of the replies; above, illegal counts all three[/dim]"
        )
        cells = {"agent": [plain(name) for name, _ in rows], **table([conduct for _, conduct in rows])}
        _tabulate(cells, console, None)


def _tabulate(cells: dict[str, list[str]], console: Console, bold: int | None) -> None:
    """The columns side by side; those that have no room beneath, of those who have anything there."""
    beneath = {}
    while not _fits(cells, console.width) and len(cells) > _LEAST:
        column, values = cells.popitem()
        beneath[column or "marks"] = values
    console.print(_table(cells, bold))
    for column, values in reversed(beneath.items()):
        told = [f"{name} {value}" for name, value in zip(cells["agent"], values, strict=True) if value not in _NOTHING]
        if told:
            console.print(f"{column}: {', '.join(told)}", markup=False)


def _about(section: Section) -> str:
    about = f"{section.games} games"
    about += f", {section.truncated} truncated" if section.truncated else ""
    if section.ratings is not None and len(section.ratings.seats) == 1:
        (seats,) = section.ratings.seats.values()
        for seat, (worth, half) in seats.items():
            about += f", {seat} {f'{round(worth):+d}' if round(worth) else '0'} ± {half:.0f} Elo"
    return about


def _cells(section: Section) -> dict[str, list[str]]:
    """The table by columns; the last may be told beneath it. What nobody has is left out."""
    rows, rated = section.rows, section.ratings is not None
    digits = 0 if rated else 3
    cells = {
        "#": [str(row.rank) for row in rows],
        "agent": [plain(row.name) for row in rows],
        "Elo" if rated else "mean return": [_number(row.value, digits) for row in rows],
        "± 95 %": ["–" if row.half is None else f"{row.half:.{digits}f}" for row in rows],
        "games": [str(row.games) for row in rows],
    }
    if rated:
        cells |= {name: [str(getattr(row, name)) for row in rows] for name in ("won", "drawn", "lost")}
    if any(row.forfeits for row in rows):
        cells["forfeits"] = [str(row.forfeits) for row in rows]
    if any(row.conduct.wrong for row in rows):
        cells["illegal"] = [percent(row.conduct.share(row.conduct.wrong)) for row in rows]
    if any(row.voids for row in rows):
        cells["voids"] = [str(row.voids) for row in rows]
    if any(row.flags for row in rows):
        cells[""] = [", ".join(row.flags) for row in rows]
    return cells


def _number(value: float, digits: int) -> str:
    """Without a minus before a zero."""
    return f"{round(value, digits) + 0.0:.{digits}f}"


def _fits(cells: dict[str, list[str]], width: int) -> bool:
    """Whether the columns have room side by side; names and marks may be folded."""
    needed = {column: max(map(cell_len, [column, *values])) for column, values in cells.items()}
    folded = [min(room, _FOLDED) if column in _TEXT else room for column, room in needed.items()]
    return sum(folded) + 2 * (len(folded) - 1) <= width


def _table(cells: dict[str, list[str]], bold: int | None) -> Table:
    shown = Table(box=None, pad_edge=False, header_style="dim")
    for number, column in enumerate(cells):
        text = column in _TEXT
        style = "bold" if number == bold else "yellow" if not column else ""
        shown.add_column(column, justify="left" if text else "right", style=style, no_wrap=not text, overflow="fold")
    for row in zip(*cells.values(), strict=True):
        shown.add_row(*map(escape, row))
    return shown
