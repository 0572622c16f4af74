"""A server that fails: `python -m benchmarks.load.faults_side ROUTE URL MATCHES RETRIES CALL_SECONDS`."""

import asyncio
import sys
import tempfile
from pathlib import Path

from arena.episode import Episode, Turn
from arena.tournaments.runner import Tally, run
from arena.tournaments.store import Store
from benchmarks.load.meter import Meter, files, sockets
from benchmarks.load.table import tournament
from benchmarks.load.texts import PLIES
from benchmarks.load.words import MARK

__all__ = ["foreign", "main"]


def main(route: str, url: str, matches: int, retries: int, call_seconds: float) -> None:
    """Print one measurement, and what is wrong with the records."""
    files(matches + 512)
    asked = tournament(route, url, matches, 5, concurrency=matches, retries=retries, call_seconds=call_seconds)
    tasks: list[str] = []
    before, meter = sockets(), Meter()
    with tempfile.TemporaryDirectory() as folder, Store.resume(Path(folder) / "run", asked) as store:
        tally = run(asked, store, lambda _: tasks.__setitem__(slice(None), _others()))
        episodes = list(store.episodes())
        wrong = sum(foreign(episode) for episode in episodes)
        kept = sum(episode.outcome != "void" for episode in episodes)
    meter.tell(
        max(tally.finished, 1) * PLIES, finished=tally.finished, kept=kept, voids=tally.voids, given_up=tally.given_up,
        forfeits=tally.forfeits, left=_left(tally), foreign=wrong, tasks=tasks, sockets=sockets() - before,
        reasons=dict(tally.reasons.most_common(3)),
    )  # fmt: skip


def _left(tally: Tally) -> int:
    return tally.total - tally.finished - tally.given_up


def _others() -> list[str]:
    """Tasks beside the one that runs, and those that are on their way out: the last time it is asked, left-overs."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    return [repr(task) for task in tasks if not task.cancelling()]


def foreign(episode: Episode) -> int:
    """How many replies do not carry the mark that their turn's observation shows."""
    return sum(_foreign(turn) for turn in episode.turns)


def _foreign(turn: Turn) -> int:
    own = MARK.findall(turn.observation)
    return sum(MARK.findall(attempt.raw) != own for attempt in turn.attempts)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
