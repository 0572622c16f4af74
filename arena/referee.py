"""The referee: what a free text means as an action, and what a wrong one costs. Every face and match uses it."""

import re
import unicodedata
from collections.abc import Collection, Sequence
from random import Random
from typing import Literal, NamedTuple

import msgspec

from arena.game import Action, Game, IllegalAction, Player, TurnGame
from arena.text import clean, quote

__all__ = ["ILLEGAL", "MARKS", "Reading", "Referee", "Verdict", "marked", "split_thoughts"]

Verdict = Literal["legal", "illegal", "unreadable", "truncated"]
Illegal = Literal["forfeit", "random", "fallback"]
ILLEGAL: tuple[Illegal, ...] = ("forfeit", "random", "fallback")
MARKS = ("answer", "boxed", "final", "bracket")
_LONGEST = 2_000_000  # characters of a reply, thoughts included; nothing is read in a longer one
_READ = 100_000  # characters after the thoughts that are searched for marks: the end, where the answer is
_QUOTED = 80  # characters of a wrong action that a reason repeats
_LISTED = 40  # legal actions that a note lists
_ANSWER = re.compile(r"</?answer>", re.IGNORECASE)
_THINK = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)
_FINAL = re.compile(r"final answer[ \t]{0,8}(?::|is)[ \t]{0,8}", re.IGNORECASE)
_TEXT = re.compile(r"\\(?:text|textbf|texttt|mathrm|mathbf|mathtt)\{([^{}]*)\}")
_FENCE, _DRESS = "```", " \t\r\n*`\"'"


class Reading(NamedTuple):
    """What the referee made of one text."""

    verdict: Verdict
    action: Action | None = None
    reason: str = ""


class Referee(msgspec.Struct, frozen=True):
    """How replies are read and what an unreadable or illegal one costs.

    `retries` are per turn; after them the seat forfeits, or a `random` action is played for it, or the game's
    `fallback` (a random one where it has none). `show_legal`: whether players see the list of legal actions (in a
    View, in `info`, in a note). `marks` are the ways to point at the action in a longer text: the first kind that
    the text has is read, of several of that kind the last, and nothing else.
    """

    illegal: Illegal = "forfeit"
    retries: int = 0
    show_legal: bool = True
    marks: tuple[str, ...] = MARKS

    def __post_init__(self) -> None:
        if self.illegal not in ILLEGAL:
            raise ValueError(f"illegal={self.illegal!r}: allowed are {', '.join(ILLEGAL)}")
        if type(self.retries) is not int or not 0 <= self.retries <= 100:
            raise ValueError(f"retries={self.retries!r}: allowed are 0 to 100")
        if bad := set(self.marks) - set(MARKS):
            raise ValueError(f"marks={sorted(bad)}: allowed are {', '.join(MARKS)}")

    def read(self, game: Game, player: Player, text: str) -> Reading:
        """Read a reply of a seat that is to act. Linear in the text; never raises for any `str`."""
        if type(text) is not str:
            if not isinstance(text, str):
                raise TypeError(f"an action is a str, got {type(text).__name__}")
            text = str(text)
        legal = game.legal_actions(player)
        if legal is not None and text in legal:
            return Reading("legal", text)
        if len(text) > _LONGEST:
            return Reading("unreadable", None, f"a reply of {len(text)} characters is not read")
        spoken = split_thoughts(clean(text))[0].strip()
        if not spoken and text.strip():
            return Reading("unreadable", None, "nothing was said outside the thoughts")
        if legal is None:
            return self._read_open(game, player, spoken)
        return self._read_listed(game, player, spoken[-_READ:], legal)

    @staticmethod
    def _read_open(game: Game, player: Player, spoken: str) -> Reading:
        """Open text is passed whole; the game's own form of it is tried too."""
        limit = game.max_action()
        if len(spoken) > limit:
            return Reading("unreadable", None, f"write at most {limit} characters (you wrote {len(spoken)})")
        reason, forms = "", [spoken, game.normalize(spoken, player)]
        if not spoken.isascii():
            forms.append(game.normalize(_fold(spoken).strip(), player))
        for candidate in dict.fromkeys(forms):
            try:
                game.check(player, candidate)
            except IllegalAction as error:
                reason = reason or error.reason
            else:
                return Reading("legal", candidate)
        return Reading("illegal", None, reason[:500])

    def _read_listed(self, game: Game, player: Player, spoken: str, legal: Sequence[Action]) -> Reading:
        if spoken in legal:
            return Reading("legal", spoken)
        found = marked(spoken, self.marks)
        meant = spoken if found is None else found
        if len(meant) > game.max_action():
            return Reading("unreadable", None, "no action could be read in the reply")
        forms = [meant, folded := _fold(meant).strip(), game.normalize(folded, player)]
        if (undressed := _undressed(folded)) != folded:
            forms += [undressed, game.normalize(undressed, player)]
        for form in forms:
            if form in legal:
                return Reading("legal", form)
        if not undressed or (found is None and "\n" in meant):
            return Reading("unreadable", None, "no action could be read in the reply")
        return Reading("illegal", None, self._why(game, player, meant))

    @staticmethod
    def _why(game: Game, player: Player, action: Action) -> str:
        """The game's own words where one seat moves, else that it is not on the list."""
        if isinstance(game, TurnGame):
            try:
                game.play(game.normalize(_fold(action), player))
            except IllegalAction as error:
                return error.reason[:500]
        return f"{quote(action[:_QUOTED])} is not a legal action now"

    def note(self, game: Game, player: Player, reading: Reading) -> str:
        """What the seat is told before it may try again: one line."""
        told = f"[Not accepted: {reading.reason}."
        legal = game.legal_actions(player) if self.show_legal else None
        if legal:
            shown = ", ".join(legal[:_LISTED])
            more = f" and {len(legal) - _LISTED} more" if len(legal) > _LISTED else ""
            told += f" Legal: {shown[:2000]}{more}."
        return f"{told} Try again.]"

    def substitute(self, game: Game, player: Player, rng: Random) -> Action:
        """The action played for a seat that gave none: the fallback (unless `random` is wanted), else a sample."""
        action = None if self.illegal == "random" else game.fallback(player)
        return game.sample_action(player, rng) if action is None else action

    @staticmethod
    def ends(game: Game) -> bool:
        """Whether one forfeit ends the game (one seat, or two of a zero-sum game); else the others play on."""
        return game.players == 1 or (game.players == 2 and game.zero_sum)

    @staticmethod
    def settle(game: Game, forfeited: Collection[Player]) -> tuple[float, ...]:
        """The returns once `forfeited` seats have paid: low for them; high for the other of two zero-sum seats."""
        returns = game.returns()
        if not forfeited:
            return returns
        low, high = game.reward_range()
        if game.players == 2 and game.zero_sum:
            return tuple([low if p in forfeited else high for p in range(2)])
        return tuple([low if p in forfeited else earned for p, earned in enumerate(returns)])


