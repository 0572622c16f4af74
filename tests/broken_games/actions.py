"""Games broken in what `apply` takes."""

from collections.abc import Mapping
from typing import Self

from arena.game import Action, Event, IllegalAction, Player, replace
from tests.broken_games.register import Logged, breaks
from tests.toy_games import Bazaar, Take


@breaks("legal_apply", "which legal_actions(0) lists")
class RefusesListed(Take):
    def play(self, action: Action) -> Self:
        if action == "2":
            raise IllegalAction("not two")
        return super().play(action)


@breaks("illegal", "membership in the list decides")
class ReadsNumbers(Take):
    def play(self, action: Action) -> Self:
        return super().play(action.strip())


@breaks("illegal", "raise IllegalAction(reason)")
class KeyErrors(Take):
    def play(self, action: Action) -> Self:
        return replace(self, stones=self.stones - {"1": 1, "2": 2}[action], ply=self.ply + 1)


@breaks("illegal", "an illegal action changed the value")
class NotesTries(Logged):
    def play(self, action: Action) -> Self:
        self.log.append(action)
        return super().play(action)


@breaks("blame", "IllegalAction names player None")
class BlamesNobody(Bazaar):
    def said(self, player: Player, action: Action) -> Event:
        try:
            return super().said(player, action)
        except IllegalAction as error:
            raise IllegalAction(error.reason) from None


@breaks("wrong_seats", "was accepted, but to_act() is")
class TakesAnySeat(Take):
    def apply(self, actions: Mapping[Player, Action]) -> Self:
        return self.play(next(iter(actions.values()), "1"))


@breaks("wrong_seats", "raised IllegalAction")
class BlamesPlayers(Take):
    def apply(self, actions: Mapping[Player, Action]) -> Self:
        if tuple(actions) != self.to_act():
            raise IllegalAction("not your turn")
        return super().apply(actions)


@breaks("key_order", "and raised ValueError")
class OrderedKeys(Bazaar):
    def apply(self, actions: Mapping[Player, Action]) -> Self:
        if tuple(actions) != self.to_act():
            raise ValueError("wrong seats")
        return super().apply(actions)


@breaks("key_order", "differs from")
class FirstComesFirst(Bazaar):
    def apply(self, actions: Mapping[Player, Action]) -> Self:
        after = super().apply(actions)
        return replace(after, cards=(*self.cards[:2], next(iter(actions), 0)))


@breaks("final", "is not ()")
class LegalAfterEnd(Take):
    def legal_actions(self, player: Player) -> tuple[Action, ...]:
        return super().legal_actions(player) if self.stones else ("1",)


@breaks("final", "but the game is over")
class GoesOn(Take):
    def apply(self, actions: Mapping[Player, Action]) -> Self:
        return super().apply(actions) if self.stones else self


@breaks("final", "apply({}) after the end gave None")
class StepsAfterEnd(Take):
    def apply(self, actions: Mapping[Player, Action]) -> Self:
        return super().apply(actions) if self.stones or actions else self
