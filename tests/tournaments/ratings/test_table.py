"""Tables of any form say the same; whatever is wrong with one is said in a line, with the place."""

import io
import json
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from arena.tournaments.ratings.table import CELL, Table, read, read_bytes

pa, pq = import_module("pyarrow"), import_module("pyarrow.parquet")
HEADER = ["first", "second", "outcome"]
ROWS = [["ann", "bob", "first"], ["bob", "cat", "draw"], ["ann", "bob", "first"]]


def cells(table: Table) -> list[list[str]]:
    columns = [[column.values[code] for code in column.codes] for column in table.columns.values()]
    return [list(row) for row in zip(*columns, strict=True)]


def written(suffix: str, header: list[str] = HEADER, rows: list[list[str]] = ROWS) -> bytes:
    objects = [dict(zip(header, row, strict=True)) for row in rows]
    if suffix in (".jsonl", ".ndjson"):
        return "\n".join(map(json.dumps, objects)).encode()
    if suffix == ".json":
        return json.dumps(objects).encode()
    if suffix == ".parquet":
        out = io.BytesIO()
        pq.write_table(pa.table({name: [row[k] for row in rows] for k, name in enumerate(header)}), out)
        return out.getvalue()
    between = "\t" if suffix == ".tsv" else ","
    return "\n".join([between.join(row) for row in [header, *rows]]).encode()


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet"])
def test_all_forms_say_the_same(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"results{suffix.upper()}"
    path.write_bytes(written(suffix))
    table = read(path)
    assert list(table.columns) == HEADER
    assert cells(table) == ROWS
    assert cells(read_bytes(written(suffix))) == ROWS, "seen by how it begins"
    assert table.repeated().tolist() == [False, False, True]
    assert cells(table.keep(~table.repeated())) == ROWS[:2]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", "\r\n\r\n"])
@pytest.mark.parametrize("begin", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("last", [True, False])
def test_byte_order_marks_line_ends_and_blank_lines(begin: bytes, end: str, last: bool) -> None:
    text = end.join([",".join(row) for row in [HEADER, *ROWS]]) + end * last
    table = read_bytes(begin + text.encode(), ".csv")
    assert list(table.columns) == HEADER
    assert cells(table) == ROWS
    step = end.count("\n")
    assert table.lines.tolist() == [1 + step, 1 + 2 * step, 1 + 3 * step]


def test_quoted_cells_of_many_lines_keep_the_count() -> None:
    text = 'first,second\n"a\nb","c, ""d"""\nx,y\r\n"p\r\nq\rr",s\nlast,z\n'
    table = read_bytes(text.encode(), ".csv")
    assert cells(table) == [["a\nb", 'c, "d"'], ["x", "y"], ["p\r\nq\rr", "s"], ["last", "z"]]
    assert table.lines.tolist()[:3] == [2, 4, 5]


def test_values_of_json() -> None:
    table = read_bytes(b'[{"a": 1, "b": true, "c": null, "d": 0.5}]', ".json")
    assert cells(table) == [["1", "True", "", "0.5"]]
    assert cells(read_bytes(b'{"a": 1}\n\n{"a": "\\u00e9"}\n')) == [["1"], ["é"]]
    other = read_bytes(b'[{"a": 1, "b": 2}, {"b": 3, "a": 4}]', ".json")
    assert cells(other) == [["1", "2"], ["4", "3"]]


def test_numbers_and_gaps_in_parquet() -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"x": [1, 2, None], "y": [0.5, 1.0, 2.0], "z": [True, False, True]}), out)
    assert cells(read_bytes(out.getvalue())) == [["1", "0.5", "true"], ["2", "1", "false"], ["", "2", "true"]]


