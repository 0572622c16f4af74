"""The numeric face: actions as numbers with a mask, positions as features or as the bytes of their text.

For learners that know no text (Stable-Baselines3 and others). Only ids whose actions are all known have it. Numpy
alone is needed; helpers for Stable-Baselines3 are in `arena.adapters.sb3`.
"""

from operator import index
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from arena.game import Action, Game, Player
from arena.registry import game_ids, make_game

__all__ = ["TOKENS", "Codec", "finite_ids", "tokens"]

TOKENS = 1024
"""Bytes of a text that the numeric face shows where a game has no features."""


def tokens(text: str) -> NDArray[np.uint8]:
    """The last 1,024 bytes of the text in UTF-8, padded with zeros at the end.

    >>> tokens("no")[:4]
    array([110, 111,   0,   0], dtype=uint8)
    """
    data = text.encode("utf-8", "replace")[-TOKENS:]
    return np.frombuffer(bytearray(data.ljust(TOKENS, b"\0")), np.uint8)


def finite_ids() -> tuple[str, ...]:
    """The ids that have a numeric face with their default options."""
    return tuple([game_id for game_id in game_ids() if _finite(game_id)])


def _finite(game_id: str) -> bool:
    try:
        return make_game(game_id).action_table() is not None
    except ValueError:  # another package's, broken
        return False


class Codec:
    """Numbers for a game with certain options.

    Action i is `action_table()[i]`. An observation is `features`, a float32 array in [-1, 1], or, where the game has
    none, `tokens` of the text, a uint8 array. Raises ValueError for a game without an `action_table`.
    """

    def __init__(self, game_id: str, template: Game) -> None:
        table = template.action_table()
        if table is None:
            raise ValueError(
                f"{game_id} with these options has no action_table (no finite list of actions), so no numeric face; "
                f"numeric=True works for {', '.join(finite_ids())}"
            )
        self.table = table
        self._index = {action: i for i, action in enumerate(table)}
        values = template.features(0)
        self.features = None if values is None else len(values)

    def action_space(self) -> spaces.Discrete:
        """One number for each action of the table."""
        return spaces.Discrete(len(self.table))

    def observation_space(self) -> spaces.Box:
        """Features, else bytes."""
        if self.features is not None:
            return spaces.Box(-1.0, 1.0, (self.features,), np.float32)
        return spaces.Box(0, 255, (TOKENS,), np.uint8)

    def action(self, number: Any) -> Action:
        """The text of action `number`. Raises TypeError for what is no integer, ValueError for one out of range."""
        try:
            at = index(number)
        except TypeError:
            raise TypeError(f"a numeric action is an integer, got {type(number).__name__}") from None
        if not 0 <= at < len(self.table):
            raise ValueError(f"action {at}: allowed are 0 to {len(self.table) - 1}")
        return self.table[at]

    def mask(self, legal: tuple[Action, ...] | None) -> NDArray[np.int8]:
        """1 for each legal action.

        All ones where nothing is legal (it is over, or another's turn) or the list is not shown: an empty mask would
        make a policy divide by zero.
        """
        if not legal:
            return np.ones(len(self.table), np.int8)
        mask = bytearray(len(self.table))
        at = self._index
        for action in legal:
            mask[at[action]] = 1
        return np.frombuffer(mask, np.int8)

    def observation(self, game: Game, player: Player, text: str) -> NDArray[Any]:
        """The seat's view as numbers."""
        if self.features is None:
            return tokens(text)
        return np.array(game.features(player), np.float32)
