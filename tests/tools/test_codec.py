import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.tools.codec import CODECS, MAX_CALLS, MAX_DEPTH, MAX_TEXT, Call, Format, Malformed
from arena.tools.tool import Tool
from tests.tools.strategies import MADE

JSON, HERMES = CODECS["json"], CODECS["hermes"]
ADD = Call("add", {"a": 1, "b": 2})

CALLS: list[tuple[str, tuple[Call, ...]]] = [
    ('{"name": "add", "arguments": {"a": 1, "b": 2}}', (ADD,)),
    ('{"tool": "add", "args": {"a": 1, "b": 2}}', (ADD,)),
    (' \n{"args":{"b":2,"a":1},"name":"add"}\n', (ADD,)),
    ('{"name": "add"}', (Call("add", {}),)),
    ('[{"name": "add", "arguments": {"a": 1, "b": 2}}, {"tool": "now"}]', (ADD, Call("now", {}))),
    ('[\n {"tool": "now"}]', (Call("now", {}),)),
    ('```json\n{"tool": "now"}\n```', (Call("now", {}),)),
    ('<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>', (ADD,)),
    (
        'I shall add. <tool_call>{"tool": "now"}</tool_call> Then\n<tool_call>{"tool": "x"}',
        (Call("now", {}), Call("x", {})),
    ),
    ('{"tool": "say", "args": {"text": "{[<\\"}"}}', (Call("say", {"text": '{[<"}'}),)),
    ('{"tool": "say", "args": {"text": "</tool_call"}}', (Call("say", {"text": "</tool_call"}),)),
    ('{"tool": "say", "args": {"\\ud800": ["\\udc00", {"x": "\\ud800"}]}}', (Call("say", {"�": ["�", {"x": "�"}]}),)),
    ('{"tool": "say", "args": {"n": 1e3, "m": null, "l": [true]}}', (Call("say", {"n": 1e3, "m": None, "l": [True]}),)),
    ('{"tool": "say", "args": {"n": -' + "9" * 399 + "}}", (Call("say", {"n": -(10**399 - 1)}),)),
]


@pytest.mark.parametrize(("text", "calls"), CALLS)
@pytest.mark.parametrize("codec", [JSON, HERMES])
def test_calls_are_read(codec: Format, text: str, calls: tuple[Call, ...]) -> None:
    assert codec.read(text) == calls


ANSWERS = ["", "42", "The answer is 42.", "x {1, 2}", "[1, 2]", "tool", "name: add", '"', "\ud800", "[" * 1000]


@pytest.mark.parametrize("text", ANSWERS)
def test_text_without_a_call_is_no_call(text: str) -> None:
    assert JSON.read(text) is None


MALFORMED = [
    ("{", "not JSON"),
    ("{}", 'keys "name" and "arguments"'),
    ('{"name": "add", "arguments": {"a": 1', "not JSON"),
    ("{'name': 'add'}", "not JSON"),
    ('{"name": "add",}', "not JSON"),
    ('{"name": "add"} {"name": "add"}', "not JSON"),
    ('{"name": "add"} thank you', "not JSON"),
    ('{"name": "add", "arguments": {"a": NaN}}', "NaN"),
    ('{"name": "add", "arguments": {"a": -Infinity}}', "Infinity"),
    ('{"name": "add", "arguments": {"a": 1e999}}', "too large"),
    ('{"name": "add", "arguments": {"a": ' + "9" * 5_000 + "}}", "400 digits"),
    ('{"name": "add", "arguments": {"a": 1.' + "9" * 5_000 + "}}", "too long"),
    ('{"name": "add", "arguments": {"a": 1, "a": 2}}', "twice"),
    ('{"name": "add", "name": "add"}', "twice"),
    ('{"name": "add", "tool": "add"}', 'keys "name" and "arguments"'),
    ('{"name": "add", "args": {}, "arguments": {}}', 'keys "name" and "arguments"'),
    ('{"name": "add", "id": 3}', 'keys "name" and "arguments"'),
    ('{"arguments": {}}', 'keys "name" and "arguments"'),
    ('{"name": 3}', '"name" must be the name of a tool'),
    ('{"tool": "add", "args": [1, 2]}', '"args" must be an object'),
    ('{"tool": "add", "args": "{}"}', '"args" must be an object'),
    ('[{"tool": "add"}, 3]', "a call is an object"),
    ("<tool_call>42</tool_call>", "a call is an object"),
    ("<tool_call>[]</tool_call>", "a call is an object"),
    ("<tool_call></tool_call>", "not JSON"),
    ("<tool_call>", "not JSON"),
    ('I add: {"name": "add", "arguments": {}}', "write the call alone"),
    ('["x", {"tool" : "add"}]', "write the call alone"),
    ("[" + ", ".join(['{"tool": "now"}'] * (MAX_CALLS + 1)) + "]", "at most 16 calls"),
    ('<tool_call>{"tool": "now"}' * (MAX_CALLS + 1), "at most 16 calls"),
    ("x" * (MAX_TEXT + 1), "at most 100000 characters"),
    ('{"tool": "x", "args": {"a": ' + "[" * 50_000 + "]" * 49_000 + "}}", "nested more than 32 deep"),
    ('{"a":' * 15_000, "nested more than 32 deep"),
    ("<tool_call>" + "[" * 90_000, "nested more than 32 deep"),
    ('{"tool": "x", "args": {"\\"": ' + "[" * 40_000, "nested more than 32 deep"),
]


