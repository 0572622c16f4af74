r"""Task: a one-player game with a question, named scores and weights; and the verifiers tasks are graded with.

    class Squares(Task):
        @classmethod
        def sample(cls, rng: Random, high: int = 99) -> tuple[str, int]:
            n = rng.randint(1, high)
            return f"What is {n} squared?", n * n

Verifiers read text in linear time, never evaluate it, and raise for no text.
"""

import inspect
import re
import unicodedata
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial, wraps
from random import Random
from typing import Any, ClassVar, Self

from arena.game import NOBODY, SEAT, Action, Event, IllegalAction, Player, TurnGame, replace

__all__ = ["Task", "final", "fold", "matches", "number"]

_LONGEST_NUMBER = 400  # characters; far below the 4,300 digits at which int() refuses
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)?(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,2})?")
_FINAL = re.compile("final answer:", re.IGNORECASE)
_ROOM = 500  # characters of `max_length` for what the task itself says


class Task(TurnGame):
    """A question for one player and one move, graded when answered. Written in one of two ways.

    - `items`: a sequence of (question, answer). Option `item` picks one, so that all may be asked the same.
    - `sample(cls, rng, **options)`: a question drawn anew; its keyword arguments are the options of the game.

    `score` gives named parts, each from 0 to 1; the return is their sum weighted by `weights` (a part of weight 0
    is shown and earns nothing), and 0.0 before the answer. By default one part, `correct`: the answer `matches`.

    The answer is hidden information although it follows from the question: a search that could read it would
    not have to think. So `determinize` keeps the question and takes the answer away (None): nothing scores
    there. (One drawn from another item would give the list of answers away, and of a single item the answer.)
    A task that anybody can verify from the question alone gives None and sets `perfect_information`.

    Options:
        item: the number of the question, from 0; None: drawn by lot
    """

    tags: ClassVar[tuple[str, ...]] = ("question",)
    players = 1

    items: ClassVar[Sequence[tuple[str, Any]]] = ()
    weights: ClassVar[Mapping[str, float]] = {"correct": 1.0}
    rubric: ClassVar[Mapping[str, str]] = {"correct": "the answer is right"}
    """What each part is given for, in words (for rules, and for a judge of the episode)."""
    instructions: ClassVar[str] = "Answer the question."
    """First line of the rules; `{name}` stands for the value of an option."""
    form: ClassVar[str] = "Write the answer alone."
    example: ClassVar[str] = "42"
    max_question: ClassVar[int] = 2_000
    defaults: ClassVar[Mapping[str, Any]] = {}
    """The options of `sample` and their defaults, read from its signature."""

    question: str
    answer: Any = None
    """What `matches` takes: text, a number, or a tuple of accepted answers. None: unknown (see above)."""
    options: tuple[tuple[str, Any], ...] = ()
    said: Action | None = None
    marks: tuple[float, ...] = ()
    """The parts of the score in the order of `weights`, once answered."""

    def __init_subclass__(cls) -> None:
        """Give `initial` a signature that names the options of this class: its catalogue."""
        super().__init_subclass__()
        _name_options(cls)

    @classmethod
    def sample(cls, rng: Random, *args: Any, **options: Any) -> tuple[str, Any]:
        """A question and its answer, of these options. Raises ValueError naming the allowed values."""
        if not cls.items:
            raise TypeError(f"{cls.__name__} gives neither items nor sample()")
        return rng.choice(cls.items)

    @classmethod
    def initial(cls, rng: Random, item: int | None = None, **options: Any) -> Self:
        """The question, unanswered. `item` only where there are `items`."""
        given = {name: tuple(v) if type(v) is list else v for name, v in options.items()}
        if item is None:
            question, answer = cls.sample(rng, **given)
        elif type(item) is int and 0 <= item < len(cls.items):
            question, answer = cls.items[item]
        else:
            raise ValueError(f"item={item!r}: allowed are 0 to {len(cls.items) - 1}, or None for any")
        if len(question) > cls.max_question:
            raise ValueError(f"{cls.__name__}: a question of {len(question)} characters; max_question allows fewer")
        return cls(question, answer, tuple({**cls.defaults, **given}.items()))

    def to_act(self) -> tuple[Player, ...]:
        """See `Game.to_act`."""
        return SEAT[0] if self.said is None else NOBODY

    def rules(self, player: Player) -> str:
        """See `Game.rules`."""
        return "\n".join([self._aim(), *self._how(), self._pay()])

    def _aim(self) -> str:
        return self.instructions.format(**dict(self.options))

    def _how(self) -> tuple[str, ...]:
        return (self.form, f"For example: {self.example}", "One answer ends the task.")

    def _pay(self) -> str:
        if self.weights.keys() == {"correct"}:
            return f"A right answer earns {self.weights['correct']:g}, a wrong one nothing."
        parts = [f"{name} {weight:g} ({self.rubric.get(name, name)})" for name, weight in self.weights.items()]
        return f"You earn at most: {'; '.join(parts)}."

    def observation(self, player: Player) -> str:
        """The question; once answered, how good the answer was, and the `solution` if it was not the best."""
        if self.said is None:
            return self.question
        best = self.returns()[0] >= self.reward_range()[1]
        solution = "" if best else self.solution()
        return f"{self._ended()} {solution}" if solution else self._ended()

    def _ended(self) -> str:
        """The verdict, in words where there is one part that is met or not."""
        scores = dict(zip(self.weights, self.marks, strict=True))
        if scores.keys() == {"correct"} and scores["correct"] in (0.0, 1.0):
            return f"Your answer is {'right' if scores['correct'] else 'wrong'}."
        return f"The task is over: {', '.join([f'{name} {mark:g}' for name, mark in scores.items()])}."

    def solution(self) -> str:
        """A sentence with the right answer, told at the end to a player who did not find it; "": it stays hidden.

        Give "" too where `answer` is None: nobody knows it there.
        """
        return ""

    def events(self, player: Player) -> Sequence[Event]:
        """The answer given."""
        return () if self.said is None else (Event(self.said, 0),)

    def legal_actions(self, player: Player) -> tuple[Action, ...] | None:
        """Open text."""
        return None if self.said is None and player == 0 else ()

    def check(self, player: Player, action: Action) -> None:
        """An answer is any text that is not blank nor too long."""
        if self.said is not None:
            raise IllegalAction("the task is over")
        if len(action) > (longest := self.max_action()):
            raise IllegalAction(f"write at most {longest} characters")
        if not action or action.isspace():
            raise IllegalAction("write an answer")

    def play(self, action: Action) -> Self:
        """See `TurnGame.play`."""
        self.check(0, action)
        return self._answer(action)

    def _answer(self, action: Action) -> Self:
        """The end: the answer said and graded."""
        ended = replace(self, said=action)
        known = self.answer is not None or self.perfect_information
        parts = ended.score() if known else {}
        marks = tuple([float(parts.get(name, 0.0)) for name in self.weights])
        if not parts.keys() <= self.weights.keys() or not all(0.0 <= mark <= 1.0 for mark in marks):
            raise ValueError(
                f"{type(self).__name__}.score() gave {dict(parts)}: allowed are {', '.join(self.weights)}"
                " with values from 0 to 1"
            )
        return replace(ended, marks=marks)

    def score(self) -> Mapping[str, float]:
        """Named parts of the score, each from 0 to 1, of the answer in `said`. Asked once, when it is given."""
        return {"correct": float(matches(final(self.said or ""), self.answer))}

    def scores(self, player: Player) -> Mapping[str, float]:
        """The named parts; all 0.0 before the answer."""
        return dict(zip(self.weights, self.marks or (0.0,) * len(self.weights), strict=True))

    def returns(self) -> tuple[float, ...]:
        """The weighted sum of the scores."""
        return (sum([weight * mark for weight, mark in zip(self.weights.values(), self.marks, strict=False)], 0.0),)

    def reward_range(self) -> tuple[float, float]:
        """See `Game.reward_range`."""
        weights = self.weights.values()
        return (sum([w for w in weights if w < 0], 0.0), sum([w for w in weights if w > 0], 0.0))

    def sample_action(self, player: Player, rng: Random) -> Action:
        """A number from 0 to 99."""
        return str(rng.randrange(100))

    def determinize(self, player: Player, rng: Random) -> Self:
        """The same question; the answer, which the seat does not know, is nobody's. At the end it may be told."""
        told = self.said is not None and self.solution()
        return (self if self.perfect_information or told else replace(self, answer=None)).reseed(rng)

    def max_turns(self) -> int:
        """One answer."""
        return 1

    def max_action(self) -> int:
        """Room for pages of working before a marked answer (see `final`)."""
        return 16_000

    def max_length(self) -> int:
        """The question and the answer, every character of it escaped."""
        return self.max_question + 10 * self.max_action() + _ROOM


