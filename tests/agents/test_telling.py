"""A model's answer, read from its record."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.agent import Call
from arena.agents.telling import received
from arena.episode import Attempt
from arena.tools.call import dumped

TEXTS = st.text(st.characters(codec=None))  # lone surrogates, too


def attempt(text: str) -> Attempt:
    return Attempt(text, calls=(Call("chat", received=text),))


@given(TEXTS, TEXTS, TEXTS)
def test_what_a_model_wrote_can_always_be_written_again(content: str, name: str, key: str) -> None:
    value = {"content": content, "tool_calls": [{"id": name, "function": {"name": name, "arguments": {key: [name]}}}]}
    for ascii_only in (True, False):
        found = received(attempt(dumped(value, ascii_only=ascii_only)), tools=True)
        assert found is not None
        assert found.tool_calls
        assert msgspec.json.decode(msgspec.json.encode(found))["text"] == found.text


def test_escaped_surrogates_are_replaced_and_other_escapes_are_read() -> None:
    text = '{"content": "5\\ud800 \\ud83d\\ude00", "tool_calls": [{"id": "\\udfff\\u00e9"}]}'
    found = received(attempt(text), tools=True)
    assert found is not None
    assert (found.text, found.tool_calls) == ("5\ufffd \U0001f600", ({"id": "\ufffd\u00e9"},))


@pytest.mark.parametrize("odd", ["[" * 100_000, '[{}], "more": 1', "[]", "[1]", "7", "null", '[{"a": "\\ud8'])
def test_what_is_no_answer_with_calls_is_all_words(odd: str) -> None:
    text = f'{{"content": "a", "tool_calls": {odd}}}'
    found = received(attempt(text), tools=True)
    assert found is not None
    assert (found.text, found.tool_calls) == (text, ())


def test_who_was_offered_no_tools_wrote_the_words_that_look_like_calls() -> None:
    text = '{"content": "a", "tool_calls": [{"id": "1"}]}'
    found = received(attempt(text), tools=False)
    assert found is not None
    assert (found.text, found.tool_calls) == (text, ())
