"""Rating: the model before and after it played, in one tournament with random, MCTS and minimax."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from arena.tournaments.config import parse
from arena.tournaments.report import board
from arena.tournaments.runner import Tally, run
from arena.tournaments.store import Store
from examples.train_llm.plan import GAME, Size, seeds, spec

__all__ = ["AGENTS", "rate"]

AGENTS = {"random": "random", "mcts": "mcts?simulations=50", "minimax": "minimax"}
"""Who else plays, by name."""
Progress = Callable[[int, int], None]


def rate(folder: Path, run_number: int, size: Size, models: dict[str, Path], progress: Progress) -> dict[str, Any]:
    """Everybody meets everybody. `models`: checkpoints by name; the last one is compared with the first.

    Ratings are in Elo, around a mean of 1000, with half of their 95 % intervals.
    """
    agents = AGENTS | {name: spec(path.resolve()) for name, path in models.items()}
    cup = parse(
        {
            "name": "Before and after",
            "games": [GAME],
            "agents": [{"spec": text, "name": name} for name, text in agents.items()],
            "blocks": size.rated,
            "seed": seeds("ratings", run_number)[0],
        }
    )
    games = len(agents) * (len(agents) - 1) * size.rated

    def report(tally: Tally) -> None:
        progress(tally.finished, games)

    with Store.resume(folder, cup) as store:
        run(cup, store, report)
    with Store.open(folder) as store:
        (section,) = board(store).sections
    assert section.ratings is not None, "two seats and zero-sum returns are rated"
    before, *_, after = models
    elo, half = section.ratings.difference(after, before)
    rows = [
        {"name": row.name, "elo": row.value, "half": row.half, "games": row.games, "won": row.won, "drawn": row.drawn,
         "lost": row.lost, "illegal": row.illegal}
        for row in section.rows
    ]  # fmt: skip
    return {"rows": rows, "difference": elo, "half": half}
