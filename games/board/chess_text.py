"""Reading and writing chess: boards as text, the fields of a FEN in words, moves as people write them."""

from collections.abc import Iterator
from functools import lru_cache

import chess

__all__ = ["castling_field", "draw", "read_fen", "read_move"]

FILES = "\n  a b c d e f g h"
BLANK = "\n".join([f"{rank} . . . . . . . ." for rank in range(8, 0, -1)])
PLACE = {chess.BB_SQUARES[s]: 2 + 2 * chess.square_file(s) + 18 * (7 - chess.square_rank(s)) for s in chess.SQUARES}
"""Where a square stands in the text, by its bit."""
LONGEST = 32
"""Characters of a move or of a field beyond which nobody tries to read it."""


def draw(white: int, black: int, kinds: tuple[int, ...]) -> str:
    """Eight rows from rank 8, the files below; White in capitals, `.` is a free square (about 4 us).

    `kinds` are the bitboards of pawns, knights, bishops, rooks, queens and kings.
    """
    text = list(BLANK)
    for men, letters in ((white, "PNBRQK"), (black, "pnbrqk")):
        for kind, letter in zip(kinds, letters, strict=True):
            bits = kind & men
            while bits:
                low = bits & -bits
                text[PLACE[low]] = letter
                bits ^= low
    return "".join(text) + FILES


@lru_cache(1 << 10)
def castling_field(rights: int, chess960: bool) -> str:
    """The rights as a FEN writes them: `KQkq`, or the rooks' files (Shredder-FEN, `HAha`) in Chess960."""
    letters = ""
    for rank, white in ((chess.BB_RANK_1, True), (chess.BB_RANK_8, False)):
        for rook in chess.scan_reversed(rights & rank):
            file = chess.square_file(rook)
            letter = chess.FILE_NAMES[file] if chess960 else "k" if file == 7 else "q"
            letters += letter.upper() if white else letter
    return letters or "-"


def read_fen(fen: str, chess960: bool) -> chess.Board:
    """The position of a FEN with all six fields. Raises ValueError in one line that says what is wrong with it."""
    if not isinstance(fen, str) or len(fen) > 100:
        raise ValueError("fen: a text of at most 100 characters is allowed")
    fields = fen.split()
    if len(fields) != 6 or not fen.isascii():
        raise ValueError(f"fen={fen!r}: six fields are needed, as in {chess.STARTING_FEN!r}")
    for name, field, low, high in (("halfmove clock", fields[4], 0, 99), ("move number", fields[5], 1, 9999)):
        if not (field.isdecimal() and low <= int(field) <= high):
            raise ValueError(f"fen={fen!r}: the {name} must be {low} to {high}")
    try:
        board = chess.Board(fen, chess960=chess960)
    except ValueError as error:
        raise ValueError(f"fen: {error}") from None
    board.promoted = chess.BB_EMPTY  # a mark of other variants
    if status := board.status():
        faults = [flag.name.lower().replace("_", " ") for flag in chess.Status if flag & status and flag.name]
        raise ValueError(f"fen={fen!r} cannot be a position: {', '.join(faults)}")
    return board


def read_move(text: str, board: chess.Board) -> str | None:
    """The UCI string of the one legal move that the text means, or None.

    Read are SAN and long algebraic notation with or without `+ # ! ?`, a move number or `e.p.`, castling with O or 0,
    UCI in capitals, and castling as the king taking its rook. Text that fits several moves means none.
    """
    if len(text) > LONGEST or not text.isascii():
        return None
    for notation, parse in _readings(text):
        try:
            move = board.parse_san(notation) if parse == "san" else board.parse_uci(notation)
        except ValueError:
            continue
        if move:  # "0000" and "--" are null moves
            return move.uci()
    return None


def _readings(text: str) -> Iterator[tuple[str, str]]:
    bare = text.strip().removesuffix("e.p.").rstrip().rstrip("+#!?")
    number, _, move = bare.rpartition(".")
    if number.rstrip(".").isdecimal():
        bare = move.lstrip()
    castling = bare.upper().replace("0", "O")
    yield (castling, "san") if castling in ("O-O", "O-O-O") else (bare, "san")
    if bare in (bare.lower(), bare.upper()):  # B1c3 is a bishop's move or none, B1C3 is a square and a square
        yield bare.lower().replace("-", "").replace("=", "").replace(" ", ""), "uci"
