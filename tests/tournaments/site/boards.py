"""Boards as a report gives them, with everything in them that there can be."""

from pathlib import Path
from typing import Any

from arena.tournaments.board import (
    AgentTotals,
    Beside,
    Board,
    Curve,
    Method,
    Pair,
    Residual,
    Row,
    Seat,
    Section,
    Standings,
)
from arena.tournaments.conduct import Conduct
from arena.tournaments.config import parse
from arena.tournaments.ratings import Results, rate

__all__ = ["board", "section"]


def section(names: list[str], label: str = "TicTacToe-v0", **change: Any) -> Section:
    """A rated game of these agents, the first of them the strongest; everybody met everybody four times."""
    met = [(k, j) for k in range(len(names)) for j in range(len(names)) if k < j]
    rows = [(label, names[k], names[j], ("first", "draw", "first", "second")[n], n) for k, j in met for n in range(4)]
    rated = rate(Results.of(rows, names))
    conduct = Conduct(40, 44, 2, 1, 1, 44, 4400, 3300, 880, 22.0, 1.25)
    table = [
        Row(
            rank=k + 1, agent=k, name=name, games=int(rated.played[k]), value=float(rated.elo[k]),
            half=float(rated.half[k]), forfeits=k, voids=k % 2, conduct=conduct, won=int(rated.wins[k]),
            drawn=int(rated.draws[k]), lost=int(rated.losses[k]), flags=rated.flags[k], low=max(1, k), high=k + 2,
            best=0.5 / (k + 1), letters="ab"[k % 2], p50=0.5, p95=2.25,
        )
        for k, name in enumerate(names)
    ]  # fmt: skip
    every = range(len(names))
    pairs = [[None if k == j else Pair(0.75 if k < j else 0.25, 4) for j in every] for k in every]
    points = 40
    curve = Curve(
        list(range(1, points + 1)),
        [1.7e9 + 60 * k for k in range(points)],
        {k: [None if n < k else 1000.0 + (len(names) - k) * n for n in range(points)] for k in range(len(names))},
    )
    return Section(
        **{
            "label": label, "seats": 2, "games": len(rows), "rows": table, "ratings": rated, "pairs": pairs,
            "kind": "pairs", "game": label, "beside": beside(len(names)), "curve": curve,
            "sides": [Seat("first seat", 12, 0.55, 35.0, 12.0), Seat("second seat", 12, 0.45)], **change,
        }
    )  # fmt: skip


def beside(agents: int) -> Beside:
    even = dict.fromkeys(range(agents), 1 / agents)
    surprise = [Residual(0, 1, 40, 0.71, 0.5, -4.2)] if agents > 1 else []
    half, moved = dict.fromkeys(range(agents), 0.5), dict.fromkeys(range(agents), 7.0)
    return Beside(even, half, even, 0.134, 0.054, moved, surprise)


def board(names: list[str], *sections: Section, **change: Any) -> Board:
    """A board of these agents; without sections it has one of `section`."""
    played = list(sections) or [section(names)]
    method = Method("round-robin, 10 blocks", "every block", "1234 of 2000", (0, 9), 4, "arena tournament run x")
    bracket = (((0, 1, "3 : 1"), (None, None, "")),)
    knockout = Standings("TicTacToe-v0", "Knockout", ("Agent", "Seed"), [(0, ("1",)), (1, ("2",))], bracket)
    asked = parse({"games": ["TicTacToe", "ConnectFour"][: len(played)], "agents": ["random", "first"], "name": "Cup"})
    return Board(
        **{
            "tournament": asked, "toml": 'name = "Cup"', "versions": {"arena": "0.1.0"}, "path": Path("run/results.db"),
            "agents": [AgentTotals(name, 12, 1, 2) for name in names], "sections": played,
            "overall": section(names, "All games", kind="overall", game="") if len(played) > 1 else None,
            "finished": 1234, "planned": 2000, "voids": 2, "void_reasons": [("ConnectionError: not today", 2)],
            "notes": ["Something to know."],
            "method": method, "standings": [knockout] if len(names) > 1 else [],
            **change,
        }
    )  # fmt: skip
