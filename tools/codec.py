"""Codecs: the ways in which models write tool calls. One codec reads them in play and writes them for training.

A codec never runs anything and raises for no text: it reads a text as calls, as a malformed attempt with the
reason, or as no call at all. Reading is linear, and the same on every Python: length, nesting and numbers are
bounded here, before a JSON parser could refuse them in its own way.
"""

import json
import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Protocol

import msgspec

from arena.text import clean, quote
from arena.tools.tool import Tool

__all__ = ["CODECS", "MAX_CALLS", "Call", "Codec", "JsonCodec", "Malformed", "sample_call", "told"]

MAX_TEXT = 100_000
MAX_CALLS = 16
MAX_DEPTH = 32
MAX_DIGITS = 400
_TOLD = 60  # characters of each part of a call that are told
_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_TAG = re.compile("<(/?tool_call>)")  # in JSON it can only stand in a text, where it can be escaped
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")
_NAMES = ("name", "tool")
_ARGUMENTS = ("arguments", "args")
_BARE = re.compile(r"\{|\[\s*\{")
_KEY = re.compile(r'"(?:name|tool)"[ \t\r\n]{0,9}:')


class Call(msgspec.Struct, frozen=True):
    """One call: the name of a tool and its arguments, neither checked against the tools there are."""

    tool: str
    arguments: Mapping[str, Any]


def told(call: Call) -> str:
    r"""The call in a line that a person reads easily; long parts are cut, and none can look like another line.

    >>> print(told(Call("look", {"word": "x\nError: y", "times": 2})))
    look(word="x\nError: y", times=2)
    """
    parts = [f"{_word(key)}={_value(value)}" for key, value in list(call.arguments.items())[:8]]
    parts += ["..."] * (len(call.arguments) > 8)
    return f"{_word(call.tool)}({', '.join(parts)})"


def _word(name: str) -> str:
    """A name as it is if it is one, else quoted."""
    return name if name.isascii() and name.isidentifier() and len(name) <= _TOLD else quote(_cut(name))


def _value(value: Any) -> str:
    if isinstance(value, str):
        return quote(_cut(value))
    text = json.dumps(value)  # ASCII on one line
    return text if len(text) <= _TOLD else _cut(text)


def _cut(text: str) -> str:
    return text if len(text) <= _TOLD else f"{text[:_TOLD]}..."


class Malformed(msgspec.Struct, frozen=True):
    """The text tries to call a tool and fails; `reason` says how, in words a player can use."""

    reason: str


_MIXED = Malformed("write the call alone, without other words, or between <tool_call> and </tool_call>")


class Codec(Protocol):
    """What a way of writing calls must know."""

    @property
    def name(self) -> str:
        """How it is named in options and records."""

    def read(self, text: str) -> tuple[Call, ...] | Malformed | None:
        """The calls of a text (at least one), why they cannot be read, or None: it calls nothing."""

    def write(self, calls: Sequence[Call]) -> str:
        """The text of the calls: `read` gives them back."""

    def teach(self, tools: Sequence[Tool]) -> str:
        """For the rules: the tools, and how a call is written, with an example."""


