"""Said: what a model's answer is for the referee, for the history and for the record."""

from typing import Any, NamedTuple

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

    A malformed call goes to the game as it is: it says what is wrong with it. Thoughts the server set apart go back
    to it apart (separate), or as a model that writes them itself would have (keep).
    """
    text, apart = completion.text, completion.reasoning.strip()
    spoken, thought = split_thoughts(text) if "<" in text else (text, "")
    reasoning = "\n".join(part for part in (apart, thought.strip()) if part)
    kept, sampled = text, True
    if thinking == "strip":
        kept, sampled = spoken.strip(), not apart and (spoken.strip() == text or not thought)
    before = _tagged(apart) if thinking == "keep" else ""
    for_referee = before + text if thinking == "keep" or not spoken.strip() else spoken.strip()
    message = Message("assistant", before + kept, reasoning=apart if thinking == "separate" else "")
    said = Said(for_referee, reasoning, message, sampled, _received(completion))
    if codec is None or not isinstance(view.game, ToolTask):
        return said
    if thinking != "strip" and not completion.tool_calls:
        before += _tagged(thought.strip())
    return _called(said, completion, spoken, view.game, codec, first, before)


def _tagged(thought: str) -> str:
    """A thought as models write theirs; it cannot end before its end."""
    return f"<think>\n{thought.replace('</think', '< /think')}\n</think>\n\n" if thought else ""


def _called(
    said: Said, completion: Completion, spoken: str, game: ToolTask, codec: Format, first: int, before: str
) -> Said:
    """The answer where it may call tools in the model's own format. `before`: thoughts that stand before its words."""
    structured = bool(completion.tool_calls)
    if structured:
        spoken, codec = _json(list(completion.tool_calls)), _STRUCTURED
    calls = codec.read(spoken)
    if not isinstance(calls, tuple):  # an answer, or malformed
        return said if not structured else said._replace(text=spoken, message=_with(said, said.received))
    text = game.codec.write([Call(call.tool, call.arguments) for call in calls])
    made = tool_calls_of(calls, first)
    if structured:
        made = [
            call | {"id": str(given.get("id") or call["id"])}
            for call, given in zip(made, completion.tool_calls, strict=True)
        ]
    words = said.message.content if structured else before + codec.split(spoken)[0]
    return said._replace(
        text=text,
        message=_with(said, words, tuple(made)),
        calls=tuple([call["id"] for call in made]),
    )


def _with(said: Said, content: str, calls: tuple[dict[str, Any], ...] = ()) -> Message:
    return Message("assistant", content, calls, reasoning=said.message.reasoning)


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
