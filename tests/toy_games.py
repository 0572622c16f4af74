"""Two small games that keep every rule: one by turns with a list, one at once with secrets, dice and open text."""

from collections.abc import Mapping
from random import Random
from typing import Self

from arena.chance import Chance
from arena.game import NOBODY, SEAT, Action, Event, Game, IllegalAction, Player, TurnGame, replace


class Take(TurnGame):
    """Two players take stones in turn; who takes the last one wins."""

    zero_sum = True
    perfect_information = True
    players = 2

    stones: int
    takes: tuple[int, ...]
    most: int
    ply: int = 0

    @classmethod
    def initial(cls, rng: Random, most: int = 7, takes: tuple[int, ...] = (1, 2)) -> Self:
        if most < 1 or 1 not in takes:
            raise ValueError(f"most={most}, takes={takes}: allowed are most >= 1 and takes with 1 among them")
        return cls(rng.randint(1, most), tuple(takes), most)

    def to_act(self) -> tuple[Player, ...]:
        return SEAT[self.ply % 2] if self.stones else NOBODY

    def rules(self, player: Player) -> str:
        return f"Take {self.takes} of at most {self.most} stones.\nFor example: 1\nThe last stone wins."

    def observation(self, player: Player) -> str:
        return f"{self.stones} stones"

    def legal_actions(self, player: Player) -> tuple[Action, ...]:
        if not self.stones or player != self.ply % 2:
            return ()
        return tuple(str(n) for n in self.takes if n <= self.stones)

    def play(self, action: Action) -> Self:
        if action not in self.legal_actions(self.ply % 2):
            raise IllegalAction(f"take one of {self.takes}")
        return replace(self, stones=self.stones - int(action), ply=self.ply + 1)

    def returns(self) -> tuple[float, ...]:
        if self.stones:
            return (0.0, 0.0)
        return (1.0, -1.0) if self.ply % 2 else (-1.0, 1.0)

    def max_turns(self) -> int:
        return self.most

    def action_table(self) -> tuple[Action, ...]:
        return tuple(map(str, self.takes))

    def features(self, player: Player) -> tuple[float, ...]:
        return (self.stones / self.most, float(self.ply % 2 == player))


class Bazaar(Game):
    """Three players hold a secret card and talk at once, aloud or in private; the highest card and die wins."""

    zero_sum = True
    players = 3

    cards: tuple[int, ...]
    chance: Chance
    rounds: int
    heard: tuple[Event, ...] = ()
    played: int = 0
    winner: int = -1

    @classmethod
    def initial(cls, rng: Random, rounds: int = 3) -> Self:
        if not 1 <= rounds <= 9:
            raise ValueError(f"rounds={rounds}: allowed are 1 to 9")
        return cls(tuple(rng.randrange(10) for _ in range(3)), Chance.of(rng), rounds)

    def to_act(self) -> tuple[Player, ...]:
        return (0, 1, 2) if self.played < self.rounds else NOBODY

    def rules(self, player: Player) -> str:
        return (
            f"Talk for {self.rounds} rounds: `say TEXT` or `tell SEAT TEXT`.\nFor example: say hello\nHigh card wins 2."
        )

    def observation(self, player: Player) -> str:
        return f"You hold {self.cards[player]}. Round {self.played + 1}."

    def events(self, player: Player) -> tuple[Event, ...]:
        return tuple(e for e in self.heard if e.seen_by(player))

    def legal_actions(self, player: Player) -> tuple[Action, ...] | None:
        return None if self.played < self.rounds else ()

    def check(self, player: Player, action: Action) -> None:
        self.said(player, action)

    def said(self, player: Player, action: Action) -> Event:
        verb, _, text = action[:48].partition(" ")
        if len(action) > 47 or verb not in ("say", "tell"):
            raise IllegalAction("write `say TEXT` or `tell SEAT TEXT`, at most 47 characters", player)
        if verb == "say":
            return Event(text, player)
        seat, _, text = text.partition(" ")
        if seat not in ("0", "1", "2") or int(seat) == player:
            raise IllegalAction("tell another seat: 0, 1 or 2", player)
        return Event(text, player, (player, int(seat)))

    def apply(self, actions: Mapping[Player, Action]) -> Self:
        if set(actions) != set(self.to_act()) or not actions:
            raise ValueError(f"actions of seats {tuple(actions)} were given; to act: {self.to_act()}")
        heard = [self.said(p, actions[p]) for p in self.to_act()]
        dice, chance = self.chance.integers(6, 3)
        totals = [card + die for card, die in zip(self.cards, dice, strict=True)]
        over = self.played + 1 == self.rounds
        return replace(
            self,
            chance=chance,
            heard=(*self.heard, *heard, *((Event(f"The dice: {dice}"),) if over else ())),
            played=self.played + 1,
            winner=totals.index(max(totals)) if over else -1,
        )

    def returns(self) -> tuple[float, ...]:
        if self.winner < 0:
            return (0.0, 0.0, 0.0)
        return tuple(2.0 if p == self.winner else -1.0 for p in range(3))

    def reward_range(self) -> tuple[float, float]:
        return (-1.0, 2.0)

    def sample_action(self, player: Player, rng: Random) -> Action:
        return rng.choice(("say hello", f"tell {(player + 1) % 3} psst"))

    def fallback(self, player: Player) -> Action:
        return "say "

    def max_turns(self) -> int:
        return self.rounds

    def max_action(self) -> int:
        return 47

    def max_length(self) -> int:
        return 100 + self.rounds * 3 * 500

    def determinize(self, player: Player, rng: Random) -> Self:
        known = {player, self.winner}
        cards = tuple(card if p in known else rng.randrange(10) for p, card in enumerate(self.cards))
        return replace(self, cards=cards, heard=self.events(player)).reseed(rng)
