"""Ours, a tournament with its store: `python -m benchmarks.load.arena_side ROUTE URL MATCHES CAP`."""

import sys
import tempfile
from pathlib import Path

from arena.tournaments.runner import run
from arena.tournaments.store import Store
from benchmarks.load.meter import Meter, files
from benchmarks.load.table import tournament
from benchmarks.load.texts import PLIES

__all__ = ["main"]


def main(route: str, url: str, matches: int, cap: int) -> None:
    """Print one measurement. `cap`: requests in flight."""
    files(cap + 512)
    with tempfile.TemporaryDirectory() as folder:
        _play(route, url, 8, cap, Path(folder) / "warm")
        meter = Meter()
        finished = _play(route, url, matches, cap, Path(folder) / "run")
        meter.tell(finished * PLIES)


def _play(route: str, url: str, matches: int, cap: int, folder: Path) -> int:
    asked = tournament(route, url, matches, concurrency=cap)
    with Store.resume(folder, asked) as store:
        tally = run(asked, store)
    if tally.finished != matches or tally.forfeits or tally.truncated or tally.voids:
        raise RuntimeError(f"not every match was played to its end: {tally}")
    return tally.finished


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
