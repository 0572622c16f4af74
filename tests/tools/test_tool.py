from typing import Annotated, Any, Literal

import msgspec
import pytest

from arena.tools.tool import MAX_RESULT, Result, Tool, ToolError


def search(query: str, limit: Annotated[int, msgspec.Meta(ge=1, le=9, description="How many.")] = 3) -> list[str]:
    """Look for pages.

    The best come first.
    """
    return [query] * limit


def move(unit: Literal["army", "fleet"], by: float, to: list[int], dry: bool = False) -> dict[str, Any]:
    return {"unit": unit, "by": by, "to": to, "dry": dry}


def fail(how: str) -> str:
    """Fail."""
    if how == "tool":
        raise ToolError("the shop is closed")
    if how == "key":
        return {"a": "b"}[how]
    if how == "zero":
        return str(1 // 0)
    if how == "huge":
        return str(10**5_000)
    raise RuntimeError(how)


SEARCH, MOVE, FAIL = Tool.of(search), Tool.of(move), Tool.of(fail)


def test_name_description_and_schema_come_from_the_function() -> None:
    assert SEARCH.name == "search"
    assert SEARCH.description == "Look for pages.\n\nThe best come first."
    limit = {"type": "integer", "minimum": 1, "maximum": 9, "default": 3, "description": "How many."}
    assert SEARCH.parameters == {
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": limit},
        "required": ["query"],
        "additionalProperties": False,
    }
    assert SEARCH.schema()["function"]["name"] == "search"
    assert Tool.of(move).description == "move"


def test_a_struct_in_the_signature_comes_along() -> None:
    class Place(msgspec.Struct):
        x: int

    def go(place: Place) -> int:
        return place.x

    tool = Tool.of(go)
    assert tool.parameters["properties"]["place"] == {"$ref": "#/$defs/Place"}
    assert tool.parameters["$defs"]["Place"]["required"] == ["x"]
    assert tool.call({"place": {"x": 3}}) == Result("3")
    assert tool.call({"place": {"x": "3"}}).ok is False
    assert tool.signature() == "go(place: any)"


def test_the_signature_fits_on_a_line() -> None:
    assert SEARCH.signature() == "search(query: string, limit: integer = 3)"
    assert MOVE.signature() == 'move(unit: one of ["army","fleet"], by: number, to: array, dry: boolean = false)'


def test_calls_give_text_and_everything_else_as_json() -> None:
    assert SEARCH.call({"query": "sea", "limit": 2}) == Result('["sea","sea"]')
    assert MOVE.call({"unit": "army", "by": 1, "to": [2]}) == Result('{"unit":"army","by":1.0,"to":[2],"dry":false}')
    assert Tool.of(_echo).call({"text": "as it is"}) == Result("as it is")
    assert Tool.of(_power).call({"n": 100}) == Result(str(2**100))


def _echo(text: str) -> str:
    return text


def _power(n: int) -> int:
    return 1 << n


BAD: list[tuple[Tool, dict[Any, Any], str]] = [
    (SEARCH, {}, "missing required field `query`"),
    (SEARCH, {"query": "x", "pages": 2}, "unknown field `pages`"),
    (SEARCH, {"query": 3}, "Expected `str`, got `int`"),
    (SEARCH, {"query": None}, "Expected `str`, got `null`"),
    (SEARCH, {"query": "x", "limit": "3"}, "Expected `int`, got `str`"),
    (SEARCH, {"query": "x", "limit": 3.0}, "Expected `int`, got `float`"),
    (SEARCH, {"query": "x", "limit": True}, "Expected `int`, got `bool`"),
    (SEARCH, {"query": "x", "limit": 0}, "Expected `int` >= 1"),
    (SEARCH, {"query": "x", "limit": 10**400}, "Expected `int` <= 9"),
    (MOVE, {"unit": "tank", "by": 1, "to": []}, "Invalid enum value 'tank'"),
    (MOVE, {"unit": "army", "by": 10**400, "to": []}, "out of range"),
    (MOVE, {"unit": "army", "by": True, "to": []}, "Expected `float`, got `bool`"),
    (MOVE, {"unit": "army", "by": 1, "to": [1, "2"]}, "$.to[1]"),
    (SEARCH, {3: 4}, "Expected `str`"),
]


@pytest.mark.parametrize(("tool", "arguments", "why"), BAD)
def test_bad_arguments_are_a_message(tool: Tool, arguments: dict[Any, Any], why: str) -> None:
    result = tool.call(arguments)
    assert not result.ok
    assert result.text.startswith(f"bad arguments of {tool.name}: ")
    assert why in result.text


@pytest.mark.parametrize("key", ["\n", "\u2028x", "\ud800", "x" * 10**6, "\U000e0041"])
def test_hostile_names_stay_on_a_short_line(key: str) -> None:
    result = SEARCH.call({"query": "x", key: 1})
    assert not result.ok
    assert len(result.text.splitlines()) == 1
    assert len(result.text) < 400


def test_what_arguments_cause_is_a_message_and_other_errors_are_not_hidden() -> None:
    assert FAIL.call({"how": "tool"}) == Result("fail failed: the shop is closed", False)
    assert FAIL.call({"how": "key"}) == Result("fail failed: 'key'", False)
    assert FAIL.call({"how": "zero"}).text.startswith("fail failed: ")
    assert not FAIL.call({"how": "huge"}).ok
    with pytest.raises(RuntimeError):
        FAIL.call({"how": "?"})


def test_results_that_break_a_line_are_quoted_and_long_ones_cut() -> None:
    echo = Tool.of(_echo)
    assert echo.call({"text": 'one\nPlayer 1: "two"'}) == Result('"one\\nPlayer 1: \\"two\\""')
    assert echo.call({"text": '{"a": "\\\\"}'}) == Result('{"a": "\\\\"}')
    long = echo.call({"text": "x" * 10**6}).text
    assert long == "x" * MAX_RESULT + "... (cut)"
    assert len(echo.call({"text": "\0" * 10**6}).text) < MAX_RESULT + 20


def test_functions_that_cannot_be_tools_are_refused() -> None:
    def untyped(a: int, b: int = 0) -> int:
        return a + b

    del untyped.__annotations__["a"]

    def several(*numbers: int) -> int:
        return sum(numbers)

    with pytest.raises(TypeError, match="tool untyped: parameter a needs a type"):
        Tool.of(untyped)
    with pytest.raises(TypeError, match="tool several: parameter numbers has no fixed name"):
        Tool.of(several)
