from typing import Any

import numpy as np
import pytest

from arena.tournaments.ratings import CENTER, Results, rate
from arena.tournaments.ratings.davidson import ELO, Prior
from tests.tournaments.ratings.simulation import blocks


@pytest.mark.parametrize("method", ["fisher", "clustered", "bootstrap"])
def test_one_hard_anchor_moves_the_table_and_nothing_else(method: Any) -> None:
    results = blocks(1, 6, 120, kinds=2)
    free, held = rate(results, method), rate(results, method, anchors={"p2": 2000})
    assert held.elo - held.elo[2] == pytest.approx(free.elo - free.elo[2], abs=1e-5)
    assert (held.elo[2], held.half[2]) == (pytest.approx(2000), 0)
    loose = 1e-6 if method != "bootstrap" else 0.15
    assert held.seats["g1"]["first seat"] == pytest.approx(free.seats["g1"]["first seat"], rel=loose, abs=1e-5)
    for one in held.players:
        assert held.difference(one, "p0") == pytest.approx(free.difference(one, "p0"), rel=loose, abs=1e-3)


def test_intervals_are_relative_to_the_anchor() -> None:
    """All of them hold the anchor's own uncertainty: wider intervals, and no order less certain for that."""
    results = blocks(1, 6, 120)
    free, held = rate(results), rate(results, anchors={"p2": 2000})
    others = [k for k in range(6) if k != 2]
    assert (held.half[others] > free.half[others]).all()
    for k in others:
        assert held.half[k] == pytest.approx(free.difference(free.players[k], "p2")[1], rel=1e-6)
    assert held.standing.beats == pytest.approx(free.standing.beats, abs=1e-6)
    assert abs(held.standing.low - free.standing.low).max() <= 1
    assert held.flags[2] == ("anchor",)


def test_several_hard_anchors_say_what_lies_between_them() -> None:
    results = blocks(4, 5, 400)
    free = rate(results)
    apart = {"p0": 1500.0, "p1": 1500.0 + float(free.elo[1] - free.elo[0]) + 100}
    held = rate(results, anchors=apart)
    assert held.elo[:2].tolist() == pytest.approx(list(apart.values()))
    assert held.half[:2].tolist() == [0, 0]
    assert held.elo[2] - 1500 == pytest.approx(free.elo[2] - free.elo[0] + 50, abs=30)
    everyone = rate(results, anchors=dict.fromkeys(results.players, 1234))
    assert everyone.elo.tolist() == pytest.approx([1234] * 5)
    assert everyone.half.tolist() == [0] * 5
    assert np.isfinite(everyone.standing.beats).all()


def test_a_soft_anchor_is_an_observation() -> None:
    results = blocks(1, 6, 120)
    free, hard = rate(results, "fisher"), rate(results, "fisher", anchors={"p2": 2000})
    tight, wide = [rate(results, "fisher", anchors={"p2": (2000, sd)}) for sd in (0.01, 50)]
    assert tight.elo == pytest.approx(hard.elo, abs=0.01)
    assert tight.half == pytest.approx(hard.half, abs=0.05)
    assert wide.elo == pytest.approx(hard.elo, abs=1e-4), "one alone is met exactly"
    assert wide.half[2] == pytest.approx(1.96 * 50, rel=1e-3)
    both = rate(results, "fisher", anchors={"p2": (2000, 50), "p3": (2000, 50)})
    gap, seen = float(both.elo[3] - both.elo[2]), float(free.elo[3] - free.elo[2])
    assert 0 < gap / seen < 1, "games and anchors meet between"
    assert (both.elo[2] + both.elo[3]) / 2 == pytest.approx(2000, abs=0.01)


def test_soft_anchors_are_the_posterior_s() -> None:
    """Two players by hand: the mode of likelihood, the centred prior and two normal observations."""
    from scipy.optimize import minimize

    rows = [("g", "a", "b", "first", k) for k in range(30)] + [("g", "b", "a", "first", 30 + k) for k in range(15)]
    anchors = {"a": (1100.0, 80.0), "b": (1050.0, 40.0)}
    prior = Prior()

    def loss(x: Any) -> float:
        theta, seat, draw = x[:2], x[2], x[3]
        total = 0.5 * ((theta - theta.mean()) ** 2).sum() / (prior.strength / ELO) ** 2
        total += 0.5 * (seat / (prior.seat / ELO)) ** 2 + 0.5 * ((draw - prior.draw_mean) / prior.draw) ** 2
        for k, (elo, sd) in enumerate(anchors.values()):
            total += 0.5 * ((CENTER + ELO * theta[k] - elo) / sd) ** 2
        for one, times in ((0, 30), (1, 15)):
            d = theta[one] - theta[1 - one] + seat
            total -= times * (d / 2 - np.log(np.exp(d / 2) + np.exp(draw) + np.exp(-d / 2)))
        return float(total)

    found = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-8})
    rated = rate(Results.of(rows), anchors=anchors)
    assert rated.elo == pytest.approx(CENTER + ELO * found.x[:2], abs=0.01)


def test_groups_without_an_anchor_keep_their_mean() -> None:
    rows = [("g", a, b, "first", k) for k in range(20) for a, b in (("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"))]
    rated = rate(Results.of(rows), anchors={"a": 1700})
    assert rated.elo == pytest.approx([1700, 1700, CENTER, CENTER])
    assert rated.half[0] == 0
    assert (rated.half[1:] > 0).all()


def test_an_anchor_that_has_not_played() -> None:
    rated = rate(Results.of([("g", "a", "b", "draw", k) for k in range(20)], ["c"]), anchors={"c": 900, "a": 1100})
    assert rated.elo == pytest.approx([900, 1100, 1100])
    assert rated.flags[0] == ("no games", "anchor")


def test_other_anchors_far_off_end_as_soon() -> None:
    results = blocks(2, 4, 50)
    rated = rate(results, anchors={"p0": -20_000, "p1": (20_000, 10)})
    assert np.isfinite(rated.elo).all()
    assert np.isfinite(rated.covariance).all()


@pytest.mark.parametrize(
    ("anchors", "message"),
    [
        ({"zed": 1000}, "anchor 'zed': allowed are 'p0', 'p1'"),
        ({"p0": float("nan")}, "anchor 'p0' at nan: allowed are"),
        ({"p0": 1e9}, "anchor 'p0' at 1000000000.0: allowed are -100000 to 100000"),
        ({"p0": (1000, 0)}, "standard deviation 0: allowed are numbers above 0"),
        ({"p0": (1000, -5)}, "standard deviation -5"),
        ({"p0": (1000, float("nan"))}, "standard deviation nan"),
    ],
)
def test_anchors_that_cannot_be_meant(anchors: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rate(blocks(1, 2, 5), anchors=anchors)
