"""The tournament runner, its store included, beside the bare match: what pairing, recording and SQLite cost."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from arena.match import play_sync
from arena.registry import make_agent
from arena.tournaments.config import parse
from arena.tournaments.runner import run
from arena.tournaments.store import Store
from benchmarks.timing import Figure, Loop, interleave, loop, ratios

__all__ = ["beside_match"]

GAMES = ("TicTacToe-v0", "ConnectFour-v0", "KuhnPoker-v0")
AGENTS = ("random", "first")


def beside_match(seconds: float) -> list[Figure]:
    """Games a CPU second, all threads counted: a tournament with its results database, and `play_sync` alone."""
    return [_line(game, seconds) for game in GAMES]


def _line(game: str, seconds: float) -> Figure:
    blocks = 250 if seconds >= 1 else 5
    runner, bare = interleave([_tournament(game, blocks), loop(_alone(game))], seconds, 5)
    return Figure(game, "x", 1e6 / min(runner), 1e6 / min(bare), ratios(runner, bare))


def _tournament(game: str, blocks: int) -> Loop:
    tournament = parse({"games": [game], "agents": list(AGENTS), "blocks": blocks})

    def play_all() -> int:
        with tempfile.TemporaryDirectory() as folder, Store.resume(Path(folder) / "run", tournament) as store:
            return run(tournament, store).finished

    return loop(play_all)


def _alone(game: str) -> Callable[[], int]:
    agents = [make_agent(spec) for spec in AGENTS]
    seeds = iter(range(1 << 62))

    def one() -> int:
        play_sync(game, agents, next(seeds))
        return 1

    return one
