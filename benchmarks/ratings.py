"""The rating engine, beside the real arena-rank and FastChat's bootstrap, on the same tables: CPU seconds.

Ours is the whole of `rate` (counts from columns, Davidson's model with a seat term, sandwich over seed blocks, flags,
1,000 draws for ranks, significance groups) and a bootstrap over seed blocks. The others fit Bradley-Terry with half a
win for a draw and take games for independent. arena-rank is asked in an interpreter of its own. All processes have one
BLAS thread: of matrices this small a second one makes nothing but spinning, which CPU seconds count.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.ratings import Results, rate
from arena.tournaments.ratings.bootstrap import bootstrap, patterns
from arena.tournaments.ratings.davidson import ELO, Belief, fit
from benchmarks.rating import fastchat_side
from benchmarks.timing import Figure, Spread

__all__ = ["beside_peers", "tournament"]

Floats = NDArray[np.float64]
ROOT = Path(__file__).resolve().parent.parent
REPLICATES = 100
_ROUNDS = 5
_LONGEST = 300  # wall seconds that arena-rank may take for a table


class Size(NamedTuple):
    """A table, and the goals for it: seconds of fit and intervals, of 100 bootstraps."""

    players: int
    games: int
    fit: float
    bootstraps: float

    @property
    def label(self) -> str:
        return f"{self.players} players x {self.games:,} games"


SIZES = (Size(50, 100_000, 0.020, 0.2), Size(200, 1_000_000, 0.4, 2.5))
SMALL = Size(10, 2_000, 0.020, 0.2)


def beside_peers(seconds: float) -> list[Figure]:
    """All figures; below one second a side, a small table, and arena-rank is not asked."""
    if seconds < 1:
        return _figures(SMALL, _ours(SMALL), None, "arena-rank is not timed below 1 CPU-s")
    return [figure for size in SIZES for figure in _figures(size, _ours(size), *_arena_rank(size))]


def tournament(players: int, games: int) -> Results:
    """Seed blocks of two games between random pairs; strengths spread by 200 Elo, the first seat is worth 40."""
    rng = np.random.default_rng(0)
    strength = rng.normal(0, 200, players) / ELO
    one = rng.integers(0, players, games // 2)
    other = (one + rng.integers(1, players, games // 2)) % players
    first, second = np.column_stack([one, other]).ravel(), np.column_stack([other, one]).ravel()
    edge = strength[first] - strength[second] + 40 / ELO
    weights = np.exp(np.stack([edge / 2, np.full(len(edge), -0.7), -edge / 2]))
    outcome = (rng.random(len(edge)) > np.cumsum(weights / weights.sum(axis=0), axis=0)[:2]).sum(axis=0)
    game = np.zeros(len(edge), dtype=np.int64)
    names = tuple([f"p{k}" for k in range(players)])
    return Results(names, ("g",), game, first, second, outcome, np.arange(len(edge)) // 2)


class _Seen(NamedTuple):
    """CPU seconds of our rounds, and of FastChat's fit and 100 bootstraps."""

    fit: list[float]
    bootstraps: list[float]
    fastchat: float
    fastchat_bootstraps: float


def _measured(size: Size) -> _Seen:
    """In this process."""
    results = tournament(size.players, size.games)
    columns = results.first, results.second, results.outcome
    fastchat_side.compute_bt(2, *[column[:2] % 2 for column in columns])  # imports are not counted
    return _Seen(
        _spent(lambda: rate(results)),
        _spent(lambda: _bootstraps(results)),
        _once(lambda: fastchat_side.compute_bt(size.players, *columns)),
        _once(lambda: fastchat_side.bootstrap(size.players, *columns, REPLICATES)),
    )


def _ours(size: Size) -> _Seen:
    """In a process of its own."""
    return _Seen(**_told([sys.executable, "-m", "benchmarks.ratings", json.dumps(size)]))


def _told(command: list[str]) -> dict[str, Any]:
    """The JSON that a process prints last. RuntimeError, with what it said, if it fails."""
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    environment = {**os.environ, **threads}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_LONGEST, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[1:3])} ended with {done.returncode}: {done.stderr[-2000:]}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def _figures(size: Size, seen: _Seen, told: dict[str, Any] | None, why: str) -> list[Figure]:
    ours, boots, fastchat, rounds = seen
    warm, replicate = (told["warm"], told["replicate"]) if told else (None, None)
    many = None if replicate is None else REPLICATES * replicate
    about = f"beside arena-rank {told['version']}, fit + sandwich (first call {told['cold']:.1f})" if told else why
    return [
        _cost(
            f"{size.label}: fit + intervals",
            ours,
            warm,
            size.fit,
            about,
        ),
        _ratio("  arena-rank's fit + sandwich", ours, warm, why),
        _ratio("  FastChat's fit, no intervals", ours, fastchat),
        _ratio("  FastChat's 100 bootstraps, its intervals", ours, rounds),
        _cost(f"{size.label}: 100 bootstraps", boots, rounds, size.bootstraps, "beside FastChat's"),
        _ratio("  FastChat's 100 bootstraps", boots, rounds),
        _ratio("  arena-rank's 100 bootstraps", boots, many, why or "100 times one replicate in a warm process"),
    ]


def _cost(work: str, ours: list[float], peer: float | None, goal: float, note: str) -> Figure:
    return Figure(work, "CPU-s", min(ours), peer, Spread.of(ours), goal, at_most=True, note=note)


def _ratio(work: str, ours: list[float], peer: float | None, note: str = "") -> Figure:
    result = None if peer is None else Spread.of([peer / spent for spent in ours])
    return Figure(work, "x", min(ours), peer, result, note=note)


def _bootstraps(results: Results) -> Floats:
    """From the columns to the replicates' parameters."""
    cells, cell = results.indexed()
    kinds = patterns(cells, cell, results.outcome, results.cluster)
    return bootstrap(fit(cells), cells, Belief.of(cells.players, cells.games), kinds, REPLICATES)


def _spent(work: Callable[[], object]) -> list[float]:
    """CPU seconds of every round, after one that is not counted."""
    work()
    return [_once(work) for _ in range(_ROUNDS)]


def _once(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _arena_rank(size: Size) -> tuple[dict[str, Any] | None, str]:
    """What arena-rank takes for the same table, or why it is not known."""
    python = Path(os.environ.get("ARENA_RATINGS_PYTHON") or ROOT / ".venv-ratings" / "bin" / "python")
    if not python.exists():
        return None, "arena-rank is not installed (make bench-ratings)"
    results = tournament(size.players, size.games)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "games.npz"
        np.savez(table, first=results.first, second=results.second, outcome=results.outcome)
        try:
            return _told([str(python), "-m", "benchmarks.rating.arena_rank_side", "--table", str(table)]), ""
        except subprocess.TimeoutExpired:
            return None, f"arena-rank was not done in {_LONGEST} s"


if __name__ == "__main__":
    print(json.dumps(_measured(Size(*json.loads(sys.argv[1])))._asdict()))
