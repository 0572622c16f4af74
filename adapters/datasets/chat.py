"""Chat: what a seat was told and said, as messages.

Of a language model that `arena.agents.llm` asked they are exactly those the model was given: written again along the
replayed match with the options on record, and compared with the text on record, call by call. Of any other agent they
are those a language model in its place would have been given, its actions in the form that such a model is told to use.
"""

from collections.abc import Iterator
from itertools import pairwise, repeat
from typing import Any, NamedTuple

import msgspec

from arena.adapters.datasets.replayed import replayed
from arena.adapters.datasets.scribe import Scribe, Spoken, scribe_of
from arena.adapters.datasets.tokens import Lacking
from arena.adapters.datasets.trajectory import Trajectory
from arena.agent import Call, View
from arena.agents.conversation import DROPPED, Conversation
from arena.agents.prompting import Prompting
from arena.agents.telling import tell
from arena.episode import Attempt, Turn, prompts
from arena.model import Message
from arena.resuming import FORCED
from arena.text import clean

__all__ = ["Answer", "Dialogue", "Exchange", "asked_by", "dialogue", "dialogues", "exchanges"]

_DEFAULT = Prompting()
_ANSWERS = frozenset(("generate", "chat", "score"))
_SENT = _ANSWERS | {"sample"}
_TEMPLATES = (
    "it was told something else than these prompts write; where they came from a folder of templates, name it "
    "(template=...)"
)
_OPTIONS = frozenset(Prompting.__struct_fields__) - {"template"}


class Exchange(NamedTuple):
    """One answer of a seat, with all it was told before it."""

    prompt: tuple[Message, ...]
    answer: Message
    """As it was said, thoughts included."""
    tools: tuple[dict[str, Any], ...]
    """As chat templates take them; none where calls are written in the task's own way."""
    turn: Turn
    attempt: Attempt
    view: View
    """What the seat was given."""
    own: bool
    """False: the turn is of the episode this one was played on from, or its action was forced there."""

    @property
    def legal(self) -> bool:
        """Whether the answer was a legal action."""
        return self.attempt.verdict == "legal"


class Answer(NamedTuple):
    """An answer in a dialogue."""

    at: int
    """Which of the messages it is."""
    exchange: Exchange


class Dialogue(NamedTuple):
    """A conversation from its first message to its last answer."""

    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...]
    answers: tuple[Answer, ...]


def dialogue(trajectory: Trajectory, prompting: Prompting | None = None, *, anew: bool = False) -> Dialogue:
    """All that a seat was told and said, as one conversation; no messages for a seat that was never asked.

    The arguments are those of `exchanges`. Raises Lacking, too, where it was several: something of the past was left
    out of a prompt (style snapshot or window, thoughts that were stripped).
    """
    found = dialogues(trajectory, prompting, anew=anew)
    if len(found) > 1:
        raise Lacking(f"{_where(trajectory)}: it was asked in {len(found)} conversations, not in one that grows")
    return found[0] if found else Dialogue((), (), ())


def dialogues(trajectory: Trajectory, prompting: Prompting | None = None, *, anew: bool = False) -> list[Dialogue]:
    """The conversations of a seat, in order: each goes on as long as every prompt extends what was there.

    Style snapshot gives one for each turn. The arguments are those of `exchanges`.
    """
    found: list[list[Exchange]] = []
    whole: tuple[Message, ...] = ()
    for exchange in exchanges(trajectory, prompting, anew=anew):
        if not found or exchange.prompt[: len(whole)] != whole:
            found.append([])
        found[-1].append(exchange)
        whole = (*exchange.prompt, exchange.answer)
    return [_dialogue(held) for held in found]


def _dialogue(held: list[Exchange]) -> Dialogue:
    last = held[-1]
    return Dialogue((*last.prompt, last.answer), last.tools, tuple([Answer(len(each.prompt), each) for each in held]))


def exchanges(trajectory: Trajectory, prompting: Prompting | None = None, *, anew: bool = False) -> Iterator[Exchange]:
    """Every answer of a seat, in order, with what it was told before.

    `prompting`: how an agent that is no language model would have been asked; of one that is, only its template, a
    folder, which is not on record. `anew`: of a language model, too, the actions are written as `prompting` says, not
    what it was told and said. Raises Lacking where what a model was told cannot be written again exactly.
    """
    recorded = None if anew else _recorded(trajectory)
    options = asked_by(trajectory, prompting, anew=anew)
    scribe, seat = scribe_of(options), Conversation(None)
    if recorded is not None:
        _check_dropped(trajectory, options)
        _check_taken_up(trajectory, scribe)
    for view, turn, attempt in _asked(trajectory):
        own = turn.ply >= trajectory.episode.fork and not _forced(attempt)
        said: Spoken | None
        tell(scribe.prompter, view, seat)
        if recorded is None:
            said = scribe.say(view, attempt, turn.action if attempt.verdict == "legal" else None, seat.counted)
        else:
            if own:
                _compare(trajectory, turn, attempt, seat)
            said = scribe.recalled(view, turn, attempt, seat.counted, own=own)
        if said is None:
            continue
        tools = scribe.prompter.schemas(view.game)
        yield Exchange(tuple(seat.messages), said.answer, tools, turn, attempt, view, own)
        seat.calls, seat.counted = said.calls, seat.counted + len(said.calls)
        seat.answered(said.history, exact=True)


