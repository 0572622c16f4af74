"""Learners on our games beside the same learners on PettingZoo's; self-play measured exactly.

Stable-Baselines3 and PettingZoo's classic games are imported when a table is asked for, not before.
"""

from benchmarks.timing import Figure, absent

__all__ = ["curves", "steps", "win_rates"]

_SB3 = ("torch", "stable_baselines3", "sb3_contrib")


def steps(seconds: float) -> list[Figure]:
    """Agent steps a second of learning and of playing."""
    if missing := absent(*_SB3, "pygame"):
        return [Figure("ConnectFour-v0", "x", note=missing)]
    from benchmarks.learning.speed import steps as measured

    return measured(seconds)


def win_rates(seconds: float) -> list[Figure]:
    """Win rates after equal steps."""
    if missing := absent(*_SB3, "pygame"):
        return [Figure("ConnectFour-v0", "", note=missing)]
    from benchmarks.learning.strength import win_rates as measured

    return measured(seconds)


def curves(seconds: float) -> list[Figure]:
    """Exploitability over self-play."""
    if missing := absent(*_SB3):
        return [Figure("KuhnPoker-v0", "", note=missing)]
    from benchmarks.learning.poker import curves as measured

    return measured(seconds)
