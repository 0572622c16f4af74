"""The iterated prisoner's dilemma, with talk before every decision if wanted.

Rules and payoffs: Axelrod, *The Evolution of Cooperation* (1984), ch. 1-2: T > R > P > S and 2R > T + S, by default
5, 3, 1, 0; his tournaments had 200 rounds. OpenSpiel's `matrix_pd` is the oracle of one round in the tests.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from random import Random
from typing import Self

from arena.game import NOBODY, SEAT, Action, Event, Game, IllegalAction, Player, replace
from arena.games.joint import BOTH, expect
from arena.games.talk import MESSAGE, SHOWN, bare, check_message

__all__ = ["IteratedPrisonersDilemma"]

DECISIONS = ("cooperate", "defect")
DEFECTS = {"cooperate": 0, "defect": 1}
SHORT = {
    "c": "cooperate",
    "coop": "cooperate",
    "cooperates": "cooperate",
    "co-operate": "cooperate",
    "i cooperate": "cooperate",
    "d": "defect",
    "defects": "defect",
    "i defect": "defect",
}
VERB = ("cooperates", "defects")
MAX_ROUNDS = 200
MAX_TALK = 5
MAX_PAYOFF = 1000
RULES = """The prisoner's dilemma over {rounds}, against one opponent. You are Player {player}.
In every round both decide at the same time, each for themself: cooperate or defect. Points in a round:
- both cooperate: {r} each
- both defect: {p} each
- one defects, the other cooperates: {t} for the one who defects, {s} for the other
{talk}Write one word: cooperate or defect.
For example: cooperate
Your return is the sum of your points over all rounds; the other player's points are not taken from yours."""
TALK = """Before every decision each player sends {n}, by turns; Player 0 begins in odd rounds, Player 1 in even ones.
A message is any text of at most {limit} characters; the other player reads it, and nothing in it binds anybody.
When you are asked to decide, the talk of the round is over.
"""


@cache
def told(turn: int, first: int, second: int) -> Event:
    """What both hear of a round (at most 800 different ones)."""
    return Event(f"Round {turn}: Player 0 {VERB[first]}, Player 1 {VERB[second]}.")


def read_payoffs(payoffs: Sequence[int]) -> tuple[int, int, int, int]:
    """T, R, P, S, in this order. Raises ValueError."""
    numbers = tuple(payoffs) if isinstance(payoffs, (list, tuple)) else ()
    if len(numbers) == 4 and all(type(n) is int and abs(n) <= MAX_PAYOFF for n in numbers):
        t, r, p, s = numbers
        if t > r > p > s and 2 * r > t + s:
            return t, r, p, s
    raise ValueError(
        f"payoffs={payoffs!r}: allowed are four whole numbers T > R > P > S with 2R > T + S, each at most "
        f"{MAX_PAYOFF} in size, such as [5, 3, 1, 0]"
    )


