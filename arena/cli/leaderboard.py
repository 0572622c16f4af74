"""`arena leaderboard`: the ratings of a run, in the terminal, as pages or as files."""

from pathlib import Path

import click
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from arena.cli.errors import naming, plain, refusing
from arena.cli.options import games_named
from arena.cli.output import stdout
from arena.tournaments.board import Board, Row, Section, Standings
from arena.tournaments.conduct import percent, table
from arena.tournaments.report import board
from arena.tournaments.store import Store

__all__ = ["leaderboard", "print_board"]

_TEXT = ("agent", "")
_FOLDED = 20  # columns that a name or mark must have before it is folded
_VALUE = 2  # the column that counts
_LEAST = 4  # columns that are never told beneath the table
_NOTHING = ("", "0", "0.00", "0 %", "–")  # what is not told beneath it
_FEW_SEATS = 3  # whose worth is told beside the name of the game


@click.command()
@click.argument("run", type=click.Path())
@click.option("--html", "page", type=click.Path(), metavar="OUT",
              help="Write a site into the folder OUT, or one page without games where OUT ends in .html.")  # fmt: skip
@click.option("--csv", "lines", type=click.Path(dir_okay=False), metavar="FILE", help="Write the tables as CSV.")
@click.option("--json", "data", is_flag=True, help="Print everything that is known of the ratings as JSON.")
@click.option("--download", "files", type=click.Path(file_okay=False), metavar="DIR",
              help="Write ratings, pairs and games as CSV, JSON, parquet and PGN (what there is).")  # fmt: skip
@click.option("--game", help="Only this game.")
def leaderboard(run: str, page: str | None, lines: str | None, data: bool, files: str | None, game: str | None) -> None:
    """Show who is best in RUN (a run folder, a store file or a database's URL), and how sure that is.

    \b
    arena leaderboard runs/demo
    arena leaderboard runs/demo --game ConnectFour-v0
    arena leaderboard runs/demo --html site
    arena leaderboard runs/demo --download files

    `#` are the ranks that an agent may have (95 %), `best` is the probability that it is the best; agents that share a
    letter in `groups` do not differ significantly. `illegal` is the share of replies that were illegal, unreadable or
    cut, retried or not. Where a model was asked, another table tells more. Columns that a narrow terminal has no room
    for are told beneath.
    """
    with refusing(), Store.open(run) as store:
        if game is not None and (files is not None or (page is not None and not _one(page))):
            raise ValueError("--game: a site and downloads are of all games; leave it out")
        asked = any(option is not None for option in (page, lines, files)) or data
        shown = board(store, whole=page is not None or data or files is not None)
        _only(shown, game)
        if asked:
            for path in _write(store, shown, page, lines, files):
                click.echo(f"wrote {path}", err=data)
            if data:
                _print_json(shown)
            return
    print_board(shown, stdout())


def _one(page: str) -> bool:
    return page.endswith((".html", ".htm"))


def _write(store: Store, shown: Board, page: str | None, lines: str | None, files: str | None) -> list[Path]:
    """Every file that was asked for; their paths."""
    from arena.tournaments import downloads, site

    written: list[Path] = []
    if page is not None:
        with naming(page):
            written.append(_page(shown, Path(page)) if _one(page) else site.write_site(store, page, shown=shown))
    if lines is not None:
        with naming(lines):
            Path(lines).write_text("".join(downloads.ratings_csv(shown)), encoding="utf-8", newline="")
        written.append(Path(lines))
    if files is not None:
        with naming(files):
            written += downloads.write(store, shown, files)
    return written


def _page(shown: Board, path: Path) -> Path:
    from arena.tournaments.site import one_page

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(one_page(shown), encoding="utf-8")
    return path


def _print_json(shown: Board) -> None:
    from arena.tournaments.downloads import ratings_json

    click.echo(ratings_json(shown), nl=False)


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
    for standings in shown.standings:
        _print_standings(standings, [agent.name for agent in shown.agents], console)
    for note in shown.notes:
        console.print(plain(f"note: {note}"), markup=False)


def _print(section: Section, console: Console) -> None:
    console.print(f"\n[bold]{escape(plain(section.label))}[/bold] [dim]{escape(_about(section))}[/dim]")
    if not section.rows:
        console.print("no game is finished yet")
        return
    _tabulate(_cells(section), console, _VALUE)
    worth = [side for side in section.sides if side.elo is not None]
    if len(worth) > _FEW_SEATS:
        told = ", ".join([_worth(plain(side.label), side.elo or 0.0, side.half or 0.0) for side in worth])
        console.print(f"Elo of seats: {told}", markup=False)


def _print_conduct(shown: Board, console: Console) -> None:
    """How agents answered, where any asked a model."""
    rows = [(agent.name, conduct) for agent, conduct in zip(shown.agents, shown.conduct, strict=True) if conduct.turns]
    if any(conduct.calls for _, conduct in rows):
        console.print(
            "\n[bold]How they answered[/bold] [dim]shares of the replies; above, illegal counts all three[/dim]"
        )
        cells = {"agent": [plain(name) for name, _ in rows], **table([conduct for _, conduct in rows])}
        _tabulate(cells, console, None)


