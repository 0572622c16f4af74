"""Wordle: find a secret word by guesses that are answered letter by letter.

Rules: The New York Times, *Wordle* ("How To Play"; hard mode: "any revealed hints must be used in subsequent
guesses"). Repeated letters: right places are marked first; the letters left of the secret are then given to the
guess from left to right, each once.
"""

from functools import lru_cache
from random import Random
from typing import Self

from arena.game import NOBODY, SEAT, Action, Actions, Event, IllegalAction, Player, TurnGame
from arena.games.words.lists import LENGTHS, answers, guesses

__all__ = ["Wordle", "mark"]

MOST_TURNS = 20
LETTERS = "abcdefghijklmnopqrstuvwxyz"
RULES = """Wordle: find a secret English word of {length} letters in at most {turns} guesses.
On your turn write one English word of {length} letters, in lower case.
For example: {example}
Each guess is answered by {length} marks: G the letter is right and in its place, Y it is in the word but elsewhere, \
- it is not in the word (or no more often than marked already).{hard}
Solving it with the first guess earns 1, and 1/{turns} less for each further guess; not solving it earns 0."""
HARD = "\nHard mode: letters marked G must stay in place, and letters marked G or Y must be used in every later guess."


class Wordle(TurnGame):
    """Wordle: find a secret word by guesses that are answered letter by letter.

    Options:
        length: letters of the word, 4, 5 or 6
        turns: guesses allowed, 1 to 20
        hard: true or false; true: revealed hints must be used in later guesses
    """

    tags = ("words", "puzzle")
    players = 1

    secret: str
    turns: int = 6
    hard: bool = False
    over: bool = False
    guessed: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    log: tuple[Event, ...] = ()

    @classmethod
    def initial(cls, rng: Random, length: int = 5, turns: int = 6, hard: bool = False) -> Self:
        """A secret drawn from the common words. Raises ValueError naming the allowed values."""
        if type(length) is not int or length not in LENGTHS:
            raise ValueError(f"length={length!r}: allowed are {', '.join(map(str, LENGTHS))}")
        if type(turns) is not int or not 1 <= turns <= MOST_TURNS:
            raise ValueError(f"turns={turns!r}: allowed are 1 to {MOST_TURNS}")
        if type(hard) is not bool:
            raise ValueError(f"hard={hard!r}: allowed are true and false")
        return cls(rng.choice(answers(length)), turns, hard)

    def to_act(self) -> tuple[Player, ...]:
        """See `Game.to_act`."""
        return NOBODY if self.over else SEAT[0]

    def rules(self, player: Player) -> str:
        """See `Game.rules`."""
        length, hard = len(self.secret), HARD if self.hard else ""
        return RULES.format(length=length, turns=self.turns, example=answers(length)[0], hard=hard)

    def observation(self, player: Player) -> str:
        """How many guesses are made and what is known, at the end the outcome; the guesses themselves are events."""
        known = _told(len(self.secret), self.guessed, self.marks)
        if not self.over:
            return f"{known}\nGuess {len(self.guessed) + 1} of {self.turns}:"
        number = len(self.guessed)
        solved = self.guessed[-1] == self.secret
        end = f"Solved with guess {number} of {self.turns}." if solved else f"Not solved. The word was {self.secret}."
        return f"{known}\n{end}"

    def events(self, player: Player) -> tuple[Event, ...]:
        """Every guess with its marks."""
        return self.log

    def legal_actions(self, player: Player) -> tuple[Action, ...]:
        """Every word of the length; in hard mode those that use the hints of the last guess, which uses all before."""
        if self.over or player != 0:
            return ()
        if self.hard and self.guessed:
            return _using(self.guessed[-1], self.marks[-1])
        return guesses(len(self.secret))

    def normalize(self, text: str, player: Player) -> Action:
        """`Crane.` as `crane`."""
        return text.strip(" \t\r\n\"'.`*[]()").lower()

    def play(self, action: Action) -> Self:
        """See `TurnGame.play`."""
        if action not in self.legal_actions(0):
            raise IllegalAction(self._why(action))
        marks = mark(action, self.secret)
        number = len(self.guessed) + 1
        log = (*self.log, Event(f"Guess {number}: {action} {marks}"))
        over, guessed = action == self.secret or number == self.turns, (*self.guessed, action)
        return type(self)(self.secret, self.turns, self.hard, over, guessed, (*self.marks, marks), log)

    def _why(self, action: Action) -> str:
        if self.over:
            return "the game is over"
        if action in guesses(len(self.secret)):
            return f"hard mode: {_unused(action, self.guessed[-1], self.marks[-1])}"
        return f"write one English word of {len(self.secret)} letters in lower case, from the word list"

    def returns(self) -> tuple[float, ...]:
        """(turns + 1 - guesses) / turns if solved, else 0: from 1 for the first guess to 1/turns for the last."""
        if not self.guessed or self.guessed[-1] != self.secret:
            return (0.0,)
        return ((self.turns + 1 - len(self.guessed)) / self.turns,)

    def reward_range(self) -> tuple[float, float]:
        """See `Game.reward_range`."""
        return (0.0, 1.0)

    def determinize(self, player: Player, rng: Random) -> Self:
        """Another secret, uniform among the common words that agree with every mark; a finished game has told it."""
        if self.over:
            return self
        secret = rng.choice(_consistent(len(self.secret), self.guessed, self.marks))
        return type(self)(secret, self.turns, self.hard, self.over, self.guessed, self.marks, self.log)

    def max_turns(self) -> int:
        """See `Game.max_turns`."""
        return self.turns

    def max_length(self) -> int:
        """What is known of a few letters and 26 absent ones, and a line for every guess."""
        return 700 + 40 * self.turns

    def action_table(self) -> tuple[Action, ...]:
        """Every word of the length."""
        return guesses(len(self.secret))

    def features(self, player: Player) -> tuple[float, ...]:
        """Of every place and letter: 1 it is there, -1 it is not, 0 unknown; least count of every letter; guesses."""
        length = len(self.secret)
        here, least, most = _known(length, self.guessed, self.marks)
        cells = [
            1.0 if letter == placed else -1.0 if placed or letter in wrong or most.get(letter) == 0 else 0.0
            for placed, wrong in here
            for letter in LETTERS
        ]
        counts = [least.get(letter, 0) / length for letter in LETTERS]
        return (*cells, *counts, len(self.guessed) / self.turns)


