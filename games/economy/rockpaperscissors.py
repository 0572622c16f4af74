"""Rock, paper, scissors over one or more rounds.

Payoffs of one round: OpenSpiel `matrix_rps` (the oracle in the tests). Rules: World RPS Society, *The Official Rock
Paper Scissors Strategy Guide* (Walker & Walker, 2004); there a stalemate is thrown again, here it is a round of 0.
"""

from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Self

from arena.game import NOBODY, Action, Event, Game, IllegalAction, Player
from arena.games.joint import BOTH, expect
from arena.games.talk import bare

__all__ = ["RockPaperScissors"]

CHOICES = ("rock", "paper", "scissors")
INDEX = {choice: i for i, choice in enumerate(CHOICES)}
SHORT = {"r": "rock", "p": "paper", "s": "scissors", "stone": "rock", "scissor": "scissors"}
END = ("a tie", "Player 0 wins", "Player 1 wins")  # by (choice of 0 - choice of 1) % 3
MAX_ROUNDS = 100
RULES = """Rock, paper, scissors: {rounds} against one opponent. You are Player {player}.
In every round both choose at the same time: rock beats scissors, scissors beats paper, paper beats rock; the same \
choice twice is a tie.
Write one word: rock, paper or scissors.
For example: rock
Your return is (rounds you won - rounds you lost) / {count}; the other player's is the opposite."""


@cache
def told(turn: int, first: int, second: int) -> Event:
    """What everybody hears of a round (at most 900 different ones)."""
    end = END[(first - second) % 3]
    return Event(f"Round {turn}: Player 0 {CHOICES[first]}, Player 1 {CHOICES[second]}: {end}.")


class RockPaperScissors(Game):
    """Rock, paper, scissors: both choose at once, one round or many.

    Options:
        rounds: how many rounds are played, 1 to 100
    """

    zero_sum = True
    perfect_information = True  # between the rounds nothing is hidden
    tags = ("economy", "simultaneous")
    players = 2

    rounds: int
    done: int = 0
    won: tuple[int, int] = (0, 0)  # rounds won by each seat
    last: tuple[int, int] | None = None
    log: tuple[Event, ...] = ()
    over: bool = False

    @classmethod
    def initial(cls, rng: Random, rounds: int = 1) -> Self:
        """Before the first round. Raises ValueError."""
        if type(rounds) is not int or not 1 <= rounds <= MAX_ROUNDS:
            raise ValueError(f"rounds={rounds!r}: allowed are 1 to {MAX_ROUNDS}")
        return cls(rounds)

    def to_act(self) -> tuple[Player, ...]:
        """See `Game.to_act`."""
        return NOBODY if self.over else BOTH

    def rules(self, player: Player) -> str:
        """See `Game.rules`."""
        rounds = "1 round" if self.rounds == 1 else f"{self.rounds} rounds"
        return RULES.format(rounds=rounds, count=self.rounds, player=player)

    def observation(self, player: Player) -> str:
        """The score, and what is asked."""
        score = f"You are Player {player}. Rounds won: you {self.won[player]}, the other player {self.won[1 - player]}."
        if self.over:
            return f"{score}\nThe match is over."
        return f"{score}\nRound {self.done + 1} of {self.rounds}: rock, paper or scissors?"

    def events(self, player: Player) -> tuple[Event, ...]:
        """Every round, as it ended."""
        return self.log

    def legal_actions(self, player: Player) -> tuple[Action, ...]:
        """See `Game.legal_actions`."""
        return () if self.over else CHOICES

    def normalize(self, text: str, player: Player) -> Action:
        """`R`, `Rock!`, `[rock]` -> `rock`."""
        word = bare(text)
        choice = SHORT.get(word, word)
        return choice if choice in INDEX else text

    def apply(self, actions: Mapping[Player, Action]) -> Self:
        """See `Game.apply`."""
        expect(actions, self.to_act())
        for player, action in actions.items():
            if action not in INDEX:
                raise IllegalAction("write rock, paper or scissors", player)
        first, second = INDEX[actions[0]], INDEX[actions[1]]
        (mine, theirs), end, done = self.won, (first - second) % 3, self.done + 1
        won = (mine + (end == 1), theirs + (end == 2))
        log = (*self.log, told(done, first, second))
        return type(self)(self.rounds, done, won, (first, second), log, done == self.rounds)

    def returns(self) -> tuple[float, ...]:
        """Rounds won less rounds lost, over the number of rounds of the match."""
        lead = self.won[0] - self.won[1]
        return (lead / self.rounds, -lead / self.rounds)

    def max_turns(self) -> int:
        """One joint move a round."""
        return self.rounds

    def max_length(self) -> int:
        """See `Game.max_length`."""
        return 160 + 64 * self.rounds

    def max_action(self) -> int:
        """`scissors`."""
        return 8

    def action_table(self) -> tuple[Action, ...]:
        """The three choices."""
        return CHOICES

    def features(self, player: Player) -> tuple[float, ...]:
        """Rounds gone, won and lost (shares of the match), then my last choice and theirs, three numbers each."""
        other = 1 - player
        shares = [count / self.rounds for count in (self.done, self.won[player], self.won[other])]
        last = (-1, -1) if self.last is None else (self.last[player], self.last[other])
        return (*shares, *[float(choice == i) for choice in last for i in range(3)])
