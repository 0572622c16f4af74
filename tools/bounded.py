"""JSON of strangers, read within bounds: the same on every Python, before a parser could refuse in its own way."""

import json
import re
from collections.abc import Mapping
from math import isfinite
from typing import Any, NamedTuple

from arena.text import clean
from arena.tools.call import Call, Malformed

__all__ = [
    "MAX_DEPTH",
    "MAX_DIGITS",
    "TOO_DEEP",
    "Keys",
    "bounded",
    "call_of",
    "floating",
    "integer",
    "load",
    "scan",
    "shallow",
]

MAX_DEPTH = 32
MAX_DIGITS = 400
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")
TOO_DEEP = Malformed(f"the JSON is nested more than {MAX_DEPTH} deep")
_BROKEN = Malformed("the call is not JSON: double quotes around keys and text, every bracket closed, no comments")


class Keys(NamedTuple):
    """How a family names the parts of a call; the first of each is what it writes."""

    names: tuple[str, ...] = ("name",)
    arguments: tuple[str, ...] = ("arguments",)
    ignored: frozenset[str] = frozenset()

    def told(self) -> str:
        """The keys, for a player."""
        return f'"{self.names[0]}" and "{self.arguments[0]}"'


def load(text: str) -> Any:
    """The value of one piece of JSON; Malformed if it is none or beyond the bounds."""
    if not shallow(text):
        return TOO_DEEP
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError:  # its words differ between Pythons: a replay must not
        return _BROKEN
    except ValueError as error:  # of the hooks below
        return _not_allowed(error)


def scan(text: str, start: int) -> tuple[Any, int] | Malformed:
    """The value that stands at a place in a text that is `shallow`, and where it ends."""
    try:
        return _DECODER.raw_decode(text, start)
    except json.JSONDecodeError:
        return _BROKEN
    except ValueError as error:
        return _not_allowed(error)


def _not_allowed(error: ValueError) -> Malformed:
    return Malformed(f"the call is not allowed: {error}")


def shallow(text: str) -> bool:
    """Whether brackets outside strings nest no deeper than allowed: JSON parsers recurse."""
    depth = 0
    for bracket in _BRACKET.finditer(_STRING.sub("", text)):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > MAX_DEPTH:
            return False
    return True


def bounded(value: Any, depth: int = 0) -> Any:
    """A value that another JSON parser made, held to the same bounds. ValueError if it is beyond them."""
    if depth > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} deep")
    if isinstance(value, Mapping):
        return _object([(_text(key), bounded(each, depth + 1)) for key, each in value.items()])
    if isinstance(value, list | tuple):
        return [bounded(each, depth + 1) for each in value]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if abs(value) >= 10**MAX_DIGITS:
            raise ValueError(f"a number has more than {MAX_DIGITS} digits")
        return value
    return floating(repr(value)) if isinstance(value, float) else _text(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("it holds what is no JSON")
    return clean(value)


def call_of(value: Any, keys: Keys) -> Call | Malformed:
    """The call that an object is."""
    name, arguments = keys.names[0], keys.arguments[0]
    if not isinstance(value, dict):
        return Malformed(f'a call is an object: {{"{name}": ..., "{arguments}": {{...}}}}')
    named, given = [k for k in keys.names if k in value], [k for k in keys.arguments if k in value]
    if len(named) != 1 or len(given) > 1 or len(value.keys() - keys.ignored) != 1 + len(given):
        return Malformed(f"a call has the keys {keys.told()}, and no others")
    tool, with_ = value[named[0]], value[given[0]] if given else {}
    if not isinstance(tool, str):
        return Malformed(f'"{named[0]}" must be the name of a tool')
    if not isinstance(with_, dict):
        return Malformed(f'"{given[0]}" must be an object')
    return Call(clean(tool), with_)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = {clean(key): _cleaned(value) for key, value in pairs}
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


def _cleaned(value: Any) -> Any:
    """Without the lone surrogates that escapes can spell."""
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    return clean(value) if isinstance(value, str) else value


def integer(digits: str) -> int:
    """A whole number. ValueError if it is too long."""
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number has more than {MAX_DIGITS} digits")
    return int(digits)


def floating(digits: str) -> float:
    """Another number. ValueError if it is too long or not finite."""
    if len(digits) > MAX_DIGITS or not isfinite(value := float(digits)):
        raise ValueError("a number is too long or too large")
    return value


def _constant(word: str) -> float:
    raise ValueError(f"{word} is no JSON number")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=integer, parse_float=floating, parse_constant=_constant
)
