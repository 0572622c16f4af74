"""Tokens: a trajectory as the sequences of token ids that a model was given and sampled.

A sequence begins with the prompt of a call and goes on as long as every later prompt extends what was there. Where one
does not (the template writes history anew, a snapshot style, exchanges that were dropped), the next sequence begins.
Nothing is tokenized again and nothing is filled in: what is not on record is `Lacking`.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Literal, NamedTuple

from arena.adapters.datasets.trajectory import Trajectory
from arena.agent import LEAST, Call
from arena.episode import Attempt, Turn, prompts
from arena.resuming import FORCED

__all__ = ["Kinds", "Lacking", "Segment", "Span", "own", "segments"]

Kinds = Literal["own", "any"]
"""Log-probabilities that are taken. own: of the model's own distribution, at whatever temperature; any: of one that a
constraint or penalties had changed, too."""
_SILENT = frozenset(("sample", "tool"))  # calls that are no part of the conversation


class Lacking(ValueError):
    """A record has not what a format needs: which, and what."""


class Span(NamedTuple):
    """One sampled answer in `Segment.response_ids`."""

    start: int
    end: int
    turn: Turn
    attempt: Attempt
    call: Call
    reward: float
    """What the turn earned (`Turn.reward`), at its last answer; 0.0 at those before."""


class Segment(NamedTuple):
    """One sequence: a prompt, then sampled answers with what the game and the template put between them."""

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    mask: tuple[int, ...]
    """Of the response: 1 where the model sampled the token, 0 where it was given."""
    logprobs: tuple[float | None, ...]
    """Of the response: of sampled tokens as recorded, None where the token was given."""
    spans: tuple[Span, ...]
    """The answers, in order."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of which distribution the log-probabilities are (`arena.model.logprob_kind`), each once."""
        return tuple(dict.fromkeys(span.call.logprob_kind for span in self.spans))

    @property
    def versions(self) -> tuple[tuple[int, int, str], ...]:
        """(first token, end, weight version) of spans of the response, where the server told any."""
        return tuple([found for span in self.spans for found in _versions(span)])

    def known(self, given: float = 0.0) -> list[float]:
        """The log-probabilities with a number of the consumer's where the token was given, which it masks."""
        return [given if logprob is None else logprob for logprob in self.logprobs]

    def rewards(self) -> list[float]:
        """Of the response, token by token: what a turn earned at the last token that was sampled in it, else 0.0."""
        found = [0.0] * len(self.mask)
        for span in self.spans:
            found[span.end - 1] = span.reward
        return found


def own(kind: str) -> bool:
    """Whether log-probabilities of this kind are of the model's own distribution, at whatever temperature.

    >>> own("raw"), own("temperature=0.7"), own("temperature=0.7,regex"), own("")
    (True, True, False, False)
    """
    return kind == "raw" or (kind.startswith("temperature=") and "," not in kind)


def segments(trajectory: Trajectory, *, logprobs: bool = True, kinds: Kinds = "any") -> list[Segment]:
    """The sequences of a trajectory, in order.

    Left out are votes that were not chosen ("sample", no part of the conversation), calls that are no answers of a
    model, and of an episode that was played on from another's middle what was said there or forced: it is in prompts.

    Raises Lacking where an answer has no tokens, was not sampled token by token, has no log-probabilities, or has some
    of another kind than is allowed (`logprobs` False: neither is looked at).
    """
    answers = list(_answers(trajectory))
    last = {id(turn): at for at, (turn, *_) in enumerate(answers)}
    found: list[_Growing] = []
    for at, (turn, attempt, call, prompt) in enumerate(answers):
        if why := _unfit(call) or (_unsure(call, kinds) if logprobs else ""):
            raise Lacking(f"{_where(trajectory, turn)}: {why}")
        if not found or not found[-1].extend(prompt):
            found.append(_Growing(prompt))
        found[-1].answer(turn, attempt, call, turn.reward if last[id(turn)] == at else 0.0)
    return [growing.segment(logprobs) for growing in found]


