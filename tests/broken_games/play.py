"""Games broken in play as a whole, and lists of actions."""

from random import Random
from typing import Any, ClassVar, Self

from arena.game import Action, IllegalAction, Player, replace
from tests.broken_games.register import COUNTER, breaks
from tests.toy_games import Bazaar, Take


@breaks("plays", "broke off at move 1 with IllegalAction")
class ListsTooMuch(Take):
    def legal_actions(self, player: Player) -> tuple[Action, ...]:
        return ("8",) if super().legal_actions(player) else ()

    def play(self, action: Action) -> Self:
        raise IllegalAction("never")


@breaks("plays", "no first position (seed 0): KeyError('deck')")
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


@breaks("fallback", "'sleep', not legal now")
class Sleeps(Take):
    def fallback(self, player: Player) -> Action:
        return "sleep"


@breaks("normalize", "legal actions stay as they are")
class BendsLegal(Take):
    def normalize(self, text: str, player: Player) -> Action:
        return f"take {text}"
