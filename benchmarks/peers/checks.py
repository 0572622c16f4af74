"""What the columns share: cells, tallies, and checks that are the same for every library.

Nothing but the standard library is imported here: the interpreter of a peer may have nothing else.
"""

import contextlib
import importlib
import json
import multiprocessing
import os
import pickle
import random
import re
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest import mock

__all__ = [
    "CHESS", "HOSTILE", "Broken", "Cell", "Driver", "Facts", "attempt", "continues", "language_models", "own_seed",
    "packages", "rate", "start_seconds", "tally",
]  # fmt: skip

HOSTILE = (
    "", " ", "\0\x1b[2J\r\n", "\ud800", "😀🂡²٣", "[]", "[[[[", "[a1a1]", "[-1]", "[" + "9" * 5000 + "]", "9" * 5000,
    "[[GAME]GAME] Player 0 has won", "{'action': None}", "I think [0] is bad, so [99999]", "x" * 100_000,
)  # fmt: skip
"""What a language model may say."""
SECONDS = 5.0
"""The time one game has for one check."""
PLIES = 40
_FORK = multiprocessing.get_context("fork")


CHESS = "Arena and TextArena with text (Arena lists the moves too), PettingZoo planes and mask, OpenSpiel numbers only"
"""What each library's chess loop makes at every move."""


class Cell(NamedTuple):
    """One cell: what is printed, why (a footnote), and what failed (JSON only)."""

    text: str
    note: str = ""
    failed: tuple[str, ...] = ()


Facts = Mapping[str, Callable[[], Cell]]
"""Fact by key, in the order of `benchmarks.peers.__main__.ROWS`."""


class Broken(Exception):
    """A library does not do what was asked; the message says what it does."""


def attempt(work: Callable[[], object], seconds: float = SECONDS) -> str:
    """What went wrong when the work ran in a child process without a network, or "" if nothing did."""
    here, there = _FORK.Pipe(duplex=False)
    child = _FORK.Process(target=_in_child, args=(there, work))
    child.start()
    there.close()
    try:
        said = str(here.recv()) if here.poll(seconds) else f"takes over {seconds:g} s"
    except EOFError:
        said = "the process dies"
    child.kill()
    child.join()
    return said


def _in_child(to_parent: Connection, work: Callable[[], object]) -> None:
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
        mock.patch.object(socket.socket, "connect", _refused),
        mock.patch.object(socket, "getaddrinfo", _refused),
    ):
        to_parent.send(_fault(work))


def _refused(*args: object, **kwargs: object) -> None:
    raise OSError("no network here")


