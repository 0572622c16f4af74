"""The tables of the load benchmark: what our part of a turn costs, memory, and the peers."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.load.processes import peer_python, serving, side
from benchmarks.load.table import ROUTES
from benchmarks.load.texts import PLIES
from benchmarks.timing import Figure, Spread, differences

__all__ = ["many", "peers", "turns"]

MATCHES, MANY, FEW = 1024, 10_000, 8
CAP = 1024
"""Requests in flight."""
YOUNG = 100_000
"""Objects until the garbage collector looks, in a tournament."""
ROUNDS = 5
_PEERS = ("verifiers", "inspect")
Told = Sequence[dict[str, Any]]


def turns(seconds: float) -> list[Figure]:
    """CPU microseconds of a turn, all included, beside the same calls made alone by our client, and by bare aiohttp."""
    matches, rounds = (MATCHES, ROUNDS) if seconds >= 1 else (FEW, 1)
    return [figure for route in ROUTES for figure in _route(route, matches, rounds)]


def _route(route: str, matches: int, rounds: int) -> list[Figure]:
    ours, client, rare, floor = _measured(route, matches, rounds)
    speeds = Spread.of([mine / alone for mine, alone in zip(_of(ours, "rate"), _of(client, "rate"), strict=True)])
    peak = Spread.of(_of(ours, "megabytes"))
    work = f"{route}, {matches} matches"
    return [
        _over(f"{work}: CPU us a turn, over our client's calls alone", ours, client, 100.0),
        _over(f"{work}: the same, its garbage collected as rarely", ours, rare),
        _over(f"{work}: CPU us a turn, over bare aiohttp", ours, floor),
        Figure(f"{work}: turns/s beside our client alone", "x", max(_of(ours, "rate")), max(_of(client, "rate")),
               speeds, 0.5),
        Figure(f"{work}: peak memory", "MB", peak.low, None, peak, 400.0, at_most=True),
    ]  # fmt: skip


def _measured(route: str, matches: int, rounds: int) -> list[Told]:
    """Ours, the client's calls alone, these with the runner's setting of the garbage collector, bare aiohttp.

    They take turns, every other round backwards.
    """
    with serving() as url, tempfile.TemporaryDirectory() as folder:
        side("record", route, url, folder, matches)
        sides = [
            ("arena", (route, url, matches, CAP)),
            ("client", (route, url, Path(folder) / "asked", CAP)),
            ("client", (route, url, Path(folder) / "asked", CAP, YOUNG)),
            ("floor", (url, Path(folder) / "calls")),
        ]
        told: list[list[dict[str, Any]]] = [[] for _ in sides]
        for turn in range(rounds):
            order = list(enumerate(sides))
            for at, (name, arguments) in reversed(order) if turn % 2 else order:
                told[at].append(side(name, *arguments))
    return [*told]


def _of(told: Told, key: str) -> list[float]:
    return [float(each[key]) for each in told]


def _over(work: str, ours: Told, floor: Told, goal: float | None = None) -> Figure:
    spent, bare = _of(ours, "cpu"), _of(floor, "cpu")
    return Figure(work, "us", min(spent), min(bare), differences(spent, bare), goal, at_most=True)


def many(seconds: float) -> list[Figure]:
    """Peak memory of ten thousand matches at once."""
    matches = MANY if seconds >= 1 else FEW
    figures = []
    for route in ROUTES:
        with serving() as url:
            told = side("arena", route, url, matches, CAP)
        peak = Spread.of([told["megabytes"]])
        figures.append(
            Figure(f"{route}, {matches} matches", "MB", peak.middle, None, peak, 2000.0, at_most=True,
                   note=f"{told['cpu']:.0f} CPU us a turn")
        )  # fmt: skip
    return figures


def peers(seconds: float) -> list[Figure]:
    """CPU microseconds a turn of ours by the chat route, beside libraries that hold one seat's half of each match."""
    matches = MATCHES if seconds >= 1 else FEW
    python = peer_python()
    if not python:
        return [Figure(name, "x", note="not installed: make bench-load") for name in _PEERS]
    with serving() as url:
        ours = side("arena", "chat", url, matches, CAP)
        return [_peer(name, ours, side(name, url, matches, PLIES // 2, python=python)) for name in _PEERS]


def _peer(name: str, ours: dict[str, Any], theirs: dict[str, Any]) -> Figure:
    note = f"{theirs['rate']:.0f} turns/s, {theirs['megabytes']:.0f} MB, {theirs['errors']} errors"
    times = Spread.of([theirs["cpu"] / ours["cpu"]])
    return Figure(f"{name} {theirs['version']}", "x", ours["cpu"], theirs["cpu"], times, note=note)
