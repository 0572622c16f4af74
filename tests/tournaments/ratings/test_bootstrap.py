from collections import Counter

import numpy as np
import pytest

from arena.tournaments.ratings import Results, rate
from arena.tournaments.ratings.bootstrap import patterns
from tests.tournaments.ratings.simulation import blocks, picked


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weighed", [False, True])
def test_patterns_are_the_kinds_of_clusters(seed: int, weighed: bool) -> None:
    results, rng = blocks(seed, 3, 200, kinds=2), np.random.default_rng(seed)
    results = results._replace(cluster=rng.integers(0, 150, 400), times=None)
    if weighed:
        often = rng.integers(1, 4, 150)[results.cluster].astype(np.float64)
        results = results._replace(weight=rng.choice([0.0, 0.25, 1.0], 400), times=often)
    cells, cell = results.indexed()
    found = patterns(cells, cell, results.outcome, results.cluster, results.weight, results.times)
    rows: dict[int, list[tuple[int, float]]] = {}
    kinds = (results.outcome * len(cells.game) + cell).tolist()
    weights = [1.0] * 400 if results.weight is None else results.weight.tolist()
    for number, kind, weight in zip(results.cluster.tolist(), kinds, weights, strict=True):
        rows.setdefault(number, []).append((kind, weight))
    expected: Counter[tuple[tuple[int, float], ...]] = Counter()
    for number, row in rows.items():
        times = 1 if results.times is None else round(float(results.times[results.cluster == number][0]))
        expected[tuple(sorted(row))] += times
    listed: list[list[tuple[int, float]]] = [[] for _ in found.times]
    told = np.ones(len(found.kind)) if found.weight is None else found.weight
    for pattern, kind, weight in zip(found.pattern.tolist(), found.kind.tolist(), told.tolist(), strict=True):
        listed[pattern].append((kind, weight))
    assert Counter({tuple(sorted(row)): int(n) for row, n in zip(listed, found.times, strict=True)}) == expected


@pytest.mark.parametrize("luck", [0.0, 400.0])
def test_agrees_with_the_sandwich_where_there_are_many_clusters(luck: float) -> None:
    results = blocks(3, 8, 3000, kinds=2, luck=luck)
    scatter, drawn = rate(results, "clustered"), rate(results, "bootstrap")
    assert drawn.method == "bootstrap"
    assert (drawn.half / scatter.half).mean() == pytest.approx(1, abs=0.06)
    assert drawn.elo.tolist() == scatter.elo.tolist()
    assert [s["first seat"][1] for s in drawn.seats.values()] == pytest.approx(
        [s["first seat"][1] for s in scatter.seats.values()], rel=0.2
    )


def test_agrees_with_a_bootstrap_cluster_by_cluster() -> None:
    results, rng = blocks(7, 4, 250, luck=300), np.random.default_rng(1)
    drawn = []
    for _ in range(150):
        chosen = rng.integers(0, 250, 250)
        again = picked(results, np.add.outer(2 * chosen, np.arange(2)).ravel())
        drawn.append(rate(again, "fisher").elo)
    assert rate(results, "bootstrap").half == pytest.approx(1.96 * np.std(drawn, axis=0), rel=0.25)


def test_what_only_the_prior_knows_keeps_its_width() -> None:
    """No replicate has another result than wins for the undefeated; their interval is no point for that."""
    rows = [("g", *pair, "first", k) for k in range(200) for pair in (("a", "b"), ("a", "c"))]
    rows += [("g", "b", "c", ("first", "second")[k % 2], 200 + k) for k in range(200)]
    rated = rate(Results.of(rows), "bootstrap")
    assert rated.half[0] > 100
    assert np.isfinite(rated.covariance).all()


def test_the_same_seed_draws_the_same() -> None:
    results = blocks(2, 5, 60)
    assert rate(results, "bootstrap").half.tolist() == rate(results, "bootstrap").half.tolist()
    assert np.isfinite(rate(blocks(1, 2, 1), "bootstrap", replicates=20).half).all()
