"""Calls of tools, and what every way of writing them (codec) must know."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import msgspec

from arena.text import clean, quote
from arena.tools.tool import Tool

__all__ = ["MAX_CALLS", "MAX_TEXT", "Call", "Codec", "Format", "Malformed", "sample_call", "told"]

MAX_TEXT = 100_000
MAX_CALLS = 16
_TOLD = 60  # characters of each part of a call that are told
_KEY = re.compile(r'"(?:name|tool)"[ \t\r\n]{0,9}:')


class Call(msgspec.Struct, frozen=True):
    """One call: the name of a tool and its arguments, neither checked against the tools there are."""

    tool: str
    arguments: Mapping[str, Any]


class Malformed(msgspec.Struct, frozen=True):
    """The text tries to call a tool and fails; `reason` says how, in words a player can use."""

    reason: str


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


class Format(ABC):
    """A codec of a family of models: it also keeps the words of a message apart from its calls.

    Read are at most `MAX_TEXT` characters and `MAX_CALLS` calls, in linear time; no text raises.
    """

    name: str
    place: ClassVar[str]
    """Where a call must stand, for a player who mixed it with words."""

    @abstractmethod
    def split(self, text: str) -> tuple[str, str]:
        """The words before the calls, and what is read as calls: empty if nothing is."""

    @abstractmethod
    def parse(self, part: str) -> list[Call] | Malformed:
        """The calls of the second part that `split` gave."""

    @abstractmethod
    def write(self, calls: Sequence[Call], content: str = "") -> str:
        """The text of the calls after the words `content`, as an assistant's turn without end-of-turn tokens.

        `read` gives the calls back and `split` the words, unless the words themselves hold a call of this form.
        """

    def read(self, text: str) -> tuple[Call, ...] | Malformed | None:
        """See `Codec.read`."""
        if len(text) > MAX_TEXT:
            return Malformed(f"write at most {MAX_TEXT} characters")
        part = self.split(text)[1]
        if not part:
            return Malformed(self.place) if self.attempted(text) else None
        calls = self.parse(part)
        if isinstance(calls, Malformed):
            return calls
        return Malformed(f"at most {MAX_CALLS} calls at once") if len(calls) > MAX_CALLS else tuple(calls)

    def attempted(self, text: str) -> bool:
        """Whether words without a call where one must stand still hold the key of one."""
        return "{" in text and _KEY.search(text) is not None

    def teach(self, tools: Sequence[Tool]) -> str:
        """See `Codec.teach`."""
        lines = [f"- {tool.signature()}: {' '.join(tool.description.split())}" for tool in tools]
        example = self.write([sample_call(tools[0])]).replace("\n", "")
        return "\n".join(["Tools:", *lines, "Write a call in this form.", f"For example: {example}"])


def dumped(value: Any, *, ascii_only: bool = False) -> str:
    """JSON as the chat templates write it: spaces after , and :, other alphabets as they are, no lone surrogates."""
    return clean(json.dumps(value, ensure_ascii=ascii_only))


def without_end(text: str, *ends: str) -> str:
    """The text stripped, without the end-of-turn tokens that some servers leave."""
    text = text.strip()
    for end in ends:
        text = text.removesuffix(end).rstrip()
    return text


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


def sample_call(tool: Tool) -> Call:
    """A call in which every argument is of its type."""
    return Call(tool.name, {key: _example(schema) for key, schema in tool.parameters["properties"].items()})


def _example(schema: Mapping[str, Any]) -> Any:
    """A value of a parameter's type."""
    if "enum" in schema:
        return schema["enum"][0]
    kinds: Mapping[Any, Any] = {"integer": 2, "number": 1.5, "boolean": True, "string": "text", "array": []}
    return kinds.get(schema.get("type"), {})
