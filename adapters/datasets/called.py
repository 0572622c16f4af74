"""Called: the tool calls of an assistant's message, for formats that write them in shapes of their own."""

import json
from typing import Any, NamedTuple

from arena.model import Message

__all__ = ["Called", "called"]


class Called(NamedTuple):
    """One call. All of it may come from a model, and be anything."""

    id: str
    name: str
    arguments: str
    """As the model wrote them: JSON, if it wrote any."""

    @property
    def objects(self) -> dict[str, Any]:
        """The arguments as an object; what is none, as `{"arguments": text}`.

        >>> Called("1", "add", '{"a": 1}').objects, Called("1", "add", "[").objects
        ({'a': 1}, {'arguments': '['})
        """
        try:
            value = json.loads(self.arguments)
        except (ValueError, RecursionError):
            value = None
        return value if isinstance(value, dict) else {"arguments": self.arguments}

    def openai(self) -> dict[str, Any]:
        """As OpenAI's chat API writes it."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


def called(message: Message) -> list[Called]:
    """The tool calls of a message, in order.

    >>> call = {"id": "c0", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    >>> called(Message("assistant", "", (call,)))
    [Called(id='c0', name='add', arguments='{}')]
    """
    return [_called(call) for call in message.tool_calls]


def _called(call: dict[str, Any]) -> Called:
    function = call.get("function")
    told: dict[str, Any] = function if isinstance(function, dict) else {}
    arguments = told.get("arguments", "")
    return Called(
        str(call.get("id", "")),
        str(told.get("name", "")),
        arguments if isinstance(arguments, str) else json.dumps(arguments),
    )
