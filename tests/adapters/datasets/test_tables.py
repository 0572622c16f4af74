"""Values of many shapes in one column of a table."""

import json
from typing import Any

import pytest

from arena.adapters.datasets.tables import table

pa = pytest.importorskip("pyarrow")

MESSAGES: list[list[dict[str, Any]]] = [
    [{"role": "user", "content": "é\n\u2028\"'"}, {"role": "assistant", "content": ""}],
    [{"role": "assistant", "tool_calls": [{"arguments": {"a": 1, "b": [None, 2.5]}}]}],
    [],
]


def values(column: Any) -> Any:
    """What stands in a column of JSON texts."""
    return [None if each is None else [json.loads(text) for text in each] for each in column.to_pylist()]


def test_json_comes_back_as_it_was_and_other_columns_as_they_are() -> None:
    schema = pa.schema([("messages", pa.list_(pa.json_())), ("n", pa.int32())])
    made = table([{"messages": each, "n": at} for at, each in enumerate(MESSAGES)], schema)
    assert made.schema == schema
    assert values(made["messages"]) == MESSAGES
    assert made["n"].to_pylist() == [0, 1, 2]


def test_what_a_row_has_not_is_null_and_rows_stay_as_they_are() -> None:
    schema = pa.schema([("messages", pa.list_(pa.json_())), ("info", pa.json_()), ("n", pa.int32())])
    rows: list[dict[str, Any]] = [{"n": 1}, {"messages": MESSAGES[0], "info": {"a": 1}}]
    made = table(rows, schema)
    assert values(made["messages"]) == [None, MESSAGES[0]]
    assert made["info"].to_pylist() == [None, '{"a":1}']
    assert made["n"].to_pylist() == [1, None]
    assert rows == [{"n": 1}, {"messages": MESSAGES[0], "info": {"a": 1}}]


def test_json_within_structs_is_packed_too() -> None:
    schema = pa.schema([("turn", pa.struct([("legal", pa.list_(pa.json_())), ("ply", pa.int32())]))])
    made = table([{"turn": {"legal": [1, "x"], "ply": 3}}, {"turn": None}], schema)
    assert made["turn"].to_pylist() == [{"legal": ["1", '"x"'], "ply": 3}, None]


def test_no_rows_and_no_json() -> None:
    plain = pa.schema([("n", pa.int32())])
    assert table([], plain).num_rows == 0
    assert table([{"n": 4}], plain)["n"].to_pylist() == [4]
    with pytest.raises(pa.ArrowInvalid):
        table([{"n": "x"}], plain)
