import numpy as np
import pytest
from numpy.typing import NDArray

from arena.tournaments.ratings import CENTER, Results, rate, t_quantile
from arena.tournaments.ratings.davidson import ELO, Prior, fit
from arena.tournaments.ratings.sandwich import Clusters, clustered
from tests.tournaments.ratings.simulation import blocks, picked

Floats = NDArray[np.float64]


def estimated(results: Results) -> Floats:
    cells, cell = results.indexed()
    clusters = Clusters.find(cells, cell, results.cluster, results.times)
    return clustered(fit(cells), cells, cell, results.outcome, clusters, results.weight)


def plainly(results: Results) -> Floats:
    """The same by its definition, cluster by cluster, from each row's score and information."""
    cells, n, g = results.cells(), len(results.players), len(results.games)
    fitted = fit(cells)
    x, bread = fitted.parameters, np.linalg.inv(fitted.hessian)
    scores: dict[int, Floats] = {}
    leverage: dict[int, float] = {}
    times: dict[int, float] = {}
    met: dict[int, set[tuple[int, int]]] = {}
    for row, (game, first, second, outcome, cluster) in enumerate(zip(*results[2:7], strict=True)):
        basis = np.zeros((2, n + 2 * g))
        basis[0, [first, second, n + game]] = 1, -1, 1
        basis[1, n + g + game] = 1
        features = np.array([[0.5, 0], [0, 1], [-0.5, 0]])
        p = np.exp(features @ basis @ x)
        p /= p.sum()
        told = 1.0 if results.weight is None else results.weight[row]
        spread = features.T @ np.diag(p) @ features - np.outer(p @ features, p @ features)
        number = int(cluster)
        scores[number] = scores.get(number, np.zeros(n + 2 * g)) + told * (features[outcome] - p @ features) @ basis
        leverage[number] = leverage.get(number, 0.0) + told * float(np.trace(bread @ basis.T @ spread @ basis))
        times[number] = 1.0 if results.times is None else results.times[row]
        met.setdefault(number, set()).add((min(first, second), max(first, second)))
    meat = np.zeros((n + 2 * g, n + 2 * g))
    for c, s in scores.items():
        differences = max(min(len({player for pair in met[c] for player in pair}) - 1, len(met[c])), 1)
        wider = t_quantile(int(sum(times.values())) - 1) / 1.959963984540054 if differences > 1 else 1.0
        meat += times[c] * np.outer(s, s) * wider**2 / max(1 - leverage[c] / differences, 0.1)
    found: Floats = bread @ (meat + np.diag(fitted.precision)) @ bread
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", ["blocks", "single games", "any clusters", "weights and times", "numbers far apart"])
def test_is_what_the_definition_says(shape: str, seed: int) -> None:
    results, rng = blocks(seed, 6, 60, kinds=2), np.random.default_rng(seed)
    if shape == "single games":
        results = results._replace(cluster=rng.permutation(120))
    if shape == "any clusters":
        results = results._replace(cluster=rng.integers(0, 25, 120))
    if shape == "weights and times":
        weight, times = rng.choice([0.0, 0.5, 1.0], 120), np.repeat(rng.integers(1, 5, 60), 2).astype(np.float64)
        results = results._replace(weight=weight, times=times)
    if shape == "numbers far apart":
        results = results._replace(cluster=results.cluster * 10**12)
    expected = plainly(results)
    assert estimated(results) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert np.linalg.eigvalsh(expected).min() > 0


@pytest.mark.parametrize("seed", range(3))
def test_times_are_clusters_written_out(seed: int) -> None:
    results = blocks(seed, 5, 40)
    often = np.random.default_rng(seed).integers(1, 6, 40)
    short = results._replace(times=np.repeat(often, 2).astype(np.float64))
    copies = np.repeat(np.arange(40), often)
    rows = np.add.outer(2 * copies, np.arange(2)).ravel()
    long = picked(results, rows)._replace(cluster=np.repeat(np.arange(len(copies)), 2))
    one, other = rate(short), rate(long)
    assert one.elo == pytest.approx(other.elo)
    assert one.half == pytest.approx(other.half)
    assert (one.wins.tolist(), one.draws.tolist()) == (other.wins.tolist(), other.draws.tolist())
    assert one.method == other.method
    assert one.flags == other.flags


def test_rows_in_any_order() -> None:
    results = blocks(1, 6, 80, kinds=3, luck=200)
    shuffled = picked(results, np.random.default_rng(0).permutation(160))
    assert estimated(shuffled) == pytest.approx(estimated(results))


