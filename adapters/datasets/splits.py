"""Splits: what is trained on and what is held out, apart by seed group."""

from hashlib import blake2b
from typing import Literal

import msgspec

__all__ = ["SIDES", "Side", "Split"]

Side = Literal["train", "validation"]
SIDES: tuple[Side, ...] = ("train", "validation")


class Split(msgspec.Struct, frozen=True):
    """A share of the seed groups is held out.

    A seed group is all that is played on one game with the same options and seed (`Trajectory.task_id`): every seat,
    sample, agent and continuation falls on one side. The side depends on the group and the split's seed only, so
    that it is the same in the next export, whatever else there is.

    >>> split = Split(0.5)
    >>> [split.side(task) for task in ("1f", "2e", "3d", "4c")]
    ['validation', 'validation', 'validation', 'train']
    """

    validation: float = 0.0
    """The share of the seed groups that is held out, 0 to below 1; of few groups it may be another, or none."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.validation < 1:
            raise ValueError(f"validation={self.validation}: allowed are 0 to below 1")

    def side(self, task_id: str) -> Side:
        """Where a seed group belongs."""
        drawn = blake2b(f"{self.seed} {task_id}".encode(), digest_size=8).digest()
        return "validation" if int.from_bytes(drawn, "big") < self.validation * 2**64 else "train"
