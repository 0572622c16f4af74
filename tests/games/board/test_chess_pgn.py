import io
from random import Random

import chess
import chess.pgn
import pytest

from arena.games.board.chess import Chess
from arena.games.board.tictactoe import TicTacToe

MATE = ("f2f3", "e7e5", "g2g4", "d8h4")
NAMES = ("ann", "bob")


def read(text: str | None) -> chess.pgn.Game:
    assert text is not None
    stream = io.StringIO(text)
    game = chess.pgn.read_game(stream)
    assert game is not None
    assert game.errors == []
    assert chess.pgn.read_game(stream) is None, "one game, and nothing after it"
    return game


def random_play(game: Chess, seed: int) -> tuple[Chess, list[str]]:
    rng, actions = Random(seed), []
    while game.to_act():
        actions.append(game.sample_action(game.to_act()[0], rng))
        game = game.play(actions[-1])
    return game, actions


def test_a_game_and_its_tags() -> None:
    start = Chess.initial(Random(0))
    game = read(start.pgn(MATE, NAMES, {"Event": "Cup", "Date": "2026.01.31", "Round": "7.2", "Result": "0-1"}))
    assert dict(game.headers) == {
        "Event": "Cup", "Site": "?", "Date": "2026.01.31", "Round": "7.2", "White": "ann", "Black": "bob",
        "Result": "0-1",
    }  # fmt: skip
    assert [move.uci() for move in game.mainline_moves()] == list(MATE)
    assert game.end().board().is_checkmate()
    assert "1. f3 e5 2. g4 Qh4# 0-1" in str(start.pgn(MATE, NAMES, {"Result": "0-1"}))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("chess960", [False, True])
def test_any_game_is_read_back(seed: int, chess960: bool) -> None:
    start = Chess.initial(Random(seed), chess960=chess960)
    end, actions = random_play(start, seed)
    game = read(start.pgn(actions, NAMES, {"Result": "*"}))
    assert game.headers.get("Variant") == ("Chess960" if chess960 else None)
    board = game.end().board()
    assert board.board_fen() == end.board().board_fen()
    assert board.fullmove_number == end.number
    assert [board.uci(move) for move in board.move_stack] == actions


def test_another_start() -> None:
    fen = "8/8/8/8/4k3/8/4P3/4K3 b - - 3 40"
    start = Chess.initial(Random(0), fen)
    game = read(start.pgn(("e4d4", "e1d2"), NAMES, {}))
    assert (game.headers["FEN"], game.headers["SetUp"], game.headers["Result"]) == (fen, "1", "*")
    assert game.end().board().fullmove_number == 41
    assert start == Chess.initial(Random(0), fen)


def test_castling_of_chess960_is_read_back() -> None:
    start = Chess.initial(Random(0), "1k6/8/8/8/8/8/8/1KR5 w C - 0 1", chess960=True)
    game = read(start.pgn(("b1c1",), NAMES, {}))
    assert game.end().board().board_fen() == "1k6/8/8/8/8/8/8/5RK1"


@pytest.mark.parametrize(
    "name",
    [
        '"',
        "\\",
        'a "b" \\',
        "]",
        'x"]\n\n1. e4 *\n\n[Event "forged',
        "\r\n[White",
        "ü – 東",
        "\x00\x1b[31m",
        "",
        "; { }",
    ],
)
def test_hostile_names_stay_names(name: str) -> None:
    start = Chess.initial(Random(0))
    game = read(start.pgn(MATE, (name, name), {"Event": name, "Result": "0-1"}))
    shown = "".join([char if char.isprintable() else " " for char in name])
    for tag in ("White", "Black", "Event"):
        assert game.headers[tag].replace('\\"', '"').replace("\\\\", "\\") == shown
    assert len(list(game.mainline_moves())) == 4


def test_a_long_name_is_cut() -> None:
    game = read(Chess.initial(Random(0)).pgn((), ("n" * 1000, "bob"), {}))
    assert game.headers["White"] == "n" * 255


def test_an_illegal_move_is_refused() -> None:
    with pytest.raises(ValueError, match="illegal uci"):
        Chess.initial(Random(0)).pgn(("e2e5",), NAMES, {})


def test_other_games_have_no_notation() -> None:
    assert TicTacToe.initial(Random(0)).pgn(("0",), NAMES, {}) is None
