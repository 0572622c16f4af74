"""Codecs: the ways in which models write tool calls. One codec reads them in play and writes them for training.

A codec never runs anything and raises for no text: it reads a text as calls, as a malformed attempt with the
reason, or as no call at all. Reading is linear, and the same on every Python: length, nesting and numbers are
bounded (`arena.tools.bounded`), before a JSON parser could refuse them in its own way.

Several forms are marked by special tokens (`<|python_tag|>`, `[TOOL_CALLS]`, `[ARGS]`): a server that leaves special
tokens out of its text hides them, so ask it not to (SGLang: `"skip_special_tokens": false`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from arena.tools.bounded import MAX_DEPTH, MAX_DIGITS, Keys, call_of, load
from arena.tools.call import MAX_CALLS, MAX_TEXT, Call, Codec, Format, Malformed, dumped, sample_call, told
from arena.tools.families import LlamaCodec, MistralCodec
from arena.tools.openai import OpenAICodec
from arena.tools.pythonic import PythonicCodec

__all__ = [
    "CODECS", "MAX_CALLS", "MAX_DEPTH", "MAX_DIGITS", "MAX_TEXT", "Call", "Codec", "Format", "JsonCodec", "Malformed",
    "sample_call", "told",
]  # fmt: skip

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_TAG = re.compile("<(/?tool_call>)")  # in JSON it can only stand in a text, where it can be escaped
_BARE = re.compile(r"\{|\[\s*\{")
_KEYS = Keys(("name", "tool"), ("arguments", "args"))


@dataclass(frozen=True)
class JsonCodec(Format):
    r"""Calls as JSON objects: `{"name": "add", "arguments": {"a": 1, "b": 2}}`; `tool` and `args` do as well.

    Read: an object or a list of objects that is the whole text (a code fence around it is allowed), or objects
    between `<tool_call>` and `</tool_call>`, with any words before and after (Hermes, Qwen). Written: with tags if
    `tagged` or if there are words, else bare. A text that holds the key of a call among other words is malformed,
    not an answer.

    Tagged is what the chat templates of Qwen2.5, Qwen3 and Hermes 2 Pro (`tool_use`) write, and what SGLang's
    parsers `qwen25` and `hermes` read (srt/function_call/qwen25_detector.py, hermes_detector.py):
    `<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>`, one block per call, a line break between
    blocks and after the words. A tag inside a text is escaped, which the templates do not do.
    """

    name: str = "json"
    tagged: bool = False
    place: ClassVar[str] = "write the call alone, without other words, or between <tool_call> and </tool_call>"

    def split(self, text: str) -> tuple[str, str]:
        """See `Format.split`."""
        bare = _unfenced(text)
        if _BARE.match(bare):
            return "", bare
        words, tag, rest = text.partition(_OPEN)
        return words.strip(), tag + rest

    def parse(self, part: str) -> list[Call] | Malformed:
        """See `Format.parse`."""
        calls: list[Call] = []
        for block in [part] if _BARE.match(part) else _tagged(part):
            found = _calls(block)
            if isinstance(found, Malformed):
                return found
            calls += found
        return calls

    def write(self, calls: Sequence[Call], content: str = "") -> str:
        """See `Format.write`."""
        objects = [self._object(call) for call in calls]
        if self.tagged or content:
            blocks = [f"{_OPEN}\n{each}\n{_CLOSE}" for each in objects]
            return "\n".join([content, *blocks] if content else blocks)
        return objects[0] if len(objects) == 1 else f"[{', '.join(objects)}]"

    def _object(self, call: Call) -> str:
        value = {"name": call.tool, "arguments": dict(call.arguments)}
        return _TAG.sub(r"\\u003c\1", dumped(value, ascii_only=not self.tagged))


CODECS: Mapping[str, Format] = {
    codec.name: codec
    for codec in (
        JsonCodec(),
        JsonCodec("hermes", tagged=True),
        LlamaCodec(),
        PythonicCodec(),
        MistralCodec(),
        MistralCodec("mistral-v13", compact=True),
        OpenAICodec(),
    )
}
"""The codecs by name: our own `json`, and one per family of models."""


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
    value = load(block)
    if isinstance(value, Malformed):
        return value
    found = []
    for each in value if isinstance(value, list) and value else [value]:
        call = call_of(each, _KEYS)
        if isinstance(call, Malformed):
            return call
        found.append(call)
    return found