def _named(function: Any) -> dict[str, inspect.Parameter]:
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {p.name: p for p in inspect.signature(function).parameters.values() if p.kind not in several}


def _name_options(cls: Any) -> None:
    """Wrap `initial` so that its signature is complete: its own parameters, `item` if there are items, `sample`'s."""
    written = inspect.unwrap(cls.initial.__func__)
    sampled = {name: p for name, p in _named(cls.sample).items() if name != "rng"}
    parameters = {**_named(Task.initial), **_named(partial(written, cls)), **sampled}
    if not cls.items:
        del parameters["item"]

    @wraps(written)
    def initial(kind: type[Task], *args: Any, **options: Any) -> Any:
        return written(kind, *args, **options)

    vars(initial)["__signature__"] = inspect.Signature([_FIRST, *parameters.values()])
    cls.initial = classmethod(initial)
    cls.defaults = {name: p.default for name, p in sampled.items() if p.default is not p.empty}


_FIRST = inspect.Parameter("cls", inspect.Parameter.POSITIONAL_OR_KEYWORD)


def number(text: str) -> Fraction | None:
    """The exact number a text is, or None: `42`, `42.`, `1,000`, `-3`, `.5`, `2e3`, `3/4`, in ASCII digits.

    >>> number("1,000") == 1000, number("-3/4") == Fraction(-3, 4), number("about 7"), number("١٢")
    (True, True, None, None)
    """
    text = text.strip() if len(text) <= _LONGEST_NUMBER else ""
    above, slash, below = text.replace("\u2212", "-").partition("/")
    numerator = _decimal(above.strip())
    if not slash or numerator is None:
        return numerator
    denominator = _decimal(below.strip())
    return numerator / denominator if denominator else None


