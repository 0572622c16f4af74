"""The sequential test: published values, brute force, the limits, error rates by simulation."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from arena.tournaments.sprt import bounds, ratio, trial
from arena.tournaments.terms import Sprt

LOGISTIC, NORMALIZED = "logistic", "normalized"


@pytest.mark.parametrize(
    ("counts", "elo0", "elo1", "model", "published"),
    [
        ((36027, 68692, 36433), 0, 2, NORMALIZED, 0.92),
        ((10650, 20431, 10871), -1.75, 0.25, NORMALIZED, 2.30),
        ((0, 0, 4250), 0, 10, NORMALIZED, 120.56),
        ((21184, 40708, 21404), 0.5, 2.5, LOGISTIC, -1.57),
        ((57030, 106593, 57433), 0, 2, LOGISTIC, -2.59),
        ((365, 16618, 36229, 16974, 390), 0, 2, NORMALIZED, 2.25),
        ((127, 4883, 10712, 5150, 104), -1.75, 0.25, NORMALIZED, 3.01),
        ((0, 0, 0, 0, 5550), 0, 5, NORMALIZED, 111.82),
        ((223, 9863, 21279, 10037, 246), 0.5, 2.5, LOGISTIC, -3.07),
        ((871, 26175, 55983, 26678, 821), 0, 2, LOGISTIC, -4.98),
    ],
)
def test_values_that_fastchess_publishes(
    counts: tuple[int, ...], elo0: float, elo1: float, model: str, published: float
) -> None:
    assert ratio(counts, elo0, elo1, model) == pytest.approx(published, abs=0.0051 + 3e-4 * abs(published))


@pytest.mark.parametrize(
    ("counts", "elo0", "elo1", "published"),
    [
        ((440, 2910, 5170, 2888, 455), 0, 5, -2.27),
        ((142, 620, 1122, 699, 188), 0, 5, 2.99),
        ((349, 1561, 3340, 1604, 359), -5, 0, 2.90),
        ((98, 382, 674, 369, 71), -5, 0, -1.11),
    ],
)
def test_values_that_racetrack_publishes(counts: tuple[int, ...], elo0: float, elo1: float, published: float) -> None:
    """They are of the normalized model."""
    assert ratio(counts, elo0, elo1, NORMALIZED) == pytest.approx(published, abs=0.011)


def best(counts: NDArray[np.float64], constraint: Any) -> float:
    """The largest log likelihood of counts under a constraint on the distribution, by brute force."""
    from scipy.optimize import minimize

    shares: NDArray[np.float64] = counts / counts.sum()
    found: list[float] = []

    def surprise(p: NDArray[np.float64]) -> float:
        return -float(shares @ np.log(p))

    def slope(p: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(-shares / p, dtype=np.float64)

    total: Any = {"type": "eq", "fun": lambda p: p.sum() - 1}
    for start in (shares, np.full(len(counts), 1 / len(counts))):
        done = minimize(
            surprise,
            start,
            jac=slope,
            bounds=[(1e-9, 1.0)] * len(counts),
            constraints=[total, {"type": "eq", "fun": constraint}],
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        if abs(constraint(done.x)) < 1e-7:
            found.append(-float(done.fun) * float(counts.sum()))
    return max(found)


@pytest.mark.parametrize("model", [LOGISTIC, NORMALIZED])
@pytest.mark.parametrize("counts", [(9, 20, 40, 25, 14), (30, 40, 55), (3, 1, 2, 2, 9), (5, 9, 9, 12, 20, 11, 8, 9, 4)])
@pytest.mark.parametrize(("elo0", "elo1"), [(0, 40), (-30, 10)])
def test_the_ratio_is_that_of_two_constrained_maxima(
    counts: tuple[int, ...], elo0: float, elo1: float, model: str
) -> None:
    values, games = np.arange(len(counts)) / (len(counts) - 1), (len(counts) - 1) / 2

    def under(elo: float) -> float:
        def constraint(p: NDArray[np.float64]) -> float:
            mean = float(p @ values)
            if model == LOGISTIC:
                return mean - 1 / (1 + 10 ** (-elo / 400))
            deviation = math.sqrt(float(p @ (values - mean) ** 2))
            return mean - 0.5 - deviation * math.sqrt(games) * elo * math.log(10) / 800

        return best(np.array(counts, dtype=np.float64), constraint)

    assert ratio(counts, elo0, elo1, model) == pytest.approx(under(elo1) - under(elo0), abs=2e-4)


cells = st.lists(st.sampled_from([0, 0, 1, 3, 40, 900]), min_size=2, max_size=6)


@settings(max_examples=300, deadline=None)
@given(cells.map(lambda half: [*half, 1, *half[1:]]), st.floats(-1000, 1000), st.floats(0.1, 500))
def test_the_ratio_turns_with_the_sides(counts: list[int], elo0: float, width: float) -> None:
    elo1 = min(elo0 + width, 1000)
    told = ratio(counts, elo0, elo1)
    assert math.isfinite(told)
    assert ratio(counts[::-1], -elo1, -elo0) == pytest.approx(-told, rel=1e-4, abs=1e-4)


@settings(max_examples=300, deadline=None)
@given(cells.map(lambda half: [*half, 1, *half[1:]]), st.floats(-100, 99), st.floats(0.1, 100))
def test_the_normalized_ratio_is_finite_and_turns(counts: list[int], elo0: float, width: float) -> None:
    elo1 = min(elo0 + width, 100)
    told = ratio(counts, elo0, elo1, NORMALIZED)
    assert math.isfinite(told)
    assert ratio(counts[::-1], -elo1, -elo0, NORMALIZED) == pytest.approx(-told, rel=1e-4, abs=1e-4)


def test_nothing_told_tells_nothing() -> None:
    assert ratio((0, 0, 0, 0, 0), 0, 50) == 0
    assert trial(Sprt(), (0, 0, 0, 0, 0)) == (0, *bounds(0.05, 0.05), 0, 0)


def test_bounds_are_walds() -> None:
    low, high = bounds(0.01, 0.2)
    assert (low, high) == (math.log(0.2 / 0.99), math.log(0.8 / 0.01))


def test_verdicts() -> None:
    asked = Sprt(0, 50)
    assert trial(asked, (0, 0, 0, 0, 200)).verdict == "elo1"
    assert trial(asked, (200, 0, 0, 0, 0)).verdict == "elo0"
    assert trial(asked, (2, 3, 9, 3, 3)).verdict == ""


def test_single_games_of_incomplete_blocks_are_told_beside_the_blocks() -> None:
    asked, blocks, games = Sprt(0, 50), (4, 9, 20, 12, 8), (10, 5, 14)
    told = trial(asked, blocks, games)
    assert told.ratio == pytest.approx(ratio(blocks, 0, 50) + ratio(games, 0, 50))
    assert (told.blocks, told.games) == (53, 29)


def test_an_impossible_mean_is_an_error_by_name() -> None:
    with pytest.raises(ArithmeticError, match="no distribution"):
        ratio((1, 1, 1), 0, 1e6)


def games_of(elo: float, luck: float, draw: float, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Half points of both games of pairs, seats swapped: the opening helps who sits first by `luck` times a normal."""
    opening = luck * rng.standard_normal(size)
    games = []
    for side in (1, -1):
        expected = 1 / (1 + 10 ** (-(elo + side * opening) / 400))
        half = draw * np.minimum(expected, 1 - expected)  # of the mean score, that of the draws
        u = rng.random(size)
        games.append(2 * (u < expected - half) + 1 * ((u >= expected - half) & (u < expected + half)))
    return np.stack(games)


