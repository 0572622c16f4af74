"""A game of one for a score, for tests: some strokes, each worth what was chosen, and the luck of the seed."""

from random import Random
from typing import Self

from arena.game import NOBODY, SEAT, Action, IllegalAction, Player, TurnGame, replace

__all__ = ["Golf", "Range"]


class Golf(TurnGame):
    """Returns lie between -1 - luck and 4 + luck; no bounds are known of `Range`."""

    perfect_information = True
    players = 1

    luck: float
    score: int = -1

    @classmethod
    def initial(cls, rng: Random) -> Self:
        return cls(rng.randint(-3, 3))

    def to_act(self) -> tuple[Player, ...]:
        return SEAT[0] if self.score < 0 else NOBODY

    def rules(self, player: Player) -> str:
        return "Say how far, 0 to 4. For example: 2"

    def observation(self, player: Player) -> str:
        return f"{self.score}"

    def legal_actions(self, player: Player) -> tuple[Action, ...]:
        return ("0", "1", "2", "3", "4") if self.score < 0 else ()

    def play(self, action: Action) -> Self:
        if action not in self.legal_actions(0):
            raise IllegalAction("0 to 4")
        return replace(self, score=int(action))

    def returns(self) -> tuple[float, ...]:
        return (self.score + self.luck,)

    def reward_range(self) -> tuple[float, float]:
        return (-6.0, 7.0)


class Range(Golf):
    """Without bounds."""

    def reward_range(self) -> tuple[float, float]:
        return (float("-inf"), float("inf"))
