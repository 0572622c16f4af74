from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import fmin_slsqp

from arena.tournaments.ratings.equilibrium import equilibrium

Floats = NDArray[np.float64]
RPS = np.array([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]])


def entropy(mixture: Floats) -> float:
    kept = mixture[mixture > 0]
    return float(-(kept * np.log(kept)).sum())


def antisymmetric(rng: np.random.Generator, n: int) -> Floats:
    square = rng.normal(size=(n, n))
    return np.asarray(square - square.T, dtype=np.float64)


@pytest.mark.parametrize("wins", [(1.0, 1.0, 1.0), (1.0, 2.0, 5.0), (0.1, 0.1, 3.0)])
def test_three_in_a_circle(wins: tuple[float, float, float]) -> None:
    """Each is played as often as the other two's game is worth (textbook)."""
    ab, bc, ca = wins
    payoff = np.array([[0, ab, -ca], [-ab, 0, bc], [ca, -bc, 0]])
    assert equilibrium(payoff) == pytest.approx(np.array([bc, ca, ab]) / sum(wins))


def test_the_best_takes_all() -> None:
    strength = np.array([3.0, 1.0, 2.0])
    assert equilibrium(strength[:, None] - strength).tolist() == [1.0, 0.0, 0.0]
    assert equilibrium(np.zeros((1, 1))).tolist() == [1.0]
    assert equilibrium(np.zeros((0, 0))).tolist() == []


def test_equals_share() -> None:
    assert equilibrium(np.zeros((4, 4))).tolist() == [0.25] * 4
    two = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [-1.0, -1.0, 0.0]])
    assert equilibrium(two) == pytest.approx(np.array([0.5, 0.5, 0.0]), abs=1e-8)
    beside = np.zeros((4, 4))
    beside[:3, :3] = RPS
    assert equilibrium(beside) == pytest.approx(np.full(4, 0.25), abs=1e-6), "a fourth that draws with all"


@pytest.mark.parametrize("n", [2, 5, 12, 60])
def test_nobody_beats_it(n: int) -> None:
    for seed in range(5):
        payoff = antisymmetric(np.random.default_rng([n, seed]), n)
        found = equilibrium(payoff)
        assert found.sum() == pytest.approx(1)
        assert (found >= 0).all()
        assert (payoff @ found).max() <= 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_copies_share_one_weight(seed: int) -> None:
    rng = np.random.default_rng(seed)
    payoff = antisymmetric(rng, 7)
    copied = np.concatenate([np.arange(7), rng.integers(0, 7, 9)])
    alone, together = equilibrium(payoff), equilibrium(payoff[np.ix_(copied, copied)])
    assert np.bincount(copied, together, 7) == pytest.approx(alone, abs=1e-6)
    for k in range(7):
        assert np.ptp(together[copied == k]) < 1e-6, "copies are alike"


@pytest.mark.parametrize("seed", range(8))
def test_of_many_it_is_the_one_of_maximum_entropy(seed: int) -> None:
    """Against a general solver (SLSQP), on games of small whole numbers, which have many equilibria."""
    rng = np.random.default_rng(seed)
    payoff = np.triu(rng.integers(-1, 2, (6, 6)).astype(np.float64), 1)
    payoff[:, 5] *= seed % 2
    payoff -= payoff.T
    found = equilibrium(payoff)
    assert (payoff @ found).max() < 1e-6
    slsqp: Any = fmin_slsqp  # its stubs ask for a list of constraints
    runs = [
        slsqp(
            lambda p: -entropy(np.clip(p, 1e-15, None)),
            start / start.sum(),
            f_eqcons=lambda p: np.array([p.sum() - 1]),
            f_ieqcons=lambda p: -payoff @ p,
            bounds=[(0, 1)] * 6,
            acc=1e-12,
            iter=500,
            iprint=0,
            full_output=True,
        )
        for start in rng.random((4, 6)) + 0.01
    ]
    best = np.asarray(min([(run[1], tuple(run[0])) for run in runs if run[3] == 0])[1])
    assert found == pytest.approx(best, abs=2e-3)
    assert entropy(found) >= entropy(np.clip(best, 0, None)) - 1e-6


def test_many_equilibria_of_many_players_at_once() -> None:
    rng = np.random.default_rng(3)
    payoff = np.sign(antisymmetric(rng, 30)) * (rng.random((30, 30)) < 0.3)
    payoff = np.triu(payoff, 1) - np.triu(payoff, 1).T
    copied = rng.integers(0, 30, 120)
    large = payoff[np.ix_(copied, copied)]
    found = equilibrium(large)
    assert (large @ found).max() < 1e-6
    assert found.sum() == pytest.approx(1)
    for k in set(copied.tolist()):
        assert np.ptp(found[copied == k]) < 1e-6


def test_payoffs_that_are_no_game_are_refused() -> None:
    for payoff in (np.ones((2, 2)), np.zeros((2, 3)), np.array([[0.0, 1.0], [-2.0, 0.0]]), np.zeros(3)):
        with pytest.raises(ValueError, match="antisymmetric"):
            equilibrium(payoff)


def test_the_unit_does_not_matter() -> None:
    payoff = antisymmetric(np.random.default_rng(5), 9)
    for unit in (1e-9, 1e-3, 1e6):
        assert equilibrium(payoff * unit) == pytest.approx(equilibrium(payoff), abs=1e-9)


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(10))
def test_agrees_with_openspiels_maximal_lotteries(seed: int) -> None:
    pytest.importorskip("ecos", reason="the solver that OpenSpiel asks for")
    base = pytest.importorskip("open_spiel.python.voting.base")
    lotteries = pytest.importorskip("open_spiel.python.voting.maximal_lotteries")
    rng = np.random.default_rng(seed)
    names = ["a", "b", "c", "d", "e"]
    votes = [list(rng.permutation(names)) for _ in range(51)]  # an odd number: no margin is 0, and there is one lottery
    profile = base.PreferenceProfile(votes=votes, alternatives=names)
    elected = lotteries.MaximalLotteriesVoting(iterative=False).run_election(profile)
    theirs = dict(zip(elected.ranking, elected.scores, strict=True))
    ours = equilibrium(profile.margin_matrix().astype(np.float64))
    assert ours == pytest.approx(np.array([theirs[name] for name in names]), abs=1e-6)
