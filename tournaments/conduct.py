"""Conduct: how an agent answered, beside how well it played: wrong replies, retries, tokens, seconds, cost."""

from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec

from arena.agent import Call
from arena.episode import Attempt, Episode
from arena.game import Player

__all__ = ["Conduct", "conduct_of", "percent", "table"]

_MOST = 1e15  # of any one figure: a server's numbers are not to be trusted, and infinities cannot be stored

_NO_ASK = ("tool", "sample")  # calls that asked no model, or were answered by another call's request


class Conduct(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is counted of one seat's answers, or of many seats' together."""

    turns: int = 0
    """Turns in which it was asked."""
    replies: int = 0
    """All its answers; those above one a turn are retries."""
    illegal: int = 0
    """Replies that could be read, but not be played."""
    unreadable: int = 0
    cut: int = 0
    """Replies that came too late or ended too early; not those that a server aborted (`Reply.ends`)."""
    calls: int = 0
    """Requests to a model."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Those of the prompt tokens that the server knew already."""
    completion_tokens: int = 0
    seconds: float = 0.0
    """Of the requests."""
    cost: float = 0.0
    """Dollars, where prices are known."""

    @property
    def wrong(self) -> int:
        """Replies that were illegal, unreadable or cut."""
        return self.illegal + self.unreadable + self.cut

    @property
    def retries(self) -> int:
        """Replies after the first of a turn."""
        return self.replies - self.turns

    def share(self, count: float) -> float:
        """`count` a reply; 0 where there was none."""
        return count / self.replies if self.replies else 0.0

    def numbers(self) -> list[float]:
        """The fields in order, without the zeros at the end: how a store keeps them."""
        every = list(msgspec.structs.astuple(self))
        while every and not every[-1]:
            every.pop()
        return every

    @classmethod
    def of(cls, numbers: Iterable[float]) -> "Conduct":
        """From the fields in order, those at the end left out or not.

        >>> Conduct.of(Conduct(turns=3, replies=4, cut=1).numbers()) == Conduct(turns=3, replies=4, cut=1)
        True
        """
        return cls(*[kind(number) for kind, number in zip(_KINDS, numbers, strict=False)])

    def __add__(self, other: "Conduct") -> "Conduct":
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return Conduct(*[one + more for one, more in pairs])


_KINDS: list[type] = [field.type for field in msgspec.structs.fields(Conduct)]


def conduct_of(episode: Episode, seat: Player) -> Conduct:
    """How one seat answered in one episode."""
    asked = [turn.attempts for turn in episode.turns if turn.seat == seat and turn.attempts]
    attempts = list(chain.from_iterable(asked))
    notable = [attempt for attempt in attempts if attempt.calls or attempt.verdict != "legal"]
    if not notable:  # most games are played without a model: they are counted quickly
        return Conduct(len(asked), len(attempts))
    calls = [call for attempt in notable for call in attempt.calls]
    asks = [call for call in calls if call.kind not in _NO_ASK]
    verdicts = [attempt.verdict for attempt in notable if not _aborted(episode, attempt)]
    return Conduct(
        len(asked),
        len(attempts),
        verdicts.count("illegal"),
        verdicts.count("unreadable"),
        verdicts.count("truncated"),
        len(asks),
        _tokens(calls, "prompt_tokens"),
        _tokens(calls, "cached_tokens"),
        _tokens(calls, "completion_tokens"),
        _used(asks, "seconds"),
        _used(calls, "cost"),
    )


def _aborted(episode: Episode, attempt: Attempt) -> bool:
    """Whether this reply ended the episode by nobody's fault."""
    return episode.outcome == "truncated" and attempt.verdict == "truncated" and attempt.reason == episode.reason


def _used(calls: Sequence[Call], key: str) -> float:
    return float(sum(min(max(call.usage.get(key, 0.0), 0.0), _MOST) for call in calls))


def _tokens(calls: Sequence[Call], key: str) -> int:
    return int(_used(calls, key))


def percent(share: float) -> str:
    """A share as tables show it.

    >>> percent(0), percent(0.0001), percent(0.125), percent(1)
    ('0 %', '<0.1 %', '12.5 %', '100 %')
    """
    if 0 < share < 0.001:
        return "<0.1 %"
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


def table(conducts: Sequence[Conduct]) -> dict[str, list[str]]:
    """A table of many by columns; what nobody has is left out."""
    asked, shown = any(c.calls for c in conducts), {"replies": [f"{c.replies:,}" for c in conducts]}
    if any(c.retries for c in conducts):
        shown["retries"] = [f"{c.retries:,}" for c in conducts]
    for name in ("illegal", "unreadable", "cut"):
        if asked or any(getattr(c, name) for c in conducts):
            shown[name] = [percent(c.share(getattr(c, name))) for c in conducts]
    if asked:
        shown["tokens in"] = [_number(c, c.prompt_tokens, 0) for c in conducts]
        shown["cached"] = [percent(c.cached_tokens / c.prompt_tokens) if c.prompt_tokens else "–" for c in conducts]
        shown["out / reply"] = [_number(c, c.share(c.completion_tokens), 1) for c in conducts]
        shown["sec / reply"] = [_number(c, c.share(c.seconds), 2) for c in conducts]
    if any(c.cost for c in conducts):
        shown["cost"] = [f"${c.cost:,.{2 if c.cost >= 1 else 4}f}" if c.cost else "–" for c in conducts]
    return shown


def _number(conduct: Conduct, number: float, digits: int) -> str:
    return f"{number:,.{digits}f}" if conduct.calls else "–"
