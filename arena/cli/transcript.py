"""A match as a person reads it: an `Episode` as plain text for a terminal, or as Markdown.

What players, models and servers wrote is hostile. Each of its lines stands behind a mark or inside a fence that it
cannot end, and what a terminal might obey is shown as an escape; the record itself keeps every byte.
"""

import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby

from arena.agent import Call
from arena.cli.errors import plain
from arena.episode import Attempt, Episode, Turn, joined, validate
from arena.game import Player

__all__ = ["markdown", "signed", "span", "text"]

_TICKS = re.compile(r"`+")
_SHORT = 100  # characters of an action that stands on one line
_LATE = 0.005  # seconds from which on the time of a reply is told
_USED = {"prompt_tokens": "tokens in", "cached_tokens": "of them cached", "completion_tokens": "tokens out"}


def text(episode: Episode) -> str:
    """The transcript for a terminal. Raises EpisodeError where the record contradicts itself."""
    return _written(_Terminal(), episode)


def markdown(episode: Episode) -> str:
    """The same in Markdown."""
    return _written(_Markdown(), episode)


def span(said: str) -> str:
    """Hostile text within a line of Markdown: code that it cannot end.

    >>> print(span("a`b"))
    `` a`b ``
    """
    shown = plain(said)
    fence, room = "`" * (_longest(shown) + 1), " " if "`" in shown else ""
    return f"{fence}{room}{shown}{room}{fence}" if shown.strip() else f'"{shown}"'


def signed(earned: float) -> str:
    """A return with its sign."""
    return f"{earned:+g}" if earned else "0"


def _longest(shown: str) -> int:
    """The longest run of backticks."""
    return max(map(len, _TICKS.findall(shown)), default=0)


class _Paper(ABC):
    """A way to write; every method gives lines, "" where a blank one is wanted."""

    @abstractmethod
    def said(self, hostile: str) -> str:
        """Hostile text within a line."""

    @abstractmethod
    def heading(self, level: int, words: str) -> list[str]:
        """A heading; 1 is the title."""

    @abstractmethod
    def fact(self, name: str, words: str) -> list[str]:
        """One line."""

    @abstractmethod
    def block(self, name: str, hostile: str) -> list[str]:
        """Hostile text on lines of its own."""


class _Terminal(_Paper):
    def said(self, hostile: str) -> str:
        return plain(hostile)

    def heading(self, level: int, words: str) -> list[str]:
        return ["", words if level == 1 else f"--- {words} ---"]

    def fact(self, name: str, words: str) -> list[str]:
        return [f"{name}: {words}"]

    def block(self, name: str, hostile: str) -> list[str]:
        return [f"{name}:", *[f"| {line}".rstrip() for line in _lines(hostile)]]


class _Markdown(_Paper):
    def said(self, hostile: str) -> str:
        return span(hostile)

    def heading(self, level: int, words: str) -> list[str]:
        return ["", f"{'#' * level} {words}", ""]

    def fact(self, name: str, words: str) -> list[str]:
        return [f"- {name}: {words}"]

    def block(self, name: str, hostile: str) -> list[str]:
        shown = "\n".join(_lines(hostile))
        fence = "`" * max(3, _longest(shown) + 1)
        return ["", f"{name}:", "", f"{fence}text\n{shown}\n{fence}", ""]


def _lines(hostile: str) -> list[str]:
    return [plain(line) for line in hostile.expandtabs(4).split("\n")]


def _written(paper: _Paper, episode: Episode) -> str:
    validate(episode)
    lines = [line for part in _parts(paper, episode) for line in part]
    once = [line for blank, run in groupby(lines, lambda line: not line) for line in ([""] if blank else run)]
    return "\n".join(once).strip("\n") + "\n"


def _parts(paper: _Paper, episode: Episode) -> Iterator[list[str]]:
    yield from _head(paper, episode)
    rules = defaultdict(list)
    for at, seat in enumerate(episode.seats):
        rules[seat.rules].append(f"seat {at}")
    for told, seats in rules.items():
        if told:
            yield paper.heading(2, f"Rules for {', '.join(seats)}")
            yield paper.block("Told", told)
    for turn in episode.turns:
        yield paper.heading(2, f"Ply {turn.ply}, {_seat(paper, episode, turn.seat)}")
        yield from _turn(paper, turn)
    yield from _end(paper, episode)


