"""CalculatorTask: a stock is changed step by step; a calculator does the sums, the player must read and carry."""

from collections.abc import Callable
from random import Random

from arena.task import final, number
from arena.tools.task import ToolTask
from arena.tools.tool import ToolError

__all__ = ["CalculatorTask", "add", "divide", "multiply", "subtract"]

LARGEST = 10**40
"""Numbers a calculator shows; the largest stock of any option is below 10**33."""
MAX_STEPS, MAX_DIGITS = 12, 9
_FACTORS = range(2, 100)


def add(a: int, b: int) -> int:
    """The sum a + b of two whole numbers."""
    return _fitting(_fitting(a) + _fitting(b))


def subtract(a: int, b: int) -> int:
    """The difference a - b of two whole numbers."""
    return _fitting(_fitting(a) - _fitting(b))


def multiply(a: int, b: int) -> int:
    """The product a * b of two whole numbers."""
    return _fitting(_fitting(a) * _fitting(b))


def divide(a: int, b: int) -> int:
    """The quotient a / b of two whole numbers; it must be whole."""
    if _fitting(b) == 0:
        raise ToolError("division by zero")
    quotient, rest = divmod(_fitting(a), b)
    if rest:
        raise ToolError(f"{a} / {b} is not whole: {quotient}, remainder {rest}")
    return quotient


def _fitting(value: int) -> int:
    if abs(value) > LARGEST:
        raise ToolError("the calculator shows 40 digits")
    return value


class CalculatorTask(ToolTask):
    """CalculatorTask: a stock changes step by step; call a calculator for the sums, then answer.

    Factors and divisors are 2 to 99.

    Options:
        steps: changes of the stock, 1 to 12
        digits: digits of the numbers in the question, 1 to 9
    """

    tools = (add, subtract, multiply, divide)
    instructions = (
        "Read about a stock of boxes and find how many there are after {steps} changes."
        " The calculator takes and shows whole numbers of up to 40 digits."
    )
    form = "Write the whole number alone, or at the end of your working after Final answer:"
    example = "1204"

    @classmethod
    def sample(cls, rng: Random, steps: int = 3, digits: int = 3) -> tuple[str, int]:
        """See `Task.sample`."""
        for name, value, high in (("steps", steps, MAX_STEPS), ("digits", digits, MAX_DIGITS)):
            if type(value) is not int or not 1 <= value <= high:
                raise ValueError(f"{name}={value!r}: allowed are 1 to {high}")
        stock = _operand(rng, digits)
        told = [f"A depot has {stock} boxes."]
        for _ in range(steps):
            sentence, stock = rng.choice(_CHANGES)(rng, stock, digits)
            told.append(sentence)
        return f"{' '.join(told)} How many boxes are there in the end?", stock

    def answers(self, text: str) -> bool:
        """A number alone, or a marked answer (see `final`)."""
        return final(text) != text.strip() or number(text) is not None

    def solution(self) -> str:
        """The stock in the end."""
        return "" if self.answer is None else f"The right answer is {self.answer}."


def _operand(rng: Random, digits: int) -> int:
    return rng.randrange(10 ** (digits - 1), 10**digits)


def _arrive(rng: Random, stock: int, digits: int) -> tuple[str, int]:
    n = _operand(rng, digits)
    return f"Then {n} more arrive.", stock + n


def _leave(rng: Random, stock: int, digits: int) -> tuple[str, int]:
    n = _operand(rng, digits)
    return (f"Then {n} are sold.", stock - n) if n < stock else _arrive(rng, stock, digits)


def _multiply(rng: Random, stock: int, digits: int) -> tuple[str, int]:
    n = rng.choice(_FACTORS)
    return f"Then the stock is multiplied by {n}.", stock * n


def _split(rng: Random, stock: int, digits: int) -> tuple[str, int]:
    """An equal share, if the stock can be shared equally at all."""
    divisors = [n for n in _FACTORS if stock % n == 0]
    if not divisors:
        return _arrive(rng, stock, digits)
    n = rng.choice(divisors)
    return f"Then the stock is split equally among {n} shops, and only one shop's share is kept.", stock // n


_CHANGES: tuple[Callable[[Random, int, int], tuple[str, int]], ...] = (_arrive, _leave, _multiply, _split)
