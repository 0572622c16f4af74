"""Relay: a game of a fixed number of plies in which any of seven answers is legal, for measuring only."""

from random import Random
from typing import Self

from arena.game import NOBODY, SEAT, Action, IllegalAction, Player, TurnGame
from arena.registry import register
from benchmarks.load import texts

__all__ = ["ID", "Relay", "known"]

ID = "LoadRelay-v0"
NUMBERS = ("1", "2", "3", "4", "5", "6", "7")


class Relay(TurnGame):
    """Option `plies`: turns of both seats together."""

    zero_sum = True
    perfect_information = True
    players = 2

    deal: int
    plies: int
    row: tuple[int, ...] = ()

    @classmethod
    def initial(cls, rng: Random, plies: int = texts.PLIES) -> Self:
        if not 2 <= plies <= 1000:
            raise ValueError(f"plies={plies}: allowed are 2 to 1000")
        return cls(rng.getrandbits(48), plies)

    def to_act(self) -> tuple[Player, ...]:
        return SEAT[len(self.row) % 2] if len(self.row) < self.plies else NOBODY

    def rules(self, player: Player) -> str:
        return texts.rules(player, self.plies)

    def observation(self, player: Player) -> str:
        return texts.position(self.deal, player, len(self.row), self.row)

    def legal_actions(self, player: Player) -> tuple[Action, ...]:
        return NUMBERS if self.to_act() == (player,) else ()

    def play(self, action: Action) -> Self:
        if action not in NUMBERS:
            raise IllegalAction("say a whole number from 1 to 7")
        return type(self)(self.deal, self.plies, (*self.row, int(action)))

    def returns(self) -> tuple[float, ...]:
        if len(self.row) < self.plies:
            return (0.0, 0.0)
        sums = [0, 0]
        for at, number in enumerate(self.row):
            before = self.row[at - 1] if at else 0
            sums[at % 2] += number * ((number != before) + (number < before))
        won = float((sums[0] > sums[1]) - (sums[0] < sums[1]))
        return (won, -won)

    def max_turns(self) -> int:
        return self.plies


def known() -> str:
    """The id of the game, which this process knows from now on."""
    register(ID, "benchmarks.load.game:Relay")
    return ID
