"""Games that each break one rule of the contract: the proof that every check can fail."""

import random
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from random import Random
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from arena.game import Action, Event, Game, IllegalAction, LiveGame, Player, replace
from tests.toy_games import Bazaar, Take

G = TypeVar("G", bound=type[Game])
BROKEN: list[tuple[str, type[Game], str]] = []
"""The check that must fail, the game, and words of the message."""


def breaks(check: str, saying: str) -> Callable[[G], G]:
    """Register the class as the proof of a check."""

    def register(game: G) -> G:
        BROKEN.append((check, game, saying))
        return game

    return register


@breaks("plays", "broke off at move 1 with IllegalAction")
class ListsTooMuch(Take):
    def legal_actions(self, player: Player) -> tuple[Action, ...]:
        return ("8",) if super().legal_actions(player) else ()

    def play(self, action: Action) -> Self:
        raise IllegalAction("never")


@breaks("plays", "broke off at initial()")
class NoDeal(Take):
    @classmethod
    def initial(cls, rng: Random, most: int = 7, takes: tuple[int, ...] = (1, 2)) -> Self:
        raise KeyError("deck")


@breaks("plays", "a position is a Take")
class OtherClass(Take):
    def play(self, action: Action) -> Any:
        after = super().play(action)
        return Take(after.stones, after.takes, after.most, after.ply)


@breaks("seats", "in ascending order")
class UnorderedSeats(Bazaar):
    def to_act(self) -> tuple[Player, ...]:
        return super().to_act()[::-1]


@breaks("seats", "name seats of range(3)")
class NoSuchSeat(Bazaar):
    def to_act(self) -> tuple[Player, ...]:
        return (0, 1, 3) if super().to_act() else ()


@breaks("defined", "observation(0) raised IndexError")
class NoFinalView(Take):
    def observation(self, player: Player) -> str:
        return super().observation(player) + str(self.to_act()[0])


@breaks("defined", "returns() is [0.0, 0.0]: return tuple")
class ReturnsList(Take):
    def returns(self) -> Any:
        return [0.0, 0.0]


@breaks("defined", "players is 0")
class NoPlayers(Take):
    players: ClassVar[int] = 0  # type: ignore[misc]  # that is what is broken


@breaks("defined", "normalize('pass', 0) raised ValueError")
class NarrowNormalize(Take):
    def normalize(self, text: str, player: Player) -> Action:
        return str(int(text))


@breaks("defined", "check(0, 'pass') raised KeyError")
class WildCheck(Take):
    def check(self, player: Player, action: Action) -> None:
        raise KeyError(action)


@breaks("defined", "teams() has 3 entries for 2 seats")
class ThreeTeams(Take):
    def teams(self) -> tuple[int, ...]:
        return (0, 1, 2)


@breaks("ends", "max_turns() is 1")
class EndsLate(Take):
    def max_turns(self) -> int:
        return 1


@breaks("options", "spell every option out")
class AnyOption(Take):
    @classmethod
    def initial(cls, rng: Random, **options: Any) -> Self:  # type: ignore[override]  # that is what is broken
        return super().initial(rng)


@breaks("options", "the first parameter of initial() must be rng")
class NoRng(Take):
    @classmethod
    def initial(cls, seed: Any, most: int = 7) -> Self:  # type: ignore[override]  # that is what is broken
        return super().initial(seed, most)


@breaks("options", "size of initial() has no default")
class NoDefault(Take):
    @classmethod
    def initial(cls, rng: Random, size: int) -> Self:  # type: ignore[override]  # that is what is broken
        return super().initial(rng, size)


@breaks("json_options", "another game after a round trip")
class KeepsList(Take):
    @classmethod
    def initial(cls, rng: Random, most: int = 7, takes: tuple[int, ...] = (1, 2)) -> Self:
        return cls(rng.randint(1, most), takes, most)


@breaks("json_options", "do not survive JSON")
class SetOption(Take):
    @classmethod
    def initial(cls, rng: Random, most: int = 7, takes: Any = frozenset({1, 2})) -> Self:
        return super().initial(rng, most, takes)


@breaks("options_only", "rules(0) is")
class RulesTellSecret(Bazaar):
    def rules(self, player: Player) -> str:
        return super().rules(player) + f"\nYou hold {self.cards[player]}."


@breaks("options_only", "max_turns is")
class ShrinkingBound(Take):
    def max_turns(self) -> int:
        return self.stones


