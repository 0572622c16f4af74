"""The AEC face beside PettingZoo's classic games, both in PettingZoo's own loop with random legal play."""

import importlib
import itertools
import warnings
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pettingzoo

from benchmarks import loops
from benchmarks.timing import Figure, Loop, absent, interleave, loop, ratios

__all__ = ["against_pettingzoo"]


class Goal(NamedTuple):
    """Our game, theirs, the ratio to reach, and the modules that theirs needs."""

    game: str
    peer: str
    ratio: float
    needs: tuple[str, ...]


GOALS = (
    Goal("TicTacToe-v0", "tictactoe_v3", 15.0, ("pygame",)),
    Goal("ConnectFour-v0", "connect_four_v3", 15.0, ("pygame",)),
    Goal("LeducPoker-v0", "leduc_holdem_v4", 15.0, ("pygame", "rlcard")),
    Goal("Chess-v0", "chess_v6", 10.0, ("pygame", "chess")),
)


def against_pettingzoo(seconds: float) -> list[Figure]:
    """k actions a second."""
    return [_line(goal, seconds) for goal in GOALS]


def _line(goal: Goal, seconds: float) -> Figure:
    if missing := absent(*goal.needs):
        return Figure(goal.game, "x", goal=goal.ratio, note=missing)
    ours, theirs = interleave([_ours(goal.game), _theirs(goal.peer)], seconds)
    return Figure(goal.game, "x", 1e3 / min(ours), 1e3 / min(theirs), ratios(ours, theirs), goal.ratio)


def _ours(game: str) -> Loop:
    return loop(loops.aec(pettingzoo.make("aec", f"arena/{game}")))


def _theirs(module: str) -> Loop:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = importlib.import_module(f"pettingzoo.classic.{module}").env()
    return loop(_classic(env))


def _classic(env: Any) -> Callable[[], int]:
    rng, seeds = Random(0), itertools.count()

    def episode() -> int:
        env.reset(seed=next(seeds))
        count = 0
        for _ in env.agent_iter(1 << 30):
            observation, _, terminated, truncated, info = env.last()
            if terminated or truncated:
                env.step(None)
                continue
            mask = info["action_mask"] if "action_mask" in info else observation["action_mask"]
            env.step(int(rng.choice(np.flatnonzero(mask))))
            count += 1
        return count

    return episode