def mark(guess: str, secret: str) -> str:
    """The marks of a guess, one character a letter: G in its place, Y elsewhere in the word, - not (left) in it.

    >>> mark("allee", "eagle")
    'YY-YG'
    """
    marks = ["-"] * len(secret)
    left: dict[str, int] = {}
    for i, letter in enumerate(secret):
        if guess[i] == letter:
            marks[i] = "G"
        else:
            left[letter] = left.get(letter, 0) + 1
    for i, letter in enumerate(guess):
        if marks[i] == "-" and left.get(letter):
            marks[i] = "Y"
            left[letter] -= 1
    return "".join(marks)


@lru_cache(maxsize=4096)
def _consistent(length: int, guessed: tuple[str, ...], marks: tuple[str, ...]) -> tuple[str, ...]:
    """Common words that would have been answered like this."""
    if not guessed:
        return answers(length)
    before = _consistent(length, guessed[:-1], marks[:-1])
    return tuple([word for word in before if mark(guessed[-1], word) == marks[-1]])


@lru_cache(maxsize=256)
def _using(guess: str, marks: str) -> Actions:
    """Every word that uses the hints of a guess."""
    words: list[str] | Actions = guesses(len(guess))
    for i, letter in enumerate(guess):
        if marks[i] == "G":
            words = [word for word in words if word[i] == letter]
    for letter, count in _hinted(guess, marks).items():
        words = [word for word in words if word.count(letter) >= count]
    return Actions(words)


def _hinted(guess: str, marks: str) -> dict[str, int]:
    """How often each letter is marked as being in the word."""
    counts: dict[str, int] = {}
    for letter, hint in zip(guess, marks, strict=True):
        if hint != "-":
            counts[letter] = counts.get(letter, 0) + 1
    return counts


def _unused(word: str, guess: str, marks: str) -> str:
    for i, letter in enumerate(guess):
        if marks[i] == "G" and word[i] != letter:
            return f"letter {i + 1} must be {letter}"
    missing = [f"{n} x {x}" if n > 1 else x for x, n in _hinted(guess, marks).items() if word.count(x) < n]
    return f"the guess must use {', '.join(missing)}"


Known = tuple[list[tuple[str, set[str]]], dict[str, int], dict[str, int]]


def _known(length: int, guessed: tuple[str, ...], marks: tuple[str, ...]) -> Known:
    """Of every place the letter known to be there ("" if none) and those known not to be; least and most counts."""
    placed, wrong = [""] * length, [set[str]() for _ in range(length)]
    least: dict[str, int] = {}
    most: dict[str, int] = {}
    for guess, hints in zip(guessed, marks, strict=True):
        counts = _hinted(guess, hints)
        for letter, count in counts.items():
            least[letter] = max(least.get(letter, 0), count)
        for i, letter in enumerate(guess):
            if hints[i] == "G":
                placed[i] = letter
            else:
                wrong[i].add(letter)
            if hints[i] == "-":
                most[letter] = counts.get(letter, 0)
    return list(zip(placed, wrong, strict=True)), least, most


def _told(length: int, guessed: tuple[str, ...], marks: tuple[str, ...]) -> str:
    here, least, most = _known(length, guessed, marks)
    inside = []
    for letter, count in sorted(least.items()):
        often = f"exactly {count}" if most.get(letter) == count else f"at least {count}"
        places = " ".join([str(i + 1) for i, (placed, wrong) in enumerate(here) if letter in wrong and not placed])
        inside.append(f"{letter} ({often}{'; not in place ' + places if places else ''})")
    absent = " ".join(sorted(letter for letter, count in most.items() if not count))
    rows = (" ".join([placed or "_" for placed, _ in here]), ", ".join(inside) or "?", absent or "?")
    return "Places: {}\nIn the word: {}\nNot in the word: {}".format(*rows)