@breaks("legal_list", "lists an action twice")
class TwiceListed(Take):
    def legal_actions(self, player: Player) -> tuple[Action, ...]:
        return super().legal_actions(player) * 2


@breaks("legal_list", "return a tuple of str")
class ListOfActions(Take):
    def legal_actions(self, player: Player) -> Any:
        return list(super().legal_actions(player)) or ()


@breaks("legal_list", "is not to act: return ()")
class ListsForAll(Take):
    def legal_actions(self, player: Player) -> tuple[Action, ...]:
        return super().legal_actions(self.ply % 2)


@breaks("legal_list", "is empty: offer a pass")
class NothingToDo(Take):
    def legal_actions(self, player: Player) -> tuple[Action, ...]:
        return ()

    def sample_action(self, player: Player, rng: Random) -> Action:
        return "1"

    def play(self, action: Action) -> Self:
        return replace(self, stones=self.stones - 1)


@breaks("samples", "which is not legal")
class SamplesAnything(Take):
    def sample_action(self, player: Player, rng: Random) -> Action:
        return "9"


@breaks("samples", "two answers for one rng")
class SamplesElsewhere(Bazaar):
    def sample_action(self, player: Player, rng: Random) -> Action:
        return f"say {next(COUNTER)}"


COUNTER = count()


@breaks("fallback", "'sleep', not legal now")
class Sleeps(Take):
    def fallback(self, player: Player) -> Action:
        return "sleep"


@breaks("normalize", "legal actions stay as they are")
class BendsLegal(Take):
    def normalize(self, text: str, player: Player) -> Action:
        return f"take {text}"


@breaks("returns", "must be a finite float")
class WholeReturns(Take):
    def returns(self) -> tuple[float, ...]:
        return (0, 0)


@breaks("returns", "has 3 numbers for 2 seats")
class ThreeReturns(Take):
    def returns(self) -> tuple[float, ...]:
        return (*super().returns(), 0.0)


@breaks("returns", "changed from")
class DriftingReturns(Take):
    def returns(self) -> tuple[float, ...]:
        return (float(next(COUNTER)), 0.0)


@breaks("reward_range", "outside reward_range()")
class NarrowRange(Take):
    def reward_range(self) -> tuple[float, float]:
        return (-0.5, 0.5)


@breaks("reward_range", "the lower first")
class RangeUpsideDown(Take):
    def reward_range(self) -> tuple[float, float]:
        return (1.0, -1.0)


@breaks("zero_sum", "drop it")
class WinnersOnly(Take):
    def returns(self) -> tuple[float, ...]:
        return tuple(max(x, 0.0) for x in super().returns())


@breaks("events", "it must hold Event")
class TextEvents(Bazaar):
    def events(self, player: Player) -> Any:
        return tuple(e.text for e in super().events(player))


@breaks("events", "no valid sender")
class StrangeSender(Bazaar):
    def events(self, player: Player) -> tuple[Event, ...]:
        return (Event("hello", 7),)


@breaks("events", "no valid audience")
class StrangeAudience(Bazaar):
    def events(self, player: Player) -> tuple[Event, ...]:
        return (Event("hello", None, (0, 1, 2, 3)),)


@breaks("events", "does not belong to its audience")
class DeafSender(Bazaar):
    def events(self, player: Player) -> tuple[Event, ...]:
        return (Event("hello", 0, (1, 2)),)


@breaks("append_only", "no longer begin with what they were")
class Forgets(Bazaar):
    def events(self, player: Player) -> tuple[Event, ...]:
        return super().events(player)[-4:]


@breaks("audience", "is told Event")
class NoSecrets(Bazaar):
    def events(self, player: Player) -> tuple[Event, ...]:
        return self.heard


@breaks("action_table", "not in action_table()")
class ShortTable(Take):
    def action_table(self) -> tuple[Action, ...]:
        return ("1",)


@breaks("action_table", "each once")
class DoubleTable(Take):
    def action_table(self) -> tuple[Action, ...]:
        return ("1", "2", "2")


@breaks("features", "of another length")
class GrowingFeatures(Take):
    def features(self, player: Player) -> tuple[float, ...]:
        return (0.0,) * self.ply


@breaks("features", "scale it")
class LargeFeatures(Take):
    def features(self, player: Player) -> tuple[float, ...]:
        return (float(self.stones),)


