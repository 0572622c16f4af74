from random import Random

import chess
import pytest

from arena.games.board.chess import Chess
from arena.games.board.chess_moves import MOVES, legal_moves, pawn_moves, piece_moves

# https://www.chessprogramming.org/Perft_Results
KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
PERFT = {
    chess.STARTING_FEN: (20, 400, 8_902, 197_281, 4_865_609),
    KIWIPETE: (48, 2_039, 97_862, 4_085_603),
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1": (14, 191, 2_812, 43_238, 674_624),
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1": (6, 264, 9_467, 422_333),
    "r2q1rk1/pP1p2pp/Q4n2/bbp1p3/Np6/1B3NBn/pPPP1PPP/R3K2R b KQ - 0 1": (6, 264, 9_467, 422_333),
    "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8": (44, 1_486, 62_379, 2_103_487),
    "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10": (46, 2_079, 89_890, 3_894_594),
}
# https://www.chessprogramming.org/Chess960_Perft_Results
PERFT_960 = {
    "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9": (21, 528, 12_189, 326_672),
    "2nnrbkr/p1qppppp/8/1ppb4/6PP/3PP3/PPP2P2/BQNNRBKR w HEhe - 1 9": (21, 807, 18_002, 667_366),
    "b1q1rrkb/pppppppp/3nn3/8/P7/1PPP4/4PPPP/BQNNRKRB w GE - 1 9": (20, 479, 10_471, 273_318),
    "qbbnnrkr/2pp2pp/p7/1p2pp2/8/P3PP2/1PPP1KPP/QBBNNR1R w hf - 0 9": (22, 593, 13_440, 382_958),
    "1nbbnrkr/p1p1ppp1/3p4/1p3P1p/3Pq2P/8/PPP1P1P1/QNBBNRKR w HFhf - 0 9": (28, 1_120, 31_058, 1_171_749),
}


def perft(game: Chess, depth: int) -> int:
    """Leaves of the tree, through the contract alone."""
    legal = game.legal_actions(game.to_act()[0]) if game.to_act() else ()
    return len(legal) if depth == 1 else sum(perft(game.play(action), depth - 1) for action in legal)


@pytest.mark.parametrize("fen", PERFT)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_perft(fen: str, depth: int) -> None:
    assert perft(Chess.initial(Random(0), fen), depth) == PERFT[fen][depth - 1]


@pytest.mark.parametrize("fen", PERFT_960)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_perft_of_chess960(fen: str, depth: int) -> None:
    assert perft(Chess.initial(Random(0), fen, chess960=True), depth) == PERFT_960[fen][depth - 1]


@pytest.mark.oracle
@pytest.mark.parametrize("fen", PERFT)
def test_perft_deeper(fen: str) -> None:
    assert perft(Chess.initial(Random(0), fen), 4) == PERFT[fen][3]


@pytest.mark.oracle
@pytest.mark.parametrize("fen", PERFT_960)
def test_perft_of_chess960_deeper(fen: str) -> None:
    assert perft(Chess.initial(Random(0), fen, chess960=True), 4) == PERFT_960[fen][3]


def assert_agrees(board: chess.Board) -> None:
    legal, check = legal_moves(board)
    assert sorted(legal) == sorted(move.uci() for move in board.legal_moves), board.fen()
    assert check == board.is_check()
    assert set(legal) <= MOVES.keys()


@pytest.mark.parametrize("seed", range(12))
def test_python_chess_agrees_in_random_games(seed: int) -> None:
    rng = Random(seed)
    board = chess.Board.from_chess960_pos(rng.randrange(960)) if seed % 3 == 0 else chess.Board()
    for _ in range(250):
        assert_agrees(board)
        legal = list(board.legal_moves)
        if not legal:
            break
        board.push(rng.choice(legal))


