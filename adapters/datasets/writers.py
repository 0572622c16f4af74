"""Writers: the files of a split, cut into shards: parquet (zstd) and JSON lines, plain or compressed (zstd)."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import zstandard

from arena.adapters.datasets.format import Format, Row, Rows
from arena.adapters.datasets.tables import table
from arena.registry import unknown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Lines", "Parquet", "Shards", "kind_of", "kinds_of", "rows_of"]

_CHUNK = 1 << 20  # bytes of rows, as JSON, that become a table at once
_GROUP = 16 << 20  # bytes of a row group
_ROWS = 512  # rows of a table at most
_encode = msgspec.json.Encoder().encode


def kinds_of(form: Format | type[Format]) -> tuple[str, ...]:
    """What a format can be written as, the default first; where JSON lines are, compressed ones are too."""
    more = ("jsonl.zst",) if "jsonl" in form.files and "jsonl.zst" not in form.files else ()
    return (*form.files, *more)


def kind_of(form: Format, asked: str = "") -> str:
    """The kind that is meant; "": the default. Raises ValueError for one that the format is not written as."""
    kinds = kinds_of(form)
    if asked and asked not in kinds:
        raise unknown(f"kind of file of format {form.name}", asked, kinds)
    kind = asked or kinds[0]
    if kind == "parquet":
        _pyarrow(form)
    return kind


def _pyarrow(form: Format) -> None:
    try:
        import pyarrow.parquet  # noqa: F401  whether it is there
    except ImportError as error:
        other = [kind for kind in kinds_of(form) if kind != "parquet"][:1]
        instead = f", or write {other[0]} (--as {other[0]})" if other else ""
        raise ValueError(f"parquet needs pyarrow: pip install 'gymnasium-arena[parquet]'{instead}") from error


def rows_of(form: Format, kind: str, folder: Path, split: str, shard_rows: int | None) -> Rows:
    """Where the rows of a split go: shards `data/train-00000-of-00002.parquet`, or what the format writes itself."""
    if kind == "parquet":
        schema = form.schema()
        if schema is None:
            raise TypeError(f"format {form.name} names parquet and has no schema")
        return Shards(folder / "data", split, ".parquet", lambda path: Parquet(path, schema), shard_rows)
    if kind in ("jsonl", "jsonl.zst"):
        return Shards(folder / "data", split, f".{kind}", Lines, shard_rows)
    if shard_rows is not None:
        raise ValueError(f"{kind} files are not cut into shards")
    (folder / "data").mkdir(exist_ok=True)
    return form.writer(kind, folder / "data" / split)


class Shards:
    """A split in files of so many rows each, one after the other; None: one file.

    While they are written their number is not known: they get their names at the end.
    """

    def __init__(
        self, folder: Path, split: str, suffix: str, make: Callable[[Path], Rows], shard_rows: int | None = None
    ) -> None:
        if shard_rows is not None and shard_rows < 1:
            raise ValueError(f"shard_rows={shard_rows}: allowed are numbers from 1")
        self.folder, self.split, self.suffix = folder, split, suffix
        self.make, self.shard_rows = make, shard_rows
        self.paths: list[Path] = []
        self._open: Rows | None = None
        self._rows = 0
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, row: Row) -> None:
        """Add a row."""
        if self._open is None or self._rows == self.shard_rows:
            self._end()
            path = self.folder / f"{self.split}-{len(self.paths):05d}{self.suffix}"
            self.paths.append(path)
            self._open, self._rows = self.make(path), 0
        self._open.write(row)
        self._rows += 1

    def close(self) -> None:
        """End the last file, and name them all."""
        self._end()
        named = [self.folder / f"{self.split}-{at:05d}-of-{len(self.paths):05d}{self.suffix}" for at in self._numbers]
        self.paths = [path.rename(to) for path, to in zip(self.paths, named, strict=True)]

    @property
    def _numbers(self) -> range:
        return range(len(self.paths))

    def _end(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


class Lines:
    """One JSON object a line; a name that ends in `.zst` is compressed."""

    def __init__(self, path: Path) -> None:
        file = path.open("wb")
        packed = path.suffix == ".zst"
        self._file: Any = zstandard.ZstdCompressor().stream_writer(file, closefd=True) if packed else file

    def write(self, row: Row) -> None:
        """Add a line."""
        self._file.write(_encode(row) + b"\n")

    def close(self) -> None:
        """Flush and close the file."""
        self._file.close()


class Parquet:
    """A parquet file, compressed with zstd, in row groups of about 16 MB of memory."""

    def __init__(self, path: Path, schema: "pa.Schema") -> None:
        from pyarrow.parquet import ParquetWriter

        self._schema = schema
        self._file = ParquetWriter(path, schema, compression="zstd")
        self._rows: list[Row] = []
        self._weight, self._bytes = 0, 0
        self._tables: list[pa.Table] = []

    def write(self, row: Row) -> None:
        """Add a row. Raises pyarrow's ArrowInvalid for a value that is not of its column's type."""
        self._rows.append(row)
        self._weight += len(_encode(row))
        if self._weight >= _CHUNK or len(self._rows) >= _ROWS:
            self._chunk()

    def close(self) -> None:
        """Write what is left, and close the file."""
        try:
            self._chunk()
            self._group()
        finally:
            self._file.close()

    def _chunk(self) -> None:
        if self._rows:
            made = table(self._rows, self._schema)
            self._tables.append(made)
            self._rows, self._weight = [], 0
            self._bytes += made.nbytes
            if self._bytes >= _GROUP:
                self._group()

    def _group(self) -> None:
        import pyarrow as pa

        if self._tables:
            whole = pa.concat_tables(self._tables)
            self._file.write_table(whole, row_group_size=whole.num_rows)
            self._tables, self._bytes = [], 0