WRONG = [
    (".csv", b"", "the file is empty"),
    (".csv", b"\xef\xbb\xbf \n", "the file is empty"),
    (".csv", b"a,b\n", "there are no rows beneath the columns a, b"),
    (".csv", b"a,b\r\n\r\n\r\n", "there are no rows"),
    (".csv", b"a,b\n1,2\n1,2,3\n", "line 3: 3 cells, where the first line names 2 columns"),
    (".csv", b"a,b\n1,2\n\n\n1\n", "line 5: 1 cells"),
    (".csv", b"a,,b\n1,2,3\n", "line 1: column 2 has no name"),
    (".csv", b"\n\na, a\n1,2\n", "line 3: two columns are named 'a'"),
    (".csv", b"a,b\nok,fine\nx,\xff\n", "line 3: the file is not UTF-8"),
    (".csv", b'a,b\nx,"open\n', "line 2: unexpected end of data"),
    (".csv", b'a,b\n1,2\nx,"q"uote\n', "line 3: ',' expected after '\"'"),
    (".csv", b"a,b\n1,2\nx," + b"y" * 1_000_000 + b"\n", "line 3: a cell has over 131,072 characters"),
    (".json", b'[{"a": "' + b"y" * (CELL + 1) + b'"}]', "row 1: a cell has over 131,072 characters"),
    (".json", b"[", "this is not JSON"),
    (".json", b'{"a": 1}', "a table is a list of objects"),
    (".json", b"[[1, 2]]", "row 1: a row is a JSON object"),
    (".json", b"[]", "there are no rows"),
    (".json", b'[{"a": 1}, {"b": 1}]', "row 2: it has other names than the first row: a, b"),
    (".json", b'[{"a": 1}, {"a": [1]}]', "row 2: a: a cell is text, a number"),
    (".json", b"[" * 100_000, "this is not JSON"),
    (".json", b'[{"a": ' + b"9" * 5000 + b"}]", "this is not JSON"),
    (".jsonl", b'{"a": 1}\n\n{"a"}\n', "line 3: this is not JSON"),
    (".jsonl", b'{"a": 1}\n{"a": 1, "b": 2}\n', "line 2: it has other names than the first row: b"),
    (".parquet", b"PAR1 and nothing", "this is no Parquet table"),
    (".parquet", b"", "this is no Parquet table"),
]


@pytest.mark.parametrize(("suffix", "data", "said"), WRONG, ids=[f"{case[0]} {case[2][:30]}" for case in WRONG])
def test_what_is_wrong_is_said_in_one_line(suffix: str, data: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)) as error:
        read_bytes(data, suffix)
    assert len(str(error.value)) < 500
    assert "\n" not in str(error.value)


def test_nested_parquet_is_refused() -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"x": [[1], [2]]}), out)
    with pytest.raises(ValueError, match="no Parquet table of plain columns"):
        read_bytes(out.getvalue())


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a table ends in .csv, .tsv"):
        read(tmp_path / "results.xlsx")
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "results.csv")


def test_many_rows_in_many_chunks() -> None:
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 50, (30_001, 3))
    text = "a,b,c\n" + "\n".join([",".join(map(str, row)) for row in numbers.tolist()])
    table = read_bytes(text.encode(), ".csv")
    assert [int(cell) for row in cells(table) for cell in row] == numbers.ravel().tolist()
    assert table.lines.tolist() == list(range(2, 30_003))
    distinct = len({tuple(row) for row in numbers.tolist()})
    assert int((~table.repeated()).sum()) == distinct
    with pytest.raises(ValueError, match="line 30003: 1 cells"):
        read_bytes(f"{text}\n1\n".encode(), ".csv")


def test_rows_are_told_apart_where_their_cells_have_more_combinations_than_an_integer() -> None:
    rng = np.random.default_rng(1)
    rows = rng.permutation(np.tile(rng.integers(0, 10**6, (2000, 8)), (2, 1)))
    text = "\n".join([",".join("abcdefgh"), *[",".join(map(str, row)) for row in rows.tolist()]])
    seen: set[tuple[int, ...]] = set()
    expected = []
    for row in map(tuple, rows.tolist()):
        expected.append(row in seen)
        seen.add(row)
    assert read_bytes(text.encode(), ".csv").repeated().tolist() == expected
