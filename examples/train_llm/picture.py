"""Picture: learning curves as an SVG, drawn from the points that runs have measured."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["draw", "write"]

Point = dict[str, Any]
"""One look at a model: "seconds" of CPU since learning began, "stage", and what came of games by opponent."""

_INK, _FAINT, _SFT, _GRPO = "#333333", "#d9d9d9", "#b35c00", "#1f6fb2"
_WIDTH, _HEIGHT, _GAP = 300, 220, 48
_LEFT, _TOP, _BOTTOM = 46, 58, 52
_FONT = f'font-family="sans-serif" font-size="12" fill="{_INK}"'
_HALO = 'font-size="11" paint-order="stroke" stroke="white" stroke-width="4"'


class _Panel(NamedTuple):
    title: str
    value: Callable[[Point], float]
    goal: float
    wanted: str


_PANELS = (
    _Panel("games lost by an illegal reply", lambda point: _share(point, "illegal"), 0.05, "under 5 %"),
    _Panel("won against random", lambda point: point["random"]["won"] / point["random"]["games"], 0.70, "over 70 %"),
    _Panel(
        "drawn against perfect play", lambda point: point["minimax"]["drawn"] / point["minimax"]["games"], 0.20,
        "over 20 %",
    ),
)  # fmt: skip


def _share(point: Point, what: str) -> float:
    """Of the games against all opponents."""
    told = [value for value in point.values() if isinstance(value, dict)]
    return float(sum(each[what] for each in told) / sum(each["games"] for each in told))


def write(runs: Sequence[Sequence[Point]], path: Path) -> None:
    """Write the picture of some runs' curves."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(draw(runs), encoding="utf-8")


def draw(runs: Sequence[Sequence[Point]]) -> str:
    """The SVG: a panel for each figure, a thin line for each run and a thick one for their mean.

    All runs must have looked at the same steps.
    """
    last = max(point["seconds"] for run in runs for point in run)
    panels = [_drawn(at, panel, runs, last) for at, panel in enumerate(_PANELS)]
    width = _LEFT + len(_PANELS) * (_WIDTH + _GAP)
    height = _TOP + _HEIGHT + _BOTTOM
    size = f'width="{width}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}" {_FONT}>'
    return "\n".join([head, f'<rect {size} fill="white"/>', _legend(len(runs)), *panels, "</svg>\n"])


def _legend(runs: int) -> str:
    told = "mean of the runs" if runs > 1 else "one run"
    thin = f", thin: each of the {runs}" if runs > 1 else ""
    return (
        f'<text x="{_LEFT}" y="20" font-size="14"><tspan fill="{_SFT}" font-weight="bold">SFT</tspan> on games of '
        f'minimax, then <tspan fill="{_GRPO}" font-weight="bold">GRPO</tspan> on games of its own '
        f"(thick: {told}{thin})</text>"
    )


def _drawn(at: int, panel: _Panel, runs: Sequence[Sequence[Point]], last: float) -> str:
    """One panel."""
    left = _LEFT + at * (_WIDTH + _GAP)
    parts = [f'<g transform="translate({left},{_TOP})">', f'<text x="0" y="-10">{panel.title} (%)</text>']
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _HEIGHT * (1 - share)
        parts.append(f'<path d="M0 {y:g}H{_WIDTH}" stroke="{_FAINT}"/>')
        parts.append(f'<text x="-8" y="{y + 4:g}" text-anchor="end">{share * 100:g}</text>')
    for tick in _ticks(last):
        x = _WIDTH * tick / last
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT + 18}" text-anchor="middle">{tick:g}</text>')
    goal = _HEIGHT * (1 - panel.goal)
    parts.append(f'<path d="M0 {goal:.1f}H{_WIDTH}" stroke="{_INK}" stroke-dasharray="5 4"/>')
    parts.append(f'<text x="{_WIDTH}" y="{goal - 5:.1f}" text-anchor="end" {_HALO}>wanted: {panel.wanted}</text>')
    parts += [_lines(run, panel, last, 1, 0.45) for run in runs if len(runs) > 1]
    parts.append(_lines(_mean(runs, panel), panel._replace(value=lambda point: point["value"]), last, 3, 1.0))
    parts.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT + 38}" text-anchor="middle">CPU seconds of learning</text></g>')
    return "\n".join(parts)


def _ticks(last: float) -> list[float]:
    """Four to eight round numbers from 0 to the last."""
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10**5) if last / step <= 8)
    return [float(n) for n in range(0, int(last) + 1, step)]


def _mean(runs: Sequence[Sequence[Point]], panel: _Panel) -> list[Point]:
    """The mean curve, point by point."""
    points = []
    for together in zip(*runs, strict=True):
        seconds = sum(point["seconds"] for point in together) / len(together)
        value = sum(panel.value(point) for point in together) / len(together)
        points.append({"seconds": seconds, "stage": together[0]["stage"], "value": value})
    return points


def _lines(run: Sequence[Point], panel: _Panel, last: float, width: int, opacity: float) -> str:
    """A run's curve, each stage in its colour; the second one begins where the first ended."""
    where = [(_WIDTH * p["seconds"] / last, _HEIGHT * (1 - panel.value(p)), p["stage"]) for p in run]
    parts = []
    for stage, colour in (("sft", _SFT), ("grpo", _GRPO)):
        own = [(x, y) for x, y, of in where if of == stage]
        if stage == "grpo":
            own = [(x, y) for x, y, of in where if of == "sft"][-1:] + own
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in own)
        if len(own) > 1:
            parts.append(
                f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="{width}" opacity="{opacity}"/>'
            )
    return "\n".join(parts)
