"""Tables of all token formats, loaded by Hugging Face's datasets."""

from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from arena.adapters.datasets.formats import make_format
from arena.adapters.datasets.tables import table
from tests.adapters.datasets.made import Asked, trajectory_of
from tests.adapters.datasets.test_token_formats import READ, SPECS

pytestmark = pytest.mark.train


@pytest.mark.parametrize("spec", SPECS)
def test_they_load_with_the_sequences_they_had(spec: str, tmp_path: Path) -> None:
    datasets: Any = pytest.importorskip("datasets")
    form, unit = make_format(spec), trajectory_of(Asked("ab", versions=2), Asked("c", breaks=True), advantage=0.5)
    rows = [msgspec.json.decode(msgspec.json.encode(row)) for row in form.rows([unit])]
    schema, path = form.schema(), str(tmp_path / "rows.parquet")
    assert schema is not None
    pq.write_table(table(rows, schema), path, compression="zstd")
    loaded = datasets.load_dataset("parquet", data_files=path, cache_dir=str(tmp_path))["train"]
    assert len(loaded) == len(rows)
    for row, found in zip(rows, loaded, strict=True):
        assert list(READ[spec](found)) == list(READ[spec](row))
    assert "int64" not in str([each for name, each in loaded.features.items() if "ids" in name or "tokens" in name])