def scattered(rng: Random) -> chess.Board:
    """Kings, ten pieces and two pawns side by side of which one has just moved two squares, anywhere."""
    board = chess.Board(None)
    board.turn = rng.random() < 0.5
    file, (rank, ahead) = rng.randrange(7), (4, 1) if board.turn else (3, -1)
    double, capturer = rng.sample([chess.square(file, rank), chess.square(file + 1, rank)], 2)
    board.ep_square = double + 8 * ahead
    board.set_piece_at(double, chess.Piece(chess.PAWN, not board.turn))
    board.set_piece_at(capturer, chess.Piece(chess.PAWN, board.turn))
    free = set(chess.SQUARES) - {double, capturer, board.ep_square, double + 16 * ahead}
    squares = rng.sample(sorted(free), 12)
    for square, symbol in zip(squares, "Kk" + "".join(rng.choices("QRBNPqrbnp", k=10)), strict=True):
        if symbol not in "Pp" or 0 < chess.square_rank(square) < 7:
            board.set_piece_at(square, chess.Piece.from_symbol(symbol))
    return board


def test_python_chess_agrees_on_scattered_pieces() -> None:
    """Pins, crossing sliders and en passant that games rarely show."""
    rng = Random(5)
    boards = [scattered(rng) for _ in range(800)]
    legal = sum(board.has_legal_en_passant() for board in boards)
    assert 100 < legal < 700
    for board in boards:
        assert_agrees(board)


@pytest.mark.parametrize(
    "fen",
    [
        "8/8/8/KPp4r/8/8/8/7k w - c6 0 1",  # en passant would bare the rank
        "3k4/8/8/8/3pP3/8/8/3RK3 b - e3 0 1",  # the capturer is pinned on its file
        "8/8/8/2k5/3Pp3/8/8/4K3 b - d3 0 1",  # en passant is the only capture of the checking pawn
        "4k3/8/8/8/7b/8/8/R3K2R w KQ - 0 1",  # no castling out of check
        "4k3/8/8/8/8/5r2/8/R3K2R w KQ - 0 1",  # nor through it; the long side is free
        "4k3/8/8/8/8/1r6/8/R3K2R w KQ - 0 1",  # the rook may pass an attacked square
        "r3k2r/8/8/8/8/8/8/4K3 b kq - 0 1",
        "4k3/P7/8/8/8/8/8/4K3 w - - 0 1",
        "1n2k3/P7/8/8/8/8/8/4K3 w - - 0 1",
        "4k3/4r3/8/8/8/8/4R3/4K3 w - - 0 1",  # a pinned rook moves along the pin
        "4k3/4r3/8/8/8/8/4N3/4K3 w - - 0 1",  # a pinned knight does not move
        "4k3/8/8/8/8/2n5/8/R3K1r1 w - - 0 1",  # check: the king may not step back along the line
    ],
)
def test_python_chess_agrees_on_hard_cases(fen: str) -> None:
    board = chess.Board(fen)
    assert_agrees(board)
    assert_agrees(board.mirror())


def test_table_holds_every_move_that_can_be_legal() -> None:
    assert len(MOVES) == 1_968
    reach = {a + b for a in chess.SQUARE_NAMES for b in chess.SQUARE_NAMES if _reaches(a, b)}
    assert reach == {uci for uci in MOVES if len(uci) == 4}
    assert len([uci for uci in MOVES if len(uci) == 5]) == 4 * (8 + 7 + 7) * 2
    assert {"e1g1", "e8c8", "e1h1", "a7b8n", "h2h1q"} <= MOVES.keys()
    assert all(move.uci() == uci for uci, move in MOVES.items())


def _reaches(a: str, b: str) -> bool:
    across, up = abs(ord(a[0]) - ord(b[0])), abs(ord(a[1]) - ord(b[1]))
    return across + up > 0 and (0 in (across, up) or across == up or {across, up} == {1, 2})


def test_names_of_moves() -> None:
    assert piece_moves(chess.E1, chess.BB_D1 | chess.BB_E2) == ("e1d1", "e1e2")
    assert pawn_moves(chess.E7, chess.BB_E8) == ("e7e8q", "e7e8r", "e7e8b", "e7e8n")
    assert pawn_moves(chess.E2, chess.BB_E3 | chess.BB_E4) == ("e2e3", "e2e4")
    assert piece_moves(chess.A1, 0) == ()


def test_order_of_moves_does_not_hang_on_what_was_asked_before() -> None:
    board = chess.Board(KIWIPETE)
    before = legal_moves(board)
    piece_moves.cache_clear()
    pawn_moves.cache_clear()
    assert legal_moves(board) == before
