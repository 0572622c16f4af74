"""Datasets: episodes as what trainers read. Every format is a view of `arena.episode.Episode`.

    from arena.adapters.datasets import Files, Filters, Split, export

    export(Files("runs/demo/episodes.jsonl.zst"), "sft", "data", filters=Filters(outcomes=("win",)), split=Split(0.1))

- `trajectory`: one seat of one episode, with role, opponents and group
- `tokens`: a trajectory as sequences of token ids, masks and log-probabilities; `chat`: as messages
- `format`: what a format is; `formats`: the table of them
- `source`, `filters`, `splits`, `credit`, `spool`, `writers`, `card`, `placing`, `exporting`: the pipeline they share
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arena.adapters.datasets.card import Summary
    from arena.adapters.datasets.credit import Credit
    from arena.adapters.datasets.exporting import Progress, export
    from arena.adapters.datasets.filters import Filters
    from arena.adapters.datasets.format import Format
    from arena.adapters.datasets.formats import FORMATS, make_format
    from arena.adapters.datasets.source import Files
    from arena.adapters.datasets.splits import Split
    from arena.adapters.datasets.tokens import Lacking
    from arena.adapters.datasets.trajectory import Trajectory

__all__ = [
    "FORMATS",
    "Credit",
    "Files",
    "Filters",
    "Format",
    "Lacking",
    "Progress",
    "Split",
    "Summary",
    "Trajectory",
    "export",
    "make_format",
]

_WHERE = {
    "FORMATS": "formats",
    "Credit": "credit",
    "Files": "source",
    "Filters": "filters",
    "Format": "format",
    "Lacking": "tokens",
    "Progress": "exporting",
    "Split": "splits",
    "Summary": "card",
    "Trajectory": "trajectory",
    "export": "exporting",
    "make_format": "formats",
}


def __getattr__(name: str) -> Any:
    """A name of the pipeline, imported now."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
