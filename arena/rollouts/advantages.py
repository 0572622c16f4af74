"""Advantages: by how much a return is better than what was to be expected.

In self-play of a zero-sum game the mean over both seats is about zero whatever the policy does, and one role may be
dealt the better game; so a baseline belongs to one role of one game, and samples are compared within one role only.
"""

from collections.abc import Sequence
from math import fsum, isfinite
from statistics import stdev

__all__ = ["RoleBaseline", "group_relative"]


class RoleBaseline:
    """Role-conditioned advantage estimation (RAE): a running mean of the returns of each role of each game.

    The advantage is the return minus the baseline as it was BEFORE this return, and is not scaled by any deviation;
    a baseline begins at 0. Read after its update, as some implementations do, it would hold part of the return that
    it is to judge.
    Source: Liu et al., "SPIRAL", arXiv 2506.24119 (2025), section 3.3: b <- decay b + (1 - decay) R.

    >>> baseline = RoleBaseline(decay=0.5)
    >>> [baseline.advantage("KuhnPoker-v0", "first", reward) for reward in (2.0, 2.0, -1.0)]
    [2.0, 1.0, -2.5]
    """

    def __init__(self, decay: float = 0.95) -> None:
        """`decay`: what stays of a baseline when a return is counted. Raises ValueError for one outside [0, 1)."""
        if not 0 <= decay < 1:
            raise ValueError(f"decay={decay}: allowed are 0 to below 1")
        self.decay = decay
        self.baselines: dict[tuple[str, str], float] = {}
        """By game and role; to be stored and given back where a training run is resumed."""

    def advantage(self, game: str, role: str, reward: float) -> float:
        """The return's advantage; then it is counted. Raises ValueError for a return that is not finite.

        Where several seats of one episode have the same role, `read` for all of them before any is counted (`count`).
        """
        before = self.read(game, role)
        self.count(game, role, reward)
        return reward - before

    def read(self, game: str, role: str) -> float:
        """The baseline as it is."""
        return self.baselines.get((game, role), 0.0)

    def count(self, game: str, role: str, reward: float) -> None:
        """Update the baseline by a return. Raises ValueError for one that is not finite."""
        if not isfinite(reward):
            raise ValueError(f"a return of {reward}: allowed are finite numbers")
        self.baselines[game, role] = self.decay * self.read(game, role) + (1 - self.decay) * reward


def group_relative(rewards: Sequence[float], scale: bool = False) -> list[float]:
    """Each return minus the mean of its group: samples of one task and one role.

    `scale`: over the group's standard deviation, that of a sample (over n - 1, as TRL and verl compute it; no epsilon
    is added). A group of one, or of equal returns, tells nothing: zeros. Raises ValueError for returns not finite.
    Source: Shao et al., "DeepSeekMath" (GRPO), arXiv 2402.03300 (2024); unscaled: Liu et al., "Dr. GRPO", arXiv
    2503.20783 (2025).

    >>> group_relative([1.0, 0.0, -1.0]), group_relative([3.0, 1.0, -1.0], scale=True), group_relative([0.1] * 3)
    ([1.0, 0.0, -1.0], [1.0, 0.0, -1.0], [0.0, 0.0, 0.0])
    """
    if not all(map(isfinite, rewards)):
        raise ValueError(f"returns of {list(rewards)}: allowed are finite numbers")
    if len(set(rewards)) < 2:
        return [0.0] * len(rewards)
    mean = fsum(rewards) / len(rewards)
    deviation = stdev(rewards) if scale else 1.0
    return [(reward - mean) / deviation for reward in rewards]
