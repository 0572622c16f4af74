from random import Random

import chess
import pytest

from arena.drawing import Drawing
from arena.game import Game
from arena.games.board.chess import Chess
from arena.games.board.connectfour import ConnectFour
from arena.games.board.tictactoe import TicTacToe
from arena.games.words.wordle import Wordle


def played(game: Game, *actions: str) -> Game:
    for action in actions:
        game = game.apply({game.to_act()[0]: action})
    return game


def drawn(game: Game) -> Drawing:
    drawing = game.drawing()
    assert drawing is not None
    assert drawing.problem() == ""
    return drawing


def test_a_game_without_a_board_draws_none() -> None:
    assert Wordle.initial(Random(0)).drawing() is None


@pytest.mark.parametrize(
    ("drawing", "problem"),
    [
        (Drawing(()), "its rows must have one length, at least 1"),
        (Drawing(((),)), "its rows must have one length, at least 1"),
        (Drawing((("a",), ("b", "c"))), "its rows must have one length, at least 1"),
        (Drawing((("a", "b"),), row_labels=("1", "2")), "2 row labels for 1 rows"),
        (Drawing((("a", "b"),), column_labels=("1",)), "1 column labels for 2 columns"),
        (Drawing((("a", "b"),), marked=((0, 2),)), "a mark lies outside"),
        (Drawing((("a", "b"),), marked=((-1, 0),)), "a mark lies outside"),
        (Drawing((("a", "b"),), "lines", ("1",), ("a", "b"), {"a": 0}, ((0, 1),)), ""),
    ],
)
def test_what_is_wrong_with_a_drawing_is_told(drawing: Drawing, problem: str) -> None:
    assert drawing.problem() == problem


def test_tic_tac_toe_is_drawn_and_its_line_marked() -> None:
    start = TicTacToe.initial(Random(0))
    assert drawn(start).rows == (("",) * 3,) * 3
    assert drawn(played(start, "5", "1", "9")).rows == (("O", "", ""), ("", "X", ""), ("", "", "X"))
    assert drawn(played(start, "5", "1", "9")).marked == ()
    assert drawn(played(start, *"51327")).marked == ((0, 2), (1, 1), (2, 0))
    assert drawn(played(start, *"14253")).marked == ((0, 0), (0, 1), (0, 2))
    assert drawn(played(start, *"519274")).marked == ()
    assert drawn(played(start, *"5192376")).rows[1] == ("", "X", "X")


@pytest.mark.parametrize(
    ("moves", "line"),
    [
        ("1213141", {(5, 0), (4, 0), (3, 0), (2, 0)}),
        ("1122334", {(5, 0), (5, 1), (5, 2), (5, 3)}),
        ("12233434464", {(5, 0), (4, 1), (3, 2), (2, 3)}),
        ("76655454424", {(5, 6), (4, 5), (3, 4), (2, 3)}),
    ],
)
def test_connect_four_is_drawn_and_its_line_marked(moves: str, line: set[tuple[int, int]]) -> None:
    game = ConnectFour.initial(Random(0))
    for move in moves:
        assert drawn(game).marked == ()
        game = game.play(move)
    drawing = drawn(game)
    assert (set(drawing.marked), game.won) == (line, True)
    assert {drawing.rows[row][column] for row, column in line} == {"X"}
    assert drawing.column_labels == tuple("1234567")
    text = "\n".join(" ".join(cell or "." for cell in row) for row in drawing.rows)
    assert game.render().startswith(text)


def test_chess_is_drawn_as_python_chess_has_it() -> None:
    rng, board = Random(3), chess.Board()
    game: Game = Chess.initial(rng)
    checks = 0
    while game.to_act() and board.ply() < 120:
        drawing = drawn(game)
        assert "\n".join(" ".join(cell or "." for cell in row) for row in drawing.rows) == board.unicode(
            empty_square="."
        )
        king = board.king(board.turn)
        assert king is not None
        where = (7 - chess.square_rank(king), chess.square_file(king))
        assert drawing.marked == ((where,) if board.is_check() else ())
        checks += board.is_check()
        action = game.sample_action(game.to_act()[0], rng)
        board.push_uci(action)
        game = game.apply({game.to_act()[0]: action})
    assert checks
    assert {drawing.owners[symbol] for symbol in "♔♕♖♗♘♙"} == {0}
    assert {drawing.owners[symbol] for symbol in "♚♛♜♝♞♟"} == {1}
