"""The register of broken games, and what they share."""

from collections.abc import Callable
from itertools import count
from typing import TypeVar

from arena.game import Game, LiveGame
from tests.toy_games import Take

G = TypeVar("G", bound=type[Game])
BROKEN: list[tuple[str, type[Game], str]] = []
"""The check that must fail, the game, and words of the message."""
COUNTER = count()
"""What no game may use: state that outlives it."""


def breaks(check: str, saying: str) -> Callable[[G], G]:
    """Register the class as the proof of a check."""

    def register(game: G) -> G:
        BROKEN.append((check, game, saying))
        return game

    return register


class Logged(Take):
    log: list[str] = []  # noqa: RUF012 - msgspec copies it for every value


class Live(LiveGame, Take):
    """Stones behind a server."""