def _print_standings(standings: Standings, names: list[str], console: Console) -> None:
    """The places of a Swiss tournament, the ties of a knockout."""
    console.print(f"\n[bold]{escape(plain(standings.title))}[/bold] [dim]{escape(plain(standings.label))}[/dim]")
    if standings.rows:
        columns = zip(*[(plain(names[agent]), *cells) for agent, cells in standings.rows], strict=True)
        numbers = {"#": [str(place) for place in range(1, len(standings.rows) + 1)]}
        _tabulate({**numbers, **dict(zip(standings.columns, map(list, columns), strict=True))}, console, _VALUE)
    for number, stage in enumerate(standings.bracket, 1):
        ties = [" – ".join(["…" if agent is None else plain(names[agent]) for agent in tie[:2]]) for tie in stage]
        told = [f"{tie} {result}".strip() for tie, (_, _, result) in zip(ties, stage, strict=True)]
        console.print(f"round {number}: {'; '.join(told)}", markup=False)


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
    about += f", {section.dropped} left out" if section.dropped else ""
    worth = [side for side in section.sides if side.elo is not None]
    if len(worth) <= _FEW_SEATS:
        about += "".join([f", {_worth(side.label, side.elo or 0.0, side.half or 0.0)} Elo" for side in worth])
    return about + (f", score 0: {section.zero}" if section.zero else "")


def _worth(label: str, elo: float, half: float) -> str:
    return f"{label} {f'{round(elo):+d}' if round(elo) else '0'} ± {half:.0f}"


_RESULTS = {"ranked": ("first", "shared", "behind"), "tasks": ("solved", "partly", "failed")}


def _cells(section: Section) -> dict[str, list[str]]:
    """The table by columns; the last may be told beneath it. What nobody has is left out."""
    rows, rated = section.rows, section.rated
    digits = 0 if rated else 3
    cells = {
        "#": [_interval(row) for row in rows],
        "agent": [plain(row.name) for row in rows],
        "Elo" if rated else "mean return": [_number(row.value, digits) for row in rows],
        "± 95 %": ["–" if row.half is None else f"{row.half:.{digits}f}" for row in rows],
    }
    if rated:
        cells["best"] = [_chance(row.best) for row in rows]
        cells["groups"] = [row.letters for row in rows]
    cells["games"] = [str(row.games) for row in rows]
    if rated:
        cells |= _results(section)
    cells |= {name: values for name, values in _measured(rows).items() if any(value != "–" for value in values)}
    counted = {name: [str(getattr(row, name)) for row in rows] for name in ("forfeits", "truncated")}
    counted["illegal"] = [percent(row.illegal) for row in rows]
    counted["voids"] = [str(row.voids) for row in rows]
    cells |= {name: values for name, values in counted.items() if any(value not in _NOTHING for value in values)}
    cells |= {name: values for name, values in _spent(rows).items() if any(value not in _NOTHING for value in values)}
    if any(row.flags for row in rows):
        cells[""] = [", ".join(row.flags) for row in rows]
    return cells


def _interval(row: Row) -> str:
    """The ranks that it may have, or the one that it has."""
    low, high = row.low or row.rank, row.high or row.rank
    return str(low) if low == high else f"{low}–{high}"


def _chance(best: float | None) -> str:
    """A probability as the table shows it.

    >>> _chance(0.0), _chance(0.004), _chance(0.347), _chance(0.999), _chance(1.0)
    ('0 %', '<1 %', '35 %', '>99 %', '100 %')
    """
    if best is None:
        return "–"
    if 0 < best < 0.01 or 0.99 < best < 1:
        return "<1 %" if best < 0.5 else ">99 %"
    return f"{100 * best:.0f} %"


def _results(section: Section) -> dict[str, list[str]]:
    """Wins, draws and losses, by what they are called in such a game."""
    names = _RESULTS.get(section.kind, ("won", "drawn", "lost"))
    counts = zip(*[(row.won, row.drawn, row.lost) for row in section.rows], strict=True)
    told = {name: list(map(str, values)) for name, values in zip(names, counts, strict=True)}
    return {name: values for name, values in told.items() if name != "partly" or any(value != "0" for value in values)}


def _measured(rows: list[Row]) -> dict[str, list[str]]:
    return {
        "mean": [_optional(row.mean, 3) for row in rows],
        "score": [_optional(row.score, 3) for row in rows],
        "mean rank": [_optional(row.mean_rank, 1) for row in rows],
        "win rate": ["–" if row.mean_rank is None else percent(row.win_rate or 0.0) for row in rows],
    }


def _spent(rows: list[Row]) -> dict[str, list[str]]:
    """What answers took."""
    return {
        "tokens/move": [_optional(row.tokens, 0) for row in rows],
        "cost": ["–" if row.cost is None else f"${row.cost:,.{2 if row.cost >= 1 else 4}f}" for row in rows],
        "p50 s": [_optional(row.p50, 2) for row in rows],
        "p95 s": [_optional(row.p95, 2) for row in rows],
    }


def _optional(value: float | None, digits: int) -> str:
    return "–" if value is None else _number(value, digits)


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