@breaks("rules_example", "legal in no position")
class BadExample(Take):
    def rules(self, player: Player) -> str:
        return "Take stones.\nFor example: take three"


@breaks("frozen", "the field stones can be set")
class Thawed(Take, frozen=False):
    """Its fields can be set."""


@breaks("reads", "observation(0) was")
class CountsLooks(Take):
    def observation(self, player: Player) -> str:
        return f"{self.stones} stones, look {next(COUNTER)}"


class Logged(Take):
    log: list[str] = []  # noqa: RUF012 - msgspec copies it for every value


@breaks("reads", "looking at the position changed it")
class LogsLooks(Logged):
    def observation(self, player: Player) -> str:
        self.log.append("look")
        return super().observation(player)


@breaks("max_action", "but max_action() is 0")
class ShortBound(Take):
    def max_action(self) -> int:
        return 0


@breaks("max_action", "but max_action() is 46")
class ShortTextBound(Bazaar):
    def max_action(self) -> int:
        return 46


class Live(LiveGame, Take):
    """Stones behind a server."""


@breaks("closing", "it must be safe")
class ClosesOnce(Live):
    log: list[str] = []  # noqa: RUF012 - msgspec copies it for every value

    def close(self) -> None:
        if self.log:
            raise RuntimeError("closed already")
        self.log.append("closed")


@breaks("determinism", "played again")
class CountsDeals(Take):
    @classmethod
    def initial(cls, rng: Random, most: int = 7, takes: tuple[int, ...] = (1, 2)) -> Self:
        return cls(next(COUNTER) + 1, tuple(takes), most)


@breaks("determinism", "moves drawn by sample_action")
class SamplesOutside(SamplesElsewhere):
    """Random play is not the same twice."""


LAST: list[int] = [0]


@breaks("interleaving", "interleaved with other games")
class SharedClock(Take):
    @classmethod
    def initial(cls, rng: Random, most: int = 7, takes: tuple[int, ...] = (1, 2)) -> Self:
        LAST[0] = 0
        return super().initial(rng, most, takes)

    def play(self, action: Action) -> Self:
        LAST[0] += 1
        return super().play(action)

    def observation(self, player: Player) -> str:
        return f"{self.stones} stones, clock {LAST[0]}"


@breaks("threads", "played in threads")
class LooksAtThread(Take):
    def observation(self, player: Player) -> str:
        return f"{self.stones} stones in {threading.current_thread().name}"


@breaks("hash_seed", "never let the order of a set")
class ShowsHash(Take):
    def observation(self, player: Player) -> str:
        return f"{self.stones} stones {hash('stone')}"


@breaks("global_random", "the global random module")
class GlobalRandom(Take):
    def play(self, action: Action) -> Self:
        random.random()
        return super().play(action)


@breaks("global_random", "the global numpy.random")
class GlobalNumpy(Take):
    def play(self, action: Action) -> Self:
        np.random.rand()
        return super().play(action)


@breaks("purity", "changed the value")
class WritesIntoIt(Logged):
    def play(self, action: Action) -> Self:
        self.log.append(action)
        return super().play(action)


@breaks("purity", "another position the second time")
class ForgetsNothing(Take):
    def play(self, action: Action) -> Self:
        return replace(super().play(action), most=next(COUNTER))


@breaks("hashing", "log: list")
class Unhashable(Logged):
    """Holds a list."""


@breaks("equality", "gave an unequal position")
class OnlyItself(Take):
    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = Take.__hash__


@breaks("equality", "that look different are equal")
class AllAlike(Take):
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


class Handle(Take):
    tool: Any = None

    @classmethod
    def initial(cls, rng: Random, most: int = 7, takes: tuple[int, ...] = (1, 2)) -> Self:
        return replace(super().initial(rng, most, takes), tool=TOOL)


TOOL = threading.Lock()


@breaks("pickling", "hold data only")
class HoldsLock(Handle):
    """A lock cannot travel."""


@breaks("pickling", "a pickled position is not equal")
class LosesPly(Take):
    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.stones, self.takes, self.most)


@breaks("copying", "a copied position is not equal")
class BadCopy(Take):
    def __copy__(self) -> Self:
        return replace(self, ply=self.ply + 2)


@breaks("copying", "a deep-copied position is not equal")
class BadDeepCopy(Take):
    def __deepcopy__(self, memo: object) -> Self:
        return replace(self, stones=self.stones + 2)


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
