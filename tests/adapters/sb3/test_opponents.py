"""Which opponent the pool draws, and what it remembers."""

import json
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

pytest.importorskip("sb3_contrib")

from arena.adapters.sb3 import SAMPLERS, OpponentPool
from arena.adapters.sb3.opponents import Opponent, Record, Result
from arena.agent import Agent
from arena.agents.simple import FirstAgent


def pool_of(mixture: Any, steps: int = 4, **arguments: Any) -> OpponentPool:
    pool = OpponentPool(mixture, **arguments)
    for step in range(steps):
        pool.add(step * 100, FirstAgent())
    return pool


def shares(pool: OpponentPool, draws: int = 6000) -> dict[str, float]:
    return {key: n / draws for key, n in Counter(pool.draw().key for _ in range(draws)).items()}


def test_latest_is_the_last_snapshot() -> None:
    assert shares(pool_of(["latest"]), 50) == {"step 300": 1.0}


def test_uniform_draws_all_alike() -> None:
    assert shares(pool_of(["uniform"])) == pytest.approx({f"step {n}": 0.25 for n in (0, 100, 200, 300)}, abs=0.03)


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_prioritised_draws_by_what_is_not_beaten(power: float) -> None:
    pool = pool_of(["prioritised"], 3, power=power)
    pool.records = {
        "step 0": Record(wins=999),
        "step 100": Record(wins=500, losses=499),
        "step 200": Record(losses=999),
    }
    scores = [record.score for record in pool.records.values()]
    assert scores == pytest.approx([0.9995, 0.5005, 0.0005])
    weights = [(1 - score) ** power for score in scores]
    expected = {f"step {100 * i}": weight / sum(weights) for i, weight in enumerate(weights)}
    found = shares(pool)
    assert {key: found.get(key, 0.0) for key in expected} == pytest.approx(expected, abs=0.03)


def test_prioritised_knows_nothing_of_an_unmet_one_and_never_runs_out_of_weight() -> None:
    pool = pool_of(["prioritised"], 2)
    assert pool.weights("prioritised") == [0.25, 0.25]
    pool.records = {"step 0": Record(wins=10**9), "step 100": Record(wins=10**9)}
    assert min(pool.weights("prioritised")) > 0
    assert shares(pool) == pytest.approx({"step 0": 0.5, "step 100": 0.5}, abs=0.03)


def test_near_draws_those_of_the_learners_strength() -> None:
    pool = pool_of(["near"], 3, near=100.0)
    pool.ratings, pool.rating = {"step 0": 1000.0, "step 100": 1200.0, "step 200": 1300.0}, 1300.0
    assert pool.weights("near") == pytest.approx([0.0111, 0.6065, 1.0], abs=1e-3)
    assert shares(pool)["step 200"] == pytest.approx(0.618, abs=0.03)
    pool.rating = 1e6  # far from everybody: the nearest one, not nobody
    assert pool.weights("near")[2] == 1.0
    pool.ratings, pool.rating = {}, None
    assert pool.weights("near") == [1.0, 1.0, 1.0]


def test_a_mixture_is_kept_to_by_weight() -> None:
    pool = pool_of({"latest": 2, "uniform": 1, "random": 1, "minimax?depth=1": 4})
    found = shares(pool)
    assert found["minimax?depth=1"] == pytest.approx(0.5, abs=0.03)
    assert found["random"] == pytest.approx(0.125, abs=0.03)
    assert found["step 300"] == pytest.approx(0.25 + 0.125 / 4, abs=0.03)
    assert pool.anchors.keys() == {"random", "minimax?depth=1"}


def test_until_there_is_a_snapshot_the_rest_of_the_mixture_plays() -> None:
    assert shares(OpponentPool({"latest": 9, "first": 1}), 20) == {"first": 1.0}
    pool = OpponentPool(["latest"])
    assert shares(pool, 20) == {"random": 1.0}
    pool.record(pool.draw(), 0, 1.0)
    assert pool.recent == {("random", 0, Result.WIN): 1}


def test_the_same_seed_draws_the_same() -> None:
    pools = [pool_of(["uniform"], seed=seed) for seed in (1, 1, 2)]
    keys = [[pool.draw().key for _ in range(30)] for pool in pools]
    assert keys[0] == keys[1] != keys[2]


