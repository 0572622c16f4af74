"""Deal or no deal: two seats with private values talk about how to share a pool of items.

Rules: Lewis et al., *Deal or No Deal? End-to-End Learning for Negotiation Dialogues* (2017), after DeVault, Mell &
Gratch (2015); OpenSpiel `bargaining` is the oracle in the tests (instances, offers, payoffs). Ours adds free text and
walking away; a message takes a turn, as an offer does.
"""

from collections.abc import Mapping
from functools import cache
from random import Random
from typing import NamedTuple, Self

from arena.game import NOBODY, SEAT, Action, Event, IllegalAction, Player, TurnGame, replace
from arena.games.economy.bargains import (
    ITEMS,
    MOST,
    TOTAL,
    Bundle,
    instances,
    partners,
    splits,
    worth,
)
from arena.games.talk import MESSAGE, PUNCTUATION, SHOWN, bare, check_message

__all__ = ["Negotiation"]

DIGIT = {str(n): n for n in range(MOST + 1)}
ANSWERS = {
    "accept": "accept",
    "i accept": "accept",
    "quit": "quit",
    "i quit": "quit",
    "walk away": "quit",
}
HARMLESS = "say"
PHRASES = (
    "say What do you need most?",
    "say I need the books.",
    "say I need the hats.",
    "say I need the balls.",
    "say",
)
RULES = """Deal or no deal. You are Player {player}; Player 0 begins, then the two of you take turns.
A pool of books, hats and balls (5 to 7 items) must be shared out. Each of you has private values for the three types; \
the whole pool is worth {total} to each. No type is worthless to both of you.
On your turn write one of:
{talk}- offer A B C{text}: you would keep A books, B hats and C balls; the other player gets the rest. It replaces the \
offer before it.
- accept: take the open offer of the other player; the pool is shared accordingly.
- quit: walk away; there is no deal.
For example: offer 1 0 1
After {turns} turns, counted over both players, there is no deal. Your return is the value of what you get / {total}, \
from 0 to 1; without a deal both get 0."""
SAY = """- say TEXT: talk; the other player reads it, and nothing in it binds anybody.
"""


class Move(NamedTuple):
    """An action that was read."""

    kind: str
    keep: Bundle = (0, 0, 0)
    text: str | None = None


@cache
def listed(bundle: Bundle) -> str:
    """`1 book, 0 hats, 2 balls`."""
    return ", ".join([f"{n} {item}" if n == 1 else f"{n} {item}s" for n, item in zip(bundle, ITEMS, strict=True)])


@cache
def menu(pool: Bundle, answer: bool) -> tuple[Action, ...]:
    """All that can be done without talk."""
    offers = [f"offer {a} {b} {c}" for a, b, c in splits(pool)]
    return (*offers, "accept", "quit") if answer else (*offers, "quit")


@cache
def every_action() -> tuple[Action, ...]:
    """All that can be done without talk, for any pool."""
    numbers = range(MOST + 1)
    offers = [f"offer {a} {b} {c}" for a in numbers for b in numbers for c in numbers if a + b + c <= 7]
    return (*offers, "accept", "quit")


def rest(pool: Bundle, keep: Bundle) -> Bundle:
    """What the other seat gets."""
    return (pool[0] - keep[0], pool[1] - keep[1], pool[2] - keep[2])


