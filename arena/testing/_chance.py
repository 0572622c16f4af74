"""Checks of chance: one seed, one game, wherever and beside whatever it is played."""

import os
import pickle
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from importlib import import_module
from itertools import islice, zip_longest
from operator import attrgetter
from typing import Any

import msgspec

from arena.game import Game
from arena.testing._case import Case, Moves, SeatView, Violation, attempt, short, view

MAX_PLIES = 150
Trace = list[tuple[Game, Moves, tuple[float, ...], tuple[SeatView, ...]]]
PARTS = ("position", "moves drawn by sample_action or from the list", "returns", "view of the seats")


def _trace(case: Case, seed: int) -> Iterator[tuple[Game, Moves, tuple[float, ...], tuple[SeatView, ...]]]:
    """All there is to see of a seed, looked at while it is played."""
    for position, moves in islice(case.play(seed), MAX_PLIES):
        yield position, moves, position.returns(), view(position)


def _traces(case: Case) -> list[Trace]:
    return [list(_trace(case, seed)) for seed in case.seeds]


def _compare(case: Case, first: Sequence[Trace], again: Sequence[Trace], how: str) -> None:
    for seed, one, two in zip(case.seeds, first, again, strict=True):
        for ply, (a, b) in enumerate(zip_longest(one, two)):
            if a == b:
                continue
            part = next((i for i in range(len(PARTS)) if a and b and a[i] != b[i]), 0)
            was, now = (x and short(x[part]) for x in (a, b))
            raise Violation(
                f"{how}, the same seed, options and actions gave another game; {PARTS[part]} was {was} and became "
                f"{now}: take all chance from rng or a Chance field, and keep no state outside the value "
                f"(seed {seed}, after {ply} moves)"
            )


def determinism(case: Case) -> None:
    """Same seed, options and actions: the same values, observations, events, lists and returns."""
    _compare(case, _traces(case), _traces(case), "played again")


def interleaving(case: Case) -> None:
    """A game is the same when others of its class are played at the same time, move by move."""
    together = list(zip_longest(*(_trace(case, seed) for seed in (*case.seeds, *case.seeds))))
    again = [[step for step in column if step] for column in zip(*together, strict=True)]
    first = _traces(case)
    _compare(case, first, again[: len(first)], "interleaved with other games")


def threads(case: Case) -> None:
    """A game is the same when it is played in another thread, beside others."""
    with ThreadPoolExecutor(4) as pool:
        again = list(pool.map(lambda seed: list(_trace(case, seed)), case.seeds))
    _compare(case, _traces(case), again, "played in threads")


def _numpy_state() -> bytes | None:
    numpy: Any = sys.modules.get("numpy")
    return None if numpy is None else pickle.dumps(numpy.random.get_state())


def global_random(case: Case) -> None:
    """The global generators of `random` and `numpy.random` are neither used nor seeded."""
    state, numpy_state = random.getstate(), _numpy_state()
    for seed in case.seeds:
        for position, _, _, _ in _trace(case, seed):
            attempt(position.determinize, 0, random.Random(seed))
    for spot in case.asking(10):
        for p in spot.game.to_act():
            attempt(spot.game.sample_action, p, random.Random(0))
    if random.getstate() != state:
        raise Violation("the global random module was used or seeded: draw from rng, or from a Chance field")
    if numpy_state is not None and _numpy_state() != numpy_state:
        raise Violation("the global numpy.random was used or seeded: draw from rng, or from a Chance field")


class Order(msgspec.Struct):
    """What the other process is to play."""

    module: str
    name: str
    options: dict[str, Any]
    seeds: list[int]
    max_plies: int


def digests(case: Case) -> list[str]:
    """A digest of what can be seen, move by move, for every seed."""
    found = []
    for seed in case.seeds:
        digest = blake2b()
        for _, *seen in _trace(case, seed):
            digest.update(repr(seen).encode(errors="surrogatepass"))
        found.append(digest.hexdigest())
    return found


def serve() -> None:
    """The other process: an Order from stdin, digests to stdout."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    game = attrgetter(order.name)(import_module(order.module))
    case = Case(game, order.options, tuple(order.seeds), order.max_plies)
    sys.stdout.buffer.write(b"\n" + msgspec.json.encode(digests(case)))


def hash_seed(case: Case) -> None:
    """A game is the same in another process with another PYTHONHASHSEED. The class must be importable."""
    module, name = case.game.__module__, case.game.__qualname__
    if module == "__main__" or "<locals>" in name:
        raise Violation(f"{module}:{name} cannot be imported by another process: move it to the top of a module")
    order = Order(module, name, dict(case.options), list(case.seeds), case.max_plies)
    other = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-c", "from arena.testing._chance import serve; serve()"],
        input=msgspec.json.encode(order),
        capture_output=True,
        env=os.environ | {"PYTHONHASHSEED": other, "PYTHONPATH": path},
        check=False,
    )
    if done.returncode:
        raise Violation(f"another process could not play it: {short(done.stderr[-300:].decode(errors='replace'))}")
    if msgspec.json.decode(done.stdout.rpartition(b"\n")[2]) != digests(case):
        raise Violation(
            "in another process, with another PYTHONHASHSEED, the same seed gave another game: never let the order "
            "of a set, hash() or id() decide; sort, or use tuples and dicts"
        )
