import re
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from arena.games.questions.arithmetic import Arithmetic
from arena.registry import make_game
from arena.testing import check_game

OPTIONS: list[dict[str, Any]] = [
    {},
    {"operations": "/", "terms": 2, "digits": 3},
    {"operations": "+-*/", "terms": 10, "digits": 1},
    {"operations": "*/", "terms": 5, "digits": 2},
    {"operations": "-", "terms": 10, "digits": 9},
    {"operations": "/-", "terms": 6, "digits": 4},
]


def expression(task: Arithmetic) -> list[str]:
    found = re.fullmatch(r"What is (.*)\?", task.question)
    assert found
    return found[1].split()


def value(words: list[str]) -> Fraction:
    """By the school rule, each product first; every division must come out whole."""
    total = Fraction(0)
    for start in [0] + [i + 1 for i, word in enumerate(words) if word in "+-"]:
        product = Fraction(words[start])
        for sign, n in zip(words[start + 1 :: 2], words[start + 2 :: 2], strict=False):
            if sign in "+-":
                break
            product = product * int(n) if sign == "*" else product / int(n)
            assert product.denominator == 1
        total += -product if start and words[start - 1] == "-" else product
    return total


@pytest.mark.parametrize("options", OPTIONS)
def test_the_answer_is_right_and_every_division_exact(options: dict[str, Any]) -> None:
    for seed in range(300):
        task = Arithmetic.initial(Random(seed), **options)
        words = expression(task)
        answer = value(words)
        assert answer == task.answer == eval(" ".join(words).replace("/", "//"))
        assert task.apply({0: str(answer)}).returns() == (1.0,)
        assert task.apply({0: f"so it is <answer>{int(answer):,}.0</answer>"}).returns() == (1.0,)
        assert task.apply({0: str(answer + 1)}).returns() == (0.0,)


@pytest.mark.parametrize("options", OPTIONS)
def test_terms_digits_and_signs_are_those_of_the_options(options: dict[str, Any]) -> None:
    signs: set[str] = set()
    for seed in range(300):
        words = expression(Arithmetic.initial(Random(seed), **options))
        numbers, signs = words[::2], signs | set(words[1::2])
        assert len(numbers) == options.get("terms", 2)
        assert all(1 <= int(n) < 10 ** options.get("digits", 2) for n in numbers)
    assert signs == set(options.get("operations", "+-*"))


def test_divisions_are_seldom_by_one_where_there_is_a_choice() -> None:
    questions = [Arithmetic.initial(Random(seed), operations="+/", terms=3, digits=3).question for seed in range(300)]
    assert sum("/ 1 " in q or q.endswith("/ 1?") for q in questions) == 0
    assert sum("/" in q for q in questions) > 150


@pytest.mark.parametrize("options", OPTIONS)
def test_the_contract_holds(options: dict[str, Any]) -> None:
    check_game(Arithmetic, options)


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        ({"operations": ""}, "operations='': allowed are one or more of"),
        ({"operations": "++"}, "operations='..': allowed are one or more of"),
        ({"operations": "^"}, "operations='.': allowed are one or more of"),
        ({"terms": 1}, "terms=1: allowed are 2 to 10"),
        ({"terms": 11}, "terms=11: allowed are 2 to 10"),
        ({"digits": 0}, "digits=0: allowed are 1 to 9"),
        ({"digits": 10}, "digits=10: allowed are 1 to 9"),
    ],
)
def test_bad_options_name_the_allowed_values(options: dict[str, Any], allowed: str) -> None:
    with pytest.raises(ValueError, match=allowed):
        make_game("Arithmetic-v0", 0, options)


def test_the_rules_state_the_options() -> None:
    rules = Arithmetic.initial(Random(0), operations="-/", terms=4, digits=3).rules(0)
    assert "4 whole numbers of up to 3 digits, with - and /. / comes before -; otherwise go from left" in rules
    assert "Every division comes out whole." in rules
    assert "A right answer earns 1, a wrong one nothing." in rules
    plain = Arithmetic.initial(Random(0)).rules(0)
    assert "an expression of 2 whole numbers of up to 2 digits, with +, - and *.\n" in plain
    assert "with + and -. Go from left to right." in Arithmetic.initial(Random(0), operations="+-", terms=3).rules(0)
    every = Arithmetic.initial(Random(0), operations="+-*/", terms=3).rules(0)
    assert "with +, -, * and /. * and / come before + and -; otherwise go from left to right." in every


def test_a_wrong_answer_is_told_the_right_one() -> None:
    task = Arithmetic.initial(Random(0))
    ended = task.apply({0: "x"})
    assert ended.observation(0) == f"Your answer is wrong. The right answer is {task.answer}."
    assert ended.determinize(0, Random(1)).observation(0) == ended.observation(0)
    assert task.apply({0: str(task.answer)}).observation(0) == "Your answer is right."
    assert task.determinize(0, Random(1)).apply({0: "x"}).observation(0) == "Your answer is wrong."


@pytest.mark.parametrize(
    "text", ["٤", "²", "9" * 4_000, "(" * 4_000, "1e9", "0x1", "\ud800", "__import__('os')", "2+2"]
)
def test_hostile_answers_are_wrong(text: str) -> None:
    assert Arithmetic.initial(Random(0)).apply({0: text}).returns() == (0.0,)
