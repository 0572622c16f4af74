from random import Random
from typing import Any

import chess
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.games.board.chess import Chess
from arena.games.board.chess_text import castling_field, draw, read_fen, read_move

CASTLING = "r3k2r/pppq1ppp/8/8/8/8/PPPQ1PPP/R3K2R w KQkq - 0 1"
PROMOTION = "1n5k/P7/8/8/8/8/8/K7 w - - 0 1"
KNIGHTS = "4k3/8/8/8/8/5N2/8/1N2K3 w - - 0 1"
EN_PASSANT = "4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1"
ROOKS = "4k3/8/8/R7/8/8/8/R3K3 w - - 0 1"


@pytest.mark.parametrize(
    ("text", "fen", "uci"),
    [
        ("e2e4", chess.STARTING_FEN, "e2e4"),
        ("E2E4", chess.STARTING_FEN, "e2e4"),
        ("e2-e4", chess.STARTING_FEN, "e2e4"),
        ("e2 e4", chess.STARTING_FEN, "e2e4"),
        ("e4", chess.STARTING_FEN, "e2e4"),
        (" e4\n", chess.STARTING_FEN, "e2e4"),
        ("1. e4", chess.STARTING_FEN, "e2e4"),
        ("12.e4!?", chess.STARTING_FEN, "e2e4"),
        ("3... Nf3", chess.STARTING_FEN, "g1f3"),
        ("Nf3", chess.STARTING_FEN, "g1f3"),
        ("Ng1f3", chess.STARTING_FEN, "g1f3"),
        ("Ngf3", chess.STARTING_FEN, "g1f3"),
        ("Nf3+", chess.STARTING_FEN, "g1f3"),
        ("Nf3#", chess.STARTING_FEN, "g1f3"),
        ("Nf3??", chess.STARTING_FEN, "g1f3"),
        ("O-O", CASTLING, "e1g1"),
        ("0-0", CASTLING, "e1g1"),
        ("o-o", CASTLING, "e1g1"),
        ("O-O+!", CASTLING, "e1g1"),
        ("O-O-O", CASTLING, "e1c1"),
        ("0-0-0", CASTLING, "e1c1"),
        ("Kg1", CASTLING, None),
        ("e1h1", CASTLING, "e1g1"),
        ("e1a1", CASTLING, "e1c1"),
        ("E1G1", CASTLING, "e1g1"),
        ("e8g8", CASTLING, None),
        ("Qxd7+", CASTLING, "d2d7"),
        ("Qd2xd7", CASTLING, "d2d7"),
        ("Qd7", CASTLING, "d2d7"),
        ("a8=Q", PROMOTION, "a7a8q"),
        ("a8Q", PROMOTION, "a7a8q"),
        ("a8=N+", PROMOTION, "a7a8n"),
        ("a7a8=R", PROMOTION, "a7a8r"),
        ("A7A8Q", PROMOTION, "a7a8q"),
        ("axb8=B", PROMOTION, "a7b8b"),
        ("a8", PROMOTION, None),
        ("a7a8", PROMOTION, None),
        ("a8=K", PROMOTION, None),
        ("a7a8k", PROMOTION, None),
        ("Nd2", KNIGHTS, None),
        ("Nbd2", KNIGHTS, "b1d2"),
        ("Nfd2", KNIGHTS, "f3d2"),
        ("N1d2", KNIGHTS, "b1d2"),
        ("Ra3", ROOKS, None),
        ("R1a3", ROOKS, "a1a3"),
        ("R5a3", ROOKS, "a5a3"),
        ("exd6", EN_PASSANT, "e5d6"),
        ("exd6 e.p.", EN_PASSANT, "e5d6"),
        ("exd6e.p.", EN_PASSANT, "e5d6"),
        ("e5d6", EN_PASSANT, "e5d6"),
        ("O-O", chess.STARTING_FEN, None),
        ("B1c3", chess.STARTING_FEN, None),  # a bishop cannot; it does not mean the knight on b1
        ("B1C3", chess.STARTING_FEN, "b1c3"),
        ("e2e5", chess.STARTING_FEN, None),
        ("e7e5", chess.STARTING_FEN, None),
        ("0000", chess.STARTING_FEN, None),
        ("--", chess.STARTING_FEN, None),
        ("Z0", chess.STARTING_FEN, None),
        ("@@@@", chess.STARTING_FEN, None),
        ("P@e4", chess.STARTING_FEN, None),
        ("e2e4 e7e5", chess.STARTING_FEN, None),
        ("I play e4", chess.STARTING_FEN, None),
        ("", chess.STARTING_FEN, None),
        (".", chess.STARTING_FEN, None),
        ("12.", chess.STARTING_FEN, None),
        ("e٤", chess.STARTING_FEN, None),
        ("e2e4\ud800", chess.STARTING_FEN, None),
        ("e4" + "!" * 1_000_000, chess.STARTING_FEN, None),
    ],
)
def test_moves_as_people_write_them(text: str, fen: str, uci: str | None) -> None:
    assert read_move(text, chess.Board(fen)) == uci
    assert Chess.initial(Random(0), fen).normalize(text, 0) == (uci or text)


