import os
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from arena.tournaments.ratings import CENTER, Ratings, Results, rate
from arena.tournaments.ratings.overall import Overall, overall

Floats = NDArray[np.float64]

SCALE = int(os.environ.get("ARENA_SCALE", "1"))


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("error")
        yield


def simulated(rng: np.random.Generator, strength: Floats, games: int, name: str = "g") -> Ratings:
    """Games of random pairs, rated; strengths in Elo."""
    k = len(strength)
    first = rng.integers(0, k, games)
    second = (first + rng.integers(1, k, games)) % k
    p = 1 / (1 + 10 ** ((strength[second] - strength[first]) / 400))
    outcome = np.where(rng.random(games) < p, 0, 2)
    names = tuple(f"p{number}" for number in range(k))
    return rate(Results(names, (name,), np.zeros(games, dtype=np.int64), first, second, outcome, np.arange(games)))


def of(rows: list[tuple[str, str, str]], players: tuple[str, ...] = ("a", "b", "c"), times: int = 20) -> Ratings:
    """Rated results (first, second, outcome), each so often."""
    return rate(Results.of([("g", *row, (row, n)) for row in rows for n in range(times)], players))


def sound(found: Overall) -> Ratings:
    rated = found.ratings
    for numbers in (rated.elo, rated.half, rated.covariance, *found.games.values()):
        assert np.isfinite(numbers).all()
    assert found.spread >= 0
    return rated


def test_one_game_gives_its_own_ratings() -> None:
    table = simulated(np.random.default_rng(0), np.array([0.0, 80.0, -80.0, 200.0]), 300)
    rated = sound(overall({"only": table}))
    assert rated.elo == pytest.approx(table.elo, abs=1e-6)
    assert rated.half == pytest.approx(table.half, abs=1e-6)
    assert rated.standing.letters == table.standing.letters
    assert overall({"only": table}).games["only"] == pytest.approx(table.elo, abs=1e-6)


def test_every_game_weighs_the_same_however_many_results_it_has() -> None:
    rng = np.random.default_rng(1)
    small, large = [simulated(rng, np.array([d, -d, 0.0]), n) for d, n in ((150.0, 60), (-150.0, 6000))]
    rated = sound(overall({"small": small, "large": large}))
    assert rated.elo == pytest.approx((small.elo + large.elo) / 2, abs=1e-6)
    assert rated.wins.tolist() == (small.wins + large.wins).tolist()


def test_games_that_not_all_play_are_joined_by_those_who_do() -> None:
    """b plays both, 100 above a in one and 100 below c in the other: a, b, c stand 100 apart."""
    base = of([("a", "b", "second"), ("a", "b", "first"), ("b", "c", "first"), ("b", "c", "second")])
    one = base._replace(elo=np.array([950.0, 1050.0, 1000.0]), wins=np.array([5, 5, 0]), draws=np.zeros(3, np.int64))
    one = one._replace(losses=np.array([5, 5, 0]))
    two = one._replace(elo=np.array([1000.0, 950.0, 1050.0]), wins=np.array([0, 5, 5]), losses=np.array([0, 5, 5]))
    rated = sound(overall({"one": one, "two": two}))
    assert rated.elo == pytest.approx([900.0, 1000.0, 1100.0], abs=1e-6)
    assert len(set(rated.groups.tolist())) == 1


def test_who_never_met_is_not_compared() -> None:
    players = ("a", "b", "c", "d")
    one, two = (
        of([("a", "b", "first"), ("b", "a", "first")], players),
        of([("c", "d", "first"), ("d", "c", "first")], players),
    )
    rated = sound(overall({"one": one, "two": two}))
    assert len(set(rated.groups.tolist())) == 2
    assert all("separate group" in flags for flags in rated.flags)
    with pytest.raises(ValueError, match="never met"):
        rated.difference("a", "c")