class Negotiation(TurnGame):
    """Deal or no deal: two players with private values talk about how to share books, hats and balls.

    Options:
        turns: turns of both players together, after which there is no deal, 2 to 50
        talk: true or false; false: offers and answers only, no messages
    """

    tags = ("economy", "talk", "hidden information")
    players = 2

    turns: int
    talk: bool
    pool: Bundle
    values: tuple[Bundle, Bundle]
    turn: int = 0
    keep: Bundle | None = None  # what the maker of the last offer would keep
    maker: Player = 0
    end: str = ""  # "deal", "quit" or "time"
    log: tuple[Event, ...] = ()

    @classmethod
    def initial(cls, rng: Random, turns: int = 10, talk: bool = True) -> Self:
        """An instance, each with the same chance. Raises ValueError."""
        if type(turns) is not int or not 2 <= turns <= 50:
            raise ValueError(f"turns={turns!r}: allowed are 2 to 50")
        if type(talk) is not bool:
            raise ValueError(f"talk={talk!r}: allowed are true and false")
        pool, first, second = rng.choice(instances())
        return cls(turns, talk, pool, (first, second))

    def to_act(self) -> tuple[Player, ...]:
        """See `Game.to_act`."""
        return NOBODY if self.end else SEAT[self.turn & 1]

    def rules(self, player: Player) -> str:
        """See `Game.rules`."""
        talk = SAY + f"A message has at most {MESSAGE} characters.\n" if self.talk else ""
        text = " or offer A B C TEXT (with a message)" if self.talk else ""
        return RULES.format(player=player, total=TOTAL, turns=self.turns, talk=talk, text=text)

    def observation(self, player: Player) -> str:
        """The pool, the seat's own values, the open offer and what is asked."""
        a, b, c = self.values[player]
        head = (
            f"You are Player {player}. The pool: {listed(self.pool)}.\n"
            f"Worth to you: a book {a}, a hat {b}, a ball {c}; the whole pool {TOTAL}.\n"
        )
        return head + (self._outcome(player) if self.end else self._asked(player))

    def _asked(self, player: Player) -> str:
        turn = f"Turn {self.turn + 1} of {self.turns}: " + ("yours." if player == self.turn & 1 else "the other's.")
        if self.keep is None:
            return f"No offer is open.\n{turn}"
        whose = "Your offer" if self.maker == player else f"The offer of Player {self.maker}"
        return f"{whose} is open: {self._share(player)}.\n{turn}"

    def _outcome(self, player: Player) -> str:
        return f"A deal: {self._share(player)}." if self.end == "deal" else "No deal: both get 0."

    def _share(self, player: Player) -> str:
        bundle = self.given(player)
        return f"you get {listed(bundle)}, worth {worth(self.values[player], bundle)} to you"

    def given(self, player: Player) -> Bundle:
        """What the last offer gives to the seat: nothing if there was none."""
        if self.keep is None:
            return (0, 0, 0)
        return self.keep if player == self.maker else rest(self.pool, self.keep)

    def events(self, player: Player) -> tuple[Event, ...]:
        """Every message, offer and answer."""
        return self.log

    def legal_actions(self, player: Player) -> tuple[Action, ...] | None:
        """See `Game.legal_actions`; None with talk."""
        if self.end or player != self.turn & 1:
            return ()
        return None if self.talk else menu(self.pool, self._answerable())

    def _answerable(self) -> bool:
        return self.keep is not None and self.maker != self.turn & 1

    def check(self, player: Player, action: Action) -> None:
        """See `Game.check`: the same reading as in `play`."""
        self._read(action)

    def _read(self, action: Action) -> Move:
        player = self.turn & 1
        if action == "quit":
            return Move("quit")
        if action == "accept":
            if not self._answerable():
                raise IllegalAction("there is no open offer of the other player to accept", player)
            return Move("accept")
        verb, _, words = action.partition(" ")
        if verb == "say" and self.talk:
            check_message(words, player)
            return Move("say", text=words)
        if verb == "offer":
            return self._read_offer(words, player)
        allowed = "say TEXT, offer A B C, accept or quit" if self.talk else "offer A B C, accept or quit"
        raise IllegalAction(f"write {allowed}", player)

    def _read_offer(self, words: str, player: Player) -> Move:
        parts = words.split(" ", 3)
        numbers = [DIGIT.get(part, MOST + 1) for part in parts[:3]]
        if len(numbers) < 3 or any(n > most for n, most in zip(numbers, self.pool, strict=True)):
            a, b, c = self.pool
            raise IllegalAction(f"an offer names what you keep: 0-{a} books, 0-{b} hats and 0-{c} balls", player)
        keep = (numbers[0], numbers[1], numbers[2])
        if len(parts) == 3:
            return Move("offer", keep)
        if not self.talk:
            raise IllegalAction("an offer is three numbers and no more: there is no talk", player)
        check_message(parts[3], player)
        return Move("offer", keep, parts[3])

    def normalize(self, text: str, player: Player) -> Action:
        """`Accept.`, `Offer: 1, 0, 2`, `SAY hello` -> the action; anything else as it is."""
        word = bare(text)
        if word in ANSWERS:
            return ANSWERS[word]
        if len(text) <= 24 and len(short := word.replace(",", " ").replace(":", " ").split()) == 4:
            words = short
        else:
            words = text.split(None, 4)
        verb, *numbers = [part.strip(PUNCTUATION) for part in words[:4]] or [""]
        if verb.lower() == "offer" and len(numbers) == 3 and all(n in DIGIT for n in numbers):
            return " ".join(["offer", *numbers, *words[4:]])
        if verb.lower() == "say":
            return " ".join(["say", *text.split(None, 1)[1:]])
        return text

    def sample_action(self, player: Player, rng: Random) -> Action:
        """Offers and answers, with some talk."""
        if not self.talk:
            return super().sample_action(player, rng)
        dice = rng.randrange(20)
        if dice < 6:
            return rng.choice(PHRASES)
        if dice < 12 and self._answerable():
            return "accept"
        a, b, c = rng.choice(splits(self.pool))
        return "quit" if dice == 19 else f"offer {a} {b} {c} What about this?" if dice < 9 else f"offer {a} {b} {c}"

    def fallback(self, player: Player) -> Action | None:
        """Silence; without talk the offer to keep everything, which gives nothing away."""
        if self.end or player != self.turn & 1:
            return None
        return HARMLESS if self.talk else "offer {} {} {}".format(*self.pool)

    def play(self, action: Action) -> Self:
        """See `TurnGame.play`."""
        move = self._read(action)
        player = self.turn & 1
        log, keep, maker, end = self.log, self.keep, self.maker, ""
        if move.kind == "offer":
            keep, maker = move.keep, player
            shares = (keep, rest(self.pool, keep)) if player == 0 else (rest(self.pool, keep), keep)
            log = (*log, Event(f"Player {player} offers: {shared(shares)}."))
        elif move.kind != "say":
            end = "deal" if move.kind == "accept" else "quit"
            verb = "accepts the offer" if move.kind == "accept" else "walks away: no deal"
            log = (*log, Event(f"Player {player} {verb}."))
        if move.text is not None:
            log = (*log, Event(move.text, player))
        if not end and self.turn + 1 == self.turns:
            end, log = "time", (*log, Event("The turns are over: no deal."))
        return replace(self, turn=self.turn + 1, keep=keep, maker=maker, end=end, log=log)

    def returns(self) -> tuple[float, ...]:
        """The value of what each seat got, over 10; 0 without a deal."""
        if self.end != "deal":
            return (0.0, 0.0)
        return (worth(self.values[0], self.given(0)) / TOTAL, worth(self.values[1], self.given(1)) / TOTAL)

    def reward_range(self) -> tuple[float, float]:
        """Nothing, or everything of worth."""
        return (0.0, 1.0)

    def scores(self, player: Player) -> Mapping[str, float]:
        """`share` (the return), `agreement` (1: a deal) and `pareto` (1: a deal nobody can better for free)."""
        deal = self.end == "deal"
        return {
            "share": self.returns()[player],
            "agreement": float(deal),
            "pareto": float(deal and self._efficient()),
        }

    def _efficient(self) -> bool:
        mine, theirs = (worth(self.values[p], self.given(p)) for p in (0, 1))
        for keep in splits(self.pool):
            a, b = worth(self.values[0], keep), worth(self.values[1], rest(self.pool, keep))
            if a >= mine and b >= theirs and a + b > mine + theirs:
                return False
        return True

    def determinize(self, player: Player, rng: Random) -> Self:
        """The other seat's values drawn anew among those the pool and the seat's own values allow."""
        own = self.values[player]
        other = rng.choice(partners(self.pool, own))
        return replace(self, values=(own, other) if player == 0 else (other, own))

    def max_turns(self) -> int:
        """See `Game.max_turns`."""
        return self.turns

    def max_length(self) -> int:
        """See `Game.max_length`."""
        return 512 + self.turns * (128 + (SHOWN if self.talk else 0))

    def max_action(self) -> int:
        """An offer with a message."""
        return len("offer 5 5 5 ") + (MESSAGE if self.talk else 0)

    def action_table(self) -> tuple[Action, ...] | None:
        """Offers and answers; None with talk."""
        return None if self.talk else every_action()

    def features(self, player: Player) -> tuple[float, ...] | None:
        """Turn; pool, my values and what the open offer gives me, three each; 1: I may accept, -1: it is mine.

        None with talk: the words are what matters.
        """
        if self.talk:
            return None
        mine = 0.0 if self.keep is None else -1.0 if self.maker == player else 1.0
        counts = [n / MOST for n in (*self.pool, *self.given(player))]
        return (self.turn / self.turns, *counts, *[v / TOTAL for v in self.values[player]], mine)


def shared(shares: tuple[Bundle, Bundle]) -> str:
    """Who would get what."""
    return f"Player 0 gets {listed(shares[0])}; Player 1 gets {listed(shares[1])}"
