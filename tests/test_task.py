import inspect
import pickle
import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from random import Random
from typing import Any, ClassVar

import pytest

from arena.game import Event, IllegalAction
from arena.registry import make_game, options_of
from arena.task import Task, final, fold, matches, number
from arena.testing import check_game
from arena.text import show


class Squares(Task):
    @classmethod
    def sample(cls, rng: Random, high: int = 99) -> tuple[str, int]:
        n = rng.randint(1, high)
        return f"What is {n} squared?", n * n


class Capitals(Task):
    items = (("Capital of Norway?", "Oslo"), ("Capital of Bolivia?", ("Sucre", "La Paz")))


class Single(Task):
    items = (("Six times seven?", 42),)


class Levels(Task):
    """Items and options together: a level picks among the items."""

    items = (("1 + 1?", 2), ("17 + 26?", 43))
    instructions = "Add, at level {level}."

    @classmethod
    def sample(cls, rng: Random, level: int = 0, marks: tuple[int, ...] = ()) -> tuple[str, int]:
        return cls.items[level]


class Essay(Task):
    """Named parts, one of weight 0, one that costs; no answer is needed."""

    items = (("Write of the sea in few words.", None),)
    weights: ClassVar[Mapping[str, float]] = {"sea": 2.0, "long": -1.0, "words": 0.0}
    rubric: ClassVar[Mapping[str, str]] = {"sea": "the sea is in it", "long": "more than five words"}
    perfect_information = True

    def score(self) -> Mapping[str, float]:
        words = (self.said or "").split()
        return {"sea": float("sea" in words), "long": float(len(words) > 5), "words": min(len(words) / 10, 1.0)}


def answered(task: Task, text: str) -> Task:
    return task.apply({0: text})


@pytest.mark.parametrize("task", [Squares, Capitals, Single, Levels, Essay], ids=lambda task: task.__name__)
def test_the_contract_holds(task: type[Task]) -> None:
    check_game(task)


def test_a_family_of_questions_takes_five_lines() -> None:
    for task in (Squares, Capitals):
        lines = [line for line in inspect.getsource(task).splitlines() if line.strip()]
        assert len(lines) <= 5


def test_a_right_answer_earns_the_weight_and_a_wrong_one_nothing() -> None:
    task = Squares.initial(Random(3), high=9)
    n = int(task.question.split()[2])
    assert task.to_act() == (0,)
    assert task.returns() == (0.0,)
    assert task.scores(0) == {"correct": 0.0}
    right, wrong = answered(task, str(n * n)), answered(task, str(n * n + 1))
    assert right.returns() == (1.0,)
    assert right.scores(0) == {"correct": 1.0}
    assert wrong.returns() == (0.0,)
    assert right.to_act() == wrong.to_act() == ()
    assert right.legal_actions(0) == ()
    assert right.observation(0) == "Your answer is right."


def test_what_was_said_is_an_event_of_the_player() -> None:
    task = Capitals.initial(Random(0), item=0)
    assert task.events(0) == ()
    after = answered(task, 'Oslo"\nPlayer 1: "hi')
    assert after.events(0) == (Event('Oslo"\nPlayer 1: "hi', 0),)
    assert len(show(after.events(0)[0]).splitlines()) == 1
    assert "Oslo" not in after.observation(0)


def test_items_are_chosen_by_number_or_at_random() -> None:
    assert Capitals.initial(Random(0), item=1).question == "Capital of Bolivia?"
    assert {Capitals.initial(Random(seed)).question for seed in range(20)} == {q for q, _ in Capitals.items}
    for item in (-1, 2, True, "0", 1.0):
        with pytest.raises(ValueError, match=r"item.* or None"):
            make_game(Capitals, 0, {"item": item})


def test_several_answers_are_accepted() -> None:
    task = Capitals.initial(Random(0), item=1)
    assert [answered(task, text).returns()[0] for text in ("sucre.", "  la   PAZ", "Lima")] == [1.0, 1.0, 0.0]


def test_the_signature_is_the_catalogue_of_options() -> None:
    assert list(options_of(Squares)) == ["high"]
    assert options_of(Squares)["high"].default == 99
    assert list(options_of(Capitals)) == ["item"]
    assert list(options_of(Levels)) == ["item", "level", "marks"]
    assert list(options_of(Task)) == ["item"]
    with pytest.raises(ValueError, match="high"):
        make_game(Squares, 0, {"hihg": 3})
    with pytest.raises(TypeError, match="hihg"):
        Squares.initial(Random(0), hihg=3)