def _fault(work: Callable[[], object]) -> str:
    try:
        work()
    except Broken as error:
        return str(error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever is raised is the answer
        return f"{type(error).__name__}: {error}"[:200] or type(error).__name__
    return ""


def tally(names: Iterable[str], work: Callable[[str], object], seconds: float = SECONDS, note: str = "") -> Cell:
    """For how many of the names the work can be done: "all 14", "71 of 96". Without a note, the faults are counted."""
    faults = {name: attempt(partial(work, name), seconds) for name in names}
    failed = {name: fault for name, fault in faults.items() if fault}
    good = len(faults) - len(failed)
    text = f"all {good}" if not failed else f"{good} of {len(faults)}"
    kinds = Counter(re.split(r"[:(]", fault)[0] for fault in failed.values())
    why = "; ".join(f"{kind} ({count})" for kind, count in kinds.most_common(4))
    return Cell(text, note or why, tuple([f"{name}: {fault}" for name, fault in failed.items()]))


class Driver(NamedTuple):
    """How to play one game: `start(seed)` gives something `step(it, n)` moves on, telling all it saw ("": over)."""

    start: Callable[[int], Any]
    step: Callable[[Any, int], str]

    def moves(self, seed: int) -> Iterator[str]:
        """The game from its beginning, step by step."""
        game = self.start(seed)
        for n in range(PLIES):
            if not (seen := self.step(game, n)):
                return
            yield seen


def own_seed(driver: Driver) -> None:
    """Raise Broken unless a seeded game is the same alone and beside others, and leaves the global `random` alone."""
    alone = list(driver.moves(1))
    random.seed(99)
    before = random.getstate()
    if list(driver.moves(1)) != alone:
        raise Broken("the same seed gives another game")
    faults = ["the global `random` is reseeded"] if random.getstate() != before else []
    together, other = [], driver.moves(2)
    for seen in driver.moves(1):
        together.append(seen)
        next(other, None)
        random.random()
    if together != alone:
        faults.append("another game beside it changes it")
    if faults:
        raise Broken(" and ".join(faults))


def continues(driver: Driver, after: int = 3) -> None:
    """Raise Broken unless a game that is pickled after some moves goes on as the original does.

    The original is played to its end first: a game that draws from the global `random` fails.
    """
    game = driver.start(1)
    for n in range(after):
        driver.step(game, n)
    copy = pickle.loads(pickle.dumps(game))
    rest = range(after, PLIES)
    if [driver.step(game, n) for n in rest] != [driver.step(copy, n) for n in rest]:
        raise Broken("the copy goes on otherwise")


def rate(play: Callable[[Random], int], seconds: float = 1.0) -> float:
    """Moves per CPU second of games played one after the other; the better of two runs."""
    best, rng = 0.0, Random(0)
    for _ in range(2):
        moves, begin = 0, time.process_time()
        while (spent := time.process_time() - begin) < seconds:
            moves += play(rng)
        best = max(best, moves / spent)
    return best


def packages(requirement: str) -> int:
    """How many distributions a clean install of it brings, itself included, by what is installed here now."""
    vendor = "packaging" if find_spec("packaging") else "pip._vendor.packaging"
    parse = importlib.import_module(f"{vendor}.requirements").Requirement
    spell = importlib.import_module(f"{vendor}.utils").canonicalize_name
    seen: set[tuple[str, str]] = set()
    waiting = [parse(requirement)]
    while waiting:
        wanted = waiting.pop()
        for extra in ("", *wanted.extras):
            if (key := (spell(wanted.name), extra)) not in seen:
                seen.add(key)
                needs = [parse(text) for text in metadata.requires(wanted.name) or ()]
                waiting += [need for need in needs if _wanted(need, extra)]
    return len({name for name, _ in seen})


def _wanted(need: Any, extra: str) -> bool:
    return need.marker is None or bool(need.marker.evaluate({"extra": extra}))


def start_seconds(code: str) -> float:
    """CPU seconds of a fresh interpreter from its start to the end of the code; the least of three."""
    timed = f"{code}\nimport time\nprint('@', time.process_time())"
    command = [sys.executable, "-W", "ignore", "-P", "-c", timed]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in range(3)]
    return min(float(out.rpartition("@")[2]) for out in runs)


_WORDS = {
    "clients": re.compile(r"chat\.completions|chat/completions"),
    "token ids": re.compile(r"\b(?:token_ids|completion_ids)\b"),
    "sandboxes": re.compile(r"\bdocker\b", re.IGNORECASE),
}


def language_models(package: str) -> Cell:
    """Which of three things the package's own source has: model clients, token ids of replies, sandboxes."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(package)
    found: set[str] = set()
    for folder, _, names in os.walk(Path(spec.origin).parent, followlinks=True):
        for path in [Path(folder, name) for name in names if name.endswith(".py")]:
            text = path.read_text(encoding="utf-8", errors="replace")
            found |= {what for what, word in _WORDS.items() if word.search(text)}
    return Cell(", ".join(what for what in _WORDS if what in found) or "no")


def dump(cells: Mapping[str, Cell]) -> str:
    """Cells as one line of JSON."""
    return json.dumps({key: cell._asdict() for key, cell in cells.items()})
