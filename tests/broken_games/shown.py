"""Games broken in what is earned, told and shown."""

from typing import Any

from arena.game import Action, Event, Player
from tests.broken_games.register import COUNTER, Logged, breaks
from tests.toy_games import Bazaar, Take


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


@breaks("reads", "observation(0) changed from")
class CountsLooks(Take):
    def observation(self, player: Player) -> str:
        return f"{self.stones} stones, look {next(COUNTER)}"


@breaks("reads", "looking at the position changed it")
class LogsLooks(Logged):
    def observation(self, player: Player) -> str:
        self.log.append("look")
        return super().observation(player)