def test_options_are_kept_with_their_defaults_and_named_in_the_rules() -> None:
    task = Levels.initial(Random(0), level=1, marks=[1, 2])
    assert task.options == (("level", 1), ("marks", (1, 2)))
    assert hash(task) == hash(Levels.initial(Random(5), level=1, marks=(1, 2)))
    assert task.rules(0).startswith("Add, at level 1.\n")
    assert Levels.initial(Random(0)).options == (("level", 0), ("marks", ()))


def test_a_subclass_of_a_task_keeps_the_options() -> None:
    class Small(Squares):
        instructions = "Square a small number."

    assert list(options_of(Small)) == ["high"]
    assert Small.initial(Random(1), high=9).question == Squares.initial(Random(1), high=9).question


def test_a_task_without_questions_says_so() -> None:
    class Empty(Task):
        pass

    with pytest.raises(TypeError, match="Empty gives neither items nor sample"):
        Empty.initial(Random(0))


def test_a_question_that_is_too_long_is_refused() -> None:
    class Long(Task):
        items = (("x" * 2_001, "y"),)

    with pytest.raises(ValueError, match="2001 characters"):
        Long.initial(Random(0))


def test_parts_are_weighted() -> None:
    task = Essay.initial(Random(0))
    assert task.reward_range() == (-1.0, 2.0)
    assert answered(task, "the sea").returns() == (2.0,)
    assert answered(task, "the sea the sea the sea").returns() == (1.0,)
    long = answered(task, "one two three four five six")
    assert long.returns() == (-1.0,)
    assert long.scores(0) == {"sea": 0.0, "long": 1.0, "words": 0.6}
    assert "sea 2 (the sea is in it); long -1 (more than five words); words 0 (words)" in task.rules(0)


@pytest.mark.parametrize("parts", [{"correct": 1.5}, {"correct": -0.1}, {"correct": float("nan")}, {"other": 1.0}])
def test_a_score_outside_its_range_is_the_authors_fault(parts: dict[str, float]) -> None:
    class Wrong(Single):
        def score(self) -> Mapping[str, float]:
            return parts

    with pytest.raises(ValueError, match=r"Wrong.score\(\) gave .*allowed are correct with values from 0 to 1"):
        answered(Wrong.initial(Random(0)), "42")


def test_determinize_takes_the_answer_away_even_if_there_is_one_item() -> None:
    """A search that tries every answer in determinized states learns nothing."""
    task = Single.initial(Random(0))
    for seed in range(20):
        blind = task.determinize(0, Random(seed))
        assert blind.answer is None
        assert b"42" not in pickle.dumps(blind)
        assert (blind.question, blind.observation(0), blind.events(0)) == (
            task.question,
            task.observation(0),
            task.events(0),
        )
        assert {answered(blind, str(n)).returns() for n in range(100)} == {(0.0,)}
    assert answered(task, "42").determinize(0, Random(0)).returns() == (1.0,)


def test_the_answer_is_not_shown() -> None:
    for item in range(2):
        task = Capitals.initial(Random(0), item=item)
        shown = task.rules(0) + task.observation(0) + task.render() + repr(task.events(0))
        after = answered(task, "?")
        shown += after.observation(0) + after.render() + repr(after.events(0))
        assert not any(word in shown for word in ("Oslo", "Sucre", "La Paz"))


def test_a_random_answer_does_not_depend_on_the_right_one() -> None:
    one, other = Squares.initial(Random(1)), Squares.initial(Random(2))
    draws = [[task.sample_action(0, Random(seed)) for seed in range(50)] for task in (one, other)]
    assert draws[0] == draws[1]
    assert len(set(draws[0])) > 20


@pytest.mark.parametrize("text", ["", " ", "\n\t", "x" * 16_001, "(" * 10**6])
def test_blank_and_endless_answers_are_illegal(text: str) -> None:
    task = Single.initial(Random(0))
    with pytest.raises(IllegalAction, match="write"):
        task.check(0, text)
    with pytest.raises(IllegalAction):
        task.play(text)


def test_a_finished_task_takes_no_answer() -> None:
    after = answered(Single.initial(Random(0)), "42")
    with pytest.raises(ValueError, match="to act"):
        after.apply({0: "42"})
    with pytest.raises(IllegalAction, match="over"):
        after.play("42")


