"""How `arena rate` shows ratings: as a table in the terminal, as JSON and as CSV."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from arena.cli.errors import plain
from arena.tournaments.ratings.columns import Given
from arena.tournaments.ratings.pairs import Ratings
from arena.tournaments.ratings.rating import Rated

__all__ = ["Shown", "as_rows", "as_text", "print_ratings"]

_LEFT = ("agent", "")
_SURPRISING = 3.0  # standard errors
_MOST = 5  # pairs that surprise
_SHARE = 0.005  # of a mixture, that is shown
_DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "\n", "'")
_COUNTS = {
    "tasks": ("solved", "in part", "failed"),
    "ranked": ("first", "shared", "behind"),
    "": ("won", "drawn", "lost"),
}


class Shown(NamedTuple):
    """What is shown."""

    rated: Rated
    given: Given


def print_ratings(shown: Shown, console: Console) -> None:
    """The tables and what is told beneath them."""
    rated, given = shown
    if rated.games:
        console.print("[bold]All games[/bold]")
    _print(rated.ratings, given.kind, console)
    for line in _beneath(rated, given):
        console.print(plain(line), markup=False)
    for name, ratings in rated.games.items():
        console.print(f"\n[bold]{escape(plain(name))}[/bold]")
        _print(ratings, given.kind, console)


def _print(ratings: Ratings, kind: str, console: Console) -> None:
    counts = _COUNTS.get(kind, _COUNTS[""])
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("rank", "agent", "Elo", "± 95 %", "P(best)", "groups", "games", *counts, ""):
        style = "bold" if column == "Elo" else "yellow" if not column else ""
        left = column in _LEFT
        table.add_column(column, justify="left" if left else "right", style=style, no_wrap=not left, overflow="fold")
    for row in _ordered(ratings):
        low, high = row["rank_low"], row["rank_high"]
        table.add_row(
            str(low) if low == high else f"{low}-{high}",
            escape(plain(row["agent"])),
            f"{row['elo']:.0f}",
            f"{row['half']:.0f}",
            f"{100 * row['best']:.0f} %",
            row["letters"],
            str(row["games"]),
            *[str(row[name]) for name in ("wins", "draws", "losses")],
            ", ".join(row["flags"]),
        )
    console.print(table)


def _ordered(ratings: Ratings) -> list[dict[str, Any]]:
    """By group, best first; those without games last."""
    order = sorted(
        range(len(ratings.players)), key=lambda k: (ratings.played[k] == 0, ratings.groups[k], -ratings.elo[k])
    )
    where = ratings.standing
    return [
        {
            "agent": ratings.players[k],
            "elo": float(ratings.elo[k]),
            "half": float(ratings.half[k]),
            "rank_low": int(where.low[k]),
            "rank_high": int(where.high[k]),
            "best": float(where.best[k]),
            "letters": where.letters[k],
            "games": int(ratings.played[k]),
            "wins": int(ratings.wins[k]),
            "draws": int(ratings.draws[k]),
            "losses": int(ratings.losses[k]),
            "group": int(ratings.groups[k]),
            "flags": list(ratings.flags[k]),
        }
        for k in order
    ]


def _beneath(rated: Rated, given: Given) -> Iterator[str]:
    """What is told beneath the table."""
    ratings = rated.ratings
    if len(np.unique(ratings.groups[ratings.played > 0])) > 1:
        yield "Some players never met, not even through others: there are groups, which cannot be compared."
    yield f"intervals: {ratings.method}; who shares a letter does not differ significantly"
    if given.seated or given.kind == "tasks":
        for game, seats in ratings.seats.items():
            named = "" if len(given.results.games) == 1 else f"{game}: "
            yield named + ", ".join([f"{seat} {_signed(elo)} ± {half:.0f} Elo" for seat, (elo, half) in seats.items()])
    if rated.beside is None or len(ratings.players) < 3:
        return
    told, names = rated.beside, ratings.players
    yield (
        f"cycles: {100 * told.cycle:.1f} % of what is seen between pairs fits no one number for each "
        f"(chance alone gives {100 * told.cycle_noise:.1f} %)"
    )
    for label, mixture in (("Nash averaging", told.nash), ("maximal lottery", told.lottery)):
        inside = [k for k in np.argsort(-mixture, kind="stable") if mixture[k] >= _SHARE]
        yield f"{label}: " + ", ".join([f"{names[k]} {100 * mixture[k]:.0f} %" for k in inside[:_MOST]])
    for pair in [pair for pair in told.residuals if abs(pair.z) >= _SURPRISING][:_MOST]:
        yield (
            f"surprising: {names[pair.first]} against {names[pair.second]}, {pair.games} games: "
            f"expected {pair.expected:.2f}, seen {pair.seen:.2f} ({pair.z:+.1f} standard errors)"
        )


def _signed(elo: float) -> str:
    return f"{round(elo):+d}" if round(elo) else "0"


def as_text(rated: Rated, given: Given) -> str:
    """JSON of all that is known; names are as they were, escaped to ASCII."""
    ratings, told = rated.ratings, rated.beside
    names = ratings.players
    body: dict[str, Any] = {
        "kind": given.kind,
        "columns": given.used,
        "method": ratings.method,
        "players": _ordered(ratings),
        "covariance": {"players": list(names), "elo": ratings.covariance.tolist()},
    }
    if given.seated or given.kind == "tasks":
        body["seats"] = {
            game: {seat: {"elo": elo, "half": half} for seat, (elo, half) in seats.items()}
            for game, seats in ratings.seats.items()
        }
    if told is not None:
        body["beside"] = {
            **{
                name: dict(zip(names, getattr(told, name).tolist(), strict=True))
                for name in ("nash", "skill", "lottery", "clones")
            },
            "cycle": told.cycle,
            "cycle_noise": told.cycle_noise,
            "residuals": [
                {**pair._asdict(), "first": names[pair.first], "second": names[pair.second]} for pair in told.residuals
            ],
        }
    if rated.games:
        body["games"] = {name: _ordered(ratings) for name, ratings in rated.games.items()}
    return json.dumps(body, indent=1, allow_nan=False)


def as_rows(rated: Rated) -> str:
    """CSV, best first; a text that a spreadsheet might take for a formula has a `'` before it."""
    out = io.StringIO()
    tables = {"": rated.ratings, **rated.games}
    columns = list(_ordered(rated.ratings)[0])
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*(["game"] * bool(rated.games)), *columns])
    for game, ratings in tables.items():
        for row in _ordered(ratings):
            cells = {**row, "flags": ", ".join(row["flags"]), "agent": _cell(row["agent"])}
            writer.writerow([*([_cell(game)] * bool(rated.games)), *cells.values()])
    return out.getvalue()


def _cell(text: str) -> str:
    return f"'{text}" if text.startswith(_DANGEROUS) else text
