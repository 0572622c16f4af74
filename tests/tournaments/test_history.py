"""What is known of a tournament: blocks, scores, what is left, and the comparisons that ratings take."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.tournaments.history import History, Result, scores
from arena.tournaments.ratings import OUTCOMES, Results, rate
from arena.tournaments.schedule import Block, Fixture
from tests.tournaments.schedules.play import asked, by_strength, ended, play


def result(returns: tuple[float, ...], forfeits: tuple[int, ...] = ()) -> Result:
    return Result("id", "block", 0, 0, tuple(range(len(returns))), returns, forfeits, False)


@pytest.mark.parametrize(
    ("returns", "forfeits", "expected"),
    [
        ((1.0, -1.0), (), [1, 0]),
        ((0.0, 0.0), (), [0.5, 0.5]),
        ((0.0, 0.0), (1,), [1, 0]),
        ((5.0, 9.0), (1,), [1, 0]),
        ((-1.0, -1.0), (0, 1), [0.5, 0.5]),
        ((3.0, 1.0, 2.0), (), [1, 0, 0.5]),
        ((3.0, 1.0, 3.0, 0.0), (0,), [0, 2 / 3, 1, 1 / 3]),
        ((7.0,), (), [0]),
    ],
)
def test_scores(returns: tuple[float, ...], forfeits: tuple[int, ...], expected: list[float]) -> None:
    assert scores(result(returns, forfeits)) == pytest.approx(expected)


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=7), st.sets(st.integers(0, 6)))
def test_scores_add_up(returns: list[float], forfeits: set[int]) -> None:
    told = scores(result(tuple(returns), tuple(sorted(seat for seat in forfeits if seat < len(returns)))))
    assert sum(told) == pytest.approx(len(returns) / 2)
    assert all(0 <= score <= 1 for score in told)


def whole(history: History, block: Block, *returns: tuple[float, ...]) -> list[Fixture]:
    games = history.maker.games(block)
    for game, earned in zip(games, returns, strict=False):
        assert history.add(ended(game, earned))
    return games


def test_a_block_is_over_when_all_its_games_are_there_or_left() -> None:
    history, block = History(asked(3)), Block(0, 4, (0, 2))
    assert not history.over(block)
    assert not list(history.unfinished())
    games = whole(history, block, (1.0, -1.0))
    assert not history.over(block)
    assert list(history.unfinished()) == [block]
    history.leave(games[1])
    assert history.over(block)
    assert not history.given_up(block)
    assert not list(history.unfinished())
    assert [found.id for found in history.results(block)] == [games[0].id]
    assert history.add(ended(games[1], (0.0, 0.0))), "it was played after all"
    assert history.left == set()
    assert history.over(block)
    assert not history.add(ended(games[1], (0.0, 0.0)))
    assert history.finished == 2


def test_a_block_that_stays_void_is_given_up() -> None:
    history, block = History(asked(3)), Block(0, 0, (1, 2))
    for game in history.maker.games(block):
        assert not history.given_up(block)
        history.leave(game)
    assert history.given_up(block)
    assert history.points(block) == {}
    assert history.known == {history.maker.key(block): block}


def test_the_key_is_that_of_its_games() -> None:
    history = History(asked(4, games=["TicTacToe", "LiarsDice?players=3"], repetitions=2))
    for block in (Block(0, 3, (2, 1)), Block(1, 0, (3, 0, 2)), Block(1, 0, (0, 0, 1))):
        games = history.maker.games(block)
        assert {game.block for game in games} == {history.maker.key(block)}
        assert len(games) == history.maker.size(block)


def test_points_of_blocks() -> None:
    history = History(asked(3))
    for returns, expected in (
        (((1.0, -1.0), (-1.0, 1.0)), {0: 1.0, 1: 0.0}),
        (((1.0, -1.0), (1.0, -1.0)), {0: 0.5, 1: 0.5}),
        (((1.0, -1.0), (0.0, 0.0)), {0: 1.0, 1: 0.0}),
        (((0.0, 0.0),), {0: 0.5, 1: 0.5}),
    ):
        block = Block(0, history.finished, (0, 1))
        whole(history, block, *returns)
        assert history.points(block) == expected


def test_points_of_tables() -> None:
    history = History(asked(4, games=["LiarsDice?players=3"]))
    block = Block(0, 0, (3, 1, 0))
    whole(history, block, (2.0, 1.0, 0.0), (1.0, 0.0, 2.0), (0.0, 3.0, 2.0))  # seats turn: 310, 103, 031
    assert history.points(block) == {0: 0.0, 1: 0.5, 3: 1.0}


def test_truncated_games_count_as_declared() -> None:
    for declared, expected in (("score", {0: 1.0, 1: 0.0}), ("drop", {})):
        history, block = History(asked(2, truncated=declared)), Block(0, 0, (0, 1))
        game = history.maker.games(block)[0]
        history.add(ended(game, (1.0, -1.0), truncated=True))
        assert history.points(block) == expected
        assert len(history.comparisons().outcome) == len(expected) / 2
        assert history.finished == 1


def rows(history: History) -> list[tuple[Any, ...]]:
    told = history.comparisons()
    assert told.weight is not None
    return [
        (told.games[g], told.players[a], told.players[b], OUTCOMES[o], round(float(w), 3))
        for g, a, b, o, w in zip(told.game, told.first, told.second, told.outcome, told.weight, strict=True)
    ]


def test_two_player_games_are_their_own_comparisons() -> None:
    history = History(asked(3))
    play(history, by_strength([0.0, 100, 300], draw=0.3))
    games = [game for block in history.blocks.values() for game in block.values()]
    named = {1.0: "first", 0.5: "draw", 0.0: "second"}
    table = [
        ("TicTacToe-v0", f"a{game.agents[0]}", f"a{game.agents[1]}", named[scores(game)[0]], game.block)
        for game in games
    ]
    ours, theirs = rate(history.comparisons()), rate(Results.of(table, ["a0", "a1", "a2"]))
    assert np.allclose(ours.elo, theirs.elo)
    assert np.allclose(ours.half, theirs.half)


def test_tables_are_compared_in_pairs_of_two_thirds() -> None:
    history = History(asked(3, games=["LiarsDice?players=3"]))
    whole(history, Block(0, 0, (2, 0, 1)), (5.0, 1.0, 1.0))
    label = history.tournament.games[0].label
    assert rows(history) == [
        (label, "a2", "a0", "first", 0.667),
        (label, "a2", "a1", "first", 0.667),
        (label, "a0", "a1", "draw", 0.667),
    ]
    assert set(history.comparisons().cluster.tolist()) == {0}


def test_an_agent_is_not_compared_with_itself() -> None:
    history = History(asked(2, games=["LiarsDice?players=3"]))
    whole(history, Block(0, 0, (0, 1, 0)), (5.0, 1.0, 0.0))
    assert [(one, other) for _, one, other, _, _ in rows(history)] == [("a0", "a1"), ("a1", "a0")]


def test_tasks_are_compared_on_the_same_item_with_turns_at_being_first() -> None:
    history = History(asked(3, games=["Arithmetic"], blocks=2))
    for seed in range(2):
        for agent in range(3):
            whole(history, Block(0, seed, (agent,)), (float(agent > 0),))
    told = history.comparisons()
    assert len(told.outcome) == 6
    assert set(told.cluster.tolist()) == {0, 1}
    assert told.weight is not None
    assert np.allclose(told.weight, 2 / 3)
    for one, other in combinations(range(3), 2):
        ours = [
            (a, b, o) for a, b, o in zip(told.first, told.second, told.outcome, strict=True) if {a, b} == {one, other}
        ]
        assert {(a, b) for a, b, _ in ours} == {(one, other), (other, one)}
        for a, _, outcome in ours:
            assert outcome == (1 if one > 0 else 2 if a == 0 else 0)


def test_the_log_tells_what_ended_in_order() -> None:
    history = History(asked(2, blocks=3))
    played = play(history, by_strength([0.0, 0.0]), void=lambda game: game.seed == 1)
    assert history.log == [key for block in played for key in [history.maker.key(block)] * 2]
    assert list(history.known.values()) == played
