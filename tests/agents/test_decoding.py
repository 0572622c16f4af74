"""Constraints, likelihoods, majorities."""

import re
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.agent import AgentError, View
from arena.agents.decoding import alternatives, choose, majority, unfit
from arena.game import Actions
from arena.model import Completion
from arena.registry import make_game
from tests.agents.toy_model import view

ODD = (
    "e2e4",
    "raise 10",
    "?",
    "a+b*(c-1)/2",
    "[x] {y}",
    'say "hi"',
    "it's",
    "ü→ñ 日本",
    "a|b",
    "^$.\\",
    "<b>",
    "0-0",
    "-",
)


@given(st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1), min_size=1))
def test_the_expression_takes_the_actions_and_nothing_else(actions: list[str]) -> None:
    constraint = alternatives(tuple(actions))
    assert constraint.kind == "regex"
    expression = re.compile(constraint.text, re.DOTALL)
    assert all(expression.fullmatch(action) for action in actions)
    other = actions[0] + "x"
    assert bool(expression.fullmatch(other)) is (other in actions)


def test_every_special_character_is_escaped_and_no_other() -> None:
    assert alternatives(ODD[:5]).text == r"(e2e4|raise 10|\?|a\+b\*\(c-1\)/2|\[x\] \{y\})"
    assert alternatives(Actions(["1", "2"])) is alternatives(("1", "2"))  # made once for the same list


@pytest.mark.parametrize(
    ("actions", "why"),
    [((), "no list"), (None, "no list"), (("a", ""), "''"), (("a\nb",), "'a\\nb'"), (("a\x1bb",), "control")],
)
def test_what_cannot_be_constrained_is_said(actions: tuple[str, ...] | None, why: str) -> None:
    assert why in unfit(actions)
    with pytest.raises(AgentError, match="decode=constrained: "):
        alternatives(actions or ())


def test_the_likeliest_is_chosen_at_temperature_0_the_first_of_equals() -> None:
    rng = Random(1)
    assert choose([-3.0, -1.0, -1.0], 0.0, rng) == 1
    assert rng.random() == Random(1).random()  # nothing was drawn


def test_else_the_softmax_of_scores_over_temperature() -> None:
    rng = Random(5)
    drawn = Counter(choose([-2.0, -1.0], 0.5, rng) for _ in range(4000))
    assert drawn[1] / 4000 == pytest.approx(1 / (1 + 2.718281828**-2), abs=0.02)
    assert choose([float("-inf"), float("-inf")], 1.0, rng) == 0
    assert choose([-1e9, -2e9], 0.01, rng) == 0


def best(seen: View, *texts: str | Completion) -> int:
    return majority(seen, [each if isinstance(each, Completion) else Completion(each) for each in texts])


def test_a_majority_counts_what_answers_mean() -> None:
    seen = view(make_game("Chess-v0"))
    assert best(seen, "g1f3", "e2e4", "I like [Nf3]", "<answer>e2e4</answer>") == 0  # a tie: the first
    assert best(seen, "d2d4", "<think>d4</think> e2e4", "so <answer>e4</answer>") == 1
    assert best(seen, "no idea", "zz9", "e2e4") == 2
    assert best(seen, "no idea", "zz9") == 0


def test_cut_and_aborted_answers_do_not_count_while_there_are_others() -> None:
    seen = view(make_game("Chess-v0"))
    cut, gone = Completion("e2e4", "length"), Completion("e2e4", "abort")
    assert best(seen, cut, cut, gone, "d2d4") == 3
    assert best(seen, cut, gone, "zz") == 2
    assert best(seen, gone, cut) == 1
    assert best(seen, gone, gone) == 0


def test_no_list_no_peeping() -> None:
    hidden = view(make_game("Chess-v0"), legal=False)
    assert best(hidden, "Nf3", "[g1f3]", "e2e4", "so: [e2e4]") == 2  # Nf3 may mean g1f3: that needs the position
    assert best(hidden, "zz", "<answer>zz</answer>", "e2e4") == 0  # nobody said that zz is not legal


def test_open_text_counts_whole() -> None:
    seen = view(make_game("Arithmetic-v0"))
    assert best(seen, "12", "it is [13]", "[13]", " 13 ", "<think>?</think>13") == 3
    assert best(seen, "<think>13", " ", "7") == 2