class JsonCodec(msgspec.Struct, frozen=True):
    """Calls as JSON objects: `{"name": "add", "arguments": {"a": 1, "b": 2}}`; `tool` and `args` do as well.

    Read: an object or a list of objects that is the whole text (a code fence around it is allowed), or objects
    between `<tool_call>` and `</tool_call>`, with any words before and after (Hermes, Qwen). Written: with tags if
    `tagged`, else bare. A text that holds the key of a call among other words is malformed, not an answer.
    """

    name: str = "json"
    tagged: bool = False

    def read(self, text: str) -> tuple[Call, ...] | Malformed | None:
        """See `Codec.read`."""
        if len(text) > MAX_TEXT:
            return Malformed(f"write at most {MAX_TEXT} characters")
        blocks = [_unfenced(text)]
        if not _BARE.match(blocks[0]):
            if _OPEN not in text:
                return _MIXED if "{" in text and _KEY.search(text) else None
            blocks = _tagged(text)
        calls: list[Call] = []
        for block in blocks:
            found = _calls(block)
            if isinstance(found, Malformed):
                return found
            calls += found
        if len(calls) > MAX_CALLS:
            return Malformed(f"at most {MAX_CALLS} calls at once")
        return tuple(calls)

    def write(self, calls: Sequence[Call]) -> str:
        """See `Codec.write`."""
        objects = [_TAG.sub(r"\\u003c\1", json.dumps({"name": c.tool, "arguments": dict(c.arguments)})) for c in calls]
        if self.tagged:
            return "\n".join([f"{_OPEN}\n{each}\n{_CLOSE}" for each in objects])
        return objects[0] if len(objects) == 1 else f"[{', '.join(objects)}]"

    def teach(self, tools: Sequence[Tool]) -> str:
        """See `Codec.teach`."""
        lines = [f"- {tool.signature()}: {' '.join(tool.description.split())}" for tool in tools]
        example = self.write([sample_call(tools[0])]).replace("\n", "")
        return "\n".join(["Tools:", *lines, "Write a call in this form.", f"For example: {example}"])


CODECS: Mapping[str, Codec] = {"json": JsonCodec(), "hermes": JsonCodec("hermes", tagged=True)}


def _tagged(text: str) -> list[str]:
    """What stands between the tags; a last one left open ends with the text (a stop token ate it)."""
    return [part.partition(_CLOSE)[0].strip() for part in text.split(_OPEN)[1:]]


def _unfenced(text: str) -> str:
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        return text[:-3].partition("\n")[2].strip()
    return text


def _calls(block: str) -> list[Call] | Malformed:
    """The calls of one piece of JSON: an object, or a list of them."""
    if not _shallow(block):
        return Malformed(f"the JSON is nested more than {MAX_DEPTH} deep")
    try:
        value = _DECODER.decode(block)
    except json.JSONDecodeError:  # its words differ between Pythons: a replay must not
        return Malformed("the call is not JSON: double quotes around keys and text, every bracket closed, no comments")
    except ValueError as error:  # of the hooks below
        return Malformed(f"the call is not allowed: {error}")
    found = []
    for each in value if isinstance(value, list) and value else [value]:
        call = _call(each)
        if isinstance(call, Malformed):
            return call
        found.append(call)
    return found


def _call(value: Any) -> Call | Malformed:
    if not isinstance(value, dict):
        return Malformed('a call is an object: {"name": ..., "arguments": {...}}')
    names, arguments = [k for k in _NAMES if k in value], [k for k in _ARGUMENTS if k in value]
    if len(names) != 1 or len(arguments) > 1 or len(value) != len(names) + len(arguments):
        return Malformed('a call has the keys "name" and "arguments", and no others')
    name, given = value[names[0]], value[arguments[0]] if arguments else {}
    if not isinstance(name, str):
        return Malformed(f'"{names[0]}" must be the name of a tool')
    if not isinstance(given, dict):
        return Malformed(f'"{arguments[0]}" must be an object')
    return Call(clean(name), given)


def _shallow(text: str) -> bool:
    """Whether brackets outside strings nest no deeper than allowed: JSON parsers recurse."""
    depth = 0
    for bracket in _BRACKET.finditer(_STRING.sub("", text)):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > MAX_DEPTH:
            return False
    return True


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


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number has more than {MAX_DIGITS} digits")
    return int(digits)


def _float(digits: str) -> float:
    if len(digits) > MAX_DIGITS or not isfinite(value := float(digits)):
        raise ValueError("a number is too long or too large")
    return value


def _constant(word: str) -> float:
    raise ValueError(f"{word} is no JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant)


def sample_call(tool: Tool) -> Call:
    """A call in which every argument is of its type."""
    return Call(tool.name, {key: _example(schema) for key, schema in tool.parameters["properties"].items()})


def _example(schema: Mapping[str, Any]) -> Any:
    """A value of a parameter's type."""
    if "enum" in schema:
        return schema["enum"][0]
    kinds: Mapping[Any, Any] = {"integer": 2, "number": 1.5, "boolean": True, "string": "text", "array": []}
    return kinds.get(schema.get("type"), {})
