"""Calls as structures: what servers send, whole or broken."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.tools.call import MAX_CALLS, MAX_TEXT, Call, Malformed
from arena.tools.codec import CODECS
from arena.tools.openai import assistant_message, calls_of, tool_calls_of
from tests.tools.strategies import MADE, is_malformed, takes_linear_time

OPENAI = CODECS["openai"]
NOW = Call("now", {})


def one(arguments: Any = "{}", **others: Any) -> list[Any]:
    """A list of one call, as a server gives it."""
    return [{"id": "call_1", "type": "function", "function": {"name": "now", "arguments": arguments}, **others}]


PARIS = {"name": "get_weather", "arguments": '{"location": "Paris, France"}'}
STRUCTURES: list[tuple[Any, Call]] = [
    # OpenAI's guide to function calling
    (
        [{"id": "call_12345xyz", "type": "function", "function": PARIS}],
        Call("get_weather", {"location": "Paris, France"}),
    ),
    (one(index=0), NOW),
    (one(None), NOW),
    (one(""), NOW),
    (one(" \n"), NOW),
    ([{"function": {"name": "now"}}], NOW),
    (one({"a": [1, {"b": None}], "c": 0.5}), Call("now", {"a": [1, {"b": None}], "c": 0.5})),  # Ollama
    (one('{"a": "\\ud800"}'), Call("now", {"a": "�"})),
    (one({"a\ud800": ["\udc00"]}), Call("now", {"a�": ["�"]})),
    ([{"function": {"name": "\ud800"}}], Call("�", {})),
]


@pytest.mark.parametrize(("structure", "call"), STRUCTURES)
def test_structures_are_read(structure: Any, call: Call) -> None:
    assert calls_of(structure) == (call,)


def deep(times: int) -> Any:
    value: Any = {}
    for _ in range(times):
        value = {"a": value}
    return value


BROKEN: list[tuple[Any, str]] = [
    (None, "a list of calls"),
    ("x", "a list of calls"),
    ({}, "a list of calls"),
    ([], "a list of calls"),
    ([None], "a call is {"),
    ([{}], "a call is {"),
    ([{"name": "now", "arguments": "{}"}], "a call is {"),
    (one(type="custom"), "a call is {"),
    ([{"function": "now"}], "a call is {"),
    (one(extra=1), "no others"),
    ([{"function": {"name": "now", "parameters": {}}}], "no others"),
    ([{"function": {"arguments": "{}"}}], '"name" must be'),
    ([{"function": {"name": ["now"]}}], '"name" must be'),
    ([{"function": {"name": "x" * (MAX_TEXT + 1)}}], '"name" must be'),
    (one('{"city": "Par'), "not JSON"),
    (one("{'city': 'Paris'}"), "not JSON"),
    (one('"Paris"'), '"arguments" must be an object'),  # SGLang with tool_choice required, a small model
    (one("[1]"), '"arguments" must be an object'),
    (one("null"), '"arguments" must be an object'),
    (one([1]), '"arguments" must be an object'),
    (one(3), '"arguments" must be an object'),
    (one('{"a": 1, "a": 2}'), "twice"),
    (one('{"a": NaN}'), "NaN"),
    (one({"a": float("inf")}), "too large"),
    (one({"a": 10**400}), "400 digits"),
    (one({"a": {1, 2}}), "no JSON"),
    (one({1: 2}), "no JSON"),
    (one(dict.fromkeys(("\ud800", "\udfff"))), "twice"),
    (one("{" * 1000), "nested more than 32 deep"),
    (one('{"a":' * 1000), "nested more than 32 deep"),
    (one(deep(900)), "nested more than 32 deep"),
    (one('{"a": "' + "x" * 1_000_000 + '"}'), "at most 100000 characters"),
    (one({"a": "x" * 1_000_000}), "at most 100000 characters"),
    (one() * (MAX_CALLS + 1), "at most 16 calls"),
]


@pytest.mark.parametrize(("structure", "why"), BROKEN)
def test_broken_structures_come_with_a_reason(structure: Any, why: str) -> None:
    start = time.process_time()
    read = calls_of(structure)
    assert isinstance(read, Malformed)
    assert why in read.reason
    assert read.reason.isprintable()
    assert time.process_time() - start < 1.0


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["function", "{}"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "type", "function", "name", "arguments"]) | st.text(), inner, max_size=4
        )
    ),
)


@given(ANY_JSON)
def test_no_structure_raises(structure: Any) -> None:
    for value in (structure, [structure], [{"function": structure}], one(structure)):
        assert isinstance(calls_of(value), tuple | Malformed)


@given(MADE)
def test_what_is_made_is_read_back(calls: list[Call]) -> None:
    made = tool_calls_of(calls)
    assert calls_of(made) == tuple(calls)
    assert calls_of(json.loads(json.dumps(made))) == tuple(calls)
    for content in ("", "I think {so}: [1]."):
        text = OPENAI.write(calls, content)
        assert OPENAI.read(text) == tuple(calls)
        assert OPENAI.split(text)[0] == content


def test_ids_run_on_through_a_conversation_and_fit_mistral() -> None:
    ids = [each["id"] for each in tool_calls_of([NOW, NOW], first=3)]
    assert ids == ["call00003", "call00004"]
    assert all(len(each) == 9 and each.isalnum() for each in ids)


def test_the_text_form() -> None:
    assert OPENAI.write([NOW]) == json.dumps(tool_calls_of([NOW]))
    assert OPENAI.write([NOW], "So.") == json.dumps({"content": "So.", "tool_calls": tool_calls_of([NOW])})
    assert OPENAI.read(json.dumps(one()[0])) == (NOW,)
    assert OPENAI.read(json.dumps({"role": "assistant", "content": None, "tool_calls": one()})) == (NOW,)


@pytest.mark.parametrize("text", ["", "42", "f{x}", "[1, 2]", "[]", '"function": x', "\ud800", "[" * 1000])
def test_text_without_a_call_is_no_call(text: str) -> None:
    assert OPENAI.read(text) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON"),
        ("{}", "a call is {"),
        ('{"name": "add", "arguments": {}}', "a call is {"),
        (json.dumps(one())[:-30], "not JSON"),
        ('{"tool_calls": [], "content": "x"}', "a list of calls"),
        ('{"tool_calls": [], "refusal": "x"}', 'keys "role", "content" and "tool_calls"'),
        ("I call " + json.dumps(one()), "write the list of calls alone"),
        ('[{"a":' * 1000, "nested more than 32 deep"),
        ("[{" + "x" * 1_000_000, "at most 100000 characters"),
    ],
)
def test_malformed_texts_come_with_a_reason(text: str, why: str) -> None:
    is_malformed(OPENAI, text, why)


@pytest.mark.parametrize(
    "unit", ['{"function":', "[", '"', '\\"', " ", "{", '[{"function":{"name":"x","arguments":"{}"}},']
)
@pytest.mark.parametrize("head", ["", "[", "{", '[{"function":{"name":"x","arguments":"'])
def test_reading_is_linear(head: str, unit: str) -> None:
    takes_linear_time(OPENAI, head, unit)


@pytest.mark.parametrize("name", CODECS)
def test_a_message_has_words_and_calls_apart(name: str) -> None:
    codec = CODECS[name]
    message = assistant_message(codec, codec.write([NOW, Call("add", {"a": 1})], "I shall see."), first=7)
    assert message["content"] == "I shall see."
    assert [each["id"] for each in message["tool_calls"]] == ["call00007", "call00008"]
    assert calls_of(message["tool_calls"]) == (NOW, Call("add", {"a": 1}))
    for text in ("It is {42}.", "\ud800", '{"name": 3'):
        said = assistant_message(codec, text)
        assert said == {"role": "assistant", "content": text.replace("\ud800", "�")}
