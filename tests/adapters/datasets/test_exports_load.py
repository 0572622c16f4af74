"""Exports are loaded by `datasets` as they lie there."""

import json
import shutil
from pathlib import Path

import pytest

from arena.adapters.datasets import Credit, Filters, Split, Trajectory, export
from tests.adapters.datasets.toys import Seats, games

pytestmark = pytest.mark.train
datasets = pytest.importorskip("datasets")


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "jsonl.zst"])
def test_a_folder_is_loaded_with_its_splits(kind: str, tmp_path: Path) -> None:
    episodes = games(12)
    asked = Filters(outcomes=("win", "loss"))
    export(
        episodes,
        Seats(),
        tmp_path / "out",
        kind=kind,
        filters=asked,
        split=Split(0.4),
        credit=Credit("rae"),
        shard_rows=5,
    )
    loaded = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    assert set(loaded) == {"train", "validation"}
    rows = [row for split in loaded.values() for row in split]
    expected = [Seats.row(Trajectory(episode, seat)) for episode in episodes for seat in (0, 1)]
    assert {row["id"]: row["actions"] for row in rows} == {row["id"]: row["actions"] for row in expected}
    assert all(isinstance(row["advantage"], float) for row in rows)
    kept = json.loads((tmp_path / "out" / "export.json").read_text())
    assert {split: len(part) for split, part in loaded.items()} == kept["rows"]


def test_the_card_is_read(tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    export(games(3), Seats(), tmp_path / "out", kind="jsonl")
    card = hub.DatasetCard.load(tmp_path / "out" / "README.md")
    assert card.data.to_dict() == {"tags": ["gymnasium-arena"]}
    assert card.text.lstrip().startswith("# seats: 6 rows of 3 episodes")


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "jsonl.zst"])
def test_another_export_under_the_same_name_is_not_taken_for_this_one(kind: str, tmp_path: Path) -> None:
    def rows(parent: str, many: int) -> int:
        shutil.rmtree(folder := tmp_path / parent / "data", ignore_errors=True)
        export(games(many), Seats(), folder, kind=kind)
        return len(datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))["train"])

    assert [rows("a", 3), rows("b", 4), rows("a", 5)] == [6, 8, 10]
