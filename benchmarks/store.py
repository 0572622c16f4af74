"""The store at 100,000 finished games: what ratings and reports read of it, and what a game costs to store.

The games are made quickly: a few hundred are played, and stored again and again under the ids, seeds and seats of
further fixtures, with other results drawn from those that were played. So every row is of the size of a real one.
"""

import multiprocessing
import os
import random
import resource
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import zstandard

from arena.episode import Episode
from arena.match import play_sync
from arena.tournaments.config import Tournament, parse
from arena.tournaments.schedule import Fixture, fixtures
from arena.tournaments.store import Store
from benchmarks.timing import Figure, Spread, interleave, ratios

__all__ = ["at_scale"]

GAMES = int(os.environ.get("ARENA_STORE_GAMES", "100000"))
AGENTS = 10
_PLAYED = 300
_BATCH = 64
_ROUNDS = 3
_GOAL = 0.2  # CPU seconds of the store, of the leaderboard's second


def at_scale(seconds: float) -> list[Figure]:
    """Reading in CPU seconds and MB, storing in games a CPU second; small where `seconds` is."""
    count = GAMES if seconds >= 1 else 600
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "run"
        tournament = _tournament(count)
        spent = _timed(lambda: _fill(place, tournament, count))
        lines = [Figure(f"filled with {count:,} games", "CPU-s", spent, note=f"{_megabytes(place):.0f} MB of file")]
        lines += [_read(name, place, tournament) for name in _READS]
        return [*lines, *_storing(Path(folder), tournament, min(count, 2000))]


def _tournament(count: int) -> Tournament:
    pairs = AGENTS * (AGENTS - 1)
    agents = [{"spec": "random", "name": f"agent {n}"} for n in range(AGENTS)]
    return parse({"games": ["TicTacToe"], "agents": agents, "blocks": -(-count // pairs)})


def _episodes() -> list[Episode]:
    return [play_sync("TicTacToe-v0", ["random", "random"], seed) for seed in range(_PLAYED)]


def _games(tournament: Tournament, count: int) -> Iterator[tuple[Fixture, Episode]]:
    rng, played = random.Random(0), _episodes()
    for number, fixture in enumerate(islice(fixtures(tournament), count)):
        episode = msgspec.structs.replace(rng.choice(played), seed=fixture.seed, ended=1e9 + number)
        yield fixture, episode


def _fill(place: Path, tournament: Tournament, count: int) -> None:
    games = _games(tournament, count)
    with Store.resume(place, tournament) as store:
        while batch := list(islice(games, 500)):
            store.add_all(batch)


def _timed(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _megabytes(place: Path) -> float:
    return sum(path.stat().st_size for path in place.iterdir()) / 1e6


def _open(place: Path, tournament: Tournament) -> None:
    with Store.open(place) as store:
        store.tournament()


def _pairs(place: Path, tournament: Tournament) -> None:
    with Store.open(place) as store:
        for entry in store.entries():
            store.pairs(entry)
        store.totals()
        store.spent()


def _timeline(place: Path, tournament: Tournament) -> None:
    with Store.open(place) as store:
        store.timeline(1)


def _ranked(place: Path, tournament: Tournament) -> None:
    with Store.open(place) as store:
        store.ranked(1)


def _columns(place: Path, tournament: Tournament) -> None:
    with Store.open(place) as store:
        store.columns(1, 2)


def _resume(place: Path, tournament: Tournament) -> None:
    with Store.resume(place, tournament) as store:
        store.results()


def _migrated(place: Path, tournament: Tournament) -> None:
    with Store.resume(place, tournament) as store:
        store.finished()


_READS: dict[str, tuple[Callable[[Path, Tournament], None], float | None]] = {
    "open": (_open, None),
    "pairs, totals, spent": (_pairs, _GOAL),
    "timeline": (_timeline, None),
    "resume, whole file checked, all results": (_resume, None),
    "resume, finished ids": (_migrated, None),
    "all games singly (ranked)": (_ranked, None),
    "all games singly (columns)": (_columns, None),
}


def _read(name: str, place: Path, tournament: Tournament) -> Figure:
    """In processes of its own, so that the peak of memory is of it alone; over what importing alone takes."""
    work, goal = _READS[name]
    times, peaks = zip(*[_alone(work, place, tournament) for _ in range(_ROUNDS)], strict=True)
    grown = f"memory +{max(peaks):.0f} MB"
    return Figure(name, "CPU-s", min(times), None, Spread.of(times), goal, at_most=True, note=grown)


def _alone(work: Callable[[Path, Tournament], None], place: Path, tournament: Tournament) -> tuple[float, float]:
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_measured, (work, place, tournament))


def _measured(work: Callable[[Path, Tournament], None], place: Path, tournament: Tournament) -> tuple[float, float]:
    before, start = _peak(), time.process_time()
    work(place, tournament)
    return time.process_time() - start, _peak() - before


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _storing(folder: Path, tournament: Tournament, count: int) -> list[Figure]:
    """Games a CPU second, each way; beside bare inserts of the same bytes through sqlite3, as many a transaction."""
    games = list(_games(tournament, count))
    lines = []
    for name, size in (("a transaction a game", 1), (f"{_BATCH} a transaction", _BATCH)):
        loops = [_loop(_stored(folder, tournament, games, size)), _loop(_bare(folder, games, size))]
        ours, floor = interleave(loops, 3.0 if count > 600 else 0.1, 3)
        lines.append(Figure(name, "x", 1e6 / min(ours), 1e6 / min(floor), ratios(ours, floor)))
    return lines


def _loop(work: Callable[[], int]) -> Callable[[float], float]:
    def run(seconds: float) -> float:
        count, start = 0, time.process_time()
        while (spent := time.process_time() - start) < seconds or not count:
            count += work()
        return spent / count * 1e6

    return run


@contextmanager
def _folder(parent: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=parent) as name:
        yield Path(name)


def _stored(parent: Path, tournament: Tournament, games: list[tuple[Fixture, Episode]], size: int) -> Callable[[], int]:
    def work() -> int:
        with _folder(parent) as folder, Store.resume(folder, tournament) as store:
            for at in range(0, len(games), size):
                store.add_all(games[at : at + size])
        return len(games)

    return work


def _bare(parent: Path, games: list[tuple[Fixture, Episode]], size: int) -> Callable[[], int]:
    encode, compress = msgspec.json.encode, zstandard.ZstdCompressor(level=3).compress

    def work() -> int:
        with _folder(parent) as folder:
            connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("CREATE TABLE games (id TEXT PRIMARY KEY, row TEXT, data BLOB)")
            for at in range(0, len(games), size):
                connection.execute("BEGIN")
                for fixture, episode in games[at : at + size]:
                    row = (fixture.id, encode(fixture).decode(), compress(encode(episode)))
                    connection.execute("INSERT INTO games VALUES (?, ?, ?)", row)
                connection.execute("COMMIT")
            connection.close()
        return len(games)

    return work
