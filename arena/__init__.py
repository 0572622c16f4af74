"""Arena: text games, questions and tool tasks as Gymnasium and PettingZoo environments, and any policy to play them.

Importing it makes every id known to `gymnasium.make` and `pettingzoo.make`; the rest is loaded when used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from arena.standards import register_all
from arena.version import __version__

if TYPE_CHECKING:
    from arena.agent import Agent, Reply, View
    from arena.episode import Episode
    from arena.game import Action, Event, Game, IllegalAction, LiveGame, Player, TurnGame
    from arena.match import play_sync as play
    from arena.referee import Referee
    from arena.registry import game_ids, make_agent, make_game, register, register_agent
    from arena.replaying import replay
    from arena.task import Task

__all__ = [
    "Action", "Agent", "Episode", "Event", "Game", "IllegalAction", "LiveGame", "Player", "Referee", "Reply", "Task",
    "TurnGame", "View", "__version__", "game_ids", "make_agent", "make_game", "play", "register", "register_agent",
    "replay",
]  # fmt: skip

_HOMES = {
    "arena.agent": ("Agent", "Reply", "View"),
    "arena.episode": ("Episode",),
    "arena.game": ("Action", "Event", "Game", "IllegalAction", "LiveGame", "Player", "TurnGame"),
    "arena.match": ("play",),
    "arena.referee": ("Referee",),
    "arena.registry": ("game_ids", "make_agent", "make_game", "register", "register_agent"),
    "arena.replaying": ("replay",),
    "arena.task": ("Task",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'arena' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), "play_sync" if name == "play" else name)


def __dir__() -> list[str]:
    return sorted(__all__)


register_all()
