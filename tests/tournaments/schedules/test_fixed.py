"""Gauntlets and lists: who meets whom, who sits where, how many games there are."""

from collections import Counter
from typing import Any

import pytest

from arena.tournaments.history import History
from arena.tournaments.schedule import Block, fixtures, robin
from arena.tournaments.schedules import blocks, most
from tests.tournaments.schedules.play import asked


def all_of(schedule: Any, agents: int, **more: Any) -> list[Block]:
    history = History(asked(agents, schedule=schedule, **more))
    proposed = list(blocks(history))
    assert None not in proposed
    found = [block for block in proposed if block is not None]
    sizes = [0] * len(history.tournament.games)
    for block in found:
        sizes[block.entry] += history.maker.size(block)
    assert sizes == most(history)
    return found


def test_a_round_robin_is_as_ever() -> None:
    tournament = asked(5, games=["TicTacToe", "LiarsDice?players=3"], blocks=3)
    history = History(tournament)
    assert list(blocks(history)) == list(robin(tournament, [2, 3]))
    games = [game for block in blocks(history) if block for game in history.maker.games(block)]
    assert games == list(fixtures(tournament))


def test_one_anchor_meets_everybody_and_nobody_else_meets() -> None:
    assert Counter(block.table for block in all_of("gauntlet", 5, blocks=2)) == {(0, k): 2 for k in range(1, 5)}


def test_several_anchors_meet_everybody_else_each_other_too() -> None:
    tables = {block.table for block in all_of("gauntlet?anchors=a3,a1", 5)}
    assert tables == {(0, 1), (0, 3), (1, 2), (1, 3), (1, 4), (2, 3), (3, 4)}


def test_anchors_alone_are_a_round_robin() -> None:
    everybody = all_of("gauntlet?anchors=a0,a1,a2", 3, blocks=2)
    assert sorted(everybody) == sorted(all_of("round-robin", 3, blocks=2))


@pytest.mark.parametrize("agents", range(4, 14))
@pytest.mark.parametrize("anchors", ["a0", "a0,a1", "a2,a0,a3"])
@pytest.mark.parametrize("seats", [3, 4, 6])
def test_tables_hold_an_anchor_and_everybody_else_once_or_twice(agents: int, anchors: str, seats: int) -> None:
    held = {int(name[1:]) for name in anchors.split(",")}
    found = all_of(f"gauntlet?anchors={anchors}", agents, games=[f"LiarsDice?players={seats}"], blocks=12)
    seen = Counter(agent for block in found for agent in set(block.table))
    for block in found:
        assert len(set(block.table)) == min(seats, agents)
        assert set(block.table) & held
    if agents > seats:
        for number in range(12):
            tables = [block.table for block in found if block.number == number]
            sat = Counter(agent for table in tables for agent in table if agent not in held)
            assert set(sat) == set(range(agents)) - held
            assert max(sat.values()) <= 2
        others = [seen[agent] for agent in range(agents) if agent not in held]
        assert max(others) - min(others) <= 12


def test_fillers_take_turns() -> None:
    found = all_of("gauntlet", 5, games=["LiarsDice?players=4"], blocks=4)  # 4 others at tables of 3: two sit twice
    seen = Counter(agent for block in found for agent in block.table if agent)
    assert sum(seen.values()) == 4 * 6
    assert max(seen.values()) - min(seen.values()) <= 2


def test_a_list_is_played_as_it_stands() -> None:
    schedule = {"kind": "list", "tables": [["a2", "a0"], ["a1", "a0", "a2"], ["a1", "a2"]]}
    games = ["TicTacToe", "LiarsDice?players=3", {"id": "Arithmetic", "blocks": 1}]
    found = all_of(schedule, 3, games=games, blocks=2)
    assert found[:6] == [
        (0, 0, (2, 0)), (0, 0, (1, 2)), (1, 0, (1, 0, 2)), (2, 0, (0,)), (2, 0, (1,)), (2, 0, (2,)),
    ]  # fmt: skip
    assert len(found) == 6 + 3


@pytest.mark.parametrize("schedule", ["gauntlet", "swiss", "adaptive", "list?tables=a0|a1"])
def test_tasks_are_done_by_all(schedule: str) -> None:
    history = History(asked(4, schedule=schedule, games=["TicTacToe", "Arithmetic"], blocks=5, repetitions=2))
    assert most(history)[1] == 5 * 4 * 2
