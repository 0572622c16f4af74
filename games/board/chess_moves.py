"""Legal chess moves as UCI strings, straight from python-chess's attack tables.

`chess.Board.generate_legal_moves` tests every move for safety and makes an object of it; here only pinned pieces and
the king are tested, and the strings come from a table. Under check, for castling and for en passant python-chess is
asked. Perft and python-chess itself are the oracles in the tests.
"""

from collections.abc import Iterator
from functools import lru_cache

import chess

__all__ = ["MOVES", "legal_moves"]

CACHE = 1 << 14  # lists of moves kept of either kind: some megabytes when full


def _scan(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def _reach(square: int) -> int:
    """What a queen or a knight could reach on an empty board."""
    lines = chess.BB_RANK_ATTACKS[square][0] | chess.BB_FILE_ATTACKS[square][0] | chess.BB_DIAG_ATTACKS[square][0]
    return lines | chess.BB_KNIGHT_ATTACKS[square]


@lru_cache(CACHE)
def piece_moves(square: int, targets: int) -> tuple[str, ...]:
    """The moves of a piece from a square to each of the targets (a bitboard)."""
    return tuple([chess.SQUARE_NAMES[square] + chess.SQUARE_NAMES[target] for target in _scan(targets)])


@lru_cache(CACHE)
def pawn_moves(square: int, targets: int) -> tuple[str, ...]:
    """The same of a pawn: on the last rank it becomes a queen, rook, bishop or knight."""
    moves = piece_moves(square, targets)
    return tuple([move + piece for move in moves for piece in "qrbn"]) if targets & chess.BB_BACKRANKS else moves


def _all_moves() -> Iterator[str]:
    for square in chess.SQUARES:
        yield from piece_moves(square, _reach(square))
    for home, last in ((chess.BB_RANK_7, chess.BB_RANK_8), (chess.BB_RANK_2, chess.BB_RANK_1)):
        for square in _scan(home):
            yield from pawn_moves(square, last & chess.BB_KING_ATTACKS[square])


MOVES = {uci: chess.Move.from_uci(uci) for uci in _all_moves()}
"""Every move that can ever be legal (1,968, castling in both notations among them) as python-chess's object."""


def _pinned(board: chess.Board, king: int, ours: int) -> int:
    """Men of either side that alone stand between our king and a slider of theirs."""
    straight = chess.BB_RANK_ATTACKS[king][0] | chess.BB_FILE_ATTACKS[king][0]
    snipers = straight & (board.rooks | board.queens) | chess.BB_DIAG_ATTACKS[king][0] & (board.bishops | board.queens)
    snipers &= ~ours
    occupied, pinned = board.occupied, 0
    while snipers:
        low = snipers & -snipers
        shield = chess.between(king, low.bit_length() - 1) & occupied
        if not shield & shield - 1:
            pinned |= shield
        snipers ^= low
    return pinned


def _attacks(board: chess.Board, pieces: int) -> Iterator[tuple[int, int]]:
    """(square, squares attacked) of every knight and slider among the pieces."""
    occupied, knights = board.occupied, board.knights
    straight, diagonal = board.rooks | board.queens, board.bishops | board.queens
    pieces &= knights | straight | diagonal
    while pieces:
        low = pieces & -pieces
        pieces ^= low
        square = low.bit_length() - 1
        if low & knights:
            yield square, chess.BB_KNIGHT_ATTACKS[square]
            continue
        attacked = 0
        if low & straight:
            attacked = chess.BB_RANK_ATTACKS[square][chess.BB_RANK_MASKS[square] & occupied]
            attacked |= chess.BB_FILE_ATTACKS[square][chess.BB_FILE_MASKS[square] & occupied]
        if low & diagonal:
            attacked |= chess.BB_DIAG_ATTACKS[square][chess.BB_DIAG_MASKS[square] & occupied]
        yield square, attacked


def _danger(board: chess.Board, theirs: int) -> int:
    """Every square they attack. Behind our king it is true only while no slider gives check."""
    pawns = board.pawns & theirs
    if board.turn:
        danger = chess.shift_down_left(pawns) | chess.shift_down_right(pawns)
    else:
        danger = chess.shift_up_left(pawns) | chess.shift_up_right(pawns)
    danger |= chess.BB_KING_ATTACKS[chess.msb(board.kings & theirs)]
    for _, attacked in _attacks(board, theirs):
        danger |= attacked
    return danger


def _pawn_targets(board: chess.Board, ours: int, king: int, pinned: int) -> Iterator[tuple[int, int]]:
    """(square, targets) of pawns, en passant left out."""
    occupied, theirs, pawns = board.occupied, board.occupied & ~ours, board.pawns & ours
    attacks = chess.BB_PAWN_ATTACKS[board.turn]
    ahead, home = (8, chess.BB_RANK_2) if board.turn else (-8, chess.BB_RANK_7)
    while pawns:
        low = pawns & -pawns
        pawns ^= low
        square = low.bit_length() - 1
        targets = attacks[square] & theirs
        step = 1 << square + ahead
        if not step & occupied:
            targets |= step
            if low & home:
                targets |= 1 << square + 2 * ahead & ~occupied
        if low & pinned:
            targets &= chess.ray(king, square)
        yield square, targets


def legal_moves(board: chess.Board) -> tuple[tuple[str, ...], bool]:
    """The legal moves of the side to move, and whether it is in check. Each side must have one king."""
    ours = board.occupied_co[board.turn]
    king, free = chess.msb(board.kings & ours), ~ours
    danger = _danger(board, board.occupied ^ ours)
    if danger >> king & 1:
        return tuple([move.uci() for move in board.generate_legal_moves()]), True
    pinned = _pinned(board, king, ours)
    moves = [*piece_moves(king, chess.BB_KING_ATTACKS[king] & free & ~danger)]
    for square, attacked in _attacks(board, ours):
        if pinned >> square & 1:
            attacked &= chess.ray(king, square)
        moves += piece_moves(square, attacked & free)
    for square, targets in _pawn_targets(board, ours, king, pinned):
        moves += pawn_moves(square, targets)
    if board.castling_rights:
        moves += [move.uci() for move in board.generate_castling_moves()]
    if board.ep_square is not None:
        moves += [move.uci() for move in board.generate_legal_ep()]
    return tuple(moves), False
