"""Exports so many turns, and tells how many a CPU second and how much memory it took: run as a program of its own.

python -m tests.adapters.datasets.growing SPEC KIND TURNS ADVANTAGE
"""

import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from arena.adapters.datasets import Credit, Split, export
from arena.adapters.datasets.formats import FORMATS
from arena.episode import Episode, Turn
from arena.game import replace
from tests.adapters.datasets.toys import games


def endless(turns: int) -> Iterator[Episode]:
    """At least so many turns of random play, every episode another; samples of one seed come far apart."""
    base, made = games(50, "random", "random", game="TicTacToe-v0"), 0
    groups = max(1, turns // 32)
    number = 0
    while made < turns:
        episode = base[number % len(base)]
        made += len(episode.turns)
        marked = [_marked(turn, number) for turn in episode.turns]
        yield replace(episode, id=f"e{number}", seed=number % groups, sample=number // groups, turns=marked)
        number += 1


def _marked(turn: Turn, number: int) -> Turn:
    attempt = replace(turn.attempts[0], reasoning=f"episode {number}")
    return replace(turn, attempts=(attempt,))


def main(spec: str, kind: str, turns: str, advantage: Any) -> None:
    """Export into a folder that is removed, and print the figures as JSON."""
    FORMATS["groups"] = "tests.adapters.datasets.toys:Groups"
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        told = export(
            endless(int(turns)),
            spec,
            Path(folder, "out"),
            kind=kind,
            credit=Credit(advantage),
            split=Split(0.1),
            dedup=True,
        )
        took = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"turns": told.turns, "rows": sum(told.rows.values()), "seconds": took, "megabytes": peak}))


if __name__ == "__main__":
    main(*sys.argv[1:])
