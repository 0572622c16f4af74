"""Reading `key=value` options from the command line."""

from collections.abc import Iterable
from typing import Any

from arena.registry import parse_value

__all__ = ["parse_options"]


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
