"""The dataset card: its YAML names the files, and text from others stays text."""

import json
import re
from pathlib import Path

import pytest

from arena.adapters.datasets.card import Summary, write_card, write_record

HOSTILE = ["a | b", "x\n---\nconfigs: []", "[t](http://e) `c` <script>", "\x1b[2J\u202e", "\ud800", "*_&#35;"]


def summary(name: str = "smol", kind: str = "parquet") -> Summary:
    return Summary(
        format="sft",
        consumer="TRL 1.16 SFTTrainer",
        checked="loaded",
        unit="seat",
        kind=kind,
        episodes=4,
        void=1,
        left_out={"legal": 2},
        lacking={f"{name}'s tokens": 3},
        duplicates=5,
        rows={"train": 6, "validation": 0},
        seed_groups={"train": 3, "validation": 0},
        games={"Chess-v0": 6},
        agents={name: 6},
        files={"train": ["data/train-00000-of-00001.parquet"]},
        notes=[f"{name} has lost"],
        arena="1.2",
    )


def card(folder: Path, told: Summary) -> str:
    write_card(folder, told, ["messages", "reward"])
    return (folder / "README.md").read_text(encoding="utf-8")


def test_what_a_card_says(tmp_path: Path) -> None:
    text = card(tmp_path, summary())
    front, body = re.fullmatch(r"---\n(.*?)\n---\n(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]  # it must match
    assert front.splitlines() == [
        "tags:",
        "- gymnasium-arena",
    ]
    for part in (
        "\n# sft: 6 rows of 4 episodes\n",
        "Made by Arena 1.2 for TRL 1.16 SFTTrainer (loaded).",
        "| train | 6 | 3 |\n| validation | 0 | 0 |\n",
        "| Chess-v0 | 6 |",
        "| smol | 6 |",
        "Columns: `messages`, `reward`.",
        "Left out: void 1, filter legal 2, smol's tokens 3, duplicates (rows) 5.",
        "- smol has lost\n",
        'load_dataset("path/of/this/folder")',
    ):
        assert part in body


def test_files_that_datasets_does_not_load_are_not_named(tmp_path: Path) -> None:
    text = card(tmp_path, summary(kind="minari"))
    assert "configs" not in text
    assert "load_dataset" not in text


@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_text(tmp_path: Path, name: str) -> None:
    text = card(tmp_path, summary(name))
    plain = card(tmp_path, summary())
    assert len(text.splitlines()) == len(plain.splitlines())
    assert text.count("|") == plain.count("|")
    assert all(char == "\n" or char.isprintable() for char in text)
    assert not re.search(r"<script>|\]\(", text.replace('load_dataset("', ""))
    assert text.startswith("---\ntags:\n- gymnasium-arena\n---\n")


def test_the_record_is_the_summary(tmp_path: Path) -> None:
    write_record(tmp_path, summary())
    kept = json.loads((tmp_path / "export.json").read_text(encoding="utf-8"))
    assert (kept["rows"], kept["lacking"], kept["consumer"]) == (
        {"train": 6, "validation": 0},
        {"smol's tokens": 3},
        "TRL 1.16 SFTTrainer",
    )


def test_json_lines_have_no_types(tmp_path: Path) -> None:
    assert "JSON lines have no types" in card(tmp_path, summary(kind="jsonl"))
    assert "JSON lines have no types" not in card(tmp_path, summary())