def test_where_the_model_is_true_scatter_and_curvature_agree() -> None:
    results = blocks(4, 6, 30_000)
    curvature = fit(results.cells()).inverse()
    assert np.diag(estimated(results)) == pytest.approx(np.diag(curvature), rel=0.05)


def test_players_of_few_clusters_get_the_wider_interval() -> None:
    many, new = blocks(2, 5, 300), blocks(3, 2, 2)
    late = new._replace(players=(*many.players, "new"), first=new.first * 5, second=new.second * 5)
    columns = [np.concatenate(pair) for pair in zip(many[2:6], late[2:6], strict=True)]
    cluster = np.append(many.cluster, late.cluster + 300)
    both = Results(late.players, many.games, columns[0], columns[1], columns[2], columns[3], cluster)
    auto, scatter, curvature = [rate(both, how) for how in ("auto", "clustered", "fisher")]
    assert auto.method == "clustered"
    assert auto.half[1:5] == pytest.approx(scatter.half[1:5])
    assert auto.half[5] == pytest.approx(max(scatter.half[5], curvature.half[5]))
    assert "few games" in auto.flags[5]
    few = rate(new)
    assert few.method == "fisher"
    assert (few.half >= rate(new, "fisher").half - 1e-9).all()
    assert (few.half >= rate(new, "clustered").half - 1e-9).all()


def test_few_seeds_played_very_often_prove_little() -> None:
    """A thousand games on three seeds: what the seeds decide is not known a thousand times."""
    results = blocks(5, 2, 3, luck=600)
    many = picked(results, np.tile(np.arange(6), 200))
    assert rate(many).half.max() > 4 * rate(many, "fisher").half.max()


def test_a_million_games_of_one_pair() -> None:
    results = picked(blocks(0, 2, 50), np.tile(np.arange(100), 10_000))
    results = results._replace(cluster=np.arange(1_000_000) // 2)
    rated = rate(results)
    assert np.isfinite(rated.elo).all()
    assert 0 < rated.half.max() < 1
    assert rated.played.tolist() == [1_000_000, 1_000_000]


def compared(rng: np.random.Generator, strength: Floats, seeds: int) -> Results:
    """All agents on the same seeds, each pair by who did better there."""
    one, other = np.triu_indices(len(strength), 1)
    scores = strength / ELO + rng.gumbel(size=(seeds, len(strength)))
    outcome = np.where(scores[:, one] > scores[:, other], 0, 2).ravel()
    names, number = tuple([f"p{k}" for k in range(len(strength))]), seeds * len(one)
    game = np.zeros(number, dtype=np.int64)
    columns = np.tile(one, seeds), np.tile(other, seeds), outcome, np.repeat(np.arange(seeds), len(one))
    return Results(names, ("g",), game, *columns)


def same_seeds(simulations: int, agents: int, seeds: int) -> tuple[float, float]:
    """The share of true ratings inside their 95 % intervals, and the mean half width beside the ratings' scatter."""
    inside, halves, off = [], [], []
    for number in range(simulations):
        rng = np.random.default_rng(number)
        strength = rng.normal(0, 140, agents)
        rated = rate(compared(rng, strength, seeds), prior=Prior(seat=1e-6))
        gap = rated.elo - CENTER - (strength - strength.mean())
        inside += (np.abs(gap) <= rated.half).tolist()
        halves.append(float(rated.half.mean()))
        off.append(gap)
    return float(np.mean(inside)), float(np.mean(halves) / np.std(off) / 1.96)


@pytest.mark.parametrize(("agents", "seeds"), [(12, 10), (20, 20)])
def test_seeds_that_all_agents_met_give_intervals_of_the_right_width(agents: int, seeds: int) -> None:
    """Each difference has its own part of a seed: held to be the whole seed's, intervals are three times as wide."""
    inside, wide = same_seeds(12, agents, seeds)
    assert inside > 0.88
    assert 0.85 < wide < 1.5


@pytest.mark.slow
@pytest.mark.parametrize(("agents", "seeds"), [(3, 12), (6, 10), (12, 10), (12, 40), (25, 20)])
def test_intervals_of_agents_on_the_same_seeds_hold(agents: int, seeds: int, scale: int) -> None:
    inside, wide = same_seeds(40 * scale, agents, seeds)
    print(f"{agents} agents, {seeds} seeds: {inside:.3f}, width {wide:.2f}")
    assert 0.92 < inside < 0.98