def _fold(text: str) -> str:
    """Unicode digits as ASCII ones, without characters that only steer how text is shown (category Cf)."""
    if text.isascii():
        return text
    seen = [char for char in text if unicodedata.category(char) != "Cf"]
    return "".join([str(int(char)) if char.isdecimal() else char for char in seen])


def _undressed(text: str) -> str:
    r"""The action without what Markdown and LaTeX put around it.

    >>> _undressed("```text\n5\n```"), _undressed("**5**"), _undressed(r"\text{5}")
    ('5', '5', '5')
    """
    if text.startswith(_FENCE) and text.endswith(_FENCE) and "\n" in text:
        text = text[: -len(_FENCE)].partition("\n")[2]  # the first line may name a language
    text = text.strip(_DRESS)
    inner = _TEXT.fullmatch(text)
    return text if inner is None else inner[1].strip(_DRESS)


def split_thoughts(text: str) -> tuple[str, str]:
    """What stands outside `<think>...</think>`, and the thoughts; a thought that never ends hides all after it.

    A closing tag without its opening one (the template wrote it) makes a thought of all before it.

    >>> split_thoughts("<think>a or b?</think>b")
    ('b', 'a or b?')
    """
    kept: list[str] = []
    thoughts: list[str] = []
    depth, start = 0, 0
    for tag in _THINK.finditer(text):
        (thoughts if depth else kept).append(text[start : tag.start()])
        start = tag.end()
        if tag[0][1] != "/":
            depth += 1
        elif depth:
            depth -= 1
        else:
            thoughts += kept
            kept.clear()
    (thoughts if depth else kept).append(text[start:])
    return "".join(kept), "".join(thoughts)


def marked(text: str, marks: tuple[str, ...]) -> str | None:
    """What the last mark of the first kind that the text has points at; None: there is no mark."""
    for mark in marks:
        found = _FINDERS[mark](text)
        if found is not None:
            return found.strip()
    return None


def _last_answer(text: str) -> str | None:
    """Between the last `</answer>` that has an opening tag and the last opening tag before it."""
    start, found = None, None
    for tag in _ANSWER.finditer(text):
        if tag[0][1] != "/":
            start = tag.end()
        elif start is not None:
            found = text[start : tag.start()]
    return found


def _last_boxed(text: str) -> str | None:
    start = text.rfind("\\boxed{")
    if start < 0:
        return None
    depth, begin = 1, start + 7
    for at in range(begin, min(len(text), begin + 2000)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return text[begin:at]
    return None


def _last_final(text: str) -> str | None:
    last = None
    for last in _FINAL.finditer(text):  # noqa: B007 - the last one is wanted
        continue
    if last is None:
        return None
    line = text[last.end() :].split("\n", 1)[0]
    return line.strip().rstrip(".").strip("*`\"'")


def _last_bracket(text: str) -> str | None:
    end = text.rfind("]")
    start = text.rfind("[", 0, end) if end >= 0 else -1
    return text[start + 1 : end] if start >= 0 else None


_FINDERS = {"answer": _last_answer, "boxed": _last_boxed, "final": _last_final, "bracket": _last_bracket}
