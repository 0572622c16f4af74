"""Swiss rounds: like meets like, nobody twice while that can be helped, byes go round, tables by standing."""

from collections import Counter
from itertools import combinations
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.tournaments.history import History
from arena.tournaments.schedule import Block
from arena.tournaments.schedules import blocks, standings
from arena.tournaments.schedules.swiss import pair
from tests.tournaments.schedules.play import asked, by_strength, ended, play


def swiss(agents: int, rounds: int | None = None, **more: Any) -> History:
    schedule = {"kind": "swiss"} | ({"rounds": rounds} if rounds else {})
    return History(asked(agents, schedule=schedule, **more))


def rounds_of(played: list[Block], count: int = 1) -> list[list[tuple[int, ...]]]:
    """The tables of every round."""
    found: dict[int, list[tuple[int, ...]]] = {}
    for block in played:
        found.setdefault(block.number // count, []).append(block.table)
    return [list(dict.fromkeys(found[number])) for number in sorted(found)]


SURE = by_strength([-10_000.0 * agent for agent in range(40)])  # a0 beats all, a1 all others, ...


def test_the_first_rounds_by_hand() -> None:
    """Eight agents, the better one always wins: a textbook Swiss."""
    played = rounds_of(play(swiss(8), SURE))
    assert played[0] == [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert played[1] == [(0, 2), (1, 3), (4, 6), (5, 7)]
    assert played[2][0] == (0, 1)
    assert len(played) == 3


def test_the_best_is_first_and_points_add_up() -> None:
    history = swiss(8)
    play(history, SURE)
    places = standings(history)
    assert places[0][:2] == (0, 3.0)
    assert sum(place.points for place in places) == 3 * 4
    assert [place.points for place in places] == sorted([place.points for place in places], reverse=True)
    points = {place.agent: place.points for place in places}
    met = [block.table for block in history.known.values() if 0 in block.table]
    assert places[0].opponents == sum(points[agent] for table in met for agent in table if agent != 0)


def test_standings_count_rounds_that_are_over() -> None:
    history = swiss(4, blocks=2)
    assert [place.points for place in standings(history)] == [0, 0, 0, 0]
    proposals = blocks(history)
    first = [next(proposals) for _ in range(4)]
    assert next(proposals) is None
    assert next(proposals) is None
    for block in first[:-1]:
        assert block is not None
        for game in history.maker.games(block):
            history.add(ended(game, SURE(game)))
    assert next(proposals) is None
    assert all(place.points == 0 for place in standings(history))
    assert first[-1] is not None
    for game in history.maker.games(first[-1]):
        history.add(ended(game, SURE(game)))
    assert [place.points for place in standings(history)] == [2, 2, 0, 0]
    assert next(proposals) is not None


@pytest.mark.parametrize("agents", [4, 5, 6, 7, 8, 9, 12, 15])
def test_nobody_meets_twice_while_there_is_another_way(agents: int) -> None:
    """As many rounds as a round robin has: every pair once at most, whoever wins."""
    for seed in range(4):
        history = swiss(agents, agents // 2)
        play(history, by_strength([80.0 * Random(seed).random() for _ in range(agents)], seed, 0.3))
        met = Counter(block.table for block in history.known.values())
        assert len(met) == agents // 2 * (agents // 2)
        assert set(met.values()) == {1}


def test_where_all_have_met_pairs_meet_a_second_time_at_most() -> None:
    history = swiss(4, 6)
    played = play(history, SURE)
    met = Counter(tuple(sorted(block.table)) for block in played)
    assert set(met.values()) == {2}
    assert len({(block.number, block.table) for block in played}) == 12


@pytest.mark.parametrize("agents", [3, 5, 9])
def test_byes_go_round_from_the_bottom_and_are_won(agents: int) -> None:
    history = swiss(agents, agents, blocks=2)
    played = rounds_of(play(history, SURE), 2)
    without = [(set(range(agents)) - {agent for table in tables for agent in table}).pop() for tables in played]
    assert without[0] == agents - 1
    assert sorted(without) == list(range(agents))
    places = {place.agent: place for place in standings(history)}
    assert {place.byes for place in places.values()} == {1}
    assert places[agents - 1].points >= 2, "a bye gives the points of two blocks won"


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 7), st.integers(0, 10**6))
def test_pairs_of_any_standing(half: int, seed: int) -> None:
    rng, agents = Random(seed), 2 * half
    order = rng.sample(range(agents), agents)
    points = {agent: float(rng.randrange(3)) for agent in order}
    order.sort(key=lambda agent: -points[agent])
    met = Counter({two: rng.randrange(3) for two in combinations(range(agents), 2)})
    pairs = pair(order, points, met)
    assert sorted(agent for two in pairs for agent in two) == sorted(order)
    worst = max(met[min(two), max(two)] for two in pairs)

    def possible(left: tuple[int, ...]) -> bool:
        if not left:
            return True
        first, *rest = left
        fits = [o for o in rest if met[min(first, o), max(first, o)] < worst]
        return any(possible(tuple(a for a in rest if a != o)) for o in fits)

    assert not possible(tuple(order)), "fewer meetings would have done"


def test_upper_half_meets_lower_half_within_a_group() -> None:
    points = dict.fromkeys(range(6), 1.0) | dict.fromkeys(range(6, 9), 0.5) | {9: 0.0}
    assert pair(list(range(10)), points, Counter()) == [(0, 3), (1, 4), (2, 5), (6, 7), (8, 9)]
    assert pair(list(range(10)), points, Counter({(0, 3): 1}))[0] == (0, 4)


def test_tables_by_standing() -> None:
    history = swiss(9, 2, games=["LiarsDice?players=3"])
    rank = by_strength([-10_000.0 * agent for agent in range(9)])
    played = rounds_of(play(history, rank))
    assert played[0] == [(0, 1, 2), (3, 4, 5), (6, 7, 8)]
    assert played[1] == [(0, 3, 6), (1, 4, 7), (2, 5, 8)]
    places = standings(history)
    assert (places[0].agent, places[0].points) == (0, 2.0)
    assert places[-1].agent == 8


def test_who_sits_twice_takes_turns() -> None:
    history = swiss(8, 6, games=["LiarsDice?players=3"])
    played = rounds_of(play(history, by_strength([0.0] * 8)))
    twice = [agent for tables in played for agent, seats in Counter(a for t in tables for a in t).items() if seats == 2]
    assert len(twice) == 6
    assert len(set(twice)) >= 4


def test_two_games_share_the_pairs_of_a_round() -> None:
    history = swiss(6, 3, games=["TicTacToe", "KuhnPoker"])
    tables: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for block in play(history, SURE):
        tables.setdefault((block.number, block.entry), []).append(block.table)
    for number in range(3):
        assert tables[number, 0] == tables[number, 1]


def test_many_agents_are_paired_soon() -> None:
    order = list(range(96))
    met = Counter({(one, other): 1 for one, other in combinations(order, 2) if (one + other) % 4})
    pairs = pair(order, {agent: float(agent // 10) for agent in order}, met)
    assert len(pairs) == 48
    assert all((one + other) % 4 == 0 for one, other in pairs)
