"""Agent steps a CPU second: learning with the same network on each setup, and the environments alone."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from sb3_contrib.common.maskable.utils import get_action_masks
from stable_baselines3.common.vec_env import VecEnv

from benchmarks.learning import setups
from benchmarks.timing import ROUNDS, Figure, interleave, loop, ratios

__all__ = ["steps"]

GOAL = 2.0
Make = Callable[[int, int], VecEnv]
SETUPS: dict[str, Make] = {
    "ours": setups.ours,
    "opponent inside": setups.inside,
    "tutorial": setups.both,
    "no game": lambda seed, games: setups.Nothing(games),
}


class Setting(NamedTuple):
    """Hyper-parameters: games side by side, steps of each between updates, and how updates are made."""

    name: str
    games: int
    steps: int
    updates: dict[str, int]
    goal: float | None = GOAL


SETTINGS = (
    Setting("defaults (8 games, batches of 64, 10 epochs)", setups.SIDE_BY_SIDE, 256, {}),
    Setting("64 games, batches of 512, 4 epochs", 64, 32, {"batch_size": 512, "n_epochs": 4}),
)


def steps(seconds: float) -> list[Figure]:
    """k agent steps a second. Under one second, a small version: few rounds, short rollouts."""
    rounds, shorter = (ROUNDS, 1) if seconds >= 1 else (2, 16)
    lines = []
    for setting in SETTINGS:
        loops = [loop(_learning(make, setting, shorter)) for make in SETUPS.values()]
        lines += _lines(setting.name, setting.goal, interleave(loops, seconds, rounds))
    loops = [loop(_playing(make(0, 64))) for make in SETUPS.values()]
    return lines + _lines("environments alone, 64 games", None, interleave(loops[:3], seconds, rounds))


def _lines(work: str, goal: float | None, spent: Sequence[list[float]]) -> list[Figure]:
    (_, ours), *others = zip(SETUPS, spent, strict=False)
    lines = []
    for name, theirs in others:
        aimed = goal if name == "opponent inside" else None
        note = "what is the most that any environment can reach" if name == "no game" else ""
        result = ratios(ours, theirs)
        lines.append(
            Figure(f"{work}, beside {name}", "x", 1e3 / min(ours), 1e3 / min(theirs), result, aimed, note=note)
        )
    return lines


def _learning(make: Make, setting: Setting, shorter: int) -> Callable[[], int]:
    """One rollout and the updates that follow it, at each call."""
    model = setups.learner(make(0, setting.games), 0, n_steps=max(1, setting.steps // shorter), **setting.updates)

    def episode() -> int:
        before: int = model.num_timesteps
        model.learn(setting.games * model.n_steps, reset_num_timesteps=False)
        return int(model.num_timesteps - before)

    return episode


def _playing(env: VecEnv) -> Callable[[], int]:
    """32 steps of random legal play in every game, at each call."""
    rng = np.random.default_rng(0)
    env.reset()

    def episode() -> int:
        for _ in range(32):
            masks = get_action_masks(env)
            env.step((rng.random(masks.shape) * masks).argmax(axis=1))
        return 32 * env.num_envs

    return episode
