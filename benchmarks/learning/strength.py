"""How strong the same learner gets in equal steps on each setup: win rates in the same matches, several seeds each."""

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from os import cpu_count
from statistics import fmean
from typing import Any, NamedTuple

from stable_baselines3.common.vec_env import VecEnv

from arena.adapters.sb3 import evaluate
from arena.adapters.sb3.opponents import Result
from benchmarks.learning import setups
from benchmarks.learning.intervals import difference, interval
from benchmarks.timing import Figure, Spread

__all__ = ["Size", "Way", "win_rates"]

OPPONENTS = {"random": 200, "minimax?depth=4": 100}
"""Who the learners are measured against, and in how many games; the seats in turn, the same seed for all."""


class Way(NamedTuple):
    """A setup: its environments by seed, whether the network sees PettingZoo's planes, and steps it is looked at."""

    make: Callable[[int], VecEnv]
    planes: bool
    steps: tuple[int, ...]


class Size(NamedTuple):
    """How much is done: steps after which a learner is looked at, seeds, share of the games."""

    steps: tuple[int, ...]
    seeds: int
    games: float

    @classmethod
    def of(cls, seconds: float) -> "Size":
        """The whole at 2 seconds and more, else a share of it: at least one update, two seeds, two games."""
        share = min(1.0, seconds / 2)
        rollouts = [max(1, round(share * steps / setups.ROLLOUT)) for steps in (20_000, 100_000)]
        steps = tuple(sorted({count * setups.ROLLOUT for count in rollouts}))
        return cls(steps, max(2, round(5 * share)), share)


Rates = dict[tuple[int, str], float]
"""Share of won games by (steps, opponent)."""


def ways(size: Size) -> dict[str, Way]:
    """Ours, and what stands beside it."""
    return {
        "ours": Way(setups.ours, False, size.steps),
        "opponent inside": Way(setups.inside, True, size.steps),
        "tutorial": Way(setups.both, True, size.steps[:1]),
    }


def win_rates(seconds: float) -> list[Figure]:
    """Ours less theirs, with intervals over the seeds (two processes at most)."""
    size = Size.of(seconds)
    tasks = [(name, seed, size) for seed in range(size.seeds) for name in ways(size)]
    found: dict[str, list[Rates]] = {name: [] for name in ways(size)}
    with ProcessPoolExecutor(min(2, cpu_count() or 1), get_context("spawn")) as pool:
        for (name, seed, _), rates in zip(tasks, pool.map(learn, *zip(*tasks, strict=True)), strict=True):
            found[name].append(rates)
            print(f"{name}, seed {seed}: {rates}", file=sys.stderr, flush=True)
    mine = found.pop("ours")
    return [
        _line(opponent, steps, name, mine, theirs)
        for opponent in OPPONENTS
        for steps in size.steps
        for name, theirs in found.items()
        if (steps, opponent) in theirs[0]
    ]


def learn(name: str, seed: int, size: Size) -> Rates:
    """Train one learner and look at it after each number of steps."""
    way = ways(size)[name]
    model = setups.learner(way.make(seed), seed)
    rates: Rates = {}
    for steps in way.steps:
        model.learn(steps - model.num_timesteps, reset_num_timesteps=False)
        assert model.num_timesteps == steps
        for opponent, games in OPPONENTS.items():
            rates[steps, opponent] = _share(model, way.planes, opponent, max(2, round(games * size.games)))
    return rates


def _share(model: Any, planes: bool, opponent: str, games: int) -> float:
    counts = evaluate(setups.player(model, planes), setups.GAME, opponent, games, seed=1_000_000)
    won = sum([number for (_, result), number in counts.items() if result is Result.WIN])
    return won / counts.total()


def _line(opponent: str, steps: int, name: str, ours: Sequence[Rates], theirs: Sequence[Rates]) -> Figure:
    mine, peer = ([rates[steps, opponent] for rates in side] for side in (ours, theirs))
    note = f"intervals: ours {_words(interval(mine))}, theirs {_words(interval(peer))}"
    return Figure(
        f"against {opponent} after {steps:,} steps, beside {name}",
        "", fmean(mine), fmean(peer), difference(mine, peer), 0.0, note=note,
    )  # fmt: skip


def _words(spread: Spread) -> str:
    return f"{spread.low:.3f} to {spread.high:.3f}"
