"""Tables of figures, as text and as JSON."""

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.timing import Figure

__all__ = ["machine", "table", "write_json"]

_PEERS = ("gymnasium-arena", "open-spiel", "pettingzoo", "rlcard", "textarena", "gymnasium", "chess")


def machine() -> dict[str, str]:
    """Where and with what this runs: no more of it than a reader needs to compare."""
    versions = {name: version for name in _PEERS if (version := _version(name))}
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "?"
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {load}",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def table(title: str, columns: tuple[str, str], figures: Sequence[Figure]) -> str:
    """A titled table; `columns`: what is ours and what stands beside it."""
    head = ("", *columns, "result", "spread", "goal", "")
    rows = [head, *map(_row, figures)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(head) - 1)]
    lines = [_line(row, widths) for row in rows]
    return "\n".join([title, "-" * len(title), *lines, ""])


def _row(figure: Figure) -> tuple[str, ...]:
    result = figure.result
    sign = "<=" if figure.at_most else ">="
    return (
        figure.work,
        _number(figure.ours),
        _number(figure.peer),
        f"{_number(result.middle)} {figure.unit}" if result else "-",
        f"{_number(result.low)} to {_number(result.high)}" if result else "",
        f"{sign} {figure.goal:g}" if figure.goal is not None else "",
        ": ".join(filter(None, (figure.verdict, figure.note))),
    )


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _line(row: tuple[str, ...], widths: Sequence[int]) -> str:
    first, *others = [
        cell.ljust(width) if at == 0 else cell.rjust(width)
        for at, (cell, width) in enumerate(zip(row[:-1], widths, strict=True))
    ]
    return "  ".join([first, *others, row[-1]]).rstrip()


def write_json(path: Path, tables: Mapping[str, Sequence[Figure]]) -> None:
    """All figures, with the machine they hold for."""
    body: dict[str, Any] = {"machine": machine(), "argv": sys.argv[1:]}
    body["tables"] = {
        name: [
            {**figure._asdict(), "result": figure.result and figure.result._asdict(), "verdict": figure.verdict}
            for figure in figures
        ]
        for name, figures in tables.items()
    }
    path.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
