"""Tokens: a trajectory as the sequences of token ids that a model was given and sampled.

A sequence begins with the prompt of a call and goes on as long as every later prompt extends what was there. Where one
does not (the template writes history anew, a snapshot style, exchanges that were dropped), the next sequence begins.
Nothing is tokenized again and nothing is filled in: what is not on record is `Lacking`.
"""

from typing import NamedTuple

from arena.adapters.datasets.trajectory import Trajectory
from arena.agent import Call
from arena.episode import Attempt, Turn, prompts

__all__ = ["Lacking", "Segment", "Span", "segments"]


class Lacking(ValueError):
    """A record has not what a format needs: which, and what."""


class Span(NamedTuple):
    """One sampled answer in `Segment.response_ids`."""

    start: int
    end: int
    turn: Turn
    attempt: Attempt
    call: Call


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


def segments(trajectory: Trajectory, *, logprobs: bool = True) -> list[Segment]:
    """The sequences of a trajectory, in order.

    Votes that were not chosen ("sample") are no part of the conversation and are left out; calls that are no answers
    of a model are too. Raises Lacking where an answer has no tokens, was not sampled token by token, or has no
    log-probabilities (unless `logprobs` is False).
    """
    calls = trajectory.calls
    whole = dict(zip(map(id, calls), prompts(calls), strict=True))
    found: list[_Growing] = []
    for turn, attempt in trajectory.attempts:
        for call in attempt.calls:
            if call.kind in _OTHER:
                continue
            _check(trajectory, turn, call, logprobs)
            if not found or not found[-1].extend(whole[id(call)]):
                found.append(_Growing(whole[id(call)]))
            found[-1].answer(turn, attempt, call)
        if not any(call.kind not in _OTHER for call in attempt.calls):
            raise Lacking(f"{_where(trajectory, turn)}: no tokens were recorded of {trajectory.agent}'s reply")
    return [growing.segment() for growing in found]


_OTHER = frozenset(("sample", "tool"))


def _where(trajectory: Trajectory, turn: Turn) -> str:
    return f"episode {trajectory.episode.id}, seat {trajectory.player}, ply {turn.ply}"


def _check(trajectory: Trajectory, turn: Turn, call: Call, logprobs: bool) -> None:
    """Raise Lacking where a call is no sampled sequence of tokens."""
    if call.kind == "score":
        raise Lacking(f"{_where(trajectory, turn)}: the action was chosen by its score, not sampled token by token")
    if not call.completion_ids:
        raise Lacking(f"{_where(trajectory, turn)}: the answer's token ids were not recorded ({call.kind})")
    if not call.prompt_ids and not call.extends:
        raise Lacking(f"{_where(trajectory, turn)}: the prompt's token ids were not recorded ({call.kind})")
    if logprobs and len(call.logprobs) != len(call.completion_ids):
        raise Lacking(f"{_where(trajectory, turn)}: the answer's log-probabilities were not recorded")


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

    def answer(self, turn: Turn, attempt: Attempt, call: Call) -> None:
        """Add a sampled answer."""
        start, count = len(self.mask), len(call.completion_ids)
        self.all += call.completion_ids
        self.mask += [1] * count
        self.logprobs += call.logprobs or [None] * count
        self.spans.append(Span(start, start + count, turn, attempt, call))

    def segment(self) -> Segment:
        """As it stands."""
        response = self.all[len(self.prompt) :]
        return Segment(self.prompt, response, tuple(self.mask), tuple(self.logprobs), tuple(self.spans))


def _versions(span: Span) -> list[tuple[int, int, str]]:
    told = span.call.weight_versions
    ends = [start for start, _ in told[1:]] + [span.end - span.start]
    return [(span.start + start, span.start + end, version) for (start, version), end in zip(told, ends, strict=True)]
