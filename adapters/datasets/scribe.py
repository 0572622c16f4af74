"""Scribe: a seat's answers as messages: as a language model gave them, or as one would have been told to."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from arena.adapters.models.native import template_message
from arena.agent import View
from arena.agents.prompting import FORMS, Prompter, Prompting, harmless, is_open
from arena.agents.recalled import answer_of, unanswered
from arena.agents.said import read
from arena.agents.telling import received
from arena.episode import Attempt, Turn
from arena.game import Action
from arena.model import Completion, Message
from arena.text import clean
from arena.tools.call import Codec, Format
from arena.tools.openai import tool_calls_of
from arena.tools.task import ToolTask

__all__ = ["Scribe", "Spoken", "merged", "scribe_of", "written"]


class Spoken(NamedTuple):
    """One answer."""

    answer: Message
    """As it was said."""
    history: Message
    """As later prompts have it: without thoughts where those are stripped."""
    calls: tuple[str, ...] = ()
    """Ids of the tool calls in it."""


class Scribe:
    """Writes the answers of agents that were told `options`."""

    def __init__(self, options: Prompting) -> None:
        self.prompter = Prompter(options)

    def recalled(self, view: View, turn: Turn, attempt: Attempt, first: int, *, own: bool) -> Spoken | None:
        """A model's answer on record; `first` numbers the ids of calls. None: it was not asked.

        `own`: the model gave it; else it took it up as its own (`Agent.recall`), whoever gave it.
        """
        options, codec = self.prompter.options, self.prompter.codec
        if own:
            completion = received(attempt, tools=codec is not None and isinstance(view.game, ToolTask))
        else:
            completion = None if unanswered(attempt) else answer_of(view, turn, attempt, options, codec, first)
        return None if completion is None else self._read(view, completion, first)

    def _read(self, view: View, completion: Completion, first: int) -> Spoken:
        thinking, codec = self.prompter.options.thinking, self.prompter.codec
        said = read(completion, thinking, view, codec, first)
        whole = said if thinking != "strip" else read(completion, "separate", view, codec, first)
        return Spoken(whole.message, said.message, said.calls)

    def say(self, view: View, attempt: Attempt, action: Action | None, first: int) -> Spoken | None:
        """An attempt of an agent that is no language model; `action`: what it played, None: it was wrong.

        None: nothing came in time, so nothing was said.
        """
        if unanswered(attempt):
            return None
        if action is not None:
            return self.play(view, action, first)
        message = Message("assistant", harmless(clean(attempt.raw), rules=True))
        return Spoken(message, message)

    def play(self, view: View, action: Action, first: int = 0) -> Spoken:
        """An action in the form of an answer; tool calls as such where `options.tools` names how they are called."""
        game, options = view.game, self.prompter.options
        if self.prompter.codec is not None and isinstance(game, ToolTask):
            message = _called(game.codec, action, first)
            return Spoken(message, message, tuple([call["id"] for call in message.tool_calls]))
        text = harmless(clean(action), rules=True)
        message = Message("assistant", text if is_open(view) else FORMS[options.form].format(text))
        return Spoken(message, message)


def scribe_of(options: Prompting) -> Scribe:
    """A scribe of these options, kept for the next seat: to compile templates takes milliseconds.

    Raises ValueError where they cannot be used.
    """
    folder = Path(options.template)
    files = [(path.name, path.stat()) for path in sorted(folder.glob("*.j2"))] if options.template else []
    return _kept(options, tuple([(name, stat.st_mtime_ns, stat.st_size) for name, stat in files]))


@lru_cache(maxsize=256)
def _kept(options: Prompting, files: tuple[tuple[str, int, int], ...]) -> Scribe:
    """`files`: the templates as they are now."""
    return Scribe(options)


def _called(codec: Codec, action: Action, first: int) -> Message:
    """An action of a tool task; what calls nothing is all words."""
    calls, text = codec.read(action), harmless(clean(action), rules=True)
    if not isinstance(calls, tuple):
        return Message("assistant", text)
    words = codec.split(text)[0] if isinstance(codec, Format) else ""
    return Message("assistant", words, tuple(tool_calls_of(calls, first)))


def merged(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages without a system's: it opens the first of the user's, for templates that refuse one."""
    if len(messages) < 2 or messages[0].role != "system":
        return messages
    system, first, *rest = messages
    return (Message("user", f"{system.content}\n\n{first.content}"), *rest)


def written(message: Message) -> dict[str, Any]:
    """A message as chat templates take it: the arguments of calls as objects, thoughts set apart `reasoning_content`.

    >>> written(Message("tool", "5", tool_call_id="call00000"))
    {'role': 'tool', 'content': '5', 'tool_call_id': 'call00000'}
    """
    made = template_message(message)
    if message.tool_calls:
        made["tool_calls"] = [_objects(call) for call in message.tool_calls]
    return made


def _objects(call: dict[str, Any]) -> dict[str, Any]:
    """OpenAI writes arguments as text; what is no JSON stays one."""
    function = call["function"]
    try:
        return call | {"function": function | {"arguments": json.loads(function["arguments"])}}
    except (ValueError, RecursionError):
        return call
