"""The columns of a table of agents; those that nobody has anything in are left out."""

from typing import NamedTuple

from arena.tournaments.board import Row, Section
from arena.tournaments.conduct import percent

__all__ = ["Column", "columns"]


class Column(NamedTuple):
    """One column: its heading, what it means, and a cell for every row."""

    title: str
    hint: str
    cells: list[str]
    brief: bool = False
    """Whether a phone has room for it; else it is told beneath the name."""


_WON = "Won, drawn and lost; of many seats, how often it was first alone, shared the first place, or neither"
_NOTHING = ("", "0", "0 %", "–", "<1 ms / <1 ms")


def columns(section: Section) -> list[Column]:
    """Of a section, after rank, agent, value and interval."""
    rows = section.rows
    every = [*_standing(rows), *_counts(section), *_answers(rows)]
    return [column for column in every if any(cell not in _NOTHING for cell in column.cells)]


def told(column: Column, row: int) -> bool:
    """Whether the cell says anything."""
    return column.cells[row] not in _NOTHING


def _standing(rows: list[Row]) -> list[Column]:
    best = "Probability that it is the best of those it can be compared with"
    alike = "Agents that share a letter do not differ significantly"
    return [
        Column("P(best)", best, [_chance(r) for r in rows]),
        Column("Group", alike, [row.letters for row in rows]),
        Column("Score", "Mean normalised score ± 95 %", [_score(row) for row in rows]),
        Column("Mean rank", "Mean of its ranks in the single games", [_fixed(row.mean_rank, 1) for row in rows]),
    ]


def _counts(section: Section) -> list[Column]:
    rows = section.rows
    games = [Column("Games", "Finished games that count", [f"{row.games:,}" for row in rows])]
    if section.ratings is not None:
        results = [f"{row.won:,} / {row.drawn:,} / {row.lost:,}" for row in rows]
        tasks = section.kind == "tasks"
        solved = [f"{row.won:,} / {row.lost:,}" for row in rows]
        games.append(Column("Solved / not", "Tasks", solved) if tasks else Column("W / D / L", _WON, results))
    hint = "Games lost by an illegal or unreadable action, after the retries"
    void = "Attempts that came to nothing, not by the player’s fault, at games it sat in"
    return [
        *games,
        Column("Forfeits", hint, [f"{row.forfeits:,}" for row in rows]),
        Column("Truncated", "Games that were cut short", [f"{row.truncated:,}" for row in rows]),
        Column("Voids", void, [f"{row.voids:,}" for row in rows]),
    ]


def _answers(rows: list[Row]) -> list[Column]:
    wrong = [percent(row.illegal) if row.conduct.replies else "–" for row in rows]
    tokens = ["–" if row.tokens is None else f"{row.tokens:,.0f}" for row in rows]
    cost = [_dollars(row.cost) for row in rows]
    waits = [f"{_seconds(row.p50)} / {_seconds(row.p95)}" if row.p50 or row.p95 else "–" for row in rows]
    return [
        Column("Illegal", "Illegal, unreadable or cut replies, as a share of all", wrong),
        Column("Tokens / move", "Tokens a turn, read and written, retries included", tokens),
        Column("Cost", "Dollars, where prices are known", cost),
        Column("p50 / p95", "Median and 95th percentile of the seconds of an answer", waits),
    ]


def _chance(row: Row) -> str:
    return "–" if row.best is None else percent(row.best)


def _score(row: Row) -> str:
    half = "" if row.score_half is None else f" ± {row.score_half:.3f}"
    return "–" if row.score is None else f"{row.score:.3f}{half}"


def _fixed(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _dollars(cost: float | None) -> str:
    return f"${cost:,.{2 if cost >= 1 else 4}f}" if cost else "–"


def _seconds(seconds: float | None) -> str:
    """Seconds with two digits that mean something.

    >>> _seconds(0.00002), _seconds(0.01234), _seconds(1.26), _seconds(75.3), _seconds(None)
    ('<1 ms', '12 ms', '1.3 s', '75 s', '–')
    """
    if seconds is None:
        return "–"
    if seconds < 0.0995:
        return f"{1000 * seconds:.0f} ms" if seconds >= 0.001 else "<1 ms"
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
