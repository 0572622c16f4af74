import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from arena.tournaments.ratings import davidson
from arena.tournaments.ratings.davidson import ELO, Belief, Cells, Prior, fit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Games = tuple[Ints, Ints, Ints, Ints]

seeds = st.integers(0, 10_000)


def games(seed: int, players: int = 5, kinds: int = 2, number: int = 120) -> Games:
    """Any games at all: game, first, second, outcome."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, players, number)
    second = (first + rng.integers(1, players, number)) % players
    return rng.integers(0, kinds, number), first, second, rng.integers(0, 3, number)


@given(seeds)
@settings(max_examples=20)
def test_gradient_and_hessian_are_the_loss_s(seed: int) -> None:
    posterior = davidson._Posterior(Cells.of(5, 2, *games(seed)), Belief.of(5, 2))
    x = np.random.default_rng(seed).normal(0, 1, 9)
    gradient, hessian = posterior.derivatives(x)

    def slope(at: Floats) -> Floats:
        steps = 1e-5 * np.eye(len(x))
        ends = [[posterior.loss(at + sign * step) for sign in (1, -1)] for step in steps]
        return np.array([(up - down) / 2e-5 for up, down in ends])

    assert gradient == pytest.approx(slope(x), abs=1e-4)
    columns = [posterior.derivatives(x + 1e-5 * step)[0] for step in np.eye(len(x))]
    assert hessian == pytest.approx((np.array(columns) - gradient).T / 1e-5, abs=1e-3)
    assert hessian == pytest.approx(hessian.T)
    assert np.linalg.eigvalsh(hessian).min() > 0


@given(st.floats(-50, 50), st.floats(-50, 50))
def test_probabilities_are_davidson_s(d: float, c: float) -> None:
    p, log_z = davidson._probabilities(np.array([d]), np.array([c]))
    assert p.sum() == pytest.approx(1)
    assert np.isfinite(p).all()
    assert np.isfinite(log_z).all()
    home, away, nu = np.exp(d), 1.0, np.exp(c)
    assert p[:, 0] == pytest.approx(
        np.array([home, nu * np.sqrt(home * away), away]) / (home + away + nu * np.sqrt(home))
    )


def test_400_points_are_odds_of_ten_to_one() -> None:
    p, _ = davidson._probabilities(np.array([400 / ELO]), np.array([-np.inf]))
    assert p[0, 0] / p[2, 0] == pytest.approx(10)


@given(seeds)
@settings(max_examples=20)
def test_names_do_not_matter(seed: int) -> None:
    """Players renumbered are rated the same, whatever their numbers."""
    game, first, second, outcome = games(seed)
    new = np.random.default_rng(seed).permutation(5)
    plain = fit(Cells.of(5, 2, game, first, second, outcome)).parameters
    renamed = fit(Cells.of(5, 2, game, new[first], new[second], outcome)).parameters
    assert renamed[new] == pytest.approx(plain[:5], abs=1e-7)
    assert renamed[5:] == pytest.approx(plain[5:], abs=1e-7)


@given(seeds)
@settings(max_examples=20)
def test_the_mirror_turns_the_seat_term_around(seed: int) -> None:
    game, first, second, outcome = games(seed)
    plain = fit(Cells.of(5, 2, game, first, second, outcome)).parameters
    mirrored = fit(Cells.of(5, 2, game, second, first, 2 - outcome)).parameters
    assert mirrored[:5] == pytest.approx(plain[:5], abs=1e-7)
    assert mirrored[5:7] == pytest.approx(-plain[5:7], abs=1e-7)
    assert mirrored[7:] == pytest.approx(plain[7:], abs=1e-7)


@given(seeds, st.integers(0, 119))
@settings(max_examples=20)
def test_a_win_more_is_a_rating_more(seed: int, at: int) -> None:
    game, first, second, outcome = games(seed)
    before = fit(Cells.of(5, 2, game, first, second, np.append(outcome[:at], [2, *outcome[at + 1 :]]))).parameters
    after = fit(Cells.of(5, 2, game, first, second, np.append(outcome[:at], [0, *outcome[at + 1 :]]))).parameters
    assert after[first[at]] > before[first[at]]
    assert after[second[at]] < before[second[at]]


def test_more_games_leave_less_to_the_prior() -> None:
    """Nine wins of ten, in ever more games: the rating nears the odds of nine to one."""
    gaps = []
    for times in (1, 10, 100):
        number = np.arange(20 * times)
        seat = number % 2  # the better player's
        lost = np.isin(number % 20, (0, 11))  # once in each seat
        outcome = np.where(lost, 2 - 2 * seat, 2 * seat)
        cells = Cells.of(2, 1, np.zeros_like(number), seat, 1 - seat, outcome)
        gaps.append(ELO * float(np.subtract(*fit(cells).parameters[:2])))
    off = [abs(gap - 400 * np.log10(9)) for gap in gaps]
    assert off == sorted(off, reverse=True)
    assert off[-1] < 1


def test_cells_keep_every_count() -> None:
    game, first, second, outcome = games(3)
    cells = Cells.of(5, 2, game, first, second, outcome)
    assert cells.counts.sum() == len(outcome)
    assert (cells.counts.sum(axis=1) > 0).all(), "no empty cell is kept"
    keys = set(zip(cells.game.tolist(), cells.first.tolist(), cells.second.tolist(), strict=True))
    assert keys == set(zip(game.tolist(), first.tolist(), second.tolist(), strict=True))


def test_a_tighter_prior_pulls_harder() -> None:
    cells = Cells.of(5, 2, *games(1))
    spread = [float(np.ptp(fit(cells, Prior(strength=width)).parameters[:5])) for width in (10.0, 100.0, 1000.0)]
    assert spread == sorted(spread)
    assert spread[0] < 0.1 * spread[2]