def test_games_are_remembered_by_opponent_and_seat() -> None:
    pool = pool_of(["uniform"], 2)
    first, second = pool.snapshots
    for opponent, seat, score in [(first, 0, 1.0), (first, 0, 1.0), (first, 1, 0.5), (second, 1, 0.0)]:
        pool.record(opponent, seat, score)
    assert pool.records == {"step 0": Record(2, 1, 0), "step 100": Record(0, 0, 1)}
    assert pool.records["step 0"].games == 3
    assert pool.records["step 0"].mean == pytest.approx(2.5 / 3)
    assert Record().mean == 0
    taken = pool.take()
    assert taken == {
        ("step 0", 0, Result.WIN): 2,
        ("step 0", 1, Result.DRAW): 1,
        ("step 100", 1, Result.LOSS): 1,
    }
    assert pool.take() == {}
    assert pool.records["step 0"].games == 3


def test_old_snapshots_are_thinned_ever_more_with_age() -> None:
    pool = OpponentPool(["uniform"], keep=8)
    gone: list[Opponent] = []
    for step in range(0, 100_000, 1000):
        gone += pool.add(step, FirstAgent())
    steps = [known.step or 0 for known in pool.snapshots]
    assert len(steps) == 8
    assert (steps[0], steps[-1]) == (0, 99_000)
    gaps = [b - a for a, b in pairwise(steps)]
    assert gaps[-1] <= 2000
    assert max(gaps[:3]) >= 8 * gaps[-1]
    assert len(gone) == 92
    assert steps == sorted(steps)


def test_a_thinned_snapshot_is_forgotten_but_its_last_games_still_count() -> None:
    pool = pool_of(["uniform"], 3, keep=3)
    middle = pool.snapshots[1]
    pool.record(middle, 0, 1.0)
    assert pool.add(10_000, FirstAgent()) == [middle]
    assert middle.key not in pool.records
    pool.record(middle, 0, 0.0)  # a game that was in progress
    assert middle.key not in pool.records
    assert pool.take() == {(middle.key, 0, Result.WIN): 1, (middle.key, 0, Result.LOSS): 1}


def test_a_pool_goes_on_as_it_was() -> None:
    pool = pool_of({"uniform": 1, "prioritised": 1, "random": 1}, seed=5)
    for _ in range(20):
        pool.record(pool.draw(), 1, 0.5)
    pool.ratings, pool.rating = {"random": 1000.0}, 1100.5
    state = json.loads(json.dumps(pool.state()))
    other = OpponentPool({"uniform": 1, "prioritised": 1, "random": 1}, seed=99)
    agents: dict[int, Agent] = {}
    other.restore(state, lambda step: agents.setdefault(step, FirstAgent()))
    assert agents.keys() == {0, 100, 200, 300}
    assert (other.records, other.recent, other.ratings, other.rating) == (
        pool.records, pool.recent, {"random": 1000.0}, 1100.5,
    )  # fmt: skip
    assert [other.draw().key for _ in range(50)] == [pool.draw().key for _ in range(50)]


@pytest.mark.parametrize(
    ("mixture", "arguments", "said"),
    [
        ({}, {}, "the mixture is empty: name samplers (latest, near, prioritised, uniform) or agents"),
        ({"latest": 0}, {}, "weight of latest: allowed are finite numbers above 0, got 0"),
        ({"latest": -1.0}, {}, "weight of latest"),
        ({"latest": float("nan")}, {}, "weight of latest"),
        ({"latest": float("inf")}, {}, "weight of latest"),
        ({"latest": True}, {}, "weight of latest"),
        ({"latest": "2"}, {}, "weight of latest"),
        (["lately"], {}, "unknown agent 'lately'"),
        (["minimax?deep=2"], {}, "unknown option"),
        (["latest"], {"keep": 1}, "keep=1: allowed are numbers from 2"),
        (["latest"], {"keep": 2.5}, "keep=2.5"),
        (["latest"], {"power": 0}, "power"),
        (["latest"], {"near": -3}, "near"),
    ],
)
def test_odd_arguments_name_what_is_allowed(mixture: Any, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - said below
        OpponentPool(mixture, **arguments)
    assert said in str(caught.value)


def test_odd_calls_are_refused() -> None:
    pool = pool_of(["latest"])
    with pytest.raises(ValueError, match="there is a snapshot of step 100"):
        pool.add(100, FirstAgent())
    with pytest.raises(ValueError, match="sampler='newest': allowed are latest, near, prioritised, uniform"):
        pool.weights("newest")
    assert sorted(SAMPLERS) == list(SAMPLERS)
