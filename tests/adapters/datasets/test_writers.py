"""Files: kinds, shards, names, and that they hold what was written."""

import io
import json
import sys
from pathlib import Path

import pytest
import zstandard

from arena.adapters.datasets.format import Row
from arena.adapters.datasets.writers import Lines, Parquet, Shards, kind_of, kinds_of, rows_of
from tests.adapters.datasets.toys import Deals, Moves, Seats

ROWS: list[Row] = [{"n": n, "text": "x" * (n % 7), "ids": list(range(n % 5))} for n in range(23)]


def lines(path: Path) -> list[Row]:
    data = path.read_bytes()
    if path.suffix == ".zst":
        data = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)).read()
    return [json.loads(line) for line in data.splitlines()]


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.zst"])
@pytest.mark.parametrize(("size", "sizes"), [(None, [23]), (10, [10, 10, 3]), (23, [23]), (1, [1] * 23)])
def test_shards(tmp_path: Path, suffix: str, size: int | None, sizes: list[int]) -> None:
    shards = Shards(tmp_path / "data", "train", suffix, Lines, size)
    for row in ROWS:
        shards.write(row)
    shards.close()
    names = [f"train-{at:05d}-of-{len(sizes):05d}{suffix}" for at in range(len(sizes))]
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == names
    assert [len(lines(tmp_path / "data" / name)) for name in names] == sizes
    assert [row for name in names for row in lines(tmp_path / "data" / name)] == ROWS
    assert shards.paths == [tmp_path / "data" / name for name in names]


def test_a_split_without_rows_has_no_file(tmp_path: Path) -> None:
    shards = Shards(tmp_path / "data", "train", ".jsonl", Lines)
    shards.close()
    assert list((tmp_path / "data").iterdir()) == []


def test_parquet_is_compressed_and_holds_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    monkeypatch.setattr("arena.adapters.datasets.writers._ROWS", 5)
    monkeypatch.setattr("arena.adapters.datasets.writers._GROUP", 200)
    schema = pa.schema([("n", pa.int32()), ("text", pa.string()), ("ids", pa.list_(pa.int32()))])
    file = Parquet(tmp_path / "x.parquet", schema)
    for row in ROWS:
        file.write(row)
    file.close()
    read = parquet.ParquetFile(tmp_path / "x.parquet")
    assert read.read().to_pylist() == ROWS
    assert read.schema_arrow.equals(schema)
    assert read.metadata.num_row_groups > 2
    assert read.metadata.row_group(0).column(0).compression == "ZSTD"


def test_a_value_of_another_type_is_an_error(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    file = Parquet(tmp_path / "x.parquet", pa.schema([("n", pa.int32())]))
    file.write({"n": "many"})
    with pytest.raises(pa.ArrowInvalid):
        file.close()


def test_kinds() -> None:
    assert kinds_of(Seats) == ("parquet", "jsonl", "jsonl.zst")
    assert kinds_of(Deals()) == ("folder", "jsonl", "jsonl.zst")
    assert kind_of(Moves()) == "jsonl"
    assert kind_of(Moves(), "jsonl.zst") == "jsonl.zst"
    with pytest.raises(
        ValueError, match=r"unknown kind of file of format moves 'parquet'. .*Allowed: jsonl, jsonl.zst"
    ):
        kind_of(Moves(), "parquet")


def test_without_pyarrow_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ValueError, match=r"pip install 'gymnasium-arena\[parquet\]', or write jsonl"):
        kind_of(Seats())
    assert kind_of(Seats(), "jsonl") == "jsonl"


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="shard_rows=0: allowed are numbers from 1"):
        rows_of(Moves(), "jsonl", tmp_path, "train", 0)
    with pytest.raises(NotImplementedError, match="moves is not written as boxes"):
        rows_of(Moves(), "boxes", tmp_path, "train", None)
    with pytest.raises(TypeError, match="names parquet and has no schema"):
        rows_of(type("Odd", (Moves,), {"schema": lambda _: None})(), "parquet", tmp_path, "train", None)


def test_large_rows_are_written_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded in bytes, not in rows."""
    pa = pytest.importorskip("pyarrow")
    monkeypatch.setattr("arena.adapters.datasets.writers._CHUNK", 1000)
    file = Parquet(tmp_path / "x.parquet", pa.schema([("text", pa.string())]))
    waiting = []
    for size in (400, 400, 400, 5000, 10):
        file.write({"text": "x" * size})
        waiting.append(len(file._rows))
    file.close()
    assert waiting == [1, 2, 0, 0, 1]
