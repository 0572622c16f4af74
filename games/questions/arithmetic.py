"""Arithmetic: the value of an expression of whole numbers, with the usual precedence; every division is exact."""

from random import Random

from arena.task import Task

__all__ = ["Arithmetic"]

OPERATIONS = "+-*/"
MAX_TERMS, MAX_DIGITS = 10, 9
_TRIES = 20
_SMALL = 1_000  # divisors up to here are looked for


class Arithmetic(Task):
    """Arithmetic: work out the value of an expression of whole numbers.

    Options:
        operations: the signs used, one or more of + - * / in one word such as +-, each once
        terms: how many numbers are joined, 2 to 10
        digits: the most digits of a number, 1 to 9
    """

    tags = ("question", "math")
    instructions = "Work out the value of an expression of {terms} whole numbers of up to {digits} digits, "
    form = "Write the whole number alone."
    example = "-12"

    @classmethod
    def sample(cls, rng: Random, operations: str = "+-*", terms: int = 2, digits: int = 2) -> tuple[str, int]:
        """See `Task.sample`."""
        if not operations or len(set(operations)) < len(operations) or not set(operations) <= set(OPERATIONS):
            raise ValueError(f"operations={operations!r}: allowed are one or more of {OPERATIONS}, each once")
        for name, value, low, high in (("terms", terms, 2, MAX_TERMS), ("digits", digits, 1, MAX_DIGITS)):
            if type(value) is not int or not low <= value <= high:
                raise ValueError(f"{name}={value!r}: allowed are {low} to {high}")
        signs = [rng.choice(operations) for _ in range(terms - 1)]
        text, value = _expression(rng, signs, operations.replace("/", ""), 10**digits - 1)
        return f"What is {text}?", value

    def _aim(self) -> str:
        options = dict(self.options)
        signs = [sign for sign in OPERATIONS if sign in options["operations"]]
        return super()._aim() + f"with {_either(signs)}.{_order(signs, options['terms'])}"

    def solution(self) -> str:
        """The value."""
        return "" if self.answer is None else f"The right answer is {self.answer}."

    def sample_action(self, player: int, rng: Random) -> str:
        """A number of about the right size."""
        digits = dict(self.options)["digits"]
        return str(rng.randint(-(10**digits), 10**digits))


def _either(signs: list[str], word: str = "and") -> str:
    """`+, - and *`."""
    return f" {word} ".join([", ".join(signs[:-1]), signs[-1]] if signs[1:] else signs)


def _order(signs: list[str], terms: int) -> str:
    """Which sign binds more, where it matters, and what is promised of divisions."""
    first, last = [[sign for sign in signs if sign in kind] for kind in ("*/", "+-")]
    told = ""
    if terms > 2:
        verb = "come" if first[1:] else "comes"
        before = f" {_either(first)} {verb} before {_either(last)}; otherwise" if first and last else ""
        told = f"{before} go from left to right." if before else " Go from left to right."
    return told + (" Every division comes out whole." if "/" in signs else "")


def _expression(rng: Random, operations: list[str], others: str, high: int) -> tuple[str, int]:
    """The expression and its value. `done` is the sum so far, `run` the product that still grows, with its sign.

    Where a prime would have to be divided, one of the `others` is taken; without any, it is divided by 1.
    """
    first = _number(rng, high, operations[:1])
    words, done, run = [str(first)], 0, first
    for i, drawn in enumerate(operations):
        after = operations[i + 1 : i + 2]
        divisors = _divisors(run, high) if drawn == "/" else []
        operation = rng.choice(others) if drawn == "/" and not divisors and others else drawn
        if operation == "/":
            n = rng.choice(divisors or [1])
            run //= n
        elif operation == "*":
            n = _number(rng, high, after)
            run *= n
        else:
            n = _number(rng, high, after)
            done, run = done + run, n if operation == "+" else -n
        words += [operation, str(n)]
    return " ".join(words), done + run


def _number(rng: Random, high: int, after: list[str]) -> int:
    """From 1 to `high`; a composite one, if chance allows, where it is divided next."""
    n = rng.randint(1, high)
    for _ in range(_TRIES if after == ["/"] else 0):
        if _divisors(n, high):
            break
        n = rng.randint(1, high)
    return n


def _divisors(n: int, high: int) -> list[int]:
    """Divisors of |n| between 1 and |n| that are allowed and small."""
    size = abs(n)
    return [d for d in range(2, min(high, _SMALL, size - 1) + 1) if size % d == 0]
