"""The leaderboard as one HTML file: no script, no network, nothing but itself; names in it are hostile text."""

import base64
import hashlib
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from arena.tournaments.board import Board, Pair, Row, Section
from arena.tournaments.conduct import table
from arena.tournaments.ratings import CENTER

__all__ = ["command", "html", "write_html"]

_SHADES = 10
_BRIEF = ("replies", "illegal", "cost")  # columns of how agents answered that a phone has room for
_PIECE = re.compile(r"[^?&=]{1,24}[?&=]?|[?&=]")


def write_html(board: Board, path: str | Path) -> Path:
    """Write the page; its path."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(html(board), encoding="utf-8")
    return path


def html(board: Board) -> str:
    """The page."""
    environment = _environment()
    style = environment.get_template("leaderboard_style.html.j2").render(shades=_SHADES)
    policy = f"default-src 'none'; style-src '{_digest(style)}'; base-uri 'none'; form-action 'none'"
    return environment.get_template("leaderboard.html.j2").render(
        board=board,
        style=style,
        policy=policy,
        command=command(board),
        center=CENTER,
        told=table(board.conduct),
        brief=_BRIEF,
    )


def command(board: Board) -> str:
    """The command that plays the same tournament again."""
    folder = board.path.parent
    return f"arena tournament run {shlex.quote(str(folder / 'tournament.toml'))} --out {shlex.quote(str(folder))}-again"


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("arena.tournaments", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(shade=_shade, bars=_bars, spread=_spread, number=_number, pieces=_pieces)
    return environment


def _digest(style: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()


def _shade(pair: Pair) -> int:
    """The class of a heat-map cell: 0 lost all, 10 won all."""
    return round(pair.score * _SHADES)


def _number(value: float, digits: int = 0) -> str:
    """With a true minus sign; the page has no other place where a digit is made."""
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def _pieces(name: str) -> list[str]:
    """What of a name stays together: it may be broken after the joints of a spec, or every so often where it has none.

    >>> _pieces("mcts?simulations=50&c=2")
    ['mcts?', 'simulations=', '50&', 'c=', '2']
    """
    return _PIECE.findall(name)


def _spread(section: Section) -> tuple[float, float]:
    """The ends of the scale that holds all intervals of a section."""
    spans = [_span(row) for row in section.rows]
    low, high = min(low for low, _ in spans), max(high for _, high in spans)
    room = 0.03 * (high - low) or 1.0
    return low - room, high + room


def _span(row: Row) -> tuple[float, float]:
    half = row.half or 0.0
    return row.value - half, row.value + half


def _bars(row: Row, section: Section) -> dict[str, Any]:
    """Where interval, value and mid-line of a row lie, in percent of the section's scale."""
    low, high = _spread(section)
    left, right = _span(row)
    middle = CENTER if section.ratings is not None else 0.0

    def place(value: float) -> float:
        return round(100 * (value - low) / (high - low), 2)

    shown = place(middle) if low <= middle <= high else None
    return {
        "left": place(left),
        "width": round(place(right) - place(left), 2),
        "at": place(row.value),
        "middle": shown,
    }
