import numpy as np
import pytest

from arena.tournaments.ratings import OUTCOMES, Results, rate
from arena.tournaments.ratings.davidson import fit
from arena.tournaments.ratings.live import Live
from tests.tournaments.ratings.simulation import blocks, picked


def fed(live: Live, results: Results, rows: slice = slice(None)) -> None:
    for game, first, second, outcome in zip(*[column[rows].tolist() for column in results[2:6]], strict=True):
        live.add(results.games[game], results.players[first], results.players[second], OUTCOMES[outcome])


@pytest.mark.parametrize("seed", range(4))
def test_is_the_whole_fit_at_any_time(seed: int) -> None:
    results, live = blocks(seed, 7, 150, kinds=2), Live()
    for end in range(10, 310, 50):
        fed(live, results, slice(end - (10 if end == 10 else 50), end))
        rated, now = rate(picked(results, np.arange(end)), "fisher"), live.rate()
        order = [rated.players.index(name) for name in now.players]
        assert now.elo == pytest.approx(rated.elo[order], abs=1e-4)
        assert now.half == pytest.approx(rated.half[order], rel=1e-4)
        assert live.played == end


def test_a_few_more_games_are_a_few_more_steps() -> None:
    results = blocks(1, 20, 2000)
    cold = fit(picked(results, np.arange(3980)).cells())
    assert fit(results.cells(), start=cold.parameters).iterations <= 2 < cold.iterations


def test_start_is_a_table_s_parameters() -> None:
    results = blocks(1, 5, 100)
    first = rate(results)
    again = rate(results, start=first.parameters)
    assert again.elo == pytest.approx(first.elo, abs=1e-7)
    assert rate(results, anchors={"p0": 1200}, start=first.parameters).elo[0] == pytest.approx(1200)


def test_groups_that_meet_later_are_joined() -> None:
    live = Live()
    for one, other in (("a", "b"), ("c", "d")):
        live.add("g", one, other, "draw")
    apart = live.rate()
    assert apart.groups[0] == apart.groups[1] != apart.groups[2] == apart.groups[3]
    live.add("h", "b", "d", "first")
    assert len(set(live.rate().groups.tolist())) == 1
    assert live.rate().elo.mean() == pytest.approx(1000)


def test_what_is_refused() -> None:
    live = Live()
    with pytest.raises(ValueError, match="nobody played"):
        live.rate()
    with pytest.raises(ValueError, match="outcome 'won': allowed are first, draw, second"):
        live.add("g", "a", "b", "won")  # type: ignore[arg-type]  # that is the point
    with pytest.raises(ValueError, match="'a' cannot play against itself"):
        live.add("g", "a", "a", "draw")
    assert live.played == 0


def test_one_pair_again_and_again_stays_finite() -> None:
    live = Live()
    for _ in range(3000):
        live.add("g", "a", "b", "first")
    now = live.rate()
    assert np.isfinite(now.elo).all()
    assert (now.half > 50).all()
