"""Where intervals lie on the scale of their table."""

from typing import NamedTuple

from arena.tournaments.board import Row, Section
from arena.tournaments.ratings import CENTER

__all__ = ["Bar", "bar", "ends"]


class Bar(NamedTuple):
    """An interval, in percent of the scale."""

    left: float
    width: float
    at: float
    """The value."""
    middle: float | None
    """The mean of all agents (a return of 0 where nothing is rated); None: it is not on the scale."""


def ends(section: Section) -> tuple[float, float]:
    """The ends of the scale that holds all intervals of a section."""
    spans = [_span(row) for row in section.rows]
    low, high = min(low for low, _ in spans), max(high for _, high in spans)
    room = 0.03 * (high - low) or 1.0
    return low - room, high + room


def bar(row: Row, section: Section) -> Bar:
    """Where interval, value and mid-line of a row lie."""
    low, high = ends(section)
    left, right = _span(row)
    middle = CENTER if section.ratings is not None else 0.0

    def place(value: float) -> float:
        return round(100 * (value - low) / (high - low), 2)

    shown = place(middle) if low <= middle <= high else None
    return Bar(place(left), round(place(right) - place(left), 2), place(row.value), shown)


def _span(row: Row) -> tuple[float, float]:
    half = row.half or 0.0
    return row.value - half, row.value + half