@pytest.mark.parametrize(("text", "why"), MALFORMED)
def test_malformed_calls_come_with_a_reason(text: str, why: str) -> None:
    read = JSON.read(text)
    assert isinstance(read, Malformed)
    assert why in read.reason
    assert len(read.reason) < 200
    assert read.reason.isprintable()


def test_nesting_is_bounded_not_the_number_of_brackets() -> None:
    deep: Any = 1
    for _ in range(MAX_DEPTH - 2):
        deep = [deep]
    assert JSON.read(JSON.write([Call("x", {"a": deep})])) == (Call("x", {"a": deep}),)
    assert isinstance(JSON.read(JSON.write([Call("x", {"a": [deep]})])), Malformed)
    wide = Call("x", {"a": [[]] * 5_000, "b": "[" * 5_000, "c": '\\"{' * 100})
    assert JSON.read(JSON.write([wide])) == (wide,)


UNITS = [
    '"',
    '\\"',
    '"\\',
    "[",
    "{",
    '{"a":',
    "<tool_call>",
    "</tool_call>",
    "`",
    "\n",
    "\\",
    '{"name":',
    "9",
    "\ud800",
]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("head", ["", "{", "<tool_call>", '{"', "```\n"])
def test_reading_is_linear_and_raises_for_nothing(head: str, unit: str) -> None:
    text = head + unit * ((MAX_TEXT - 20) // len(unit))
    start = time.process_time()
    assert not isinstance(JSON.read(text), tuple)
    assert time.process_time() - start < 1.0


@given(st.text(alphabet='{}[]":,\\ nametoolargs01eE+-.<>/_cl\n\ud800', max_size=200))
def test_no_text_raises(text: str) -> None:
    read = JSON.read(text)
    assert read is None or isinstance(read, tuple | Malformed)


@given(MADE, st.sampled_from([JSON, HERMES]))
def test_what_is_written_is_read_back(calls: list[Call], codec: Format) -> None:
    assert codec.read(codec.write(calls)) == tuple(calls)


@pytest.mark.parametrize("codec", [JSON, HERMES])
def test_tags_in_arguments_are_text(codec: Format) -> None:
    call = Call("<tool_call>", {"</tool_call>": "<tool_call>{}</tool_call>"})
    assert codec.read(codec.write([call, call])) == (call, call)
    assert JSON.read('{"tool": "say", "args": {"text": "<tool_call>"}}') == (Call("say", {"text": "<tool_call>"}),)


def test_the_two_forms_of_writing() -> None:
    assert JSON.write([ADD]) == '{"name": "add", "arguments": {"a": 1, "b": 2}}'
    assert JSON.write([ADD, ADD]).startswith('[{"name"')
    # as the chat template of Qwen2.5 does, words first, other alphabets as they are
    two = HERMES.write([Call("say", {"text": "é<b>"}), Call("now", {})], "I look.")
    assert two == (
        'I look.\n<tool_call>\n{"name": "say", "arguments": {"text": "é<b>"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
    )
    assert JSON.write([ADD], "I look.").startswith("I look.\n<tool_call>\n{")
    assert HERMES.write([ADD]) == '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'


@pytest.mark.parametrize("name", CODECS)
def test_what_is_taught_is_right(name: str) -> None:
    def add(a: int, b: float = 0.5, how: str = "", flag: bool = True, to: list[int] | None = None) -> float:
        """The sum
        of two."""
        return a + b

    tool = Tool.of(add)
    codec = CODECS[name]
    lines = codec.teach([tool]).splitlines()
    assert lines[1].startswith("- add(a: integer, b: number = 0.5, ")
    assert lines[1].endswith(": The sum of two.")
    example = codec.read(lines[-1].removeprefix("For example: "))
    assert isinstance(example, tuple)
    assert set(example[0].arguments) == {"a", "b", "how", "flag", "to"}


def test_words_and_calls_are_kept_apart() -> None:
    assert HERMES.split("I add. <tool_call>{}</tool_call> So.") == ("I add.", "<tool_call>{}</tool_call> So.")
    assert HERMES.split(" I add. ") == ("I add.", "")
    assert HERMES.split('```json\n{"name": "now"}\n```') == ("", '{"name": "now"}')
    assert HERMES.split('{"name": "<tool_call>"}') == ("", '{"name": "<tool_call>"}')


def test_every_codec_is_found_by_its_name() -> None:
    assert list(CODECS) == ["json", "hermes", "llama", "pythonic", "mistral", "mistral-v13", "openai"]
    assert all(codec.name == name for name, codec in CODECS.items())
    assert len(set(CODECS.values())) == len(CODECS)