def _decimal(text: str) -> Fraction | None:
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return Fraction(text.replace(",", ""))
    except ValueError:  # no digit at all: "", ".", "-"
        return None


def fold(text: str) -> str:
    """The text as it is compared: case, spacing, quotes around it and a full stop after it do not matter.

    >>> fold('  "New   York". ')
    'new york'
    """
    words = unicodedata.normalize("NFC", text).casefold().split()
    return " ".join(words).strip("\"'`*").rstrip(".!?").strip("\"'`*")


def final(text: str) -> str:
    r"""The part of a longer answer that counts: the last of the first kind of mark found, else all of it.

    Marks, in this order: `<answer>...</answer>`, `\boxed{...}`, `Final answer: ...` (to the end of its line).

    >>> final("6 x 7 is <answer>42</answer>"), final("so \\boxed{\\frac{1}{2}}."), final("Final answer: 42")
    ('42', '\\frac{1}{2}', '42')
    """
    end = text.rfind("</answer>")
    if end >= 0 and (start := text.rfind("<answer>", 0, end)) >= 0:
        return text[start + len("<answer>") : end].strip()
    if (start := text.rfind("\\boxed{")) >= 0:
        return _braced(text, start + len("\\boxed{")).strip()
    last = None
    for last in _FINAL.finditer(text):  # noqa: B007  # the last one is wanted
        continue
    return text[last.end() :].strip().partition("\n")[0].strip() if last else text.strip()


def _braced(text: str, start: int) -> str:
    depth = 1
    for i in range(start, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if not depth:
            return text[start:i]
    return text[start:]


def matches(text: str, answer: Any, tolerance: float = 1e-6) -> bool:
    """Whether a text is the answer.

    A `str` is compared by `fold`; an int or Fraction is met exactly; a float within `tolerance`, relative above 1;
    a bool by yes/no or true/false; of a tuple, list or set any member will do. Raises TypeError for another type.
    """
    if isinstance(answer, str):
        return fold(text) == fold(answer)
    if isinstance(answer, bool):
        return fold(text) in (("yes", "true") if answer else ("no", "false"))
    if isinstance(answer, tuple | list | set | frozenset):
        return any(matches(text, one, tolerance) for one in answer)
    if not isinstance(answer, int | float | Fraction):
        raise TypeError(f"an answer of type {type(answer).__name__}: allowed are str, bool, a number, or several")
    value, wanted = number(text), Fraction(answer)
    if value is None or not isinstance(answer, float):
        return value == wanted
    return abs(value - wanted) <= Fraction(tolerance) * max(Fraction(1), abs(wanted))
