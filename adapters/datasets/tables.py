"""Tables: rows as Arrow tables, with columns for values of many shapes.

A field of type `pa.json_()` holds any JSON value, as text. `datasets` (4.7 and later) loads it as the value it was, so
that a message has the keys it had: with plain structs every message gets every key, None where it had none, and
templates that ask for `'tool_calls' in message` (Llama 3.1) take them all for calls.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from arena.adapters.datasets.format import Row

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["table"]


def table(rows: Sequence[Row], schema: "pa.Schema") -> "pa.Table":
    """The rows as a table of this schema; a column that a row has not is null there.

    Raises pyarrow's ArrowInvalid or ArrowTypeError for a value that is not of its column's type.
    """
    import pyarrow as pa

    packs = {field.name: pack for field in schema if (pack := _pack(field.type)) is not None}
    if not packs:
        return pa.Table.from_pylist(list(rows), schema=schema)
    packed = [row | {name: pack(row.get(name)) for name, pack in packs.items()} for row in rows]
    plain = pa.schema([pa.field(field.name, _plain(field.type), field.nullable) for field in schema])
    return pa.Table.from_pylist(packed, schema=plain).cast(schema)


def _plain(kind: "pa.DataType") -> "pa.DataType":
    """The type with texts where it has JSON."""
    import pyarrow as pa

    if isinstance(kind, pa.JsonType):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type), field.nullable) for field in kind])
    return kind


def _pack(kind: "pa.DataType") -> Callable[[Any], Any] | None:
    """What writes the JSON in a value of this type as text; None: there is none in it."""
    import pyarrow as pa

    if isinstance(kind, pa.JsonType):
        return _text
    if pa.types.is_list(kind):
        each = _pack(kind.value_type)
        return None if each is None else lambda value: None if value is None else [each(item) for item in value]
    if pa.types.is_struct(kind):
        packs = {field.name: pack for field in kind if (pack := _pack(field.type)) is not None}
        if packs:
            return lambda value: (
                None if value is None else value | {name: pack(value.get(name)) for name, pack in packs.items()}
            )
    return None


def _text(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()
