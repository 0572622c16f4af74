"""The forms of Llama 3.1 and Mistral: published examples, and what is no such call."""

import pytest
from hypothesis import given

from arena.tools.call import MAX_CALLS, MAX_TEXT, Call
from arena.tools.codec import CODECS
from tests.tools.strategies import MADE, SCRAPS, is_malformed, takes_linear_time

LLAMA, MISTRAL, COMPACT = CODECS["llama"], CODECS["mistral"], CODECS["mistral-v13"]
ADD, NOW = Call("add", {"a": 3.5, "b": 4}), Call("now", {})
WEATHER = Call("get_current_weather", {"city": "San Francisco", "state": "CA", "unit": "celsius"})

LLAMAS: list[tuple[str, str, tuple[Call, ...]]] = [
    # as the chat template of Llama 3.1 writes a call (vLLM examples/tool_chat_template_llama3.1_json.jinja)
    ('{"name": "add", "parameters": {"a": 3.5, "b": 4}}', "", (ADD,)),
    # as SGLang's and vLLM's parsers take them: `arguments`, a tag, several with ; between
    ('<|python_tag|>{"name":"add", "arguments":{"a": 3.5, "b": 4}}', "", (ADD,)),
    ('{"name": "now"};{"name": "add", "parameters": {"a": 3.5, "b": 4}}', "", (NOW, ADD)),
    ('{"name": "now"} ; \n{"name": "now"};', "", (NOW, NOW)),
    # as the template of Llama 4 writes several
    ('{"name": "now", "parameters": {}}{"name": "now", "parameters": {}}', "", (NOW, NOW)),
    # Llama 3.2 on Bedrock: the type comes along
    ('<|python_tag|>{"type":"function","name":"now","parameters":{}}', "", (NOW,)),
    ('Let me see. <|python_tag|>{"name": "now"}<|eom_id|>', "Let me see.", (NOW,)),
    ('{"name": "now"}<|eot_id|>', "", (NOW,)),
    ('{"name": "say", "parameters": {"x": "; {<|python_tag|>"}}', "", (Call("say", {"x": "; {<|python_tag|>"}),)),
]
MISTRALS: list[tuple[str, str, tuple[Call, ...]]] = [
    # vLLM tests/tool_use/test_mistral_tool_parser.py
    ('[TOOL_CALLS][{"name": "add", "arguments":{"a": 3.5, "b": 4}}]', "", (ADD,)),
    (
        (
            '[TOOL_CALLS] [{"name": "get_current_weather", "arguments":{"city": "San Francisco", "state": "CA", '
            '"unit": "celsius"}}]'
        ),
        "",
        (WEATHER,),
    ),
    (
        '[TOOL_CALLS] [{"arguments":{"name": "John Doe"}, "name": "get_age"}]',
        "",
        (Call("get_age", {"name": "John Doe"}),),
    ),
    ('[TOOL_CALLS]  [ {"name":"add" , "arguments" : {"a": 3.5, "b": 4} } ]', "", (ADD,)),
    ('[TOOL_CALLS]add{"a": 3.5, "b": 4}', "", (ADD,)),
    # mistral_common, InstructTokenizerV3 (ids in the list), V11 (id by its own token), V13
    ('[TOOL_CALLS] [{"name": "now", "arguments": {}, "id": "VvvODy9mT"}]</s>', "", (NOW,)),
    ('[TOOL_CALLS]now[CALL_ID]VvvODy9mT[ARGS]{}[TOOL_CALLS]add[ARGS]{"a": 3.5, "b": 4}', "", (NOW, ADD)),
    ('I shall add.[TOOL_CALLS]add[ARGS]{"a": 3.5, "b": 4}', "I shall add.", (ADD,)),
    # the server left special tokens out
    (' [{"name": "now", "arguments": {}}, {"name": "now"}]', "", (NOW, NOW)),
    ('[TOOL_CALLS] [{"name": "now"}]\n[TOOL_CALLS] [{"name": "now"}]', "", (NOW, NOW)),
    ('[TOOL_CALLS]say[ARGS]{"x": "[TOOL_CALLS]"}', "", (Call("say", {"x": "[TOOL_CALLS]"}),)),
]