def counted(number: int, noun: str) -> str:
    """`1 round`, `2 rounds`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class IteratedPrisonersDilemma(Game):
    """The prisoner's dilemma again and again: cooperate or defect, with talk before every decision if wanted.

    Options:
        rounds: how many decisions each makes, 1 to 200
        talk: messages of each player before every decision, 0 to 5
        payoffs: points T, R, P, S for defecting alone, both cooperating, both defecting and cooperating alone;
            four whole numbers with T > R > P > S and 2R > T + S, each at most 1000 in size
    """

    perfect_information = True  # between the decisions nothing is hidden
    tags = ("economy", "simultaneous", "talk")
    players = 2

    rounds: int
    talk: int
    payoffs: tuple[int, int, int, int]
    acting: tuple[Player, ...]
    done: int = 0
    said: int = 0  # messages of this round
    points: tuple[int, int] = (0, 0)
    last: tuple[int, int] | None = None  # 0 cooperated, 1 defected
    log: tuple[Event, ...] = ()

    @classmethod
    def initial(cls, rng: Random, rounds: int = 10, talk: int = 0, payoffs: Sequence[int] = (5, 3, 1, 0)) -> Self:
        """Before the first round. Raises ValueError."""
        if type(rounds) is not int or not 1 <= rounds <= MAX_ROUNDS:
            raise ValueError(f"rounds={rounds!r}: allowed are 1 to {MAX_ROUNDS}")
        if type(talk) is not int or not 0 <= talk <= MAX_TALK:
            raise ValueError(f"talk={talk!r}: allowed are 0 to {MAX_TALK}")
        return cls(rounds, talk, read_payoffs(payoffs), SEAT[0] if talk else BOTH)

    def to_act(self) -> tuple[Player, ...]:
        """See `Game.to_act`."""
        return self.acting

    def rules(self, player: Player) -> str:
        """See `Game.rules`."""
        t, r, p, s = self.payoffs
        talk = TALK.format(n=counted(self.talk, "message"), limit=MESSAGE) if self.talk else ""
        return RULES.format(rounds=counted(self.rounds, "round"), player=player, t=t, r=r, p=p, s=s, talk=talk)

    def observation(self, player: Player) -> str:
        """The points, and what is asked."""
        mine, theirs = self.points if player == 0 else self.points[::-1]
        return f"You are Player {player}. Points: you {mine}, the other player {theirs}.\n{self._asked(player)}"

    def _asked(self, player: Player) -> str:
        if not self.acting:
            return "The game is over."
        turn = f"Round {self.done + 1} of {self.rounds}"
        if len(self.acting) == 2:
            return f"{turn}: cooperate or defect?"
        message = f"{turn}, message {self.said // 2 + 1} of {self.talk}"
        return f"{message}: write to the other player." if player in self.acting else f"{message}: the other speaks."

    def events(self, player: Player) -> tuple[Event, ...]:
        """Every message and every round, as it ended."""
        return self.log

    def legal_actions(self, player: Player) -> tuple[Action, ...] | None:
        """See `Game.legal_actions`; None while the seat is asked for a message."""
        if len(self.acting) == 2:
            return DECISIONS
        return None if player in self.acting else ()

    def check(self, player: Player, action: Action) -> None:
        """See `Game.check`: the length of a message."""
        check_message(action, player)

    def normalize(self, text: str, player: Player) -> Action:
        """`C`, `coop`, `Defect.` -> the decision; a message as it is."""
        if len(self.acting) != 2:
            return text
        word = bare(text)
        decision = SHORT.get(word, word)
        return decision if decision in DEFECTS else text

    def sample_action(self, player: Player, rng: Random) -> Action:
        """A decision, or a message that proposes one."""
        if self.legal_actions(player) is not None:
            return super().sample_action(player, rng)
        return rng.choice(("I will cooperate.", "I will defect.", "Will you cooperate?", ""))

    def fallback(self, player: Player) -> Action | None:
        """Silence; for a decision `cooperate`, which harms nobody else."""
        if player not in self.acting:
            return None
        return "cooperate" if len(self.acting) == 2 else ""

    def apply(self, actions: Mapping[Player, Action]) -> Self:
        """See `Game.apply`."""
        expect(actions, self.acting)
        if len(self.acting) == 1:
            return self._hear(self.acting[0], actions[self.acting[0]])
        for player, action in actions.items():
            if action not in DEFECTS:
                raise IllegalAction("write cooperate or defect", player)
        return self._settle(DEFECTS[actions[0]], DEFECTS[actions[1]])

    def _hear(self, speaker: Player, text: str) -> Self:
        check_message(text, speaker)
        acting = BOTH if self.said + 1 == 2 * self.talk else SEAT[1 - speaker]
        return replace(self, said=self.said + 1, acting=acting, log=(*self.log, Event(text, speaker)))

    def _settle(self, first: int, second: int) -> Self:
        t, r, p, s = self.payoffs
        one, two = ((r, r), (s, t), (t, s), (p, p))[2 * first + second]
        done = self.done + 1
        acting = NOBODY if done == self.rounds else SEAT[done & 1] if self.talk else BOTH
        points = (self.points[0] + one, self.points[1] + two)
        log = (*self.log, told(done, first, second))
        return type(self)(self.rounds, self.talk, self.payoffs, acting, done, 0, points, (first, second), log)

    def returns(self) -> tuple[float, ...]:
        """The points so far."""
        return (float(self.points[0]), float(self.points[1]))

    def reward_range(self) -> tuple[float, float]:
        """To be the sucker in every round, or the tempted."""
        return (float(self.rounds * self.payoffs[3]), float(self.rounds * self.payoffs[0]))

    def max_turns(self) -> int:
        """Messages are moves of their own."""
        return self.rounds * (2 * self.talk + 1)

    def max_length(self) -> int:
        """See `Game.max_length`."""
        return 160 + self.rounds * (64 + 2 * self.talk * SHOWN)

    def max_action(self) -> int:
        """See `Game.max_action`."""
        return MESSAGE if self.talk else len("cooperate")

    def action_table(self) -> tuple[Action, ...] | None:
        """The two decisions; None with talk."""
        return None if self.talk else DECISIONS

    def features(self, player: Player) -> tuple[float, ...] | None:
        """Share of rounds gone, my points and theirs over the greatest possible size, my last decision and theirs.

        A decision is 1 (cooperated), -1 (defected) or 0 (none yet). None with talk: the words are what matters.
        """
        if self.talk:
            return None
        scale = self.rounds * max(abs(self.payoffs[0]), abs(self.payoffs[3]))
        last = (0.0, 0.0) if self.last is None else (1.0 - 2 * self.last[player], 1.0 - 2 * self.last[1 - player])
        return (self.done / self.rounds, self.points[player] / scale, self.points[1 - player] / scale, *last)
