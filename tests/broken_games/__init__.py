"""Games that each break one rule of the contract: the proof that every check can fail."""

from tests.broken_games import actions, hostile, play, shown, values
from tests.broken_games.register import BROKEN

__all__ = ["BROKEN", "actions", "hostile", "play", "shown", "values"]
