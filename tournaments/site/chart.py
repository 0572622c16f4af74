"""The history of ratings as lines, drawn here: pages need no script for it."""

from datetime import UTC, datetime
from typing import NamedTuple

from arena.tournaments.board import Curve

__all__ = ["Chart", "Line", "chart"]

_POINTS = 150  # of a line
_COLOURS = 8  # lines with a colour of their own
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 22, 8, 26  # room around the plot


class Line(NamedTuple):
    """One agent: `path` is the `d` of an SVG path; `colour` is a class, -1 for those beyond the coloured."""

    name: str
    colour: int
    path: str
    last: float


class Chart(NamedTuple):
    """A plot of `width` x `height`; ticks are (place, text)."""

    width: int
    height: int
    lines: list[Line]
    across: list[tuple[float, str]]
    up: list[tuple[float, str]]
    left: int = _LEFT
    right: int = _RIGHT
    top: int = _TOP
    bottom: int = _BOTTOM


def chart(curve: Curve | None, order: list[int], names: list[str], width: int = 960, height: int = 280) -> Chart | None:
    """The lines of these agents, the first ones in colour; None: there are not two points."""
    agents = [agent for agent in order if agent in (curve.elo if curve else {})]
    if curve is None or len(curve.games) < 2 or not agents:
        return None
    values = [elo for agent in agents for elo in curve.elo[agent] if elo is not None]
    if not values:
        return None
    low, high = min(values), max(values)
    room = 0.05 * (high - low) or 10.0
    low, high, first, last = low - room, high + room, curve.games[0], max(curve.games[-1], curve.games[0] + 1)

    def x(games: float) -> float:
        return round(_LEFT + (width - _LEFT - _RIGHT) * (games - first) / (last - first), 1)

    def y(elo: float) -> float:
        return round(height - _BOTTOM - (height - _TOP - _BOTTOM) * (elo - low) / (high - low), 1)

    kept = sorted({*range(0, len(curve.games), max(1, len(curve.games) // _POINTS)), len(curve.games) - 1})
    lines = []
    for place, agent in enumerate(agents):
        points = [(x(curve.games[k]), y(elo)) for k in kept if (elo := curve.elo[agent][k]) is not None]
        if points:
            ended = [elo for elo in curve.elo[agent] if elo is not None][-1]
            lines.append(Line(names[agent], place if place < _COLOURS else -1, _path(points), ended))
    ticks = [(x(games), f"{games:,.0f}") for games in _ticks(first, last, 6 if width > 600 else 3)]
    return Chart(
        width, height, lines, ticks, [(y(elo), f"{elo:.0f}".replace("-", "−")) for elo in _ticks(low, high, 5)]
    )


def span(curve: Curve) -> str:
    """When the first and the last game of a curve ended, "" where no clock was read."""
    times = [datetime.fromtimestamp(time, UTC) for time in curve.times if 0 < time < 1e11]
    if not times:
        return ""
    return f"{times[0]:%Y-%m-%d %H:%M} to {times[-1]:%Y-%m-%d %H:%M} UTC"


def _path(points: list[tuple[float, float]]) -> str:
    return "M" + "L".join([f"{x:g} {y:g}" for x, y in points])


def _ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers between two ends.

    >>> _ticks(903, 1104, 5)
    [950.0, 1000.0, 1050.0, 1100.0]
    """
    size = 1.0
    while (high - low) / size > most * 10:
        size *= 10
    steps = [size * k for k in (1, 2, 5, 10, 20, 50, 100)]
    step = next((step for step in steps if (high - low) / step <= most), steps[-1])
    first = -(-low // step)
    return [step * k for k in _count(int(first), int(high // step))]


def _count(first: int, last: int) -> range:
    return range(first, last + 1)
