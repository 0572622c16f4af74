"""Telling: what a turn adds to a seat's conversation; in play, and again from a record."""

import json
from typing import Any

from arena.agent import View
from arena.agents.conversation import Conversation
from arena.agents.prompting import Prompter, is_open
from arena.episode import Attempt
from arena.model import Completion, Message
from arena.referee import split_thoughts
from arena.text import clean

__all__ = ["received", "tell"]


def tell(prompter: Prompter, view: View, seat: Conversation) -> None:
    """Add to the conversation what this turn, or this further try of it, has to tell."""
    options = prompter.options
    if view.note and seat.ply == view.ply:
        note = prompter.note(view)
        seat.say([Message("tool", note, tool_call_id=call) for call in seat.calls] or [Message("user", note)])
        return
    opened = is_open(view)
    if not seat.messages:
        seat.system_open = seat.open = opened
        seat.restart(prompter.system(view))
    elif options.style == "snapshot":
        seat.restart(seat.messages[0].content)
    changed = opened != seat.open or opened != seat.system_open
    seat.open, seat.ply = opened, view.ply
    keep = options.window if options.style == "window" else None
    seat.begin(_news(prompter, view, seat, changed=changed), keep)


def _news(prompter: Prompter, view: View, seat: Conversation, *, changed: bool) -> list[Message]:
    """A user's message, or one for each tool call that waits for its result; the last has the position too."""
    calls = seat.calls
    if not calls or prompter.options.style == "snapshot":
        return [Message("user", prompter.turn(view, changed=changed))]
    events = prompter.events(view)
    results = events[: len(calls) - 1]
    results += ["Not made."] * (len(calls) - 1 - len(results))
    results.append(prompter.told(view, events[len(calls) - 1 :], changed=changed))
    return [Message("tool", text, tool_call_id=call) for text, call in zip(results, calls, strict=True)]


def received(attempt: Attempt, *, tools: bool) -> Completion | None:
    """The model's answer on record, as it came (`arena.agents.said.read` reads it); None: it was not asked.

    Of several votes the one that was chosen. Thoughts that the server set apart come apart again. `tools`: it was
    offered some, so that the JSON of words and calls is an answer that called; else it is what the model wrote.
    """
    call = next((call for call in reversed(attempt.calls) if call.kind in ("generate", "chat", "score")), None)
    if call is None:
        return None
    text: str = call.received
    tool_calls: tuple[dict[str, Any], ...] = ()
    if tools and call.kind == "chat" and text.startswith('{"content": '):
        text, tool_calls = _structured(text)
    thought = split_thoughts(text)[1].strip() if "<" in text else ""
    apart = attempt.reasoning.removesuffix(thought).removesuffix("\n") if thought else attempt.reasoning
    return Completion(text, reasoning=apart, tool_calls=tool_calls, ids=call.completion_ids)


def _structured(text: str) -> tuple[str, tuple[dict[str, Any], ...]]:
    """The words and calls of an answer that is on record as the JSON of both; another text is all words.

    A text may spell lone surrogates as escapes: they are replaced, as in every text on record (`arena.text.clean`).
    """
    try:
        value = json.loads(text)
        if "\\u" in text:
            value = json.loads(clean(json.dumps(value, ensure_ascii=False)))
    except (ValueError, RecursionError):
        return text, ()
    calls = value.get("tool_calls") if value.keys() == {"content", "tool_calls"} else None
    if not isinstance(calls, list) or not calls or not all(isinstance(call, dict) for call in calls):
        return text, ()
    return str(value["content"]), tuple(calls)
