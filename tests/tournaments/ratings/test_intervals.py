"""One way of making intervals, and one of anchoring, whatever the model."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from arena.tournaments.ratings import Ratings, Results, rate
from arena.tournaments.ratings.pairs import Method
from arena.tournaments.ratings.ranked import RankedResults, rate_ranked
from arena.tournaments.ratings.tasks import TaskResults, rate_tasks
from arena.tournaments.ratings.teams import TeamResults, rate_teams

NAMES = tuple([f"p{k}" for k in range(6)])
Rate = Callable[..., Ratings]


def pairs(rng: np.random.Generator, games: int) -> Results:
    rows = []
    for seed in range(games):
        a, b = rng.permutation(6)[:2]
        rows.append(("g", NAMES[a], NAMES[b], ("first", "draw", "second")[rng.integers(3)], seed // 2))
    return Results.of(rows, NAMES)


def ranked(rng: np.random.Generator, games: int) -> RankedResults:
    rows = [("g", [NAMES[k] for k in rng.permutation(6)[:3]], rng.integers(0, 4, 3), s // 2) for s in range(games)]
    return RankedResults.of([(g, a, r.tolist(), s) for g, a, r, s in rows], NAMES)


def teams(rng: np.random.Generator, games: int) -> TeamResults:
    rows = []
    for seed in range(games):
        order = [NAMES[k] for k in rng.permutation(6)]
        sides = {"red": order[:2], "blue": order[2:4]}
        rows.append(("g", sides, ("red", "blue", "draw")[rng.integers(3)], seed // 2))
    return TeamResults.of(rows, NAMES)


def tasks(rng: np.random.Generator, games: int) -> TaskResults:
    hard = rng.normal(0, 1, games)
    solved = rng.random((games, 6)) < 1 / (1 + np.exp(hard[:, None] - np.linspace(-1, 1, 6)))
    return TaskResults.of([("g", NAMES[k], t, float(solved[t, k])) for t in range(games) for k in range(6)], NAMES)


MODELS: dict[str, tuple[Callable[[np.random.Generator, int], Any], Rate]] = {
    "pairs": (pairs, rate),
    "ranked": (ranked, rate_ranked),
    "teams": (teams, rate_teams),
    "tasks": (tasks, rate_tasks),
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> tuple[Any, Rate]:
    simulated, rated = MODELS[request.param]
    return simulated(np.random.default_rng(5), 150), rated


def test_the_bootstrap_and_the_sandwich_agree(model: tuple[Any, Rate]) -> None:
    results, rated = model
    one, other = rated(results, "bootstrap"), rated(results, "clustered")
    assert (one.method, other.method) == ("bootstrap", "clustered")
    assert one.elo.tolist() == other.elo.tolist()
    assert np.mean(one.half / other.half) == pytest.approx(1, abs=0.12)


def test_another_method_is_an_error(model: tuple[Any, Rate]) -> None:
    results, rated = model
    with pytest.raises(ValueError, match=r"method 'jackknife': allowed are auto, fisher, clustered, bootstrap"):
        rated(results, "jackknife")


def test_auto_is_clustered_from_five_clusters_on(model: tuple[Any, Rate]) -> None:
    results, rated = model
    assert rated(results).method == "clustered"
    assert rated(results).half.tolist() == rated(results, "clustered").half.tolist()


@pytest.mark.parametrize("name", MODELS)
def test_few_clusters_get_the_wider_interval(name: str) -> None:
    simulated, rated = MODELS[name]
    results = simulated(np.random.default_rng(0), 4)
    auto, curvature = rated(results), rated(results, "fisher")
    assert auto.method == "fisher"
    assert (np.diag(auto.covariance) >= 0).all()
    assert auto.half.max() >= 0.999 * curvature.half.max()


@pytest.mark.parametrize("method", ["auto", "fisher", "clustered", "bootstrap"])
def test_a_hard_anchor_stays_and_differences_with_it(model: tuple[Any, Rate], method: Method) -> None:
    results, rated = model
    free, held = rated(results, method), rated(results, method, anchors={"p2": 1500.0})
    assert held.elo[2] == pytest.approx(1500)
    assert held.half[2] == pytest.approx(0, abs=1e-6)
    assert "anchor" in held.flags[2]
    assert not any("anchor" in said for said in (*held.flags[:2], *held.flags[3:]))
    assert held.elo - held.elo.mean() == pytest.approx(free.elo - free.elo.mean(), abs=1), "one anchor only shifts"
    if method != "bootstrap":
        assert held.difference("p0", "p1")[1] == pytest.approx(free.difference("p0", "p1")[1], rel=0.02)
        assert held.half[0] == pytest.approx(free.difference("p0", "p2")[1], rel=0.02)


def test_two_hard_anchors_stay_whatever_the_results(model: tuple[Any, Rate]) -> None:
    results, rated = model
    held = rated(results, anchors={"p0": 2000.0, "p5": 1000.0})
    assert held.elo[[0, 5]] == pytest.approx([2000, 1000])
    assert held.half[[0, 5]] == pytest.approx([0, 0], abs=1e-6)
    assert np.isfinite(held.covariance).all()


def test_a_soft_anchor_moves_with_the_results(model: tuple[Any, Rate]) -> None:
    results, rated = model
    free = rated(results)
    known: Mapping[str, Any] = {"p0": (1400.0, 1.0), "p1": (1400.0 - 300, 100.0)}
    soft = rated(results, anchors=known)
    assert soft.elo[0] == pytest.approx(1400, abs=5)
    gap = soft.elo[0] - soft.elo[1]
    seen = free.elo[0] - free.elo[1]
    assert min(seen, 300) <= gap <= max(seen, 300), "between what was known and what was seen"
    assert 0 < soft.half[0] < 20


def test_an_anchor_that_is_not_there_is_an_error(model: tuple[Any, Rate]) -> None:
    results, rated = model
    with pytest.raises(ValueError, match="anchor 'nobody'"):
        rated(results, anchors={"nobody": 1000.0})
