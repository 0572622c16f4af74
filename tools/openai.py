"""Calls as OpenAI's chat API gives them: the `tool_calls` of a message, as a structure and as its JSON."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from arena.text import clean
from arena.tools.bounded import bounded, load
from arena.tools.call import MAX_CALLS, MAX_TEXT, Call, Format, Malformed, dumped

__all__ = ["OpenAICodec", "assistant_message", "calls_of", "tool_calls_of"]

_BARE = re.compile(r"\{|\[\s*\{")
_KEY = re.compile(r'"(?:function|tool_calls|name)"[ \t\r\n]{0,9}:')
_LONG = Malformed(f"write at most {MAX_TEXT} characters")
_SHAPE = Malformed('a call is {"type": "function", "function": {"name": ..., "arguments": "{...}"}}')


def tool_calls_of(calls: Sequence[Call], first: int = 0) -> list[dict[str, Any]]:
    """The calls as the `tool_calls` of an assistant's message; `first` numbers their ids on in a conversation.

    Ids have nine letters and digits, as the templates of Mistral demand; OpenAI takes any text.

    >>> tool_calls_of([Call("add", {"a": 1})])
    [{'id': 'call00000', 'type': 'function', 'function': {'name': 'add', 'arguments': '{"a": 1}'}}]
    """
    return [
        {
            "id": f"call{number:05d}",
            "type": "function",
            "function": {"name": clean(call.tool), "arguments": dumped(dict(call.arguments))},
        }
        for number, call in enumerate(calls, first)
    ]


def calls_of(tool_calls: object) -> tuple[Call, ...] | Malformed:
    """The calls of the `tool_calls` of a message, which may be anything that a JSON parser gives; raises for nothing.

    Arguments are a text of JSON (OpenAI, SGLang, vLLM) or an object (Ollama); none, null or an empty text is no
    argument. Ids and indices are not looked at.
    """
    if not isinstance(tool_calls, list) or not tool_calls:
        return Malformed("tool_calls is a list of calls")
    if len(tool_calls) > MAX_CALLS:
        return Malformed(f"at most {MAX_CALLS} calls at once")
    calls: list[Call] = []
    for each in tool_calls:
        call = _call(each)
        if isinstance(call, Malformed):
            return call
        calls.append(call)
    return tuple(calls)


def _call(value: object) -> Call | Malformed:
    function = value.get("function") if isinstance(value, dict) else None
    if not isinstance(value, dict) or value.get("type", "function") != "function" or not isinstance(function, dict):
        return _SHAPE
    if value.keys() - {"id", "type", "index", "function"} or function.keys() - {"name", "arguments"}:
        return Malformed('a call has the keys "id", "type" and "function", this one "name" and "arguments", no others')
    name = function.get("name")
    if not isinstance(name, str) or len(name) > MAX_TEXT:
        return Malformed('"name" must be the name of a tool')
    arguments = _arguments(function.get("arguments"))
    return arguments if isinstance(arguments, Malformed) else Call(clean(name), arguments)


def _arguments(given: object) -> Mapping[str, Any] | Malformed:
    if given is None:
        return {}
    if isinstance(given, str):
        if len(given) > MAX_TEXT:
            return _LONG
        given = load(given) if given.strip() else {}
    elif isinstance(given, dict):
        try:
            given = bounded(given)
        except ValueError as error:
            return Malformed(f"the call is not allowed: {error}")
        if len(dumped(given)) > MAX_TEXT:
            return _LONG
    if isinstance(given, Malformed):
        return given
    return given if isinstance(given, dict) else Malformed('"arguments" must be an object, written as a text of JSON')


def assistant_message(codec: Format, text: str, first: int = 0) -> dict[str, Any]:
    """What a model said as a message of a chat: `content`, and `tool_calls` if it calls (`first` numbers the ids).

    What is no call, or a malformed one, is all content. What stands between or behind calls is lost.
    """
    calls = codec.read(text)
    if not isinstance(calls, tuple):
        return {"role": "assistant", "content": clean(text)}
    return {"role": "assistant", "content": clean(codec.split(text)[0]), "tool_calls": tool_calls_of(calls, first)}


@dataclass(frozen=True)
class OpenAICodec(Format):
    r"""The JSON of an OpenAI message's `tool_calls`, for models that are only reached through such an API.

    `[{"id": "call00000", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 1}"}}]`; with words,
    the message's `{"content": ..., "tool_calls": [...]}`. One such call alone is read, too. Source: OpenAI API
    reference, chat completions, message.tool_calls; SGLang's types ToolCall and FunctionResponse
    (srt/entrypoints/openai/protocol.py).
    """

    name: str = "openai"
    place: ClassVar[str] = "write the list of calls alone, without other words"

    def split(self, text: str) -> tuple[str, str]:
        """See `Format.split`."""
        text = text.strip()
        if not _BARE.match(text):
            return text, ""
        value = load(text) if len(text) <= MAX_TEXT else None
        content = value.get("content") if isinstance(value, dict) and "tool_calls" in value else None
        return (content if isinstance(content, str) else ""), text

    def parse(self, part: str) -> list[Call] | Malformed:
        """See `Format.parse`."""
        value = load(part)
        if isinstance(value, Malformed):
            return value
        if isinstance(value, dict):
            if value.keys() - {"tool_calls", "content", "role"} and "tool_calls" in value:
                return Malformed('a message has the keys "role", "content" and "tool_calls", and no others')
            value = value.get("tool_calls", [value])
        calls = calls_of(value)
        return calls if isinstance(calls, Malformed) else list(calls)

    def attempted(self, text: str) -> bool:
        """See `Format.attempted`."""
        return "{" in text and _KEY.search(text) is not None

    def write(self, calls: Sequence[Call], content: str = "") -> str:
        """See `Format.write`."""
        made = tool_calls_of(calls)
        return dumped({"content": content, "tool_calls": made} if content else made)
