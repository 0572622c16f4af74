"""Records: search plays a tournament, and what minimax did in it is exported as conversations to learn from."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from arena.adapters.datasets.exporting import export
from arena.adapters.datasets.filters import Filters
from arena.registry import AgentSpec
from arena.tournaments.config import parse
from arena.tournaments.runner import Tally, run
from arena.tournaments.store import Store
from examples.train_llm.plan import GAME, PROMPTING, Size, seeds

__all__ = ["FORMAT", "TEACHER", "make_records"]

TEACHER = "minimax"
_TOLD = {"turns": "all", "answer": PROMPTING.answer, "template": PROMPTING.template}
FORMAT = str(AgentSpec("sft", "", tuple(_TOLD.items())))
"""Whole conversations, told as the model will be when it plays."""
Progress = Callable[[int, int], None]


def make_records(folder: Path, run_number: int, size: Size, progress: Progress) -> dict[str, Any]:
    """Play the tournament into `folder / "games"` and export the teacher's seats into `folder / "rows"`.

    The others err, so that the teacher is seen in positions that two perfect players never reach.
    """
    cup = parse(
        {
            "name": "Search plays, to be learned from",
            "games": [GAME],
            "agents": [TEACHER, "random", "mcts?simulations=10"],
            "schedule": {"kind": "gauntlet", "anchors": [TEACHER]},
            "blocks": size.blocks,
            "seed": seeds("records", run_number)[0],
        }
    )

    def report(tally: Tally) -> None:
        progress(tally.finished, 4 * size.blocks)

    with Store.resume(folder / "games", cup) as store:
        run(cup, store, report)
    with Store.open(folder / "games") as store:
        summary = export(store.episodes(), FORMAT, folder / "rows", filters=Filters(agents=(TEACHER,)), kind="parquet")
    return {"games": summary.episodes, "rows": sum(summary.rows.values()), "turns": summary.turns}
