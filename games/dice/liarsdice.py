"""Liar's dice: every seat has its own dice, and who has none left is out.

Rules: Wikipedia, "Liar's dice", the single-hand game with the first of its bidding variants (a higher quantity of any
face, or the same quantity of a higher face), which is also `reset-face` of OpenSpiel `liars_dice`, the oracle in the
tests. There the highest face is wild; in perudo the ones are: option `wild`.
"""

import re
from functools import cache, lru_cache
from random import Random
from typing import Self

from arena.chance import Chance
from arena.game import NOBODY, SEAT, Action, Event, IllegalAction, Player, TurnGame, replace

__all__ = ["LiarsDice"]

LIAR = "liar"
CALLS = frozenset(
    (LIAR, "call", "call liar", "i call", "challenge", "i challenge", "bluff", "call bluff", "doubt", "dudo")
)
BID = re.compile(r"(?:i )?(?:bid )?([0-9]{1,3})(?: ?(?:x|\*|×|of|-) ?| )([0-9]{1,3})(?:s|'s)?")
LIMITS = {"players": (2, 6), "dice": (1, 10), "sides": (2, 20)}
RULES = """Liar's dice with {players} players, {dice} {word} each, faces 1 to {sides}; you are Player {player}.
Each round all roll, and see only their own dice. Players then bid in turn. The bid Q x F says: at least Q of all dice \
on the table, everybody's together, show face F. {wild}
A new bid must be higher: a greater quantity with any face, or the same quantity with a greater face: 1 x 2 \
is higher than 1 x 1, and 2 x 1 is higher than 1 x {sides}. A quantity is at most the number of dice on the table.
Instead of bidding, a player may say liar to the last bid. All dice are shown: if the bid was true, the player who \
said liar loses a die, else the bidder does. All roll again, and the loser of the die bids first, or if that player \
has no dice left, the next one who has. A player without dice is out; the last one with dice wins.
On your turn write a bid or the word liar.
For example: {example}
At the end the first to go out gets -1, the last with dice +1; the others stand evenly between by rank."""


ASK_FIRST = "Your turn: make the first bid."
ASK = "Your turn: bid higher or say liar."
WAIT = tuple(f"Player {p} is to act." for p in range(LIMITS["players"][1]))
PLAIN = str.maketrans(dict.fromkeys(':,.;!?"`[](){}<>#', " "))


@cache
def bid_names(sides: int) -> tuple[Action, ...]:
    """All bids, from the lowest up, with as many dice as there can be; with fewer it is the beginning of this."""
    most = LIMITS["players"][1] * LIMITS["dice"][1]
    return tuple([f"{quantity} x {face}" for quantity in range(1, most + 1) for face in range(1, sides + 1)])


@cache
def bid_numbers(sides: int) -> dict[Action, int]:
    """The place of every bid in `bid_names`, from 1."""
    return {name: number for number, name in enumerate(bid_names(sides), 1)}


@cache
def ladder(total: int, sides: int) -> tuple[Action, ...]:
    """Every action with `total` dice on the table. The legal ones after bid number n begin at n."""
    return (*bid_names(sides)[: total * sides], LIAR)


@lru_cache(maxsize=4096)
def bid_event(player: Player, bid: Action) -> Event:
    """That somebody bids. The words are the game's own: `bid` is one of `bid_names`."""
    return Event(f"Player {player} bids {bid}.")


@lru_cache(maxsize=4096)
def counted(left: tuple[int, ...]) -> str:
    """How many dice each has."""
    return "Dice left: " + ", ".join([f"Player {p} has {n or 'none'}" for p, n in enumerate(left)]) + "."