@pytest.mark.parametrize(("text", "content", "calls"), LLAMAS)
def test_calls_of_llama_are_read(text: str, content: str, calls: tuple[Call, ...]) -> None:
    assert LLAMA.read(text) == calls
    assert LLAMA.split(text)[0] == content


@pytest.mark.parametrize(("text", "content", "calls"), MISTRALS)
@pytest.mark.parametrize("name", ["mistral", "mistral-v13"])
def test_calls_of_mistral_are_read(name: str, text: str, content: str, calls: tuple[Call, ...]) -> None:
    assert CODECS[name].read(text) == calls
    assert CODECS[name].split(text)[0] == content


def test_calls_are_written_as_the_templates_do() -> None:
    say = Call("say", {"text": "é <b>'\n"})
    assert LLAMA.write([say]) == '{"name": "say", "parameters": {"text": "é <b>\'\\n"}}'
    assert LLAMA.write([NOW, NOW]) == '{"name": "now", "parameters": {}};{"name": "now", "parameters": {}}'
    assert LLAMA.write([NOW], "I look.") == 'I look.<|python_tag|>{"name": "now", "parameters": {}}'
    listed = '[TOOL_CALLS] [{"name": "say", "arguments": {"text": "é <b>\'\\n"}}, {"name": "now", "arguments": {}}]'
    assert MISTRAL.write([say, NOW]) == listed
    assert COMPACT.write([say, NOW]) == '[TOOL_CALLS]say[ARGS]{"text": "é <b>\'\\n"}[TOOL_CALLS]now[ARGS]{}'
    assert COMPACT.write([NOW], "I look.") == "I look.[TOOL_CALLS]now[ARGS]{}"
    assert COMPACT.write([Call("x{", {})]) == '[TOOL_CALLS] [{"name": "x{", "arguments": {}}]'


@given(MADE)
def test_what_is_written_is_read_back(calls: list[Call]) -> None:
    for codec in (LLAMA, MISTRAL, COMPACT):
        for content in ("", "I think {so}: [1]."):
            text = codec.write(calls, content)
            assert codec.read(text) == tuple(calls)
            assert codec.split(text)[0] == content


ANSWERS = [
    "",
    "42",
    "The answer is 42.",
    "x {1, 2}",
    "[1, 2]",
    "[TOOL CALLS]",
    "name: add",
    '"name": "x"',
    "\ud800",
    "[]",
]


@pytest.mark.parametrize("text", [*ANSWERS, "[" * 1000, 'She said "{x}; {y}".', "f[x]{y}"])
@pytest.mark.parametrize("name", ["llama", "mistral", "mistral-v13"])
def test_text_without_a_call_is_no_call(name: str, text: str) -> None:
    assert CODECS[name].read(text) is None
    assert CODECS[name].split(text) == (text.strip(), "")


