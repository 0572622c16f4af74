"""Deal: what all matches of one game with the same options have in common, found once."""

from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.metadata import packages_distributions, version
from platform import python_version
from random import Random
from typing import Any, NamedTuple

import msgspec

from arena.game import Game, LiveGame
from arena.referee import Referee
from arena.registry import frozen, load, make_game
from arena.version import __version__

__all__ = ["VERSIONS", "Deal", "deal_of", "versions_of"]

VERSIONS = {"arena": __version__, "chess": version("chess"), "msgspec": version("msgspec"), "python": python_version()}
"""Of all that could alter the play of Arena's own games."""


class Deal(NamedTuple):
    """A game with its options; `first` deals. `deal_of` gives a checked one."""

    game: type[Game]
    options: dict[str, Any]
    rules: tuple[str, ...]
    """Of every seat: they depend on the options only, so records share them."""
    template: Game
    """A first position (that of seed 0), for all that depends on the options only."""
    only: Game | None
    """The first position, where nothing is drawn for it: an immutable value, so matches share it."""
    talks: bool
    """Its history can hold something."""
    scored: bool
    """It names parts of a reward."""
    live: bool
    ends: bool
    """One forfeit ends it."""
    versions: dict[str, str]
    """Of all packages that could alter its play."""

    def first(self, seed: int) -> Game:
        """The first position: what `arena.registry.make_game` gives for this seed."""
        return self.game.initial(Random(seed), **self.options) if self.only is None else self.only


def deal_of(game: str | type[Game], options: Mapping[str, Any]) -> Deal:
    """The deal of a game, by id or class. Raises ValueError as `make_game` does, and for options that JSON has not."""
    if not options:
        return _deal(game, b"{}")
    try:
        encoded = msgspec.json.encode(options)
    except TypeError as error:
        raise ValueError(f"options of a game must survive JSON: {error}") from None
    return _deal(game, encoded)


@cache
def versions_of(game: type[Game]) -> dict[str, str]:
    """`VERSIONS`, and those of the package that brings the game."""
    top = game.__module__.partition(".")[0]
    others = () if top == "arena" else packages_distributions().get(top, ())
    return VERSIONS | {name: version(name) for name in others}


@lru_cache(maxsize=1024)
def _deal(game: str | type[Game], encoded: bytes) -> Deal:
    """`encoded`: the options as JSON, which can be hashed and keeps 1, 1.0 and true apart."""
    options = {key: frozen(value) for key, value in msgspec.json.decode(encoded).items()}
    rng = Random(0)
    undrawn = rng.getstate()
    first = make_game(game, rng, options)
    kind, live = type(first), isinstance(first, LiveGame)
    return Deal(
        game=load(game) if isinstance(game, str) else game,
        options=options,
        rules=tuple([first.rules(p) for p in range(first.players)]),
        template=first,
        only=None if live or rng.getstate() != undrawn else first,
        talks=kind.events is not Game.events,
        scored=kind.scores is not Game.scores,
        live=live,
        ends=Referee.ends(first),
        versions=versions_of(kind),
    )
