"""Intervals hold what they say: `benchmarks/coverage.py`, small here and larger where ARENA_SCALE says so.

A share of 93 to 97 % is asked for. What a test sees scatters; it fails where the share is outside by more than three of
its own standard errors, which at the true 95 % happens once in many thousand runs. (Seeds are fixed besides.)
"""

import numpy as np
import pytest
from scipy.optimize import fmin_bfgs

from arena.tournaments.ratings.davidson import ELO
from benchmarks.coverage import (
    HIGH,
    LOW,
    SCENARIOS,
    SPREAD,
    Z95,
    Coverage,
    _endless,
    _figure,
    _half_draw,
    intervals,
    measure,
)
from benchmarks.timing import Spread


def holds(coverage: Coverage) -> bool:
    """Whether its share may be 93 to 97 %."""
    noise = 3 * (coverage.share.high - coverage.share.middle) / Z95
    return LOW - noise <= coverage.share.middle <= HIGH + noise


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_95_percent_intervals_hold_93_to_97(name: str, scale: int) -> None:
    ours, peer = measure(name, simulations=50 * scale)
    print(f"{name}: {ours} beside {peer}")
    assert ours.simulations == 50 * scale
    assert ours.share.high - ours.share.low < 0.06
    assert holds(ours)
    assert ours.half == pytest.approx(Z95 * ours.rmse, rel=0.25), "as wide as ratings are off"


def test_the_measure_can_fail() -> None:
    """Without a seat term, intervals of unbalanced seats are known to hold some 80 %."""
    ours, peer = measure("unbalanced seats", simulations=20)
    assert not holds(peer)
    assert holds(ours)
    assert peer.rmse > 1.15 * ours.rmse


def test_the_half_draw_model_is_what_it_is_called() -> None:
    rng = np.random.default_rng(0)
    first, score = rng.integers(0, 6, 400), rng.integers(0, 3, 400) / 2
    second = (first + rng.integers(1, 6, 400)) % 6

    def loss(x: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        edge = x[first] - x[second]
        return float((np.logaddexp(0, -edge) * score + np.logaddexp(0, edge) * (1 - score)).sum() + 5e-6 * (x**2).sum())

    best = np.asarray(fmin_bfgs(loss, np.zeros(6), gtol=1e-7, disp=False))
    elo, half = _half_draw(6, first, second, score)
    assert elo == pytest.approx(ELO * (best - best.mean()), abs=0.01)
    assert (half > 10).all()


def test_the_truth_under_luck_is_where_ratings_go() -> None:
    truth = np.random.default_rng(1).normal(0, SPREAD, 20)
    assert _endless(truth, 0.0) - 1000 == pytest.approx(truth - truth.mean(), abs=0.05), "without luck, the strengths"
    drawn = _endless(truth, 400.0) - 1000
    assert np.corrcoef(drawn, truth)[0, 1] > 0.999
    assert 0.4 < drawn.std() / truth.std() < 0.8, "luck draws ratings together"


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_is_what_it_says(name: str) -> None:
    made = SCENARIOS[name](np.random.default_rng(5))
    ratings = made.rate()
    off = ratings.elo - ratings.elo.mean() - made.truth + made.truth.mean()
    assert np.isfinite(ratings.half).all()
    assert np.abs(off / ratings.half).max() < 3
    first, second, score = made.rows
    assert set(score.tolist()) <= {0.0, 0.5, 1.0}
    assert (first != second).all()
    if name == "20 games a player":
        assert ratings.played.sum() == 400
    if name == "unbalanced seats":
        assert (first < 10).mean() > 0.6
    if name == "skewed pair counts":
        counts = np.bincount(np.minimum(first, second) * 20 + np.maximum(first, second))
        assert counts.max() > 50 * counts[counts > 0].min()


def test_figures_are_printed_for_all() -> None:
    figures = intervals(0.01)
    assert [figure.work for figure in figures] == list(SCENARIOS)
    for figure in figures:
        assert figure.result is not None
        assert figure.result.low <= figure.result.middle <= figure.result.high
        assert "simulations" in figure.note


def test_intervals_too_wide_are_told() -> None:
    wide = Coverage(Spread(0.99, 0.985, 0.995), 30.0, 90.0, 100)
    assert "above 0.97" in _figure("balanced", wide, wide).note
    assert "above" not in _figure("balanced", wide._replace(share=Spread(0.95, 0.94, 0.96)), wide).note
    assert not holds(wide)
