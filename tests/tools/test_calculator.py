import json
import re
from collections.abc import Callable
from fractions import Fraction
from random import Random

import pytest

from arena.game import Event, IllegalAction
from arena.testing import check_game
from arena.tools.calculator import LARGEST, CalculatorTask, add, divide, multiply, subtract
from arena.tools.tool import ToolError

OPTIONS = [{}, {"steps": 1, "digits": 1}, {"steps": 12, "digits": 9}, {"steps": 5, "digits": 2}]
SENTENCES: list[tuple[str, str, Callable[[Fraction, int], Fraction]]] = [
    (r"Then (\d+) more arrive\.", "add", lambda stock, n: stock + n),
    (r"Then (\d+) are sold\.", "subtract", lambda stock, n: stock - n),
    (r"Then the stock is multiplied by (\d+)\.", "multiply", lambda stock, n: stock * n),
    (
        r"Then the stock is split equally among (\d+) shops, and only one shop's share is kept\.",
        "divide",
        Fraction.__truediv__,
    ),
]


def solve(question: str) -> tuple[Fraction, list[tuple[str, int]]]:
    """The answer by reading the words again, with fractions, and the calls that it takes."""
    first = re.match(r"A depot has (\d+) boxes\. ", question)
    assert first
    stock, rest, calls = Fraction(int(first[1])), question[first.end() :], []
    while not rest.startswith("How many boxes are there in the end?"):
        pattern, tool, change = next(s for s in SENTENCES if re.match(s[0], rest))
        found = re.match(pattern, rest)
        assert found
        stock, rest = change(stock, int(found[1])), rest[found.end() :].lstrip()
        calls.append((tool, int(found[1])))
        assert stock.denominator == 1
        assert stock > 0
    return stock, calls


@pytest.mark.parametrize("options", OPTIONS)
def test_the_answer_is_what_the_words_say(options: dict[str, int]) -> None:
    steps, seen = options.get("steps", 3), set()
    for seed in range(200):
        task = CalculatorTask.initial(Random(seed), **options)
        answer, calls = solve(task.question)
        assert answer == task.answer <= LARGEST
        assert len(calls) == steps
        seen |= {tool for tool, _ in calls}
        assert task.apply({0: str(answer)}).returns() == (1.0,)
        assert task.apply({0: str(answer + 1)}).returns() == (0.0,)
    assert seen == {"add", "subtract", "multiply", "divide"}


def test_the_calculator_solves_it_call_by_call() -> None:
    for seed in range(50):
        task = CalculatorTask.initial(Random(seed), steps=8, digits=6)
        _, calls = solve(task.question)
        shown = task.question.split()[3]
        for tool, n in calls:
            task = task.apply({0: json.dumps({"tool": tool, "args": {"a": int(shown), "b": n}})})
            head, _, shown = task.events(0)[-1].text.partition(" -> ")
            assert head.startswith(f"You called {tool}(a=")
        assert task.apply({0: shown}).returns() == (1.0,)


def test_numbers_have_the_digits_asked_for() -> None:
    for seed in range(50):
        numbers = re.findall(
            r"(\d+)(?: boxes| more| are sold)", CalculatorTask.initial(Random(seed), digits=7).question
        )
        assert {len(n) for n in numbers} == {7}


@pytest.mark.parametrize("options", OPTIONS)
def test_the_contract_holds(options: dict[str, int]) -> None:
    check_game(CalculatorTask, options)


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        ({"steps": 0}, "steps=0: allowed are 1 to 12"),
        ({"steps": 13}, "steps=13: allowed are 1 to 12"),
        ({"steps": True}, "steps=True: allowed are 1 to 12"),
        ({"digits": 10}, "digits=10: allowed are 1 to 9"),
        ({"digits": 2.0}, "digits=2.0: allowed are 1 to 9"),
        ({"max_calls": 0}, "max_calls=0: allowed are 1 to 100"),
    ],
)
def test_bad_options_name_the_allowed_values(options: dict[str, int], allowed: str) -> None:
    with pytest.raises(ValueError, match=f"^{allowed}$"):
        CalculatorTask.initial(Random(0), **options)


def test_the_calculator_is_exact() -> None:
    assert add(10**39, -1) == 10**39 - 1
    assert subtract(3, 10) == -7
    assert multiply(-(10**20), 10**20) == -LARGEST
    assert divide(-12, 4) == -3
    assert divide(0, 7) == 0


@pytest.mark.parametrize(
    ("tool", "a", "b", "why"),
    [
        (divide, 1, 0, "division by zero"),
        (divide, 7, 2, "7 / 2 is not whole: 3, remainder 1"),
        (add, LARGEST, 1, "40 digits"),
        (multiply, LARGEST, 2, "40 digits"),
        (subtract, 10**399, 10**399, "40 digits"),
        (divide, 1, 10**399, "40 digits"),
    ],
)
def test_what_the_calculator_cannot_show_is_an_error(tool: Callable[[int, int], int], a: int, b: int, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        tool(a, b)


def test_errors_of_the_calculator_are_messages() -> None:
    task = CalculatorTask.initial(Random(0))
    for a, b, why in (
        ("7", "0", "zero"),
        ("7", "2", "not whole"),
        ("9" * 400, "1", "40 digits"),
        ("1.0", "1", "float"),
    ):
        after = task.apply({0: f'{{"tool": "divide", "args": {{"a": {a}, "b": {b}}}}}'})
        assert why in after.events(0)[-1].text
        assert after.events(0)[-1].text.startswith("You called divide(a=")
        assert ". Error: " in after.events(0)[-1].text


@pytest.mark.parametrize("text", ["add(2,2)", "2 + 2", "The answer is 42.", "call add with 2 and 2", "1 2", "٣"])
def test_what_is_neither_call_nor_number_comes_back_and_counts(text: str) -> None:
    task = CalculatorTask.initial(Random(0), max_calls=1)
    after = task.apply({0: text})
    assert after.to_act() == (0,)
    assert after.events(0)[0] == Event(text, 0)
    assert "counted as one: it is no answer either" in after.events(0)[1].text
    assert "Calls left: 0." in after.observation(0)
    with pytest.raises(IllegalAction, match="no calls are left: write your answer"):
        after.apply({0: text})
    assert after.determinize(0, Random(1)).observation(0) == after.observation(0)


@pytest.mark.parametrize(
    "form", ["{}", " {}.0 ", "so <answer>{}</answer>", "Working.\nFinal answer: {}", "\\boxed{{{}}}"]
)
def test_answers_are_numbers_or_marked(form: str) -> None:
    task = CalculatorTask.initial(Random(0))
    assert task.apply({0: form.format(task.answer)}).returns() == (1.0,)


def test_a_wrong_answer_is_told_the_right_one_which_nobody_knew_before() -> None:
    task = CalculatorTask.initial(Random(0))
    ended = task.apply({0: "0"})
    assert ended.observation(0) == f"Your answer is wrong. The right answer is {task.answer}."
    assert ended.determinize(0, Random(1)).observation(0) == ended.observation(0)
    assert task.determinize(0, Random(1)).apply({0: "0"}).observation(0) == "Your answer is wrong."
    right = task.apply({0: str(task.answer)})
    assert right.observation(0) == "Your answer is right."


def test_the_rules_state_the_options() -> None:
    rules = CalculatorTask.initial(Random(0), steps=7, max_calls=9).rules(0)
    assert "after 7 changes" in rules
    assert "You have 9 calls" in rules
    assert "up to 40 digits" in rules
    assert "- divide(a: integer, b: integer): The quotient a / b of two whole numbers; it must be whole." in rules