def test_ratings_that_chance_moves_shrink_and_those_that_a_game_moves_do_not() -> None:
    rng = np.random.default_rng(2)
    theta = np.linspace(-200, 200, 8)
    alike = overall({f"g{n}": simulated(rng, theta, 200) for n in range(6)})
    own = [
        simulated(np.random.default_rng(n), theta + np.random.default_rng(n).normal(0, 200, 8), 4000) for n in range(6)
    ]
    apart = overall({f"g{n}": table for n, table in enumerate(own)})
    assert alike.spread < 40
    assert 130 < apart.spread < 280
    error = [float(np.abs(alike.games[name] - CENTER - theta).mean()) for name in alike.games]
    raw = np.abs(simulated(np.random.default_rng(3), theta, 200).elo - CENTER - theta).mean()
    assert np.mean(error) < 0.8 * raw
    for name, table in zip(apart.games, own, strict=True):
        assert apart.games[name] == pytest.approx(table.elo, abs=25)


def test_anchors_say_where_the_scale_is_and_change_no_difference() -> None:
    rng = np.random.default_rng(4)
    tables = {f"g{n}": simulated(rng, np.array([0.0, 100.0, 200.0, 300.0]), 400) for n in range(3)}
    plain, held = sound(overall(tables)), sound(overall(tables, anchors={"p1": 1500.0}))
    assert held.elo[1] == pytest.approx(1500.0)
    assert held.half[1] == pytest.approx(0.0, abs=1e-6)
    assert held.elo - held.elo[0] == pytest.approx(plain.elo - plain.elo[0], abs=1e-6)
    assert held.difference("p0", "p3") == pytest.approx(plain.difference("p0", "p3"), abs=1e-6)
    assert "anchor" in held.flags[1]
    two = sound(overall(tables, anchors={"p1": 1500.0, "p2": (1700.0, 50.0)}))
    assert (two.elo[1] + two.elo[2]) / 2 == pytest.approx(1600.0)
    with pytest.raises(ValueError, match="anchor 'nobody'"):
        overall(tables, anchors={"nobody": 1.0})


def test_what_cannot_be_joined_is_said() -> None:
    with pytest.raises(ValueError, match="no game is rated"):
        overall({})
    one, other = of([("a", "b", "first")]), of([("a", "b", "first")], ("b", "a", "c"))
    with pytest.raises(ValueError, match="two has other players, or another order"):
        overall({"one": one, "two": other})


@pytest.mark.parametrize("count", [1, 2, 3, 9])
@pytest.mark.parametrize(
    "rows",
    [
        [("a", "b", "first")],
        [("a", "b", "draw"), ("b", "a", "draw")],
        [("a", "b", "first"), ("b", "c", "first"), ("a", "c", "first")],
        [("a", "b", "first"), ("b", "a", "first")],
    ],
)
def test_hostile_results_are_finite(rows: list[tuple[str, str, str]], count: int) -> None:
    for times in (1, 1000):
        rated = sound(overall({f"g{n}": of(rows, times=times) for n in range(count)}))
        assert rated.flags[2] == ("no games",) or "c" in {name for row in rows for name in row[:2]}


def test_equal_games_resampled_are_the_same_for_a_seed_and_leave_no_scatter() -> None:
    table = simulated(np.random.default_rng(5), np.array([0.0, 100.0, -100.0]), 300)
    found = [overall({f"g{n}": table for n in range(9)}, seed=7).ratings for _ in range(2)]
    assert found[0].method == "games resampled"
    assert found[0].half.tolist() == found[1].half.tolist()
    assert found[0].half == pytest.approx(0.0, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("games", "spread"), [(2, 100.0), (5, 60.0), (5, 0.0), (12, 100.0)])
def test_intervals_hold_for_other_games_of_the_kind(games: int, spread: float) -> None:
    """The truth is the strength that games' own strengths scatter about."""
    rng, shares = np.random.default_rng(games), []
    for _ in range(40 * SCALE):
        theta = rng.normal(0, 150, 8)
        theta -= theta.mean()
        tables = {f"g{n}": simulated(rng, theta + rng.normal(0, spread, 8), 400) for n in range(games)}
        rated = overall(tables, resamples=300).ratings
        shares.append(float((np.abs(rated.elo - CENTER - theta) <= rated.half).mean()))
    error = np.std(shares) / len(shares) ** 0.5
    assert 0.93 - 3 * error < np.mean(shares) < 0.985 + 3 * error
