"""Tables of results from files: CSV, TSV, JSON, JSON lines and Parquet, read into columns of numbered values.

What a table's columns mean is told in `arena.tournaments.ratings.columns`. Whatever is wrong with a file is a
ValueError of one line, with the line of the file.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

__all__ = ["SUFFIXES", "Column", "Table", "read", "read_bytes"]

Ints = NDArray[np.int64]

SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")
CELL = 131_072
"""Characters that a cell may have."""
_CHUNK = 4000  # rows read at once: few, so that their memory is used again
_SHOWN = 40  # characters of a cell that an error shows
_MOST_KEYS = 2**62  # of rows, that one integer can tell apart


class Column(NamedTuple):
    """A column: its distinct texts, and which of them each row has."""

    values: tuple[str, ...]
    codes: Ints


class Table(NamedTuple):
    """A table of texts."""

    columns: dict[str, Column]
    lines: Ints
    """The line of the file where each row begins (of JSON and Parquet: the number of the row), from 1."""
    unit: str = "line"

    def wrong(self, row: int, said: str) -> NoReturn:
        """Say it of a row."""
        raise ValueError(f"{self.unit} {self.lines[row]}: {said}")

    def keep(self, rows: NDArray[np.bool_]) -> "Table":
        """Some of the rows."""
        columns = {name: column._replace(codes=column.codes[rows]) for name, column in self.columns.items()}
        return self._replace(columns=columns, lines=self.lines[rows])

    def repeated(self) -> NDArray[np.bool_]:
        """The rows that equal an earlier one in every column."""
        key, size = np.zeros(len(self.lines), dtype=np.int64), 1
        for column in self.columns.values():
            if size * len(column.values) >= _MOST_KEYS:
                used, key = np.unique(key, return_inverse=True)
                size = len(used)
            key, size = key * len(column.values) + column.codes, size * len(column.values)
        ordered = np.sort(key)  # which nearly always tells that there are none, in a tenth of the time of the rest
        if not (ordered[1:] == ordered[:-1]).any():
            return np.zeros(len(key), dtype=np.bool_)
        seen = np.ones(len(key), dtype=np.bool_)
        seen[np.unique(key, return_index=True)[1]] = False
        return seen


def read(path: Path) -> Table:
    """The table in a file, by its suffix. Raises ValueError, and OSError as opening does."""
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{path.name}: a table ends in {', '.join(SUFFIXES)}")
    return read_bytes(path.read_bytes(), path.suffix.lower())


def read_bytes(data: bytes, suffix: str = "") -> Table:
    """The table in these bytes; without a suffix its kind is seen by how it begins."""
    if suffix == ".parquet" or (not suffix and data.startswith(b"PAR1")):
        return _checked(_parquet(data))
    text = _decoded(data)
    begin = text.lstrip()[:1]
    if suffix == ".json" or (not suffix and begin == "["):
        return _checked(_json(text))
    if suffix in (".jsonl", ".ndjson") or (not suffix and begin == "{"):
        return _checked(_objects(_lines(text), "line"))
    if not begin:
        raise ValueError("the file is empty: the first line names the columns")
    return _checked(_csv(text, "\t" if suffix == ".tsv" or (not suffix and "\t" in text.partition("\n")[0]) else ","))


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line}: the file is not UTF-8") from None


def _checked(table: Table) -> Table:
    if not len(table.lines):
        raise ValueError(f"there are no rows beneath the columns {_few(table.columns)}")
    return table


def _few(names: Iterable[str]) -> str:
    listed = [_short(name) for name in names]
    return ", ".join(listed[:20]) + (", ..." if len(listed) > 20 else "")


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


class _Numbers(dict[str, int]):
    """Numbers for texts in the order that they come."""

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self)
        return number


class _Columns:
    """Columns that grow by rows."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.numbers = [_Numbers() for _ in names]
        self.codes: list[list[Ints]] = [[] for _ in names]
        self.lines: list[Ints] = []

    def add(self, rows: Sequence[Sequence[str]], lines: Ints) -> None:
        if not rows:
            return
        self.lines.append(lines)
        for numbers, codes, cells in zip(self.numbers, self.codes, zip(*rows, strict=True), strict=True):
            codes.append(np.fromiter(map(numbers.__getitem__, cells), np.int64, len(cells)))

    def table(self, unit: str) -> Table:
        nothing = [np.zeros(0, dtype=np.int64)]
        columns = {
            name: Column(tuple(numbers), np.concatenate(codes or nothing))
            for name, numbers, codes in zip(self.names, self.numbers, self.codes, strict=True)
        }
        return Table(columns, np.concatenate(self.lines or nothing), unit)


