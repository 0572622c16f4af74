"""Knockouts: the bracket's lines, byes, level ties, the third place, seeds by rating."""

from typing import Any

import pytest

from arena.tournaments.history import History
from arena.tournaments.schedule import Fixture
from arena.tournaments.schedules import bracket, most
from arena.tournaments.schedules.knockout import seeds
from tests.tournaments.schedules.play import asked, by_strength, play

SURE = by_strength([-10_000.0 * agent for agent in range(40)])


def knockout(agents: int, **schedule: Any) -> History:
    more = {key: schedule.pop(key) for key in ("blocks", "games", "anchors") if key in schedule}
    return History(asked(agents, schedule={"kind": "knockout", **schedule}, **more))


def level(game: Fixture) -> tuple[float, ...]:
    return (0.0, 0.0)


def test_lines_of_brackets() -> None:
    assert seeds(2) == [0, 1]
    assert seeds(4) == [0, 3, 1, 2]
    assert seeds(16)[:4] == [0, 15, 7, 8]
    for size in (2, 4, 8, 16, 32):
        assert sorted(seeds(size)) == list(range(size))
        assert all(a + b == size - 1 for a, b in zip(seeds(size)[::2], seeds(size)[1::2], strict=True))


def test_eight_agents() -> None:
    history = knockout(8, blocks=2)
    play(history, SURE, at_once=4)
    stages = bracket(history)
    assert [[tie.agents for tie in stage] for stage in stages] == [
        [(0, 7), (3, 4), (1, 6), (2, 5)],
        [(0, 3), (1, 2)],
        [(0, 1)],
    ]
    assert [tie.winner for stage in stages for tie in stage] == [0, 3, 1, 2, 0, 1, 0]
    assert {tie.points for stage in stages for tie in stage} == {(2.0, 0.0)}
    assert history.finished == 7 * 2 * 2


@pytest.mark.parametrize("agents", range(2, 18))
def test_byes_go_to_the_best(agents: int) -> None:
    history = knockout(agents)
    play(history, SURE, at_once=3)
    stages = bracket(history)
    size = 2 * len(stages[0])
    free = [tie.agents[0] for tie in stages[0] if None in tie.agents]
    assert sorted(agent for agent in free if agent is not None) == list(range(size - agents))
    assert stages[-1][0].winner == 0
    assert stages[-1][0].agents == (0, 1)
    assert history.finished == 2 * (agents - 1)


def test_before_anything_is_played() -> None:
    stages = bracket(knockout(5))
    assert [tie.agents for tie in stages[0]] == [(0, None), (3, 4), (1, None), (2, None)]
    assert [tie.winner for tie in stages[0]] == [0, None, 1, 2]
    assert [tie.agents for tie in stages[1]] == [(0, None), (1, 2)]
    assert stages[2][0].agents == (None, None)


@pytest.mark.parametrize("extra", [0, 1, 5])
def test_a_tie_that_stays_level_goes_to_the_better_seed(extra: int) -> None:
    history = knockout(4, blocks=2, extra=extra)
    play(history, level)
    assert [tie.winner for stage in bracket(history) for tie in stage] == [0, 1, 0]
    assert all(tie.blocks == 2 + extra for stage in bracket(history) for tie in stage)
    assert history.finished == most(history)[0] == 3 * (2 + extra) * 2


def test_further_blocks_end_with_the_first_that_decides() -> None:
    def outcome(game: Fixture) -> tuple[float, ...]:
        return level(game) if game.seed < 4 else SURE(game)[::-1]

    history = knockout(2, blocks=2, extra=9)
    played = play(history, outcome)
    assert [block.number for block in played] == [0, 1, 2, 3, 4]
    (tie,) = bracket(history)[0]
    assert (tie.winner, tie.points, tie.blocks) == (1, (2.0, 3.0), 5)


def test_the_third_place() -> None:
    history = knockout(4, third=True)
    play(history, SURE)
    final, third = bracket(history)[-1]
    assert (final.agents, final.third, third.agents, third.third) == ((0, 1), False, (2, 3), True)
    assert third.winner == 2
    assert history.finished == 4 * 2
    assert [len(stage) for stage in bracket(knockout(3, third=True))] == [2, 1]


def test_seeds_by_rating() -> None:
    history = knockout(4, seeding="rated", anchors={"a3": 1200, "a1": 1100.5})
    play(history, SURE)
    assert [tie.agents for tie in bracket(history)[0]] == [(3, 2), (1, 0)]
    assert bracket(history)[1][0].agents == (0, 2), "the better seed first"


def test_ties_do_not_wait_for_each_other() -> None:
    """Those who won early play on while another tie of the first stage is still level."""

    def outcome(game: Fixture) -> tuple[float, ...]:
        return level(game) if set(game.agents) == {2, 5} else SURE(game)

    history = knockout(8, extra=30)
    order = [block.table for block in play(history, outcome, at_once=4)]
    assert order.index((0, 3)) < len(order) - 1 - order[::-1].index((2, 5))


def test_several_games_make_one_tie() -> None:
    history = knockout(2, games=["TicTacToe", {"id": "KuhnPoker", "blocks": 2}])
    play(history, SURE)
    (tie,) = bracket(history)[0]
    assert tie.points == (3.0, 0.0)
