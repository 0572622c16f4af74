"""A game of chess in Portable Game Notation, written by python-chess.

S. J. Edwards, *Portable Game Notation Specification and Implementation Guide* (1994): tags 8.1, results 8.2.6; other
starts are the tags SetUp and FEN (9.7), Chess960 is the tag Variant as its servers write it.
"""

from collections.abc import Mapping, Sequence

import chess
import chess.pgn

__all__ = ["write_pgn"]

_LONGEST = 255  # characters of a tag's value (7)


def write_pgn(board: chess.Board, actions: Sequence[str], players: Sequence[str], tags: Mapping[str, str]) -> str:
    """The game from this position on, which is not changed; `actions` are UCI, `players` White and Black.

    Values of tags are hostile text: quotes and backslashes are escaped, what cannot be printed becomes a space.
    Raises ValueError for a move that is not legal.
    """
    game = chess.pgn.Game()
    game.setup(board)
    node: chess.pgn.GameNode = game
    at = board.copy(stack=False)
    for action in actions:
        move = at.parse_uci(action)
        node = node.add_main_variation(move)
        at.push(move)
    for name, value in {"White": players[0], "Black": players[1], **tags}.items():
        game.headers[name] = _value(value)
    return f"{game}\n"


def _value(text: str) -> str:
    """As it may stand between quotes.

    >>> _value('a "b"\\n\\\\')
    'a \\\\"b\\\\" \\\\\\\\'
    """
    shown = "".join([char if char.isprintable() else " " for char in text[:_LONGEST]])
    return shown.replace("\\", "\\\\").replace('"', '\\"')
