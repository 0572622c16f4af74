"""The Python list of calls: read as Python itself does, as far as literals go."""

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.tools.call import MAX_CALLS, Call, Malformed
from arena.tools.codec import CODECS
from tests.tools.strategies import MADE, VALUES, is_malformed, takes_linear_time

PYTHONIC = CODECS["pythonic"]


def weather(city: str) -> Call:
    return Call("get_weather", {"city": city, "metric": "celsius"})


READ: list[tuple[str, str, tuple[Call, ...]]] = [
    # Meta's llama-models/models/llama3_2/text_prompt_format.md
    (
        "[get_weather(city='San Francisco', metric='celsius'), get_weather(city='Seattle', metric='celsius')]",
        "",
        (weather("San Francisco"), weather("Seattle")),
    ),
    (
        "[get_user_info(user_id=7890, special='black')]<|eot_id|>",
        "",
        (Call("get_user_info", {"user_id": 7890, "special": "black"}),),
    ),
    ('<|python_tag|>[get_weather(city="San Francisco", metric="celsius")]<|eot_id|>', "", (weather("San Francisco"),)),
    # vLLM tests/entrypoints/openai/tool_parsers/test_pythonic_tool_parser.py
    (
        (
            "[register_user(name='John Doe', age=37, address={'city': 'San Francisco', 'state': 'CA'}, role=None, "
            "passed_test=True, aliases=['John', 'Johnny'])]"
        ),
        "",
        (
            Call(
                "register_user",
                {
                    "name": "John Doe",
                    "age": 37,
                    "address": {"city": "San Francisco", "state": "CA"},
                    "role": None,
                    "passed_test": True,
                    "aliases": ["John", "Johnny"],
                },
            ),
        ),
    ),
    ("[do_something_cool(additional_data={})]", "", (Call("do_something_cool", {"additional_data": {}}),)),
    (
        r"""[get_weather(city='Martha\'s Vineyard', metric='\"cool units\"')]""",
        "",
        (Call("get_weather", {"city": "Martha's Vineyard", "metric": '"cool units"'}),),
    ),
    ("<|python_start|>[now()]<|python_end|>", "", (Call("now", {}),)),
    ("I look. <|python_tag|>[now()]", "I look.", (Call("now", {}),)),
    ("[ now ( ) , ]", "", (Call("now", {}),)),
    ("[f(a=-1, b=+2, c=.5, d=1e3, e=2.)]", "", (Call("f", {"a": -1, "b": 2, "c": 0.5, "d": 1e3, "e": 2.0}),)),
    (
        "[f(a=true, b=null, c=(1, 'x'), d=(3), e=(), g=(3,))]",
        "",
        (Call("f", {"a": True, "b": None, "c": [1, "x"], "d": 3, "e": [], "g": [3]}),),
    ),
    (r"[f(a='\x41\u00e9\U0001F600\101\n\q\ud800')]", "", (Call("f", {"a": "Aé😀A\n\\q�"}),)),
    ("[f(a='<|python_tag|>[x()]<|python_end|>')]", "", (Call("f", {"a": "<|python_tag|>[x()]<|python_end|>"}),)),
]


@pytest.mark.parametrize(("text", "content", "calls"), READ)
def test_calls_are_read(text: str, content: str, calls: tuple[Call, ...]) -> None:
    assert PYTHONIC.read(text) == calls
    assert PYTHONIC.split(text)[0] == content


@given(VALUES)
def test_a_literal_is_what_python_says_it_is(value: Any) -> None:
    text = f"[f(x={value!r})]"
    parsed = ast.parse(text, mode="eval").body
    assert isinstance(parsed, ast.List)
    call = parsed.elts[0]
    assert isinstance(call, ast.Call)
    assert PYTHONIC.read(text) == (Call("f", {"x": ast.literal_eval(call.keywords[0].value)}),)


@pytest.mark.filterwarnings("ignore:invalid escape sequence", "ignore:.*is not callable")
@given(st.text(alphabet="[](){}'\",:=fx \\1.e-+*n\n", max_size=12))
def test_what_python_takes_for_another_literal_is_never_read(inner: str) -> None:
    """Whatever is read is a literal of Python with the same value."""
    read = PYTHONIC.read(f"[f(x={inner})]")
    if isinstance(read, tuple) and len(read) == 1 and read[0].arguments.keys() == {"x"} and "\n" not in inner:
        meant = inner.strip().removesuffix(",").strip()  # a comma after the last argument
        if not meant.lstrip("+-").startswith("0"):  # we read 007, Python does not
            assert _plain(ast.literal_eval(meant)) == read[0].arguments["x"]


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return {key: _plain(each) for key, each in value.items()} if isinstance(value, dict) else value