BAD_LLAMAS = [
    ("{", "not JSON"),
    ("{}", 'keys "name" and "parameters"'),
    ('{"name": "add", "parameters": {"a": 1', "not JSON"),
    ("{'name': 'add', 'parameters': {}}", "not JSON"),
    ('{"name": "now"} and then', "not JSON"),
    ('{"name": "now"};;{"name": "now"}', "not JSON"),
    ('{"name": "now"},{"name": "now"}', "not JSON"),
    ('{"name": "x", "parameters": {}, "arguments": {}}', 'keys "name" and "parameters"'),
    ('{"name": "x", "parameters": {}, "id": 3}', 'keys "name" and "parameters"'),
    ('{"name": "x", "type": "tool"}', '"type" can only be "function"'),
    ('{"name": 3}', '"name" must be the name of a tool'),
    ('{"name": "x", "parameters": "{}"}', '"parameters" must be an object'),
    ('{"name": "x", "parameters": {"a": 1, "a": 2}}', "twice"),
    ('{"name": "x", "parameters": {"a": NaN}}', "NaN"),
    ('<|python_tag|>brave_search.call(query="x")', "after <|python_tag|> comes a call"),
    ("<|python_tag|>", "after <|python_tag|> comes a call"),
    ('I add: {"name": "add", "parameters": {}}', "write the call alone"),
    ('[{"name": "add", "parameters": {}}]', "write the call alone"),
    (";".join(['{"name": "now"}'] * (MAX_CALLS + 1)), "at most 16 calls"),
    ('{"name": "x", "parameters": ' + '{"a":' * 1000, "nested more than 32 deep"),
    ('{"name": "x", "parameters": {"a": "' + "x" * 1_000_000, "at most 100000 characters"),
]
BAD_MISTRALS = [
    ("[TOOL_CALLS]", "after [TOOL_CALLS] comes"),
    ("[TOOL_CALLS] []", "after [TOOL_CALLS] comes"),
    ("[TOOL_CALLS] [", "not JSON"),
    ("[TOOL_CALLS] [{]", "not JSON"),
    ('[TOOL_CALLS] [{"name": }]', "not JSON"),
    ("[TOOL_CALLS] {}", "after [TOOL_CALLS] comes"),
    ('[TOOL_CALLS] [{"name": "add", "arguments": {"a": 1', "not JSON"),
    ('[TOOL_CALLS] [{"name": "now"}] Good?', "no more words"),
    ('[TOOL_CALLS] [{"name": "now"}][{"name": "now"}]', "no more words"),
    ('[TOOL_CALLS]add[ARGS]{"a": 1', "not JSON"),
    ("[TOOL_CALLS]add[ARGS]", "after [TOOL_CALLS] comes"),
    ("[TOOL_CALLS]add[ARGS][1]", "after [TOOL_CALLS] comes"),
    ("[TOOL_CALLS]two words[ARGS]{}", "after [TOOL_CALLS] comes"),
    ('[TOOL_CALLS]na"me{"a": ' + "[" * 50_000, "after [TOOL_CALLS] comes"),
    ("add[ARGS]{}", "at the end, after [TOOL_CALLS]"),
    ('{"name": "add", "arguments": {}}', "at the end, after [TOOL_CALLS]"),
    ('[TOOL_CALLS] [{"name": "x", "arguments": "{}"}]', '"arguments" must be an object'),
    ('[TOOL_CALLS] [{"name": "x", "parameters": {}}]', 'keys "name" and "arguments"'),
    ("[TOOL_CALLS] [3]", "a call is an object"),
    ('[TOOL_CALLS]x[ARGS]{"a": 1, "a": 2}', "twice"),
    ("[TOOL_CALLS]x{}" * (MAX_CALLS + 1), "at most 16 calls"),
    ("[TOOL_CALLS]x[ARGS]" + '{"a":' * 1000, "nested more than 32 deep"),
    ("[TOOL_CALLS] [" + "x" * 1_000_000, "at most 100000 characters"),
]


@pytest.mark.parametrize(("text", "why"), BAD_LLAMAS)
def test_malformed_calls_of_llama_come_with_a_reason(text: str, why: str) -> None:
    is_malformed(LLAMA, text, why)


@pytest.mark.parametrize(("text", "why"), BAD_MISTRALS)
@pytest.mark.parametrize("name", ["mistral", "mistral-v13"])
def test_malformed_calls_of_mistral_come_with_a_reason(name: str, text: str, why: str) -> None:
    is_malformed(CODECS[name], text, why)


def test_a_text_of_the_largest_size_is_still_a_call() -> None:
    room = MAX_TEXT - len(COMPACT.write([Call("x", {"a": ""})]))
    call = Call("x", {"a": "y" * room})
    assert COMPACT.read(COMPACT.write([call])) == (call,)


@pytest.mark.parametrize(
    "unit", ['{"name":', "{", "[", '"', '\\"', " ", "[TOOL_CALLS]", "[ARGS]{", "x", "1;", "{} ", "\ud800"]
)
@pytest.mark.parametrize(
    "head", ["", "{", "<|python_tag|>", "[TOOL_CALLS]", "[TOOL_CALLS]x[CALL_ID]", '{"name": "x"};{']
)
def test_reading_is_linear(head: str, unit: str) -> None:
    takes_linear_time(LLAMA, head, unit)
    takes_linear_time(MISTRAL, head, unit)


@given(SCRAPS)
def test_no_text_raises(text: str) -> None:
    for codec in CODECS.values():
        codec.read(text)
        codec.split(text)
