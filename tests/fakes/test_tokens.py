"""The tokenizer, the template, the cache, constraints and the distribution."""

import json
import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import tokenizer
from tests.fakes.constraint import GrammarError, alternatives, constraint_of, instance
from tests.fakes.logits import allowed_tokens, logprob, logprobs, top
from tests.fakes.radix import RadixCache
from tests.fakes.template import Template

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(TEXT)
def test_a_text_comes_back_from_its_tokens(text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


@given(TEXT, st.integers(0, 9))
def test_respelt_tokens_say_the_same(text: str, seed: int) -> None:
    ids = tokenizer.encode(text)
    assert tokenizer.decode(tokenizer.respell(ids, random.Random(seed), 0.5)) == text


def test_other_spellings_do_not_come_back() -> None:
    ids = tokenizer.respell(tokenizer.encode("the player will think"), random.Random(1), 1.0)
    assert tokenizer.encode(tokenizer.decode(ids)) != ids


def test_special_tokens_are_one_token_each_and_can_be_left_out() -> None:
    ids = tokenizer.encode("<|im_start|>user\nhi<|im_end|>")
    assert (ids[0], ids[-1]) == (tokenizer.IM_START, tokenizer.EOS)
    assert tokenizer.decode(ids, skip_special_tokens=True) == "user\nhi"


def test_half_a_character_decodes_and_a_lone_surrogate_does_not_encode() -> None:
    assert tokenizer.decode(tokenizer.encode("é")[:1]) == "\ufffd"
    with pytest.raises(UnicodeEncodeError):
        tokenizer.encode("\ud800")


USER, SAID, NEXT = (
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": "<think>hm</think>left"},
    {"role": "user", "content": "and now?"},
)


def test_the_template_is_chatml_and_only_grows() -> None:
    template = Template()
    first = template.render([USER])
    assert first == "<|im_start|>user\ngo<|im_end|>\n<|im_start|>assistant\n"
    assert template.render([USER, SAID, NEXT]).startswith(first + "<think>hm</think>left<|im_end|>\n")


def test_a_template_that_strips_thinking_does_not_only_grow() -> None:
    template = Template(strips_thinking=True)
    said = template.render([USER]) + "<think>hm</think>left"
    assert template.render([USER, SAID, NEXT]) == said.replace("<think>hm</think>", "") + (
        "<|im_end|>\n<|im_start|>user\nand now?<|im_end|>\n<|im_start|>assistant\n"
    )


def test_bos_tools_calls_and_an_open_last_turn() -> None:
    call = {"function": {"name": "add", "arguments": '{"a": 1}'}}
    messages: list[dict[str, Any]] = [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "1"},
    ]
    text = Template(bos=True).render(messages, tools=[{"type": "function", "function": {"name": "add"}}])
    assert tokenizer.encode(text)[0] == tokenizer.BOS
    assert '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call><|im_end|>' in text
    assert "<|im_start|>user\n<tool_response>\n1\n</tool_response><|im_end|>" in text
    assert '"name": "add"}}\n</tools>' in text
    assert Template().render([USER, SAID], continue_final_message=True).endswith("left")


@given(st.lists(st.lists(st.integers(0, 2), max_size=8), max_size=8), st.lists(st.integers(0, 2), max_size=8))
def test_the_cache_knows_the_longest_common_prefix(known: list[list[int]], ids: list[int]) -> None:
    cache = RadixCache()
    for one in known:
        cache.insert(one)
    prefixes = {tuple(one[:size]) for one in known for size in range(len(one) + 1)} | {()}
    assert cache.longest(ids) == max(size for size in range(len(ids) + 1) if tuple(ids[:size]) in prefixes)
    cache.flush()
    assert cache.longest(ids) == 0


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=5))
def test_alternatives_are_read_back(texts: list[str]) -> None:
    assert alternatives("(" + "|".join(map(re.escape, texts)) + ")") == tuple(texts)


@pytest.mark.parametrize("source", ["a+", "(a|b)c", r"(\d|a)", "[ab]", "(?=a)", "a\\"])
def test_other_regexes_are_no_alternatives(source: str) -> None:
    assert alternatives(source) is None


def test_constraints_pick_and_judge() -> None:
    chance = random.Random(0)
    moves = constraint_of({"regex": r"(\[0\]|\[1\])"})
    assert moves is not None
    assert moves.pick(chance) in {"[0]", "[1]"}
    assert (moves.allows("[1]"), moves.allows("[2]")) == (True, False)
    grammar = constraint_of({"ebnf": 'root ::= "yes" | "no"'})
    assert grammar is not None
    assert grammar.choices == ("yes", "no")
    free = constraint_of({"regex": "[a-z]{2}"})
    assert free is not None
    assert (free.allows("ab"), free.allows("a1")) == (True, False)
    with pytest.raises(GrammarError, match="cannot invent"):
        free.pick(chance)


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"regex": "(("}, "Failed to compile regex grammar"),
        ({"json_schema": "{"}, "Failed to compile json grammar"),
        ({"regex": "a", "ebnf": "b"}, "Only one of"),
    ],
)
def test_constraints_that_do_not_compile(params: dict[str, str], says: str) -> None:
    with pytest.raises(GrammarError, match=says):
        constraint_of(params)


def test_an_instance_keeps_its_schema() -> None:
    schema = {
        "type": "object",
        "properties": {
            "move": {"type": "integer", "minimum": 3},
            "why": {"type": "string", "minLength": 2},
            "kind": {"enum": ["a"]},
            "more": {"type": "array", "items": {"anyOf": [{"const": 7}]}, "minItems": 2},
            "sure": {"type": "boolean"},
        },
        "required": ["move", "why", "kind", "more", "sure"],
    }
    value = instance(schema, random.Random(0))
    assert json.dumps(value) == '{"move": 3, "why": "xx", "kind": "a", "more": [7, 7], "sure": true}'


def test_the_distribution_adds_up_and_changes_with_weights_and_temperature() -> None:
    row = logprobs(5, "default", 1.0)
    assert abs(sum(2.718281828459045**p for p in row) - 1) < 1e-9
    assert logprob(5, 9, "default") == logprob(5, 9, "default") != logprob(5, 9, "step-2")
    assert logprob(5, 9, "default", 0.0) == logprob(5, 9, "default", 1.0) != logprob(5, 9, "default", 0.7)
    best = top(5, "default", 1.0, 2, None)
    assert best[0][0] >= best[1][0] == logprob(5, best[1][1], "default")


def test_forced_tokens_cost_nothing_and_choices_share_one() -> None:
    ids = [*tokenizer.encode("[1]"), tokenizer.EOS]
    places = allowed_tokens(["[0]", "[1]"], ids)
    masked = [logprob(1, one, "default", 1.0, allowed) for one, allowed in zip(ids, places, strict=True)]
    assert [p == 0.0 for p in masked] == [True, False, True, True]
    digits = [logprob(1, one, "default", 1.0, places[1]) for one in places[1]]
    assert len(digits) == 2
    assert abs(sum(2.718281828459045**p for p in digits) - 1) < 1e-9
    assert top(1, "default", 1.0, 5, places[1])[0][0] == max(digits)