def _seat(paper: _Paper, episode: Episode, seat: Player) -> str:
    return f"seat {seat}: {paper.said(episode.seats[seat].agent)}"


def _head(paper: _Paper, episode: Episode) -> Iterator[list[str]]:
    yield paper.heading(1, paper.said(episode.env))
    for key, value in sorted(episode.options.items()):
        yield paper.fact(f"option {paper.said(key)}", paper.said(str(value)))
    for at, seat in enumerate(episode.seats):
        role = f", role {paper.said(seat.role)}" if seat.role else ""
        model = f", model {paper.said(seat.policy.model)}" if seat.policy.model else ""
        yield paper.fact(f"seat {at}", f"{paper.said(seat.agent)}{role}{model}")
    yield paper.fact("game", paper.said(episode.match_id or episode.id))
    yield paper.fact("seed", str(episode.seed))
    if 0 < episode.started < 1e11:
        yield paper.fact("played", datetime.fromtimestamp(episode.started, UTC).strftime("%Y-%m-%d %H:%M UTC"))
    referee = episode.referee
    yield paper.fact("referee", f"{referee.retries} retries, then {referee.illegal}")


def _turn(paper: _Paper, turn: Turn) -> Iterator[list[str]]:
    yield paper.block("Shown", joined(turn.events, turn.observation))
    for number, attempt in enumerate(turn.attempts, 1):
        yield from _attempt(paper, attempt, f", try {number}" if len(turn.attempts) > 1 else "")
    if not turn.attempts:
        yield paper.fact("not asked", "the seat had forfeited before")
    yield _played(paper, turn)
    if turn.reward:
        yield paper.fact("reward", signed(turn.reward))


def _attempt(paper: _Paper, attempt: Attempt, which: str) -> Iterator[list[str]]:
    if attempt.reasoning:
        yield paper.block(f"Thought{which}", attempt.reasoning)
    yield paper.block(f"Replied{which}", attempt.raw) if attempt.raw else paper.fact(f"replied{which}", "nothing")
    reason = f", {paper.said(attempt.reason)}" if attempt.reason else ""
    late = f", after {attempt.latency:.2f} s" if attempt.latency >= _LATE else ""
    yield paper.fact("verdict", f"{attempt.verdict}{reason}{late}")
    if attempt.calls:
        yield paper.fact("calls", ", ".join([str(len(attempt.calls)), *_used(attempt.calls)]))


def _used(calls: Sequence[Call]) -> Iterator[str]:
    for key, words in _USED.items():
        if number := sum(call.usage.get(key, 0.0) for call in calls):
            yield f"{number:,.0f} {words}"
    if cost := sum(call.usage.get("cost", 0.0) for call in calls):
        yield f"${cost:,.6f}"


def _played(paper: _Paper, turn: Turn) -> list[str]:
    if turn.action is None:
        return paper.fact("played", "nothing")
    own = bool(turn.attempts) and turn.attempts[-1].verdict == "legal"
    name = "played" if own else "played in its place"
    if len(turn.action) > _SHORT or "\n" in turn.action:
        return paper.block(name.capitalize(), turn.action)
    return paper.fact(name, paper.said(turn.action))


def _end(paper: _Paper, episode: Episode) -> Iterator[list[str]]:
    yield paper.heading(2, "End")
    for at, shown in enumerate(episode.final):
        if shown:
            yield paper.block(f"Shown to seat {at}", shown)
    reason = f", {paper.said(episode.reason)}" if episode.reason else ""
    yield paper.fact("outcome", f"{episode.outcome}{reason}")
    for at, earned in enumerate(episode.returns or ()):
        forfeit = ", by forfeit" if at in episode.forfeits else ""
        yield paper.fact(_seat(paper, episode, at), f"{signed(earned)}{forfeit}")
    for at, scores in enumerate(episode.scores):
        for key, value in scores.items():
            yield paper.fact(f"seat {at}, {paper.said(key)}", f"{value:g}")
    for gap in episode.gaps:
        yield paper.fact("not recorded", paper.said(gap))