def test_calls_are_written_as_meta_prints_them() -> None:
    calls = [weather("San Francisco"), Call("f", {"a": None, "b": [True, 0.5], "c": {"x": "it's"}})]
    written = """[get_weather(city='San Francisco', metric='celsius'), f(a=None, b=[True, 0.5], c={'x': "it's"})]"""
    assert PYTHONIC.write(calls) == written
    assert PYTHONIC.write([Call("now", {})], "I look.") == "I look.<|python_tag|>[now()]"
    assert PYTHONIC.write([Call("a b", {"c d": 1})]) == "<|python_tag|>['a b'(**{'c d': 1})]"


@given(MADE)
def test_what_is_written_is_read_back(calls: list[Call]) -> None:
    for content in ("", "I think {so}: [1]."):
        text = PYTHONIC.write(calls, content)
        assert PYTHONIC.read(text) == tuple(calls)
        assert PYTHONIC.split(text)[0] == content


ANSWERS = [
    "",
    "42",
    "[1, 2]",
    "['a', 'b']",
    "[]",
    "f(x)",
    "the interval [f(a), f(b)]",
    "{x: 1}",
    "[1](http://x)",
    "\ud800",
]


@pytest.mark.parametrize("text", [*ANSWERS, "[" * 1000, "[x]" * 1000])
def test_text_without_a_call_is_no_call(text: str) -> None:
    assert PYTHONIC.read(text) is None
    assert PYTHONIC.split(text) == (text.strip(), "")


MALFORMED = [
    ("[f(1)]", "every argument needs its name"),
    ("[f(x for x in y)]", "every argument needs its name"),
    ("[f(a=x)]", "a literal value"),
    ("[f(a=__import__('os').system('ls'))]", "no Python literal"),
    ("[f(a=exit())]", "a literal value"),
    ("[f(a=1+1)]", "a comma or )"),
    ("[f(a=1 b=2)]", "a comma or )"),
    ("[f(a='x' 'y')]", "a comma or )"),
    ("[f(a=b'x')]", "a literal value"),
    ("[f(a={1, 2})]", "keys of a dict are texts"),
    ("[f(a={1: 2})]", "keys of a dict are texts"),
    ("[f(a={'x': 1 'y': 2})]", "a comma or }"),
    ("[f(a=[1 2])]", "a comma or ]"),
    ("[f(a=1, a=2)]", "twice"),
    ("[f(a={'x': 1, 'x': 2})]", "twice"),
    ("[f(a=1, **{'a': 2})]", "twice"),
    ("[f(**3)]", "{ after **"),
    ("[f(a=1), g(", "every argument needs its name"),
    ("[f(a=1", "at the end, there should be a comma or )"),
    ("[f(a=1)", "at the end, there should be a comma or ]"),
    ("[f(a=", "at the end, there should be a literal value"),
    ("[f(a='Martha's Vineyard')]", "a quote is not closed"),
    ("[f(a=1)] Good?", "no Python literal"),
    ("[f(a=1)] thanks", "nothing may follow"),
    ("[f(a=1), 3]", "a call is a name"),
    ("[f(a=lambda: 0)]", "a literal value"),
    ("[f.g(a=1)] <|python_tag|>x", "it is a list of calls"),
    ("<|python_tag|>[]", "the list is empty"),
    ("<|python_tag|>print(1)", "it is a list of calls"),
    ("<|python_tag|>", "it is a list of calls"),
    ("I call [add(a=1)] now", "write the list of calls alone"),
    ("So: [now()]", "write the list of calls alone"),
    (r"[f(a='\U00110000')]", "no such character"),
    (f"[f(a={'9' * 401})]", "400 digits"),
    ("[f(a=1e999)]", "too large"),
    ("[f(a=nan)]", "a literal value"),
    (f"[{', '.join(['now()'] * (MAX_CALLS + 1))}]", "at most 16 calls"),
    (f"[f(a={'[' * 1000})]", "nested more than 32 deep"),
    (f"[f(a={'(' * 40_000}", "nested more than 32 deep"),
    ("[f(a=" + "{'x':" * 10_000, "nested more than 32 deep"),
    ("[f(a='" + "x" * 1_000_000, "at most 100000 characters"),
]


@pytest.mark.parametrize(("text", "why"), MALFORMED)
def test_malformed_calls_come_with_a_reason(text: str, why: str) -> None:
    is_malformed(PYTHONIC, text, why)


def test_nesting_is_bounded_as_in_json() -> None:
    deep: Any = 1
    for _ in range(30):
        deep = [deep]
    assert PYTHONIC.read(PYTHONIC.write([Call("x", {"a": deep})])) == (Call("x", {"a": deep}),)
    assert isinstance(PYTHONIC.read(PYTHONIC.write([Call("x", {"a": [deep]})])), Malformed)


@pytest.mark.parametrize(
    "unit", ["[f(", "(", "'", "\\'", " ", "x", "9", "f(a=1),", "[x(a", "**", "1e", "\n", "<|python_tag|>"]
)
@pytest.mark.parametrize("head", ["", "[f(", "[f(a=", "[f(a='", "[", "<|python_tag|>["])
def test_reading_is_linear(head: str, unit: str) -> None:
    takes_linear_time(PYTHONIC, head, unit)
