"""Games broken in hostile text, and secrets."""

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Self

from arena.game import Action, Event, Game, IllegalAction, Player, replace
from tests.broken_games.register import COUNTER, breaks
from tests.toy_games import Bazaar, Take


@breaks("garbage", "only IllegalAction may come out")
class IntErrors(Take):
    def play(self, action: Action) -> Self:
        if action.isdigit() and int(action) > 2:
            raise IllegalAction("too many")
        return super().play(action)


@breaks("garbage", "check() of")
class DeepCheck(Bazaar):
    def check(self, player: Player, action: Action) -> None:
        action.encode()
        super().check(player, action)


@breaks("garbage", "is no text")
class NormalizesToNothing(Take):
    def normalize(self, text: str, player: Player) -> Any:
        return text or None


@breaks("reasons", "a reason of 1,000,0")
class Echoes(Take):
    def play(self, action: Action) -> Self:
        if action not in self.legal_actions(self.ply % 2):
            raise IllegalAction(f"{action} is not allowed")
        return super().play(action)


@breaks("reasons", "a reason of 0 characters")
class SaysNothing(Take):
    def play(self, action: Action) -> Self:
        if action not in self.legal_actions(self.ply % 2):
            raise IllegalAction("")
        return super().play(action)


@breaks("linear_time", "* 1,000 by player 0 took")
class NestedPattern(Take):
    def normalize(self, text: str, player: Player) -> Action:
        re.match(r"a*a*a*$", text[:1001])
        return text


@breaks("check_agrees", "check() accepts")
class LaxCheck(Bazaar):
    def check(self, player: Player, action: Action) -> None:
        return


@breaks("check_agrees", "check() refuses")
class StrictCheck(Bazaar):
    def check(self, player: Player, action: Action) -> None:
        super().check(player, action)
        if action.endswith("!"):
            raise IllegalAction("do not shout", player)


@breaks("forging", "on a line of its own")
class Repeats(Bazaar):
    def observation(self, player: Player) -> str:
        return super().observation(player) + "".join(f"\n{e.sender} said {e.text}" for e in self.events(player))


@breaks("forging", "on a line of its own")
class Narrates(Bazaar):
    def events(self, player: Player) -> tuple[Event, ...]:
        return tuple(Event(e.text, None, e.audience) for e in super().events(player))


@breaks("max_length", "in play with the longest texts allowed")
class ForgetsEscapes(Bazaar):
    def max_length(self) -> int:
        return 100 + self.rounds * 3 * 80


@breaks("max_length", "in play with the longest texts allowed")
class RoomForHaste(Bazaar):
    """Sampled talk ends it with a listed `stop`, silence does not: only who stalls hears it all."""

    def legal_actions(self, player: Player) -> tuple[Action, ...] | None:
        return ("stop", "wait") if self.played % 2 == 0 and self.played < self.rounds else super().legal_actions(player)

    def fallback(self, player: Player) -> Action:
        return "wait" if self.played % 2 == 0 else "say "

    def apply(self, actions: Mapping[Player, Action]) -> Self:
        said = {p: "say " if action in ("stop", "wait") else action for p, action in actions.items()}
        after = super().apply(said)
        return replace(after, played=self.rounds) if "stop" in actions.values() else after

    def max_length(self) -> int:
        return 100 + self.rounds * 3 * 100


@breaks("max_length", "in random play")
class NoRoom(Take):
    def max_length(self) -> int:
        return 5


@breaks("determinize", "raised NotImplementedError")
class NoGuess(Bazaar):
    def determinize(self, player: Player, rng: Random) -> Self:
        return Game.determinize(self, player, rng)


@breaks("determinize", "changed observation of player 0")
class RedrawsOwn(Bazaar):
    def determinize(self, player: Player, rng: Random) -> Self:
        return replace(self, cards=tuple(rng.randrange(10) for _ in range(3))).reseed(rng)


@breaks("determinize", "changed observation of player 0")
class ShowsCards(Bazaar):
    def observation(self, player: Player) -> str:
        return super().observation(player) + f" Sum of the cards: {sum(self.cards)}."


@breaks("determinize", "changed features of player 0")
class FeaturesShowCards(Bazaar):
    def features(self, player: Player) -> Sequence[float]:
        return [card / 10 for card in self.cards]


@breaks("determinize", "gave a Bazaar")
class GuessesOther(Bazaar):
    def determinize(self, player: Player, rng: Random) -> Any:
        return Bazaar(self.cards, self.chance, self.rounds, self.heard, self.played, self.winner)


@breaks("determinize_repeats", "two answers for one rng")
class GuessesElsewhere(Bazaar):
    def determinize(self, player: Player, rng: Random) -> Self:
        return replace(super().determinize(player, rng), rounds=1000 + next(COUNTER))


@breaks("determinize_plays", "could not be played on")
class GuessesHalf(Bazaar):
    def determinize(self, player: Player, rng: Random) -> Self:
        cards = (*self.cards[: player + 1], *(None,) * (2 - player))
        return replace(self, cards=cards).reseed(rng)


@breaks("reseeding", "determinize(0) left the Chance field chance")
class KeepsDice(Bazaar):
    def determinize(self, player: Player, rng: Random) -> Self:
        return replace(super().determinize(player, rng), chance=self.chance)


@breaks("reseeding", "reseed() left the Chance field chance")
class NoReseed(Bazaar):
    def reseed(self, rng: Random) -> Self:
        return self

    def determinize(self, player: Player, rng: Random) -> Self:
        return Game.reseed(replace(super().determinize(player, rng)), rng)
