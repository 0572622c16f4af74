from random import Random

import chess
import pytest

from arena.games.board.chess import Chess


def after(*moves: str, fen: str = chess.STARTING_FEN) -> Chess:
    game = Chess.initial(Random(0), fen)
    for move in moves:
        game = game.play(move)
    return game


def planes(game: Chess, player: int) -> tuple[list[list[float]], list[float]]:
    numbers = list(game.features(player))
    assert len(numbers) == 796
    return [numbers[64 * i : 64 * i + 64] for i in range(12)], numbers[768:]


@pytest.mark.parametrize(
    "fen", ["r3k2r/pp4pp/8/3pP3/8/8/PQ4PP/R3K2R w KQq d6 0 9", "1n2k3/8/8/8/8/8/6p1/4K2R b K - 37 9"]
)
def test_features_say_what_the_position_is(fen: str) -> None:
    game, board = after(fen=fen), chess.Board(fen)
    for player, colour in enumerate(chess.COLORS):
        pieces, rest = planes(game, player)
        for index, plane in enumerate(pieces):
            owner = colour if index < 6 else not colour
            squares = board.pieces(1 + index % 6, owner)
            assert plane == [float(square in squares) for square in chess.SQUARES]
        for offset, owner in ((0, colour), (8, not colour)):
            rank = 0 if owner else 7
            rooks = [float(bool(board.castling_rights >> chess.square(file, rank) & 1)) for file in range(8)]
            assert rest[offset : offset + 8] == rooks
        ep = -1 if board.ep_square is None else chess.square_file(board.ep_square)
        assert rest[16:24] == [float(file == ep) for file in range(8)]
        assert rest[24:] == [
            1.0 if colour else -1.0,
            float(board.turn == colour),
            board.halfmove_clock / 100,
            0.0,
        ]


def test_features_of_a_repeated_and_of_a_finished_game() -> None:
    assert planes(after("g1f3", "g8f6", "f3g1", "f6g8"), 0)[1][24:] == [1.0, 1.0, 0.04, 1.0]
    over = after("f2f3", "e7e5", "g2g4", "d8h4")
    assert planes(over, 0)[1][24:26] == [1.0, 0.0]
    assert planes(over, 1)[1][24:26] == [-1.0, 0.0]
