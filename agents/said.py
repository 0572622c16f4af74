"""Said: what a model's answer is for the referee, for the history and for the record."""

from typing import NamedTuple

from arena.agent import View
from arena.agents.prompting import Thinking
from arena.model import Completion, Message
from arena.referee import split_thoughts
from arena.tools.call import Call, Format, dumped
from arena.tools.openai import OpenAICodec, tool_calls_of
from arena.tools.task import ToolTask

__all__ = ["Said", "read"]

_STRUCTURED = OpenAICodec()


class Said(NamedTuple):
    """One answer, read."""

    text: str
    """For the referee; of a tool call, as the task writes it."""
    reasoning: str
    message: Message
    """For the history."""
    sampled: bool
    """Whether the history has it as it was sampled."""
    received: str
    """All of it, as it came; structured calls as their JSON."""
    calls: tuple[str, ...] = ()
    """Ids of the tool calls in it."""


def read(completion: Completion, thinking: Thinking, view: View, codec: Format | None, first: int) -> Said:
    """Read an answer. `codec`: how it calls tools, None: in the task's own way; `first` numbers the ids of calls.

    A malformed call goes to the game as it is: it says what is wrong with it.
    """
    text, reasoning = completion.text, completion.reasoning
    spoken, thought = split_thoughts(text) if "<" in text else (text, "")
    reasoning = "\n".join(part for part in (reasoning.strip(), thought.strip()) if part)
    kept = spoken.strip() if thinking == "strip" else text
    for_referee = text if thinking == "keep" or not spoken.strip() else spoken.strip()
    said = Said(for_referee, reasoning, Message("assistant", kept), kept == text or not thought, _received(completion))
    if codec is None or not isinstance(view.game, ToolTask):
        return said
    return _called(said, completion, spoken, view.game, codec, first)


def _called(said: Said, completion: Completion, spoken: str, game: ToolTask, codec: Format, first: int) -> Said:
    """The answer where it may call tools in the model's own format."""
    structured = bool(completion.tool_calls)
    if structured:
        spoken, codec = _json(list(completion.tool_calls)), _STRUCTURED
    calls = codec.read(spoken)
    if not isinstance(calls, tuple):  # an answer, or malformed
        return said if not structured else said._replace(text=spoken, message=Message("assistant", said.received))
    text = game.codec.write([Call(call.tool, call.arguments) for call in calls])
    made = tool_calls_of(calls, first)
    if structured:
        made = [
            call | {"id": str(given.get("id") or call["id"])}
            for call, given in zip(made, completion.tool_calls, strict=True)
        ]
    words = completion.text if structured else codec.split(spoken)[0]
    return said._replace(
        text=text,
        message=Message("assistant", words, tuple(made)),
        calls=tuple([call["id"] for call in made]),
    )


def _received(completion: Completion) -> str:
    if not completion.tool_calls:
        return completion.text
    return _json({"content": completion.text, "tool_calls": list(completion.tool_calls)})


def _json(value: object) -> str:
    """JSON; of what is nested too deep for that, a text that is no call either."""
    try:
        return dumped(value)
    except RecursionError:
        return '{"tool_calls": [...]}'