def elo_of(share: float) -> float:
    return -400 * math.log10(1 / share - 1)


def run(asked: Sprt, elo: float, luck: float, rng: np.random.Generator) -> tuple[str, int]:
    """One test to its end: the verdict and how many blocks it took."""
    counts = np.zeros(5)
    for block, score in enumerate(games_of(elo, luck, 0.5, 20_000, rng).sum(axis=0)):
        counts[score] += 1
        if block >= 9 and (verdict := trial(asked, counts.tolist()).verdict):
            return verdict, block + 1
    raise AssertionError("no verdict")


@pytest.mark.slow
@pytest.mark.parametrize("luck", [0.0, 200.0])
def test_error_rates(luck: float, scale: int) -> None:
    """With alpha = beta = 5 %: wrong verdicts at the hypotheses themselves, whose score is that of the luck's mean."""
    rng = np.random.default_rng(7)
    repetitions = 40 * scale
    for elo, wrong in ((0.0, "elo1"), (60.0, "elo0")):
        mean = float(games_of(elo, luck, 0.5, 1_000_000, rng).mean()) / 2
        asked = (
            Sprt(0, 60) if luck == 0 else Sprt(*((elo_of(mean), elo_of(mean) + 50) if elo == 0 else (0, elo_of(mean))))
        )
        verdicts = [run(asked, elo, luck, rng)[0] for _ in range(repetitions)]
        errors = verdicts.count(wrong)
        allowed = 0.05 * repetitions + 3 * math.sqrt(0.05 * 0.95 * repetitions)
        print(f"luck {luck:g}, {elo:g} Elo: {errors} of {repetitions} wrong")
        assert errors <= allowed


@pytest.mark.parametrize(("luck", "least", "most"), [(0.0, 0.9, 1.1), (200.0, 1.15, 1.45), (400.0, 1.4, 2.2)])
def test_pairs_tell_more_than_their_games_alone_where_openings_favour_a_side(
    luck: float, least: float, most: float
) -> None:
    games = games_of(40, luck, 0.3, 20_000, np.random.default_rng(3))
    pairs = np.bincount(games.sum(axis=0), minlength=5).tolist()
    singles = np.bincount(games.ravel(), minlength=3).tolist()
    assert least < ratio(pairs, 0, 20) / ratio(singles, 0, 20) < most
