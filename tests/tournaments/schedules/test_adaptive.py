"""Adaptive pairing: all are connected first, then the pair that tells most; newcomers are placed; games take turns."""

from collections import Counter
from itertools import combinations, islice
from typing import Any

import numpy as np
import pytest

from arena.tournaments.history import History, Result
from arena.tournaments.ratings import rate
from arena.tournaments.ratings.davidson import fit
from arena.tournaments.schedule import Block
from arena.tournaments.schedules import blocks
from arena.tournaments.schedules.adaptive import _curvature, _Planner
from tests.tournaments.schedules.play import asked, by_strength, ended, play


def adaptive(agents: int, uniform: float = 0.2, **more: Any) -> History:
    return History(asked(agents, schedule={"kind": "adaptive", "uniform": uniform}, **more))


def connected(tables: list[tuple[int, ...]], agents: int) -> bool:
    group = list(range(agents))
    for table in tables:
        joined = {group[agent] for agent in table}
        group = [min(joined) if g in joined else g for g in group]
    return len(set(group)) == 1


@pytest.mark.parametrize("agents", [2, 5, 16])
def test_all_are_connected_with_as_few_blocks_as_can_be(agents: int) -> None:
    tables = [block.table for block in islice(blocks(adaptive(agents, blocks=50)), agents - 1) if block]
    assert connected(tables, agents)


def test_it_waits_while_as_many_blocks_as_games_at_once_are_open() -> None:
    history = adaptive(5, blocks=50, concurrency=6)
    proposals = blocks(history)
    first = [next(proposals) for _ in range(6)]
    assert None not in first
    assert next(proposals) is None
    for block in first[:1]:
        assert block is not None
        for game in history.maker.games(block):
            assert next(proposals) is None
            history.add(ended(game, (1.0, -1.0)))
    assert next(proposals) is not None
    assert next(proposals) is None


def planned(history: History) -> _Planner:
    planner = _Planner(history)
    planner.look()
    planner._fit()
    return planner


def test_gains_are_those_of_a_new_fit() -> None:
    """What a block of a pair is expected to do to the trace, beside adding its information to the Hessian."""
    history = adaptive(5, blocks=40)
    play(history, by_strength([0.0, 100, 300, 320, 700], draw=0.2), most=90)
    planner = planned(history)
    results = history.comparisons()
    hessian = fit(results.cells()).hessian
    center = np.eye(5) - 1 / 5

    def trace(matrix: Any) -> float:
        covariance = np.linalg.inv(matrix)[:5, :5]
        return float(np.trace(center @ covariance @ center))

    before, gains = trace(hessian), planner._gains(0)
    for one, other in combinations(range(5), 2):
        toward = np.zeros(len(hessian))
        toward[one], toward[other] = 1, -1
        after = trace(hessian + planner.weights[0][one, other] * np.outer(toward, toward))
        assert gains[one, other] == pytest.approx(before - after, rel=1e-6)


def test_what_is_under_way_is_accounted_for() -> None:
    history = adaptive(5, blocks=40)
    play(history, by_strength([0.0, 100, 300, 320, 700], draw=0.2), most=90)
    planner = planned(history)
    spread = planner.spread.copy()
    block = Block(0, 99, (1, 3))
    planner._expect(block)
    toward = np.eye(5)[1] - np.eye(5)[3]
    expected = np.linalg.inv(np.linalg.inv(spread) + planner.weights[0][1, 3] * np.outer(toward, toward))
    assert np.allclose(planner.spread, expected)


@pytest.mark.parametrize("draw", [0.0, 0.3, 2.0])
def test_the_information_of_a_game(draw: float) -> None:
    """The expected second derivative of Davidson's log likelihood, by differences."""
    for gap in (-3.0, 0.0, 0.7):

        def chances(d: float) -> Any:
            weights = np.array([np.exp(d / 2), draw, np.exp(-d / 2)])
            return weights / weights.sum()

        step = 1e-5
        slope = (np.log(chances(gap + step) + 1e-300) - np.log(chances(gap - step) + 1e-300)) / (2 * step)
        assert _curvature(np.array(gap), draw) == pytest.approx(float(chances(gap) @ slope**2), rel=1e-5)
    assert np.isfinite(_curvature(np.array([1e4, -1e4]), draw)).all()


def test_without_chance_the_best_pair_is_chosen() -> None:
    history = adaptive(6, 0.0, blocks=40)
    play(history, by_strength([0.0, 100, 300, 320, 700, 900]), most=150)
    planner = planned(history)
    gains = planner._gains(0)
    block = planner.choose()
    assert block is not None
    assert gains[block.table] == pytest.approx(gains.max())