def asked_by(trajectory: Trajectory, prompting: Prompting | None = None, *, anew: bool = False) -> Prompting:
    """How the seat was asked, or how it is written that it was; the arguments are those of `exchanges`."""
    options = prompting or _DEFAULT
    recorded = None if anew else _recorded(trajectory)
    return options if recorded is None else msgspec.structs.replace(recorded, template=options.template)


def _asked(trajectory: Trajectory) -> Iterator[tuple[View, Turn, Attempt]]:
    """Each attempt of the seat with what it was given. Raises Lacking for what cannot be played again."""
    for position in replayed(trajectory):
        for turn, views in zip(position.turns, position.views, strict=True):
            if turn.seat == trajectory.player:
                yield from zip(views, repeat(turn), turn.attempts, strict=False)


def _recorded(trajectory: Trajectory) -> Prompting | None:
    """How the seat's language model was asked; None: no model was."""
    sampling = trajectory.policy.sampling
    if sampling.keys() >= _OPTIONS:
        try:
            return msgspec.convert({name: sampling[name] for name in _OPTIONS}, Prompting)
        except msgspec.ValidationError as error:
            raise Lacking(f"{_where(trajectory)}: how {trajectory.agent} was asked cannot be read: {error}") from error
    first = trajectory.episode.fork
    if any(call.kind in _ANSWERS for turn in trajectory.turns if turn.ply >= first for call in _calls(turn)):
        raise Lacking(f"{_where(trajectory)}: how {trajectory.agent} was asked is not on record")
    return None


def _forced(attempt: Attempt) -> bool:
    """Whether it was the caller of `branch` who said it."""
    return attempt.verdict == "legal" and attempt.reason == FORCED


def _calls(turn: Turn) -> list[Call]:
    return [call for attempt in turn.attempts for call in attempt.calls]


def _compare(trajectory: Trajectory, turn: Turn, attempt: Attempt, seat: Conversation) -> None:
    """See that what is told is what the record says was sent; a message that was sent alone is taken from there."""
    call = next((call for call in attempt.calls if call.kind in _SENT), None)
    if call is None or call.sent == clean("\n\n".join([message.content for message in seat.new])):
        return
    if len(seat.new) > 1:
        raise Lacking(f"{_where(trajectory)}, ply {turn.ply}: {_TEMPLATES}")
    seat.new[-1] = seat.messages[-1] = msgspec.structs.replace(seat.new[-1], content=call.sent)


def _check_dropped(trajectory: Trajectory, options: Prompting) -> None:
    """Raise Lacking where exchanges may have been left out of the seat's prompts for want of room.

    The record of the episode says that it happened; to whom and when, only tokens tell.
    """
    if DROPPED not in trajectory.episode.gaps or options.overflow != "window" or options.style == "snapshot":
        return
    calls = trajectory.calls
    whole = [(call, prompt) for call, prompt in zip(calls, prompts(calls), strict=True) if call.kind in _ANSWERS]
    grown = all(
        bool(prompt) and prompt[: len(before) + len(call.completion_ids)] == before + call.completion_ids
        for (call, before), (_, prompt) in pairwise(whole)
    )
    if not grown:
        raise Lacking(
            f"{_where(trajectory)}: the context was full and exchanges were left out of its prompts; which ones is on "
            "record in tokens only"
        )


def _check_taken_up(trajectory: Trajectory, scribe: Scribe) -> None:
    """Raise Lacking where a model that went on from another episode was told its beginning by unknown templates."""
    told = trajectory.policy.template_hash.partition("/")[0]
    if trajectory.turns and trajectory.turns[0].ply < trajectory.episode.fork and told != scribe.prompter.hash:
        raise Lacking(f"{_where(trajectory)}: {_TEMPLATES}")


def _where(trajectory: Trajectory) -> str:
    return f"episode {trajectory.episode.id}, seat {trajectory.player}"
