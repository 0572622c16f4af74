"""What lies beside the rows of an export: `export.json` and the dataset card, `README.md`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from arena.text import clean

__all__ = ["Summary", "write_card", "write_record"]

_FRONT = ("---", "tags:", "- gymnasium-arena", "---", "")
"""The YAML on top. It names no files, `datasets` finds them by their names: of files that are named (`configs`) it
keeps what it has once loaded by the folder's last name, and gives it for another export of that name (datasets 5.2.0).
"""
_GUESSED = (
    "JSON lines have no types: `datasets` guesses them by the first rows of every file, and refuses files in which a "
    "column looks different (null at first, texts later). Parquet files have types."
)
_KINDS = ("parquet", "jsonl", "jsonl.zst")


class Summary(msgspec.Struct, kw_only=True):
    """What an export has read, left out and written; kept as `export.json`."""

    format: str
    """The spec, such as `dpo?rollouts=4`."""
    consumer: str
    """Whom it is for, with the version that was read or loaded."""
    checked: str
    """How the format is tested."""
    unit: str
    kind: str
    """Of the files: parquet, jsonl, ..."""
    asked: dict[str, Any] = {}
    """Filters, split, advantages and the rest, as they were given."""
    episodes: int = 0
    """Read, the void ones too."""
    void: int = 0
    trajectories: int = 0
    """Seats of finished episodes."""
    left_out: dict[str, int] = {}
    """Trajectories by the first filter that did not let them pass."""
    lacking: dict[str, int] = {}
    """Trajectories of which the record has not what the format needs, by what is lacking."""
    barren: int = 0
    """Trajectories that passed and of which the format makes no row."""
    duplicates: int = 0
    """Rows that were left out because the same was there."""
    exported: int = 0
    """Trajectories that rows were made of."""
    turns: int = 0
    """Turns of those."""
    rows: dict[str, int] = {}
    """By split."""
    seed_groups: dict[str, int] = {}
    """By split: tasks (game, options and seed) of which there are rows."""
    games: dict[str, int] = {}
    """Exported trajectories by game."""
    agents: dict[str, int] = {}
    """Exported trajectories by agent."""
    versions: dict[str, list[str]] = {}
    """Of all that could alter the play, as the episodes have them."""
    arena: str = ""
    """The version that exported."""
    files: dict[str, list[str]] = {}
    """By split, relative to the folder."""
    notes: list[str] = []
    """What a reader should know."""


def write_record(folder: Path, summary: Summary) -> None:
    """Write `export.json`."""
    text = msgspec.json.format(msgspec.json.encode(summary), indent=2)
    (folder / "export.json").write_bytes(text + b"\n")


def write_card(folder: Path, summary: Summary, columns: Iterable[str]) -> None:
    """Write `README.md`: what `datasets.load_dataset(folder)` reads, and what a reader wants to know."""
    body = [
        f"# {summary.format}: {sum(summary.rows.values())} rows of {summary.episodes} episodes",
        "",
        f"Made by Arena {summary.arena} for {summary.consumer} ({summary.checked}).",
        *_loading(summary),
        "",
        "| split | rows | seed groups |",
        "|---|---|---|",
        *[f"| {split} | {rows} | {summary.seed_groups[split]} |" for split, rows in summary.rows.items()],
        "",
        "A seed group is all that was played on one game with the same options and seed; it is on one side only.",
        "",
        *_table("game", summary.games),
        *_table("agent", summary.agents),
        f"Columns: {', '.join([f'`{name}`' for name in columns])}.",
        "",
        *_left(summary),
        *[f"- {_cell(note)}" for note in summary.notes],
        "",
        "What was asked and all counts: `export.json`.",
    ]
    text = "\n".join([*_FRONT, *body]).rstrip() + "\n"
    (folder / "README.md").write_text(text, encoding="utf-8")


def _loading(summary: Summary) -> list[str]:
    if summary.kind not in _KINDS:
        return []
    told = [
        "",
        "```python",
        "from datasets import load_dataset",
        "",
        'rows = load_dataset("path/of/this/folder")',
        "```",
    ]
    return told if summary.kind == "parquet" else [*told, "", _GUESSED]


def _table(name: str, counts: dict[str, int]) -> list[str]:
    rows = [f"| {_cell(key)} | {count} |" for key, count in sorted(counts.items())]
    return [f"| {name} | seats |", "|---|---|", *rows, ""]


def _left(summary: Summary) -> list[str]:
    counts = {
        **({"void": summary.void} if summary.void else {}),
        **{f"filter {name}": count for name, count in summary.left_out.items()},
        **summary.lacking,
        **({"duplicates (rows)": summary.duplicates} if summary.duplicates else {}),
    }
    return [f"Left out: {', '.join([f'{_cell(why)} {count}' for why, count in counts.items()])}.", ""] if counts else []


def _cell(text: str) -> str:
    """Text from others in one line of a Markdown table, where it stays text."""
    plain = " ".join("".join([char if char.isprintable() else " " for char in clean(text)]).split())
    return "".join([f"&#{ord(char)};" if char in "|<>[]`*_\\&#" else char for char in plain])
