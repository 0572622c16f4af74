"""Self-play on Kuhn and Leduc poker: MaskablePPO against its past, and what the best reply wins against it.

The opponent of each hand is drawn evenly among all that the learner has been, so that it learns a reply to the average
of its past. That average is what converges in fictitious play; the last policy goes round in circles.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList

from arena.adapters.sb3 import ArenaVecEnv, NetworkAgent, OpponentPool, Policy, SelfPlayCallback
from arena.adapters.sb3.odds import odds
from arena.exploitability import GameTree, Odds
from benchmarks.timing import Figure, Spread

__all__ = ["Curve", "Point", "curves", "learn"]

HANDS = 64
"""Games side by side."""
ROLLOUT = 32 * HANDS
SETTINGS: dict[str, float] = {
    "n_steps": ROLLOUT // HANDS, "batch_size": 512, "n_epochs": 4, "gamma": 1.0, "gae_lambda": 1.0,
    "learning_rate": 3e-3, "ent_coef": 0.05, "vf_coef": 0.02, "max_grad_norm": 5.0,
}  # fmt: skip
"""Returns of many chips make gradients of the value so large that, clipped together, little of the policy's is left."""
LOOKS = 8
"""Lines of a game's table, after the first."""


class Plan(NamedTuple):
    """Of one game: steps in all, steps between two snapshots, seeds."""

    game: str
    steps: int
    every: int
    seeds: int


PLANS = (Plan("KuhnPoker-v0", 120_000, 2_048, 3), Plan("LeducPoker-v0", 240_000, 4_096, 3))


class Point(NamedTuple):
    """Exploitability after so many steps."""

    steps: int
    last: float
    """Of the policy as it is then."""
    average: float
    """Of the average of all snapshots until then."""


class Curve(BaseCallback):
    """Every so many steps the exploitability of the policy and of the average of its past."""

    def __init__(self, game: str, every: int) -> None:
        super().__init__()
        self.tree, self.every = GameTree(game), every
        self.past: list[Odds] = []
        self.points: list[Point] = []

    def _on_training_start(self) -> None:
        self._look()

    def _on_step(self) -> bool:
        if self.num_timesteps // self.every >= len(self.points):
            self._look()
        return True

    def _look(self) -> None:
        now = odds(NetworkAgent(Policy.of(self.model), masked=True), self.tree)
        self.past.append(now)
        average = self.tree.average(self.past)
        last, mean = self.tree.exploitability(now), self.tree.exploitability(average)
        self.points.append(Point(self.num_timesteps, last, mean))


def learn(game: str, steps: int, every: int, seed: int, **settings: Any) -> list[Point]:
    """Train one learner; the points of its curve, the untrained policy first."""
    torch.set_num_threads(1)
    pool = OpponentPool(["uniform"], seed=seed, keep=steps // every + 2)
    env = ArenaVecEnv(game, HANDS, opponents=pool, seed=seed)
    model = MaskablePPO("MlpPolicy", env, seed=seed, device="cpu", **{**SETTINGS, **settings})
    curve = Curve(game, every)
    model.learn(steps, CallbackList([SelfPlayCallback(pool, every), curve]))
    return curve.points


def curves(seconds: float) -> list[Figure]:
    """Exploitability over training, the untrained policy first. Two seconds are the whole, less is a share of it."""
    share = min(1.0, seconds / 2)
    lines = []
    for plan in PLANS:
        every = max(ROLLOUT, round(plan.every * share))
        steps = max(2 * every, round(plan.steps * share))
        runs = [learn(plan.game, steps, every, seed) for seed in range(max(2, round(plan.seeds * share)))]
        lines += _lines(plan.game, runs)
    return lines


def _lines(game: str, runs: Sequence[Sequence[Point]]) -> list[Figure]:
    """Means over the seeds; the goal, at the end, is what it was in the beginning."""
    length = min(map(len, runs))
    shown = sorted({0, *(length - 1 - (length - 1) * part // LOOKS for part in range(LOOKS))})
    lines = []
    for at in shown:
        points = [run[at] for run in runs]
        average, last = fmean([point.average for point in points]), fmean([point.last for point in points])
        lowest, highest = min([point.average for point in points]), max([point.average for point in points])
        result = Spread(average, lowest, highest)
        lines.append(Figure(f"{game} after {points[0].steps:,} steps", "", average, last, result))
    return [*lines[:-1], lines[-1]._replace(goal=round(fmean([run[0].average for run in runs]), 3), at_most=True)]
