"""Countdown: make a target from six numbers (the numbers round of the television game).

Rules: Channel 4 *Countdown* (after *Des chiffres et des lettres*): twenty small numbers, two each of 1 to 10, and
the four large ones 25, 50, 75, 100; target 101 to 999 (100 here too); whole positive numbers all the way; 10, 7 and
5 points for the target, within 5 and within 10.
"""

import re
from collections.abc import Mapping, Sequence
from operator import add, floordiv, mul, sub
from random import Random
from typing import ClassVar, Self

from arena.game import Action, IllegalAction, Player, replace
from arena.task import Task, final

__all__ = ["Countdown", "evaluate"]

SMALL = tuple(range(1, 11)) * 2
LARGE = (25, 50, 75, 100)
LOW, HIGH = 100, 999
LEAST, MOST = 3, 6
_TRIES = 50
_TOKEN = re.compile(r"[ \t]*([0-9]+|[-+*/()])[ \t]*")
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-"})
_RANK = {"+": 1, "-": 1, "*": 2, "/": 2}
Answer = tuple[int, tuple[int, ...], str]
_OPERATORS = {"+": add, "-": sub, "*": mul, "/": floordiv}


class Countdown(Task):
    """Countdown: make a target from six numbers, or come as near as you can.

    The target is what a random calculation with all the numbers gives, so it can always be reached. Anybody can
    verify an expression: nothing is hidden but that calculation, which is told at the end.

    Options:
        numbers: how many are drawn, 3 to 6
        large: how many of them are from 25, 50, 75, 100: 0 to 4, at most all of them; None: drawn by lot
    """

    tags = ("puzzle", "math")
    perfect_information = True
    weights: ClassVar[Mapping[str, float]] = {"points": 1.0}
    rubric: ClassVar[Mapping[str, str]] = {"points": "1 for the target, 0.7 within 5 of it, 0.5 within 10, else 0"}
    instructions: ClassVar[str] = (
        "You get {numbers} numbers and a target from 100 to 999. Make the target, or come as near as you can, with"
        " + - * / and parentheses. Use each number at most once, as often as it is given. Every step must come out"
        " as a whole number above zero."
    )
    form = "Write one expression and nothing else."

    @classmethod
    def sample(cls, rng: Random, numbers: int = 6, large: int | None = None) -> tuple[str, Answer]:
        """See `Task.sample`; the answer is the target, the numbers, and a calculation that gives the target."""
        if type(numbers) is not int or not LEAST <= numbers <= MOST:
            raise ValueError(f"numbers={numbers!r}: allowed are {LEAST} to {MOST}")
        most = min(numbers, len(LARGE))
        if large is not None and (type(large) is not int or not 0 <= large <= most):
            raise ValueError(f"large={large!r}: allowed are 0 to {most} with numbers={numbers}, or None")
        while True:
            drawn = _draw(rng, numbers, rng.randint(0, most) if large is None else large)
            way, target = _target(rng, drawn)
            if target:
                return _question(target, drawn), (target, drawn, way)

    def _how(self) -> tuple[str, ...]:
        return (self.form, "To make 487 from 4 5 7 50 75 100 you could write: (100 - 4) * 5 + 7", "You have one try.")

    def _pay(self) -> str:
        return f"You earn {self.rubric['points']}."

    @property
    def target(self) -> int:
        """The number to make."""
        target: int = self.answer[0]
        return target

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers given, in ascending order."""
        numbers: tuple[int, ...] = self.answer[1]
        return numbers

    def solution(self) -> str:
        """The calculation that gave the target."""
        return f"One way to {self.target}: {self.answer[2]}" if self.answer[2] else ""

    def determinize(self, player: Player, rng: Random) -> Self:
        """The same puzzle; before the end without the way to its target, which is for the player to find."""
        return self if self.said is not None else replace(self, answer=(self.target, self.numbers, ""))

    def _ended(self) -> str:
        value = evaluate(self.said or "", self.numbers)
        away = abs(value - self.target)
        return f"Your calculation gives {value}: " + (f"{away} away from the target." if away else "the target.")

    def check(self, player: Player, action: Action) -> None:
        """An expression that follows the rules, whatever its value."""
        super().check(player, action)
        evaluate(action, self.numbers)

    def normalize(self, text: str, player: Player) -> Action:
        """The marked part, with × ÷ − as * / -, and without `= 487` at its end."""
        return final(text).translate(_SIGNS).partition("=")[0].strip()

    def score(self) -> Mapping[str, float]:
        """10, 7 and 5 points of the television game, out of 10."""
        away = abs(evaluate(self.said or "", self.numbers) - self.target)
        return {"points": 1.0 if away == 0 else 0.7 if away <= 5 else 0.5 if away <= 10 else 0.0}

    def sample_action(self, player: Player, rng: Random) -> Action:
        """A random calculation with some of the numbers."""
        return _calculation(rng, rng.sample(self.numbers, rng.randint(1, len(self.numbers))))[0]

    def features(self, player: Player) -> tuple[float, ...]:
        """The target and the numbers, as parts of 1,000 and of 100; a missing number is 0."""
        missing = MOST - len(self.numbers)
        return (self.target / 1000, *[n / 100 for n in self.numbers], *[0.0] * missing)

    @classmethod
    def of(cls, target: int, numbers: Sequence[int]) -> Self:
        """A puzzle with this target and these numbers."""
        options = (("numbers", len(numbers)), ("large", None))
        drawn = tuple(sorted(numbers))
        return cls(_question(target, drawn), (target, drawn, ""), options)


def _question(target: int, numbers: Sequence[int]) -> str:
    return f"Numbers: {' '.join(map(str, numbers))}\nTarget: {target}"


def _draw(rng: Random, count: int, large: int) -> tuple[int, ...]:
    return tuple(sorted(rng.sample(LARGE, large) + rng.sample(SMALL, count - large)))


def _target(rng: Random, numbers: Sequence[int]) -> tuple[str, int]:
    """A calculation and the target it gives; 0: none that was tried gave one."""
    for _ in range(_TRIES):
        way, value = _calculation(rng, numbers)
        # small results are the commonest: taken less often, targets come out about even
        if LOW <= value <= HIGH and value not in numbers and rng.randrange(HIGH) < value:
            return way, value
    return "", 0


def _calculation(rng: Random, numbers: Sequence[int]) -> tuple[str, int]:
    """A random expression that uses every number, and its value."""
    pool = [(str(n), n) for n in numbers]
    while len(pool) > 1:
        rng.shuffle(pool)
        (right, b), (left, a) = sorted([pool.pop(), pool.pop()], key=_value)
        signs = ["+", "*"] + ["-"] * (a > b) + ["/"] * (a % b == 0)
        sign = rng.choice(signs)
        pool.append((f"({left} {sign} {right})", _OPERATORS[sign](a, b)))
    text, value = pool[0]
    return text.removeprefix("(").removesuffix(")"), value


def _value(part: tuple[str, int]) -> int:
    return part[1]


def evaluate(text: str, numbers: Sequence[int]) -> int:
    """The value of an expression under the rules of the game, in linear time and without recursion.

    Raises IllegalAction where it is no expression, uses a number that is not (or no longer) there, or has a step
    that is not a whole number above zero.
    """
    free = list(numbers)
    values: list[int] = []
    waiting: list[str] = []
    operand = True  # a number or "(" must come next
    for part in _tokens(text):
        if operand != (part == "(" or part.isdecimal()):
            raise IllegalAction(f"{part} stands in the wrong place")
        if part.isdecimal():
            values.append(_take(free, part))
            operand = False
        elif part == "(":
            waiting.append(part)
        elif part == ")":
            _reduce(values, waiting, 0)
            if not waiting:
                raise IllegalAction("a ) closes nothing")
            waiting.pop()
        else:
            _reduce(values, waiting, _RANK[part])
            waiting.append(part)
            operand = True
    if operand:
        raise IllegalAction("the expression ends too early")
    _reduce(values, waiting, 0)
    if waiting:
        raise IllegalAction("a ( is not closed")
    return values[0]


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if not found:
            raise IllegalAction("write an expression of the numbers with + - * / and parentheses only")
        tokens.append(found[1])
        at = found.end()
    return tokens


def _take(free: list[int], token: str) -> int:
    number = int(token) if len(token) <= 3 else -1  # the largest is 100
    if number not in free:
        raise IllegalAction(f"{token[:9]} is not among the numbers left: {' '.join(map(str, free)) or 'none'}")
    free.remove(number)
    return number


def _reduce(values: list[int], waiting: list[str], rank: int) -> None:
    """Carry out waiting operations of at least this rank, back to the last parenthesis."""
    while waiting and waiting[-1] != "(" and _RANK[waiting[-1]] >= rank:
        sign, b, a = waiting.pop(), values.pop(), values.pop()
        if (sign == "/" and a % b) or (sign == "-" and a <= b):
            raise IllegalAction(f"{a} {sign} {b} is not a whole number above zero")
        values.append(_OPERATORS[sign](a, b))
