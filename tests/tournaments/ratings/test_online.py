from itertools import combinations

import numpy as np
import pytest

from arena.tournaments.ratings.online import START, curve


def plainly(players: int, agents: list[list[int]], points: list[list[float]], k: float) -> list[float]:
    """By the definition: every player moves by the mean of what it did beyond what was expected of it."""
    ratings = [START] * players
    for who, earned in zip(agents, points, strict=True):
        seated = [(player, paid) for player, paid in zip(who, earned, strict=True) if player >= 0]
        change = dict.fromkeys([player for player, _ in seated], 0.0)
        for (a, mine), (b, theirs) in combinations(seated, 2):
            expected = 1 / (1 + 10 ** ((ratings[b] - ratings[a]) / 400))
            score = 1.0 if mine > theirs else 0.5 if mine == theirs else 0.0
            change[a] += (score - expected) / (len(seated) - 1)
            change[b] -= (score - expected) / (len(seated) - 1)
        for player, off in change.items():
            ratings[player] += k * off
    return ratings


def test_textbook_games() -> None:
    """Elo's own figures: equals win 16 of K = 32; 400 points more should win 10 of 11."""
    once = curve(2, np.zeros(1), np.array([[0, 1]]), np.array([[1.0, 0.0]]), k=32)
    assert once.elo.tolist() == [[1016.0, 984.0]]
    far = curve(2, np.arange(2.0), np.array([[0, 1], [0, 1]]), np.array([[1.0, 0.0], [1.0, 0.0]]), k=400)
    assert far.elo[0].tolist() == [1200.0, 800.0]
    assert far.elo[1, 0] == pytest.approx(1200 + 400 / 11)
    drawn = curve(2, np.zeros(1), np.array([[0, 1]]), np.array([[3.0, 3.0]]))
    assert drawn.elo.tolist() == [[1000.0, 1000.0]]


@pytest.mark.parametrize("seats", [2, 3, 5])
def test_agrees_with_the_definition(seats: int) -> None:
    rng = np.random.default_rng(seats)
    agents = np.argsort(rng.random((60, 7)), axis=1)[:, :seats]
    points = rng.integers(0, 3, (60, seats)).astype(np.float64)
    found = curve(7, np.arange(60.0), agents, points, k=24)
    assert found.elo[-1] == pytest.approx(plainly(7, agents.tolist(), points.tolist(), 24), abs=1e-9)
    assert found.elo.sum(axis=1) == pytest.approx(np.full(60, 7 * START)), "what one gains others lose"
    agents[::3, -1] = -1
    holes = curve(7, np.arange(60.0), agents, points, k=24)
    assert holes.elo[-1] == pytest.approx(plainly(7, agents.tolist(), points.tolist(), 24), abs=1e-9)


def test_only_the_order_of_time_counts() -> None:
    rng = np.random.default_rng(0)
    agents, points = rng.permuted(np.tile(np.arange(4), (50, 1)), axis=1)[:, :2], rng.normal(size=(50, 2))
    ended = np.arange(50.0)
    shuffled = rng.permutation(50)
    one, other = curve(4, ended, agents, points), curve(4, ended[shuffled], agents[shuffled], points[shuffled])
    assert [column.tolist() for column in one] == [column.tolist() for column in other]
    back = curve(4, -ended, agents, points)
    assert back.elo[-1].tolist() != one.elo[-1].tolist(), "online Elo depends on the order: it is no rating"
    tied = curve(4, np.zeros(50), agents, points)
    assert tied.elo.tolist() == one.elo.tolist(), "equal times keep the order of rows"


def test_moments() -> None:
    rng = np.random.default_rng(1)
    agents = rng.permuted(np.tile(np.arange(3), (1000, 1)), axis=1)[:, :2]
    points = rng.normal(size=(1000, 2))
    every = curve(3, np.arange(1000.0) * 2, agents, points, moments=1000)
    some = curve(3, np.arange(1000.0) * 2, agents, points, moments=11)
    assert len(every.games) == 1000
    assert (some.games[0], some.games[-1], len(some.games)) == (1, 1000, 11)
    assert some.times.tolist() == [2.0 * (games - 1) for games in some.games]
    assert some.elo.tolist() == every.elo[some.games - 1].tolist(), "fewer moments of the same history"


def test_who_has_not_played_yet_is_told() -> None:
    agents = np.array([[0, 1], [0, 1], [1, 2], [0, 1]])
    found = curve(4, np.arange(4.0), agents, np.array([[1.0, 0.0]] * 4))
    assert found.begun.tolist() == [0, 0, 2, 4]
    assert found.elo[:2, 2].tolist() == [START] * 2
    assert found.elo[:, 3].tolist() == [START] * 4
    sampled = curve(4, np.arange(4.0), agents, np.array([[1.0, 0.0]] * 4), moments=2)
    assert (sampled.games.tolist(), sampled.begun.tolist()) == ([1, 4], [0, 0, 1, 2])


def test_hostile_shapes() -> None:
    nothing = curve(3, np.zeros(0), np.zeros((0, 2), dtype=np.int64), np.zeros((0, 2)))
    assert nothing.elo.shape == (0, 3)
    alone = curve(1, np.zeros(3), np.zeros((3, 1), dtype=np.int64), np.ones((3, 1)))
    assert alone.elo.tolist() == [[START]] * 3
    with pytest.raises(ValueError, match="one row a game"):
        curve(2, np.zeros(3), np.zeros((2, 2), dtype=np.int64), np.zeros((2, 2)))
    long = curve(2, np.arange(20000.0), np.tile([0, 1], (20000, 1)), np.tile([1.0, 0.0], (20000, 1)), k=400)
    assert np.isfinite(long.elo).all()