def test_drawn_pairs_are_drawn_from_all() -> None:
    strengths = [0.0, 200, 400, 600, 800, 1000]
    gaps = []
    for uniform in (0.0, 1.0):
        history = adaptive(6, uniform, blocks=20)
        tables = [block.table for block in play(history, by_strength(strengths))]
        seen = Counter(tables)
        assert len(tables) == 15 * 20
        gaps.append(sum(abs(strengths[one] - strengths[other]) for one, other in tables) / len(tables))
    assert set(seen) == set(combinations(range(6), 2))
    assert max(seen.values()) < 40, "20 of each are expected where all are drawn"
    assert gaps[0] < 0.75 * gaps[1], "those who are told apart already tell little"


def test_as_many_blocks_as_a_round_robin_at_most() -> None:
    for blocks_ in (1, 3):
        history = adaptive(4, blocks=blocks_)
        assert len(play(history, by_strength([0.0, 50, 100, 150]))) == 6 * blocks_


def grown(old: History, agents: int, **more: Any) -> History:
    """The tournament with agents who join it; old games are kept."""
    tournament = asked(agents, schedule="adaptive", **more)
    history = History(tournament)
    for games in old.blocks.values():
        for game in games.values():
            history.add(game)
    return history


def test_newcomers_are_connected_and_placed() -> None:
    strengths = [0.0, 100, 200, 300, 400, 500, 250, 900]
    old = adaptive(6, blocks=10)
    play(old, by_strength(strengths))
    assert old.finished == 15 * 10 * 2
    history = grown(old, 8, blocks=10)
    played = play(history, by_strength(strengths))
    assert history.finished == 28 * 10 * 2
    assert set(old.blocks) <= set(history.blocks), "old games are kept"
    assert set(played[0].table) & set(played[1].table) <= set(range(6))
    assert {6, 7} <= {*played[0].table, *played[1].table}, "both are connected first"
    assert set(played[0].table) & {2, 3}, "to the middle of the field"
    seats = Counter(agent for block in played[:20] for agent in block.table)
    assert min(seats[6], seats[7]) >= 8, "an even share is 5"
    rated = rate(history.comparisons())
    assert abs(rated.half[6] / rated.half[:6].mean() - 1) < 0.3
    assert rated.elo.argmax() == 7


def test_games_take_turns() -> None:
    history = adaptive(4, games=["TicTacToe", {"id": "KuhnPoker", "blocks": 2}], blocks=6)
    played = play(history, by_strength([0.0, 100, 200, 300]))
    seen = Counter[int]()
    for block in played:
        seen[block.entry] += 1
        assert abs(seen[0] / 36 - seen[1] / 12) <= 1 / 12 + 1e-9
    assert seen == {0: 36, 1: 12}


def test_a_pair_that_stays_void_is_not_asked_for_ever() -> None:
    history = adaptive(4, blocks=30)
    void = play(history, by_strength([0.0, 10, 20, 30]), void=lambda game: set(game.agents) == {0, 3})
    assert sum(block.table == (0, 3) for block in void) <= 2
    assert len(void) == 180


def test_tables_of_many_seats_hold_those_who_tell_most() -> None:
    history = adaptive(7, 0.0, games=["LiarsDice?players=3"], blocks=10)
    played = play(history, by_strength([0.0, 0, 0, 2000, 2000, 4000, 4000]))
    assert history.finished == 10 * 9
    assert connected([block.table for block in played[:6]], 7)
    assert all(len(set(block.table)) == 3 for block in played)


def test_proposals_do_not_depend_on_the_order_of_equal_results() -> None:
    history = adaptive(5, blocks=8)
    play(history, by_strength([0.0, 100, 200, 300, 400]), most=80)
    results: list[Result] = [game for games in history.blocks.values() for game in games.values()]
    first = []
    for order in (results, results[::-1]):
        again = History(history.tournament)
        for result in order:
            again.add(result)
        first.append(next(block for block in blocks(again) if block and not history.results(block)))
    assert first[0] == first[1]


def test_narrower_than_random_pairs_in_a_wide_field() -> None:
    strengths = np.random.default_rng(5).normal(0, 400, 12).tolist()
    widths = []
    for uniform in (0.2, 1.0):
        history = adaptive(12, uniform, blocks=400, concurrency=12)
        play(history, by_strength(strengths, draw=0.2), at_once=6, most=600)
        widths.append(float(rate(history.comparisons()).half.mean()))
    assert widths[0] < 0.95 * widths[1]