class LiarsDice(TurnGame):
    """Liar's dice: bid on everybody's dice, doubt a bid, and be the last with dice.

    Options:
        players: how many sit at the table, 2 to 6
        dice: how many dice each has at first, 1 to 10
        sides: the faces of a die, 2 to 20
        wild: the face that counts as every face, 1 to the number of sides; 0: none
    """

    zero_sum = True
    tags = ("dice", "bluffing", "elimination")

    players: int
    dice: int
    sides: int
    wild: int
    chance: Chance
    left: tuple[int, ...]  # dice of each seat
    hands: tuple[str, ...] = ()  # faces of each seat in ascending order, such as "1 3 3"
    turn: Player = 0
    bid: int = 0  # its number in `bid_names`, from 1; 0: none yet
    bidder: Player = 0
    out: tuple[Player, ...] = ()  # in the order in which they went out
    log: tuple[Event, ...] = ()

    @classmethod
    def initial(cls, rng: Random, players: int = 2, dice: int = 5, sides: int = 6, wild: int = 0) -> Self:
        """The first roll; Player 0 bids first."""
        for name, value in (("players", players), ("dice", dice), ("sides", sides)):
            low, high = LIMITS[name]
            if type(value) is not int or not low <= value <= high:
                raise ValueError(f"{name}={value!r}: allowed are {low} to {high}")
        if type(wild) is not int or not 0 <= wild <= sides:
            raise ValueError(f"wild={wild!r}: allowed are 0 (none) to {sides} (the number of sides)")
        return cls(players, dice, sides, wild, Chance.of(rng), (dice,) * players)._roll()

    def _roll(self) -> Self:
        faces, chance = self.chance.integers(self.sides, sum(self.left))
        hands, at = [], 0
        for count in self.left:
            hands.append(" ".join([str(face + 1) for face in sorted(faces[at : at + count])]))
            at += count
        return replace(self, chance=chance, hands=tuple(hands))

    def to_act(self) -> tuple[Player, ...]:
        """See `Game.to_act`."""
        return SEAT[self.turn] if self.hands else NOBODY

    def rules(self, player: Player) -> str:
        """See `Game.rules`."""
        wild = f"Face {self.wild} is wild: it counts as every face." if self.wild else "No face is wild."
        return RULES.format(
            players=self.players,
            dice=self.dice,
            word="die" if self.dice == 1 else "dice",
            sides=self.sides,
            player=player,
            wild=wild,
            example=f"{min(2, self.players * self.dice)} x {min(5, self.sides)}",
        )

    def observation(self, player: Player) -> str:
        """Own dice, how many dice each has, the last bid and whose, and who is to act."""
        counts = counted(self.left)
        if not self.hands:
            winner = next(p for p, count in enumerate(self.left) if count)
            return f"You are Player {player}.\n{counts}\nThe game is over: Player {winner} wins."
        bid = f"Last bid: {bid_names(self.sides)[self.bid - 1]} by Player {self.bidder}." if self.bid else "No bid yet."
        asked = (ASK if self.bid else ASK_FIRST) if player == self.turn else WAIT[self.turn]
        return f"You are Player {player}. Your dice: {self.hands[player] or 'none'}.\n{counts}\n{bid} {asked}"

    def events(self, player: Player) -> tuple[Event, ...]:
        """Bids, and what a challenge showed: all of it public."""
        return self.log

    def legal_actions(self, player: Player) -> tuple[Action, ...]:
        """See `Game.legal_actions`."""
        if player != self.turn or not self.hands:
            return ()
        legal = ladder(sum(self.left), self.sides)
        return legal[self.bid :] if self.bid else legal[:-1]

    def play(self, action: Action) -> Self:
        """See `TurnGame.play`."""
        turn = self.turn
        if action == LIAR and self.bid and self.hands:
            return self._challenge()
        number = bid_numbers(self.sides).get(action, 0)
        if not self.bid < number <= sum(self.left) * self.sides or not self.hands:
            raise IllegalAction(self._refusal(number))
        return replace(self, turn=self._next(turn), bid=number, bidder=turn, log=(*self.log, bid_event(turn, action)))

    def _refusal(self, number: int) -> str:
        legal = self.legal_actions(self.turn)
        if not legal:
            return "the game is over"
        if legal == (LIAR,):
            return "no higher bid is possible: say liar"
        if 0 < number <= self.bid:
            names = bid_names(self.sides)
            return f"{names[number - 1]} is not higher than {names[self.bid - 1]}; the lowest bid now is {legal[0]}"
        return (
            f"write a bid from {legal[0]} to {ladder(sum(self.left), self.sides)[-2]}{' or liar' if self.bid else ''}"
        )

    def _next(self, player: Player) -> Player:
        after = (player + 1) % self.players
        while not self.left[after]:
            after = (after + 1) % self.players
        return after

    def _challenge(self) -> Self:
        quantity, face = (self.bid - 1) // self.sides + 1, (self.bid - 1) % self.sides + 1
        faces = [die for hand in self.hands for die in hand.split()]
        true = faces.count(str(face))
        if self.wild not in (0, face):
            true += faces.count(str(self.wild))
        loser = self.turn if true >= quantity else self.bidder
        left = (*self.left[:loser], self.left[loser] - 1, *self.left[loser + 1 :])
        log = (*self.log, self._shown(true, face, quantity, loser, left[loser]))
        then = replace(
            self, left=left, bid=0, log=log, turn=loser, hands=(), out=self.out if left[loser] else (*self.out, loser)
        )
        if len(then.out) == self.players - 1:
            return then
        return (then if left[loser] else replace(then, turn=then._next(loser)))._roll()

    def _shown(self, true: int, face: int, quantity: int, loser: Player, left: int) -> Event:
        dice = "; ".join([f"Player {p}: {hand}" for p, hand in enumerate(self.hands) if hand])
        wild = f" (wild {self.wild}s included)" if self.wild not in (0, face) else ""
        fate = "" if left else " and is out"
        return Event(
            f"Player {self.turn} says liar. {dice}. Dice showing {face}{wild}: {true}, the bid was {quantity}. "
            f"Player {loser} loses a die{fate}."
        )

    def normalize(self, text: str, player: Player) -> Action:
        """`Bid: 3, 5`, `3x5`, `[3 5]` and `3 5s` are `3 x 5`; `LIAR!`, `call`, `challenge` are `liar`."""
        if len(text) > 64:
            return text
        words = " ".join(text.lower().translate(PLAIN).split())
        if words in CALLS:
            return LIAR
        match = BID.fullmatch(words)
        return f"{int(match[1])} x {int(match[2])}" if match else text

    def fallback(self, player: Player) -> Action | None:
        """The lowest bid, or liar where none is left: silence must not challenge."""
        legal = self.legal_actions(player)
        return legal[0] if legal else None

    def returns(self) -> tuple[float, ...]:
        """From -1 (first out) to +1 (last with dice), evenly spaced by rank."""
        if self.hands:
            return (0.0,) * self.players
        last = self.players - 1
        return tuple([2 * self.out.index(p) / last - 1 if p in self.out else 1.0 for p in range(self.players)])

    def max_turns(self) -> int:
        """Every bid and a challenge with every number of dice down to two."""
        return sum([total * self.sides + 1 for total in range(2, self.players * self.dice + 1)])

    def max_length(self) -> int:
        """See `Game.max_length`."""
        dice = self.players * self.dice
        shown = 140 + 12 * self.players + 3 * dice
        return 24 * self.max_turns() + shown * dice + 300

    def max_action(self) -> int:
        """See `Game.max_action`."""
        return 7

    def action_table(self) -> tuple[Action, ...]:
        """All bids with all dice on the table, and liar."""
        return ladder(self.players * self.dice, self.sides)

    def features(self, player: Player) -> tuple[float, ...]:
        """Share of own dice per face, then per seat from this one on: share of dice left, to act, bidder; then the bid.

        The bid is its quantity as a share of all dice there were, and its face one-hot; zeros where there is none.
        """
        hand = self.hands[player].split() if self.hands else []
        numbers = [hand.count(str(face)) / self.dice for face in range(1, self.sides + 1)]
        acting, bidding = self.to_act(), (self.bidder,) if self.bid else ()
        for p in [*range(player, self.players), *range(player)]:
            numbers += (self.left[p] / self.dice, float(p in acting), float(p in bidding))
        quantity, face = divmod(self.bid - 1, self.sides)
        numbers.append((quantity + 1) / (self.players * self.dice) if self.bid else 0.0)
        return (*numbers, *[float(self.bid > 0 and face == side) for side in range(self.sides)])

    def determinize(self, player: Player, rng: Random) -> Self:
        """The dice of the others rolled anew, whatever they have bid."""
        drawn = self.reseed(rng)
        if not self.hands:
            return drawn
        drawn = drawn._roll()
        return replace(drawn, hands=(*drawn.hands[:player], self.hands[player], *drawn.hands[player + 1 :]))
