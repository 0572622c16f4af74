"""Reading what is named on the command line: `key=value` options, games of a run."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from arena.registry import parse_value, unknown

__all__ = ["games_named", "is_named", "parse_options"]

K = TypeVar("K")


def games_named(game: str, labels: Mapping[K, str]) -> list[K]:
    """The keys of a run's games that a user means; the run's own ids count, registered here or not.

    >>> games_named("KuhnPoker", {1: "KuhnPoker-v0", 2: "KuhnPoker-v0 (players=3)", 3: "Chess-v0"})
    [1, 2]

    Names are a label as tables show it, or an id with or without `arena/` and version. Raises ValueError.
    """
    found = [key for key, label in labels.items() if is_named(game, label)]
    if not found:
        raise unknown("game of this run", game, labels.values())
    return found


def is_named(game: str, label: str) -> bool:
    """Whether the game of this label is meant."""
    game_id = label.partition(" (")[0]
    return game.removeprefix("arena/") in (label, game_id, game_id.rpartition("-v")[0])


def parse_options(pairs: Iterable[str]) -> dict[str, Any]:
    """Options from `key=value` texts.

    >>> parse_options(["players=4", "reveal_roles=true", "fen=8/8 w"])
    {'players': 4, 'reveal_roles': True, 'fen': '8/8 w'}
    """
    options = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ValueError(f"option {pair!r}: write key=value")
        options[key.strip()] = parse_value(value)
    return options
