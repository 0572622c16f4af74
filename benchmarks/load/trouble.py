"""The tables of what goes wrong under load: a server that fails, and a slow model beside a fast one."""

from typing import Any

from benchmarks.load.processes import serving, side, stats
from benchmarks.load.table import ROUTES
from benchmarks.timing import Figure, Spread

__all__ = ["faults", "slow"]

MATCHES, FEW = 256, 8
SHARES = {"errors": 0.05, "hangs": 0.02, "drops": 0.01}
RETRIES = (5, 1)
"""Many and few, so that matches are void too."""
CALL_SECONDS = 3.0
ROUNDS = 5


def faults(seconds: float) -> list[Figure]:
    """Of all matches how many ended, of the replies how many were another's, and what was left over."""
    matches = MATCHES if seconds >= 1 else FEW
    return [figure for route in ROUTES for retries in RETRIES for figure in _faults(route, matches, retries)]


def _faults(route: str, matches: int, retries: int) -> list[Figure]:
    with serving(**SHARES, seed=retries) as url:
        told = side("faults", route, url, matches, retries, CALL_SECONDS)
        seen = stats(url)
    failed = {kind: seen.get(kind, 0) for kind in ("500", "503", "hang", "drop", "cut")}
    left = len(told["tasks"]) + told["sockets"] + seen["connections"] - 1
    work = f"{route}, {retries} retries, {matches} matches"
    return [
        _count(f"{work}: not ended", told["left"], f"{told['finished']} finished, {told['given_up']} given up as void"),
        _count(f"{work}: void attempts", told["voids"], _said(told["reasons"]), None),
        _count(f"{work}: replies in another's seat", told["foreign"], f"of {told['kept'] * 20} on record"),
        _count(f"{work}: tasks and sockets left over", left, f"faults: {_said(failed)}"),
    ]


def _count(work: str, value: int, note: str, goal: float | None = 0.0) -> Figure:
    return Figure(work, "", value, None, Spread.of([value]), goal, at_most=True, note=note)


def _said(counts: dict[str, Any]) -> str:
    return ", ".join([f"{value} {key[:80]}" for key, value in counts.items() if value])


def slow(seconds: float) -> list[Figure]:
    """How long the fast model's matches take beside the slow one's, as a multiple of what they take alone."""
    matches, latency, rounds = (64, 2.0, ROUNDS) if seconds >= 1 else (4, 0.2, 1)
    return [_slow(route, matches, latency, rounds) for route in ROUTES]


def _slow(route: str, matches: int, latency: float, rounds: int) -> Figure:
    with serving() as fast, serving(latency=latency) as other:
        told = [side("slow", route, fast, other, matches) for _ in range(rounds)]
    running = min(each["running"] for each in told)
    note = f"at least {running} of {matches} matches of the slow model went on until the end"
    longer = Spread.of([each["beside"] / each["alone"] for each in told])
    beside, alone = [min(each[key] for each in told) for key in ("beside", "alone")]
    return Figure(f"{route}, {matches} matches each", "x", beside, alone, longer, 1.1, True, note)
