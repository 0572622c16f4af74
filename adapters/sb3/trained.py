"""What a policy was trained on, kept in its observation space, so that every `model.save` carries it along."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from gymnasium import Space

from arena.game import Game
from arena.registry import game_ids, id_of, make_game
from arena.table import Setup

__all__ = ["Training", "mark", "training_of"]

_NAME = "arena_training"


class Training(NamedTuple):
    """The game of a policy, as `make_game` takes it, and how much of the history it was shown."""

    game: str
    options: Mapping[str, Any]
    history: str | int

    def __str__(self) -> str:
        options = ", ".join([f"{key}={value!r}" for key, value in self.options.items()])
        return f"{self.game} ({options})" if options else self.game

    def differs(self, game: Game) -> str:
        """Why what was learnt is of no use in this game, "" where it is the same game with the same options."""
        played = id_of(type(game))
        if played != self.game:
            return f"the model was trained on {self}, not on {played}"
        if self.game not in game_ids():  # a class that was never given an id: its name is all there is to compare
            return ""
        own = make_game(self.game, 0, self.options)
        if own.players != game.players or own.action_table() != game.action_table():
            return f"the model was trained on {self}; this game has other options"
        if any(own.rules(p) != game.rules(p) for p in range(own.players)):
            return f"the model was trained on {self}; this game has other options, so other rules"
        if own.features(0) is None and self.history != "full":
            return f"the model was trained with history={self.history!r}: in a match it is shown all"
        return ""


def mark(space: Space[Any], setup: Setup) -> None:
    """Write into the space what it is the space of. Spaces compare as before, and a pickle keeps the mark."""
    setattr(space, _NAME, (setup.id, dict(setup.options), setup.history))


def training_of(space: Space[Any]) -> Training | None:
    """What was written into the space, or None: it was made by somebody else."""
    found = getattr(space, _NAME, None)
    return None if found is None else Training(*found)