def _answers(trajectory: Trajectory) -> Iterator[tuple[Turn, Attempt, Call, tuple[int, ...]]]:
    """Every answer that the seat's model gave in this episode, with its whole prompt."""
    whole, here = iter(prompts(trajectory.calls)), set(map(id, trajectory.played))
    for turn, attempt in trajectory.attempts:
        asked = zip(attempt.calls, list(islice(whole, len(attempt.calls))), strict=True)
        if id(turn) not in here:
            continue
        given = [(turn, attempt, call, prompt) for call, prompt in asked if call.kind not in _SILENT]
        if not given and (attempt.raw or attempt.reasoning) and not _forced(trajectory, turn, attempt):
            raise Lacking(f"{_where(trajectory, turn)}: no tokens were recorded of {trajectory.agent}'s reply")
        yield from given


def _forced(trajectory: Trajectory, turn: Turn, attempt: Attempt) -> bool:
    """Whether the seat was not asked: the ply from which the episode was played on was given."""
    return bool(trajectory.episode.parent) and turn.ply == trajectory.episode.fork and attempt.reason == FORCED


def _where(trajectory: Trajectory, turn: Turn) -> str:
    return f"episode {trajectory.episode.id}, seat {trajectory.player}, ply {turn.ply}"


def _unfit(call: Call) -> str:
    """Why a call is no sampled sequence of tokens, or ""."""
    if call.kind == "score":
        return "the action was chosen by its score, not sampled token by token"
    if not call.completion_ids:
        return f"the answer's token ids were not recorded ({call.kind})"
    if not call.prompt_ids and not call.extends:
        return f"the prompt's token ids were not recorded ({call.kind})"
    return ""


def _unsure(call: Call, kinds: Kinds) -> str:
    """Why its log-probabilities cannot be used, or ""."""
    if len(call.logprobs) != len(call.completion_ids):
        return "the answer's log-probabilities were not recorded"
    if min(call.logprobs) <= LEAST:
        return "a token that was sampled has a log-probability of minus infinity"
    if kinds == "own" and not own(call.logprob_kind):
        return f"the log-probabilities are of kind {call.logprob_kind or 'not told'!r}, not the model's own (kinds=any)"
    return ""


class _Growing:
    """A sequence that answers are still added to."""

    def __init__(self, prompt: tuple[int, ...]) -> None:
        self.prompt, self.all = prompt, prompt
        self.mask: list[int] = []
        self.logprobs: list[float | None] = []
        self.spans: list[Span] = []

    def extend(self, prompt: tuple[int, ...]) -> bool:
        """Go on with what a prompt adds; False: it does not extend this sequence."""
        before = len(self.all)
        if prompt[:before] != self.all:
            return False
        self.mask += [0] * (len(prompt) - before)
        self.logprobs += [None] * (len(prompt) - before)
        self.all = prompt
        return True

    def answer(self, turn: Turn, attempt: Attempt, call: Call, reward: float) -> None:
        """Add a sampled answer."""
        start, count = len(self.mask), len(call.completion_ids)
        self.all += call.completion_ids
        self.mask += [1] * count
        self.logprobs += call.logprobs or [None] * count
        self.spans.append(Span(start, start + count, turn, attempt, call, reward))

    def segment(self, logprobs: bool) -> Segment:
        """As it stands."""
        response = self.all[len(self.prompt) :]
        known = self.logprobs if logprobs else [None] * len(self.mask)
        return Segment(self.prompt, response, tuple(self.mask), tuple(known), tuple(self.spans))


def _versions(span: Span) -> list[tuple[int, int, str]]:
    """The parts of an answer that one version of the weights sampled."""
    told, found = span.call.weight_versions, []
    for at, (start, version) in enumerate(told):
        end = told[at + 1][0] if at + 1 < len(told) else span.end - span.start
        if start < end:
            found.append((span.start + start, span.start + end, version))
    return found
