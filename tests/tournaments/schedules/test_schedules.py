"""What all schedules keep: each game once, within the bound, on from where they were broken off, never stuck."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.tournaments.history import History, Result
from arena.tournaments.schedule import Fixture
from arena.tournaments.schedules import blocks, most
from tests.tournaments.schedules.play import asked, by_strength, play

TWO: list[Any] = ["round-robin", "gauntlet", "gauntlet?anchors=a1,a3", "swiss", "swiss?rounds=2", "adaptive",
                  "list?tables=a0|a1,a3|a2", "knockout?extra=2", "knockout?extra=1&third=true"]  # fmt: skip
MANY: list[Any] = ["round-robin", "gauntlet", "gauntlet?anchors=a1,a3", "swiss", "adaptive", "list?tables=a0|a1|a3"]
GAMES = {
    "two": (["TicTacToe"], TWO),
    "two games": (["TicTacToe", {"id": "KuhnPoker", "blocks": 2}], TWO),
    "with a task": (["TicTacToe", "Arithmetic"], [name for name in TWO if "knockout" not in name]),
    "three seats": (["LiarsDice?players=3"], MANY),
    "seats and tasks": (["LiarsDice?players=3", "Arithmetic"], MANY),
}
CASES = [(kind, schedule) for kind, (_, schedules) in GAMES.items() for schedule in schedules]
each = pytest.mark.parametrize(("kind", "schedule"), CASES, ids=lambda value: str(value).replace("?", "-"))


def history_of(kind: str, schedule: Any, agents: int = 5, **more: Any) -> History:
    return History(asked(agents, games=GAMES[kind][0], schedule=schedule, **more))


@each
@pytest.mark.parametrize("agents", [4, 5, 7])
def test_every_game_once_and_no_more_than_promised(kind: str, schedule: Any, agents: int) -> None:
    history = history_of(kind, schedule, agents, blocks=2)
    played = play(history, by_strength([100.0 * a for a in range(agents)], draw=0.3), at_once=3, seed=1)
    assert len(played) == len(set(played))
    games = [0] * len(history.tournament.games)
    for results in history.blocks.values():
        for result in results.values():
            games[result.entry] += 1
    for seen, bound in zip(games, most(history), strict=True):
        assert 0 < seen <= bound
        if "knockout" not in str(schedule):
            assert seen == bound


@each
def test_a_task_is_done_by_all_on_every_item(kind: str, schedule: Any) -> None:
    history = history_of(kind, schedule, blocks=3)
    alone = [block for block in play(history, by_strength([0.0] * 5)) if len(block.table) == 1]
    wanted = (
        {(number, agent) for number in range(3) for agent in range(5)} if "Arithmetic" in str(GAMES[kind]) else set()
    )
    assert {(block.number, block.table[0]) for block in alone} == wanted
    assert len(alone) == len(wanted)


@each
@pytest.mark.parametrize("cut", [1, 2, 7, 13])
def test_what_was_broken_off_goes_on(kind: str, schedule: Any, cut: int) -> None:
    outcome = by_strength([100.0, 0, 300, 50, 20], draw=0.2)
    unbroken = history_of(kind, schedule)
    play(unbroken, outcome, at_once=2, seed=cut)
    history = history_of(kind, schedule)
    for start in range(60):
        again = History(history.tournament)  # as after a kill: only what was stored is there
        for results in history.blocks.values():
            for result in results.values():
                again.add(result)
        history = again
        begun = list(history.unfinished())
        if begun:
            assert begun == [next(blocks(history))] * len(begun) or begun[0] == next(blocks(history))
        before = history.finished
        play(history, outcome, at_once=2, seed=start, most=cut)
        if history.finished == before:
            break
    assert all(map(history.over, history.known.values()))
    if "adaptive" in str(schedule):
        assert history.finished >= unbroken.finished
    else:
        assert set(history.blocks) == set(unbroken.blocks)
        assert history.finished == unbroken.finished


@each
def test_games_that_stay_void_hold_up_nothing(kind: str, schedule: Any) -> None:
    for void in (lambda game: 2 in game.agents, lambda game: True, lambda game: int(game.id, 16) % 2 == 0):
        history = history_of(kind, schedule, blocks=2)
        play(history, by_strength([0.0] * 5, draw=0.5), at_once=3, seed=3, void=void)
        assert not list(history.unfinished())


@each
def test_a_function_of_the_history(kind: str, schedule: Any) -> None:
    outcome = by_strength([100.0, 0, 300, 50, 20])
    histories = [history_of(kind, schedule, blocks=2) for _ in range(2)]
    assert play(histories[0], outcome) == play(histories[1], outcome)
    for history in histories:
        assert history.finished


ORDER = """
from tests.tournaments.schedules.play import asked, by_strength, play
from arena.tournaments.history import History
outcome = by_strength([0.0, 9, 300, 50, 20, 7])
for schedule in {schedules!r}:
    print(play(History(asked(6, schedule=schedule, blocks=2)), outcome, at_once=3, seed=1))
"""


def test_whatever_the_hash_seed() -> None:
    code = ORDER.format(schedules=TWO)
    said = [
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, check=True, capture_output=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert said[0].count(b"Block(") > 100


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 9), st.integers(1, 2), st.integers(0, 99), st.sampled_from(["swiss", "knockout", "adaptive"]))
def test_any_number_of_agents(agents: int, count: int, seed: int, schedule: str) -> None:
    history = History(asked(agents, blocks=count, schedule=schedule))
    played = play(history, by_strength([50.0 * a for a in range(agents)], seed, 0.3), at_once=2, seed=seed)
    assert len(set(played)) == len(played) > 0
    assert history.finished <= most(history)[0]


@pytest.mark.parametrize("schedule", [name for name in MANY if "list" not in str(name)])
@pytest.mark.parametrize(("agents", "seats"), [(2, 3), (3, 3), (4, 3), (8, 3), (5, 4), (9, 4), (6, 5), (3, 6)])
def test_tables_of_any_size(schedule: Any, agents: int, seats: int) -> None:
    if "a3" in str(schedule) and agents < 4:
        schedule = "gauntlet?anchors=a1"
    history = History(asked(agents, games=[f"LiarsDice?players={seats}"], schedule=schedule, blocks=4))
    played = play(history, by_strength([50.0 * a for a in range(agents)]), at_once=2)
    assert all(len(block.table) == seats for block in played)
    assert all(len(set(block.table)) == min(agents, seats) for block in played)
    assert history.finished == most(history)[0]
    assert {agent for block in played for agent in block.table} == set(range(agents))


def test_old_results_of_another_schedule_are_kept() -> None:
    history = History(asked(4, schedule="round-robin", blocks=2))
    play(history, by_strength([0.0, 100, 200, 300]))
    for schedule in TWO:
        later = History(asked(4, schedule=schedule, blocks=2))
        for results in history.blocks.values():
            for result in results.values():
                assert later.add(result)
        play(later, by_strength([0.0, 100, 200, 300]), at_once=2)
        assert {key for key in history.blocks if history.blocks[key]} <= set(later.blocks)


def test_a_finished_block_is_never_begun_again() -> None:
    def impossible(game: Fixture) -> tuple[float, ...]:
        raise AssertionError("nothing is left to play")

    for schedule in TWO:
        history = History(asked(5, schedule=schedule, blocks=2))
        play(history, by_strength([0.0, 100, 200, 300, 400]))
        again = History(history.tournament)
        results: list[Result] = [result for block in history.blocks.values() for result in block.values()]
        for result in sorted(results):
            again.add(result)
        play(again, impossible)
