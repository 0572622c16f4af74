"""Other people's fits, where their model is ours: Bradley-Terry with half a win for a draw, no seat term, no prior."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from arena.tournaments.ratings import Results
from arena.tournaments.ratings.davidson import ELO, Cells, Prior, fit
from tests.tournaments.ratings.simulation import blocks

pytestmark = pytest.mark.oracle

Floats = NDArray[np.float64]
ROOT = Path(__file__).resolve().parent.parent.parent.parent
SEEDS = range(4)
FLAT = Prior(strength=1e7, seat=1e-3, draw=1e-6, draw_mean=-40.0)
"""No pull on strengths; no seat term and no draws, to eight digits."""


def half_draws(results: Results) -> Cells:
    """A draw is half a game won by each."""
    cells = results.cells()
    halves = cells.counts[:, [1]] / 2
    return cells._replace(counts=np.hstack([cells.counts[:, [0]] + halves, 0 * halves, cells.counts[:, [2]] + halves]))


def ours(results: Results) -> Floats:
    """Natural strengths about their mean."""
    fitted = fit(half_draws(results), FLAT).parameters
    strength = fitted[: len(results.players)]
    return np.asarray(strength - strength.mean(), dtype=np.float64)


def decided(results: Results) -> Results:
    """The games that were not drawn."""
    rows = np.flatnonzero(results.outcome != 1)
    columns = [column[rows] for column in results[2:7]]
    return Results(results.players, results.games, columns[0], columns[1], columns[2], columns[3], columns[4])


def winners(results: Results) -> list[tuple[int, int]]:
    won = results.outcome == 0
    pairs = np.where(won, results.first, results.second), np.where(won, results.second, results.first)
    return list(zip(pairs[0].tolist(), pairs[1].tolist(), strict=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_choix(seed: int) -> None:
    choix = pytest.importorskip("choix")
    results = decided(blocks(seed, 8, 400))
    theirs = choix.opt_pairwise(8, winners(results), alpha=0, method="Newton-CG", tol=1e-12)
    assert ours(results) == pytest.approx(theirs - theirs.mean(), abs=1e-6)
    iterative = choix.ilsr_pairwise(8, winners(results), alpha=0, tol=1e-10)
    assert ours(results) == pytest.approx(iterative - iterative.mean(), abs=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_evalica(seed: int) -> None:
    evalica = pytest.importorskip("evalica")
    results = blocks(seed, 8, 400)
    winner = [(evalica.Winner.X, evalica.Winner.Draw, evalica.Winner.Y)[k] for k in results.outcome]
    names = np.array(results.players)
    told = evalica.bradley_terry(
        names[results.first].tolist(), names[results.second].tolist(), winner, tolerance=1e-12, limit=100_000
    )
    theirs = np.log(np.array([told.scores[name] for name in results.players]))
    assert ours(results) == pytest.approx(theirs - theirs.mean(), abs=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_arena_rank(seed: int, tmp_path: Path) -> None:
    """Run by an interpreter of its own (`make bench-ratings` makes it): its pins are not ours."""
    python = Path(os.environ.get("ARENA_RATINGS_PYTHON") or ROOT / ".venv-ratings" / "bin" / "python")
    if not python.exists():
        pytest.skip("arena-rank has an environment of its own, and it is not there: make bench-ratings")
    results = blocks(seed, 8, 400)
    table = tmp_path / "games.npz"
    np.savez(table, first=results.first, second=results.second, outcome=results.outcome)
    command = [str(python), "-m", "benchmarks.rating.arena_rank_side", "--table", str(table), "--exact"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    theirs = np.array([told["ratings"][name] for name in results.players])
    assert ELO * ours(results) == pytest.approx(theirs - theirs.mean(), abs=0.01)