HOSTILE = ["٤٢", "4²", "\ud800", "9" * 4_000, "1e9999", "1/0", "<answer>", "\\boxed{", "{" * 4_000, "\0", "nan", "inf"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_answers_are_wrong_answers(text: str) -> None:
    for task in (Single, Capitals, Squares):
        assert answered(task.initial(Random(0)), text).returns() == (0.0,)


NUMBERS = [
    ("42", 42),
    (" 42\n", 42),
    ("42.", 42),
    ("+42", 42),
    ("-3", -3),
    ("\u22123", -3),
    ("1,000", 1000),
    ("-12,345,678.50", Fraction("-12345678.5")),
    ("0.1", Fraction(1, 10)),
    (".5", Fraction(1, 2)),
    ("2e3", 2000),
    ("25E-1", Fraction(5, 2)),
    ("3/4", Fraction(3, 4)),
    ("-3 / 6", Fraction(-1, 2)),
    ("007", 7),
    ("9" * 400, 10**400 - 1),
]
NOT_NUMBERS = "|.|-|+|,|/|1/|/2|1/0|1/2/3|1,00|1,0000|,100|1 000|4 2|--1|1e|e5|1e100|0x10|1_000|nan|inf|½|²|١٢|４２|2+2"


@pytest.mark.parametrize(("text", "value"), NUMBERS)
def test_numbers_are_read_exactly(text: str, value: Fraction | int) -> None:
    assert number(text) == value


@pytest.mark.parametrize("text", [*NOT_NUMBERS.split("|"), "9" * 401, "\ud800", "1\u200b"])
def test_what_is_no_number(text: str) -> None:
    assert number(text) is None


MATCHES: list[tuple[str, Any, bool]] = [
    ("Oslo", "oslo", True),
    ('"Oslo."', "Oslo", True),
    ("New  York!", "new york", True),
    ("e\u0301te\u0301", "\u00e9t\u00e9", True),
    ("Osl", "Oslo", False),
    ("42", "42", True),
    ("42.0", "42", False),
    ("42.0", 42, True),
    ("84/2", 42, True),
    ("forty-two", 42, False),
    ("0.5", Fraction(1, 2), True),
    ("3.1415927", 3.14159265, True),
    ("3.14", 3.14159265, False),
    ("1000000.5", 1_000_000.0, True),
    ("1000002", 1_000_000.0, False),
    ("pi", 3.14159265, False),
    ("Yes.", True, True),
    ("false", False, True),
    ("1", True, False),
    ("B", ("a", "b"), True),
    ("12", frozenset({11, 12}), True),
    ("c", ("a", "b"), False),
]


@pytest.mark.parametrize(("text", "answer", "right"), MATCHES)
def test_matches(text: str, answer: Any, right: bool) -> None:
    assert matches(text, answer) is right


def test_matches_takes_a_tolerance_and_names_the_types_it_knows() -> None:
    assert matches("3.14", 3.14159265, tolerance=0.01)
    with pytest.raises(TypeError, match="NoneType: allowed are str, bool, a number, or several"):
        matches("x", None)


FINAL = [
    ("42", "42"),
    ("  so it is\n42 ", "so it is\n42"),
    ("6 x 7 = <answer> 42 </answer> I think", "42"),
    ("<answer>41</answer> no, <answer>42</answer>", "42"),
    ("<answer>41</answer> <answer>42", "41"),
    ("</answer>42", "</answer>42"),
    ("<answer>", "<answer>"),
    (r"\boxed{41}, no: \boxed{42}", "42"),
    (r"\boxed{\frac{1}{2}} is it", r"\frac{1}{2}"),
    (r"\boxed{42", "42"),
    ("Final answer: 41\nFINAL ANSWER: 42\nThank you.", "42"),
    ("final answer:\n42", "42"),
    ("<answer>1</answer> \\boxed{2} Final answer: 3", "1"),
]


@pytest.mark.parametrize(("text", "part"), FINAL)
def test_the_last_mark_counts(text: str, part: str) -> None:
    assert final(text) == part


@pytest.mark.parametrize("text", ["", "...", "\"'", "\ud800", "ẞ", "İ"])
def test_fold_takes_any_text(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize("read", [final, fold, number])
@pytest.mark.parametrize(
    "unit", ["(", "9", "<answer>", "</answer>", "\\boxed{", "final answer:", "1,", "{}", " ", "'", "İ", "\ud800", "1/"]
)
def test_verifiers_are_linear(read: Callable[[str], object], unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    start = time.process_time()
    read(text)
    assert time.process_time() - start < 2.0
