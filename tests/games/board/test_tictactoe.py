import pickle
from collections import Counter
from random import Random
from typing import Any

import pytest

from arena.game import IllegalAction
from arena.games.board.tictactoe import TicTacToe

START = TicTacToe.initial(Random(0))


def played(moves: str) -> TicTacToe:
    game = START
    for move in moves:
        game = game.apply({game.to_act()[0]: move})
    return game


def test_whole_tree_has_the_published_counts() -> None:
    """255,168 games: 131,184 won by X, 77,904 by O, 46,080 drawn; 5,478 positions, 958 of them final."""
    games: Counter[TicTacToe] = Counter({START: 1})
    ends: Counter[tuple[float, ...]] = Counter()
    positions = final = 0
    while games:
        following: Counter[TicTacToe] = Counter()
        positions += len(games)
        for game, ways in games.items():
            if not game.to_act():
                ends[game.returns()] += ways
                final += 1
                continue
            for action in game.legal_actions(game.ply & 1):
                following[game.play(action)] += ways
        games = following
    assert ends == {(1.0, -1.0): 131_184, (-1.0, 1.0): 77_904, (0.0, 0.0): 46_080}
    assert (positions, final) == (5_478, 958)


def test_perfect_play_is_a_draw() -> None:
    values: dict[TicTacToe, float] = {}

    def value(game: TicTacToe) -> float:
        if game not in values:
            if not game.to_act():
                values[game] = game.returns()[0]
            else:
                best = max if game.to_act() == (0,) else min
                values[game] = best(value(game.play(a)) for a in game.legal_actions(game.to_act()[0]))
        return values[game]

    assert value(START) == 0.0
    assert value(played("19")) == 1.0  # the far corner loses to a corner


def test_board_is_drawn_for_both_seats() -> None:
    game = played("519")
    assert game.observation(0) == "You are X.\nO . .\n. X .\n. . X"
    assert game.observation(1) == "You are O.\nO . .\n. X .\n. . X"


@pytest.mark.parametrize(
    ("moves", "returns"),
    [("14253", (1.0, -1.0)), ("142578", (0.0, 0.0)), ("1234567", (1.0, -1.0)), ("714258", (0.0, 0.0))],
)
def test_returns(moves: str, returns: tuple[float, float]) -> None:
    assert played(moves).returns() == returns


@pytest.mark.parametrize("line", ["123", "456", "789", "147", "258", "369", "159", "357"])
def test_o_wins_on_each_line(line: str) -> None:
    harmless = {"123": "478", "456": "178", "789": "124", "147": "238", "258": "134", "369": "125"}
    xs = harmless.get(line, "246" if line == "159" else "128")
    game = played("".join(x + o for x, o in zip(xs, line, strict=True)))
    assert game.returns() == (-1.0, 1.0)
    assert game.to_act() == ()
    assert game.legal_actions(0) == game.legal_actions(1) == ()


def test_full_board_is_a_draw() -> None:
    game = played("123546879")
    assert game.over
    assert game.returns() == (0.0, 0.0)


@pytest.mark.parametrize("action", ["", "0", "10", "٣", "²", "5 ", "a", "\ud800", "1" * 1_000_000, "\x00"])
def test_hostile_text_is_illegal_and_changes_nothing(action: str) -> None:
    with pytest.raises(IllegalAction, match="write the number of a free square"):
        START.play(action)
    assert TicTacToe() == START


def test_taken_square_is_named() -> None:
    with pytest.raises(IllegalAction, match="square 5 is taken"):
        played("5").play("5")


def test_other_seats_actions_are_the_callers_bug() -> None:
    wrong: list[dict[int, Any]] = [{}, {1: "1"}, {0: "1", 1: "2"}]
    for actions in wrong:
        with pytest.raises(ValueError, match="to act"):
            START.apply(actions)
    with pytest.raises(ValueError, match="to act"):
        played("14253").apply({1: "9"})


def test_facts() -> None:
    assert START.action_table() == tuple("123456789")
    assert START.max_turns() == 9
    assert "You are O" in START.rules(1)
    game = played("51")
    assert game.features(0) == (0.0,) * 4 + (1.0,) + (0.0,) * 4 + (1.0,) + (0.0,) * 8
    assert game.features(1) == game.features(0)[9:] + game.features(0)[:9]
    assert pickle.loads(pickle.dumps(game)) == game
    assert len(game.observation(0)) <= game.max_length()
    assert game.legal_actions(1) == ()


@pytest.mark.oracle
def test_open_spiel_agrees() -> None:
    pyspiel = pytest.importorskip("pyspiel")
    rng = Random(1)
    for _ in range(200):
        game, state = START, pyspiel.load_game("tic_tac_toe").new_initial_state()
        while not state.is_terminal():
            assert game.to_act() == (state.current_player(),)
            legal = game.legal_actions(state.current_player())
            assert [int(a) - 1 for a in legal] == state.legal_actions()
            action = rng.choice(legal)
            game = game.play(action)
            state.apply_action(int(action) - 1)
            assert game.observation(0).split("\n", 1)[1].replace(" ", "") == str(state).upper()
        assert game.to_act() == ()
        assert list(game.returns()) == state.returns()