def _csv(text: str, delimiter: str) -> Table:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        names = next((row for row in reader if row), [])
        columns = _Columns(_named(names, reader.line_num))
        while True:
            line = reader.line_num + 1
            rows = list(islice(reader, _CHUNK))
            if not rows:
                return columns.table("line")
            lines = _begins(rows, line, reader.line_num)
            filled = [bool(row) for row in rows]
            if not all(filled):  # blank lines
                rows, lines = [row for row in rows if row], lines[filled]
            _even(rows, lines, len(names))
            columns.add(rows, lines)
    except csv.Error as error:
        said = f"a cell has over {CELL:,} characters" if "field larger" in str(error) else str(error)
        raise ValueError(f"line {reader.line_num}: {said}") from None


def _named(names: Sequence[str], line: int) -> list[str]:
    stripped = [name.strip() for name in names]
    for place, name in enumerate(stripped):
        if not name:
            raise ValueError(f"line {line}: column {place + 1} has no name")
        if name in stripped[:place]:
            raise ValueError(f"line {line}: two columns are named {_short(name)!r}")
    return stripped


def _begins(rows: Sequence[Sequence[str]], line: int, last: int) -> Ints:
    """The line where each row begins: cells in quotes may have several."""
    if last - line + 1 == len(rows):
        return np.arange(line, last + 1)
    heights = [1 + sum(cell.count("\n") + cell.count("\r") - cell.count("\r\n") for cell in row) for row in rows]
    return np.asarray(line + np.cumsum([0, *heights[:-1]]), dtype=np.int64)


def _even(rows: Sequence[Sequence[str]], lines: Ints, width: int) -> None:
    if set(map(len, rows)) - {width}:
        row, line = next((row, line) for row, line in zip(rows, lines, strict=True) if len(row) != width)
        raise ValueError(f"line {line}: {len(row)} cells, where the first line names {width} columns")


def _json(text: str) -> Table:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"this is not JSON: {error}") from None
    if not isinstance(body, list):
        raise ValueError("JSON: a table is a list of objects, one for each row")
    return _objects(enumerate(body, 1), "row")


def _lines(text: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"line {number}: this is not JSON: {error}") from None


def _objects(rows: Iterable[tuple[int, Any]], unit: str) -> Table:
    """Of JSON objects with the same names."""
    columns, kept, lines = _Columns([]), [], []
    for number, row in rows:
        if not isinstance(row, dict):
            raise ValueError(f"{unit} {number}: a row is a JSON object, one name for each column")
        if not columns.names:
            columns = _Columns(_named(list(row), number))
        elif row.keys() != set(columns.names):
            odd = sorted(row.keys() ^ set(columns.names))
            raise ValueError(f"{unit} {number}: it has other names than the first row: {_few(odd)}")
        kept.append([_text(row[name], name, f"{unit} {number}") for name in columns.names])
        lines.append(number)
    columns.add(kept, np.array(lines, dtype=np.int64))
    return columns.table(unit)


def _text(value: Any, name: str, where: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return str(value)
    if not isinstance(value, str):
        raise ValueError(f"{where}: {_short(name)}: a cell is text, a number, true, false or null")
    if len(value) > CELL:
        raise ValueError(f"{where}: a cell has over {CELL:,} characters")
    return value


def _parquet(data: bytes) -> Table:
    try:
        pa, pq = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise ValueError("Parquet needs pyarrow: pip install 'gymnasium-arena[parquet]'") from None
    try:
        found = pq.read_table(pa.BufferReader(data))
        columns = {}
        for name in _named(found.column_names, 0):
            cells = found[name].combine_chunks().cast(pa.string()).fill_null("").dictionary_encode()
            columns[name] = Column(tuple(cells.dictionary.to_pylist()), cells.indices.to_numpy().astype(np.int64))
    except pa.ArrowException as error:
        raise ValueError(f"this is no Parquet table of plain columns: {' '.join(str(error).split())[:200]}") from None
    return Table(columns, np.arange(1, found.num_rows + 1), "row")
