import numpy as np
import pytest

from arena.tournaments.board import Pair
from arena.tournaments.heat import Heat, matched, met, ranked_before


def ints(*numbers: object) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


def test_results_of_two() -> None:
    heat = met(3, ints(0, 0, 1, 1), ints(1, 1, 0, 2), ints(0, 1, 2, 2))
    assert heat.cells([0, 1, 2]) == [
        [None, Pair(2.5 / 3, 3), None],
        [pytest.approx(Pair(0.5 / 3, 3)), None, Pair(0.0, 1)],
        [None, Pair(1.0, 1), None],
    ]
    assert heat.cells([2, 1]) == [[None, Pair(1.0, 1)], [Pair(0.0, 1), None]]


def test_a_row_may_stand_for_many() -> None:
    heat = met(2, ints(0, 0), ints(1, 1), ints(0, 2), np.array([3.0, 1.0]))
    assert heat.cells([0, 1])[0][1] == Pair(0.75, 4)


def test_ranking_of_many() -> None:
    heat = ranked_before(3, ints([0, 1, 2], [2, 0, 1]), np.array([[3.0, 1.0, 1.0], [0.0, 5.0, 5.0]]))
    cells = heat.cells([0, 1, 2])
    assert cells[0] == [None, Pair(0.75, 2), Pair(1.0, 2)]
    assert cells[1][2] == Pair(0.75, 2)


def test_members_of_a_team_and_an_agent_with_itself_are_not_compared() -> None:
    seated, side = ints([0, 1, 2, 0]), ints([0, 0, 1, 1])
    heat = ranked_before(3, seated, np.array([[1.0, 1.0, -1.0, -1.0]]), side)
    assert heat.games.tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    assert heat.cells([0, 1, 2])[1] == [Pair(1.0, 1), None, Pair(1.0, 1)]
    assert heat.cells([0, 1, 2])[0][1] == Pair(0.0, 1)


def test_same_items() -> None:
    agent, item = ints(0, 0, 1, 1, 2), ints(7, 8, 7, 9, 7)
    heat = matched(3, agent, item, np.array([1.0, 1.0, 0.0, 1.0, 1.0]))
    assert heat.cells([0, 1, 2]) == [
        [None, Pair(1.0, 1), Pair(0.5, 1)],
        [Pair(0.0, 1), None, Pair(0.0, 1)],
        [Pair(0.5, 1), Pair(1.0, 1), None],
    ]


def test_answers_to_one_item_are_averaged() -> None:
    heat = matched(2, ints(0, 0, 1), ints(1, 1, 1), np.array([1.0, 0.0, 0.5]))
    assert heat.cells([0, 1])[0][1] == Pair(0.5, 1)


def test_points_of_both_add_up() -> None:
    rng = np.random.default_rng(0)
    seated = np.array([rng.permutation(5)[:4] for _ in range(200)])
    heat = ranked_before(5, seated, rng.integers(0, 3, (200, 4)).astype(np.float64))
    assert heat.games.sum() == 200 * 12
    np.testing.assert_array_equal(heat.points + heat.points.T, heat.games)
    assert Heat(3).cells([0, 1]) == [[None, None], [None, None]]
