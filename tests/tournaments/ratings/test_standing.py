import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from arena.tournaments.ratings import rate, standing
from arena.tournaments.ratings.standing import _cliques, _letter
from tests.tournaments.ratings.simulation import blocks

Floats = NDArray[np.float64]


def test_by_hand() -> None:
    """Two equals far above a third: each is first every other time."""
    told = standing(np.array([1300.0, 1000.0, 1300.0]), np.diag([100.0, 100.0, 100.0]))
    assert told.low.tolist() == [1, 3, 1]
    assert told.high.tolist() == [2, 3, 2]
    assert told.best == pytest.approx([0.5, 0, 0.5], abs=0.06)
    assert told.beats[0].tolist() == pytest.approx([0.5, 1, 0.5])
    assert told.letters == ("a", "b", "a")


def test_probabilities_are_the_normal_s() -> None:
    covariance = np.array([[900.0, 300.0], [300.0, 400.0]])
    told = standing(np.array([30.0, 0.0]), covariance)
    assert told.beats[0, 1] == pytest.approx(0.87159, abs=1e-4)  # Phi(30 / sqrt(900 + 400 - 2 * 300))
    assert told.beats[0, 1] + told.beats[1, 0] == pytest.approx(1)
    assert told.best[0] == pytest.approx(told.beats[0, 1], abs=0.04)


def test_ranks_are_those_of_correlated_ratings() -> None:
    """Both ratings are very uncertain, their difference is not."""
    told = standing(np.array([10.0, 0.0]), np.array([[1e4, 1e4 - 1], [1e4 - 1, 1e4]]))
    assert told.low.tolist() == told.high.tolist() == [1, 2]
    assert told.letters == ("a", "b")


def test_what_is_known_exactly() -> None:
    told = standing(np.array([5.0, 5.0, 1.0]), np.zeros((3, 3)))
    assert told.beats.tolist() == [[0.5, 0.5, 1], [0.5, 0.5, 1], [0, 0, 0.5]]
    assert told.letters == ("a", "a", "b")
    assert told.high[2] == told.low[2] == 3


def test_groups_stand_for_themselves() -> None:
    told = standing(np.array([0.0, 2000.0, 1000.0, 0.0]), np.eye(4), np.array([0, 1, 0, 1]))
    assert told.low.tolist() == told.high.tolist() == [2, 1, 1, 2]
    assert told.best.tolist() == [0, 1, 1, 0]
    assert told.beats[0].tolist() == pytest.approx([0.5, 0.5, 0, 0.5])
    assert len(set(told.letters)) == 4, "players of different groups share no letter"


@given(st.integers(0, 10_000), st.integers(1, 12), st.sampled_from([0.2, 1.0, 5.0]))
@settings(max_examples=40, deadline=None)
def test_what_always_holds(seed: int, n: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    root = rng.normal(0, noise, (n, n))
    mean = rng.normal(0, 3, n)
    told = standing(mean, root @ root.T)
    order = np.argsort(-mean)
    assert (told.low >= 1).all()
    assert (told.high <= n).all()
    assert (told.low <= told.high).all()
    assert told.best.sum() == pytest.approx(1)
    assert told.beats + told.beats.T == pytest.approx(np.ones((n, n)))
    assert (told.beats[order[0]] >= 0.5 - 1e-12).all()
    assert all(told.letters)
    assert told.letters[order[0]].startswith("a")
    assert standing(mean, root @ root.T).low.tolist() == told.low.tolist(), "the same draws every time"


@given(st.integers(0, 10_000), st.integers(1, 14), st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_cliques_cover_what_is_alike_and_nothing_else(seed: int, n: int, share: float) -> None:
    drawn = np.random.default_rng(seed).random((n, n)) < share
    alike = np.triu(drawn, 1)
    alike = alike | alike.T
    together = np.zeros((n, n), dtype=bool)
    for clique in _cliques(alike):
        together[np.ix_(clique, clique)] = True
    assert (together == (alike | np.eye(n, dtype=bool))).all()


def test_intervals_of_one_width_need_few_letters() -> None:
    alike = np.abs(np.subtract.outer(np.arange(30), np.arange(30))) <= 4
    assert len(_cliques(alike)) == 26
    assert [_letter(k) for k in (0, 1, 25, 26, 27, 51, 52)] == ["a", "b", "z", "a1", "b1", "z1", "a2"]


def test_equals_are_seldom_told_apart() -> None:
    """Five per cent of tables have a pair of equals without a common letter, however many pairs there are."""
    rng, apart = np.random.default_rng(3), 0
    for _ in range(400):
        told = standing(rng.normal(0, 1, 15), np.eye(15))
        apart += any(not set(a) & set(b) for a in told.letters for b in told.letters)
    assert 0.02 < apart / 400 < 0.09


def test_rank_intervals_hold_the_true_rank() -> None:
    held = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        strength = rng.normal(0, 30, 8)
        noise = rng.multivariate_normal(np.zeros(8), 400 * np.eye(8))
        told = standing(strength + noise, 400 * np.eye(8))
        true = 1 + (strength[:, None] < strength).sum(axis=1)
        held += ((told.low <= true) & (true <= told.high)).tolist()
    assert np.mean(held) > 0.93


def test_of_a_table() -> None:
    rated = rate(blocks(1, 10, 600))
    where = rated.standing
    best = int(np.argmax(rated.elo))
    assert where.low[best] == 1
    assert where.best[best] == max(where.best)
    gap, half = rated.difference("p0", "p1")
    assert (where.beats[0, 1] > 0.975) == (gap > half)
