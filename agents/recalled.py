"""Recalled: a recorded answer as the model's own that takes it up, whoever gave it."""

from arena.agent import View
from arena.agents.prompting import FORMS, Prompting, harmless, is_open
from arena.agents.telling import received
from arena.episode import Attempt, Turn
from arena.model import Completion
from arena.text import clean
from arena.tools.call import Format
from arena.tools.openai import tool_calls_of
from arena.tools.task import ToolTask

__all__ = ["answer_of", "unanswered"]


def unanswered(attempt: Attempt) -> bool:
    """Nothing came in time, or the context was full: the question stands without an answer."""
    return not attempt.calls and not attempt.raw and attempt.verdict == "truncated"


def answer_of(
    view: View, turn: Turn, attempt: Attempt, prompting: Prompting, codec: Format | None, first: int
) -> Completion:
    """The answer as a model gave it; where none was asked, or for a choice only, as this model would have written it.

    `codec`: how this model calls tools, None: in the task's own way; `first` numbers the ids of calls.
    """
    legal, opened = attempt.verdict == "legal" and turn.action is not None, is_open(view)
    scored = bool(attempt.calls) and attempt.calls[-1].kind == "score"
    answer = received(attempt, tools=isinstance(view.game, ToolTask))  # how its own model called them is not told here
    alone = legal and prompting.form == "plain" and not opened  # a list of legal actions is all such a model writes
    if answer is not None and not scored and not (alone and answer.text != turn.action):
        return answer
    # Text of others cannot pass for control tokens here either.
    action = harmless(clean(turn.action if legal and turn.action is not None else attempt.raw))
    if codec is not None and isinstance(view.game, ToolTask):
        calls = view.game.codec.read(action)
        if isinstance(calls, tuple):
            return Completion("", "tool_calls", tool_calls=tuple(tool_calls_of(calls, first)))
    return Completion(FORMS[prompting.form].format(action) if legal and not opened else action)