def test_castling_in_chess960_is_the_king_taking_its_rook() -> None:
    game = Chess.initial(Random(0), CASTLING, chess960=True)
    for text in ("O-O", "0-0", "e1h1", "e1g1", "E1G1"):
        assert game.normalize(text, 0) == "e1h1"
    assert game.normalize("O-O-O", 0) == "e1a1"


def test_every_san_is_read_back() -> None:
    rng = Random(4)
    for seed in range(6):
        board = chess.Board() if seed % 2 else chess.Board.from_chess960_pos(rng.randrange(960))
        for _ in range(80):
            legal = list(board.legal_moves)
            if not legal:
                break
            for move in rng.sample(legal, min(4, len(legal))):
                assert read_move(board.san(move), board) == move.uci()
                assert read_move(board.lan(move), board) == move.uci()
            board.push(rng.choice(legal))


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.text(max_size=40), st.text("abcdefghKQRBN12345678xO0-=+#@. ", max_size=8)))
def test_no_text_raises(text: str) -> None:
    for fen in (chess.STARTING_FEN, CASTLING, PROMOTION):
        board = chess.Board(fen)
        move = read_move(text, board)
        assert move is None or chess.Move.from_uci(move) in board.legal_moves


def test_board_is_drawn_as_python_chess_draws_it() -> None:
    for number in (0, 518, 959):
        board = chess.Board.from_chess960_pos(number)
        kinds = (board.pawns, board.knights, board.bishops, board.rooks, board.queens, board.kings)
        rows = draw(board.occupied_co[chess.WHITE], board.occupied_co[chess.BLACK], kinds).split("\n")
        assert [row[2:] for row in rows[:8]] == str(board).split("\n")
        assert [row[:2] for row in rows[:8]] == [f"{rank} " for rank in range(8, 0, -1)]
        assert rows[8:] == ["  a b c d e f g h"]


@pytest.mark.parametrize("field", ["KQkq", "KQ", "kq", "Kq", "Q", "-"])
def test_castling_field(field: str) -> None:
    board = chess.Board(f"r3k2r/8/8/8/8/8/8/R3K2R w {field} - 0 1")
    assert castling_field(board.castling_rights, False) == field
    assert castling_field(board.castling_rights, True) == field.translate(str.maketrans("KQkq", "HAha"))


@pytest.mark.parametrize(
    ("fen", "message"),
    [
        ("", "six fields are needed"),
        ("8/8/8/8/8/8/8/8", "six fields are needed"),
        (chess.STARTING_FEN + " x", "six fields are needed"),
        (chess.STARTING_FEN[:-1] + "١", "six fields are needed"),
        ("x" * 101, "at most 100 characters"),
        (7, "at most 100 characters"),
        (None, "at most 100 characters"),
        ("8/8/8/8/8/8/8 w - - 0 1", "expected 8 rows"),
        ("9/8/8/8/8/8/8/8 w - - 0 1", "invalid character|expected 8 columns"),
        ("4k3/8/8/8/8/8/8/4K3 x - - 0 1", "expected 'w' or 'b'"),
        ("4k3/8/8/8/8/8/8/4K3 w KQXX - 0 1", "invalid castling part"),
        ("4k3/8/8/8/8/8/8/4K3 w - e9 0 1", "invalid en passant part"),
        ("4k3/8/8/8/8/8/8/4KQ2 w - - -1 1", "halfmove clock must be 0 to 99"),
        ("4k3/8/8/8/8/8/8/4KQ2 w - - 100 1", "halfmove clock must be 0 to 99"),
        ("4k3/8/8/8/8/8/8/4KQ2 w - - 1_0 1", "halfmove clock must be 0 to 99"),
        ("4k3/8/8/8/8/8/8/4KQ2 w - - 0 0", "move number must be 1 to 9999"),
        ("4k3/8/8/8/8/8/8/4KQ2 w - - 0 10000", "move number must be 1 to 9999"),
        ("8/8/8/8/8/8/8/4KQ2 w - - 0 1", "cannot be a position: no black king"),
        ("4k3/8/8/8/8/8/8/8 w - - 0 1", "no white king"),
        ("4k3/8/8/8/8/8/8/K3KQ2 w - - 0 1", "too many kings"),
        ("4k3/8/8/8/8/8/8/P3K3 w - - 0 1", "pawns on backrank"),
        ("4k3/8/8/8/8/8/8/4KQ2 w KQ - 0 1", "bad castling rights"),
        ("4k3/8/8/8/8/8/8/4KQ2 w - d6 0 1", "invalid ep square"),
        ("4k3/8/8/8/8/8/8/4RK2 w - - 0 1", "opposite check"),
        ("4k3/QQQQQQQQ/QQQQQQQQ/Q7/8/8/8/4K3 b - - 0 1", "too many white pieces"),
    ],
)
def test_bad_fen_says_what_is_wrong(fen: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        read_fen(fen, False)
    assert str(caught.value).startswith("fen")
    assert "\n" not in str(caught.value)


def test_good_fen_is_read() -> None:
    fen = "r3k2r/8/8/8/8/8/8/R3K2R b Kq - 3 40"
    assert read_fen(fen, False).fen() == fen
    assert read_fen(fen, True).fen(shredder=True) == fen.replace("Kq", "Ha")
    assert read_fen("4k3/8/8/8/8/8/8/4K~2R w K - 0 1", False).fen() == "4k3/8/8/8/8/8/8/4K2R w K - 0 1"
