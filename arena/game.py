"""The contract: a game is an immutable value; text in, text out.

A game of two, a game of fifteen, a question, a tool task: all are one kind of thing, `Game`. A value of it
is one position; `apply` gives the next one. Rules live here and in `games/`; what an illegal move costs,
how a reply is read, turn limits and prompts are the referee's and the faces' business, never a game's.
"""

from abc import ABCMeta, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, ClassVar, NamedTuple, Self, dataclass_transform

import msgspec
from msgspec.structs import replace

from arena.chance import Chance
from arena.drawing import Drawing

__all__ = [
    "NOBODY",
    "SEAT",
    "Action",
    "Actions",
    "Drawing",
    "Event",
    "Game",
    "IllegalAction",
    "LiveGame",
    "Player",
    "TurnGame",
    "replace",
]

Player = int
Action = str

NOBODY: tuple[Player, ...] = ()
"""`to_act()` of a finished game."""
SEAT: tuple[tuple[Player, ...], ...] = tuple((p,) for p in range(64))
"""`SEAT[p]` is `(p,)`, shared: the `to_act()` of a game where p alone moves."""


class Actions(tuple[Action, ...]):  # noqa: SLOT001  # a tuple cannot have slots of its own
    """A long list of legal actions that answers `in` in constant time; positions share one value of it."""

    _members: frozenset[Action]

    def __new__(cls, actions: Iterable[Action] = ()) -> Self:
        """The actions in this order."""
        self = super().__new__(cls, actions)
        self._members = frozenset(self)
        return self

    def __contains__(self, action: object) -> bool:
        return action in self._members

    def __reduce__(self) -> tuple[type[Self], tuple[tuple[Action, ...]]]:
        return type(self), (tuple(self),)


class IllegalAction(ValueError):
    """The action breaks the rules; `reason` says why, in words a player can use."""

    def __init__(self, reason: str, player: Player | None = None) -> None:
        super().__init__(reason, player)
        self.reason = reason
        self.player = player

    def __str__(self) -> str:
        return self.reason


class Event(NamedTuple):
    """What happened or was said, as data. It is shown by `arena.text.show`, which no player can forge."""

    text: str
    sender: Player | None = None
    """Who said it; None: the game speaks."""
    audience: tuple[Player, ...] | None = None
    """Who may know of it; None: everybody. A sender belongs to the audience of their own words."""

    def seen_by(self, player: Player) -> bool:
        """Whether the seat may know of it."""
        return self.audience is None or player in self.audience


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class _Meta(msgspec.StructMeta, ABCMeta):
    """A Struct whose abstract methods are enforced."""


class Game(msgspec.Struct, metaclass=_Meta, frozen=True):
    """One position of one game: an immutable value that can be hashed, compared, pickled and replaced.

    What holds for every game (`arena.testing.check_game` proves it):

    - `apply` returns a new value and leaves the old one as it was; an illegal action raises `IllegalAction`
      and changes nothing; actions of other seats than `to_act()` are the caller's bug: `ValueError`.
    - All chance comes from the `rng` of `initial` or from a `Chance` field, nothing from a global or a clock.
    - Everything but `apply` is defined in every position and for every seat, final positions included.
    - `players`, `reward_range`, `action_table`, `rules`, `max_turns`, `max_length` and the length of `features`
      depend on the options only, never on the deal. (`rules` may tell a seat's number, never its secret role.)
    - Nothing private to one seat reaches another's `observation`, `events` or `legal_actions`.
    """

    zero_sum: ClassVar[bool] = False
    """The returns of all seats add up to zero at the end."""
    perfect_information: ClassVar[bool] = False
    """Every seat may know the whole position (dice still to fall excepted)."""
    house: ClassVar[tuple[Player, ...]] = ()
    """Seats of the house: played by `fallback`, not rotated, not rated."""
    tags: ClassVar[tuple[str, ...]] = ()
    """Words for the catalogue, such as `("board", "abstract")`."""

    @property
    @abstractmethod
    def players(self) -> int:
        """The number of seats: a field `players: int`, or a plain class constant `players = 2`."""

    @classmethod
    @abstractmethod
    def initial(cls, *args: Any, **options: Any) -> Self:
        """The first position, dealt from `rng`. Games write `(cls, rng: Random, size: int = 3)`.

        The signature of the subclass is its catalogue of options: each has a default, survives JSON, and is
        refused with a ValueError that names the allowed values.
        """

    @abstractmethod
    def to_act(self) -> tuple[Player, ...]:
        """Seats asked now: one (turns), several (at once), none (over), in ascending order. It may be a secret."""

    @abstractmethod
    def rules(self, player: Player) -> str:
        """How to play, for this seat and these options: aim, turn, form of an action, a legal example, payoff."""

    @abstractmethod
    def observation(self, player: Player) -> str:
        """The position as this seat may see it, and what is asked of it now; never the history."""

    @abstractmethod
    def legal_actions(self, player: Player) -> tuple[Action, ...] | None:
        """Every action the seat may take now, or None: open text judged by `check`. `()` for a seat not to act."""

    @abstractmethod
    def apply(self, actions: Mapping[Player, Action]) -> Self:
        """The next position, given one legal action of every seat to act."""

    @abstractmethod
    def returns(self) -> tuple[float, ...]:
        """What each seat has earned so far, in every position; it stays as it is once the game is over."""

    def events(self, player: Player) -> Sequence[Event]:
        """The history this seat has seen. Append-only: an earlier position's events are a prefix of a later's."""
        return ()

    def check(self, player: Player, action: Action) -> None:
        """Raise IllegalAction if the seat may not say this. Asked only where `legal_actions` is None."""

    def normalize(self, text: str, player: Player) -> Action:
        """The canonical form of what a player wrote (`Nf3` -> `g1f3`); unknown text comes back as it is."""
        return text

    def sample_action(self, player: Player, rng: Random) -> Action:
        """A random legal action. A game whose `legal_actions` may be None must write its own."""
        legal = self.legal_actions(player)
        if not legal:
            raise ValueError(f"player {player} has no list of actions to sample from")
        return rng.choice(legal)

    def fallback(self, player: Player) -> Action | None:
        """The harmless action of a seat that does not answer (silence, check or fold), or None: there is none."""
        return None

    def reward_range(self) -> tuple[float, float]:
        """Least and greatest total return of a seat."""
        return (-1.0, 1.0)

    def max_turns(self) -> int | None:
        """A bound on the number of `apply` calls that rules and options guarantee, or None."""
        return None

    def max_length(self) -> int:
        """A bound on the characters of one seat's events (as shown) and observation together."""
        return 1 << 16

    def max_action(self) -> int:
        """The longest action, in characters, that can be legal."""
        return 256

    def scores(self, player: Player) -> Mapping[str, float]:
        """Named parts of the seat's reward (tasks), by name."""
        return {}

    def role(self, player: Player) -> str:
        """The seat's role, such as "Doctor"; "" where seats have none. It may be a secret."""
        return ""

    def teams(self) -> tuple[int, ...] | None:
        """The team of every seat, or None: each for itself. It may be a secret."""
        return None

    def determinize(self, player: Player, rng: Random) -> Self:
        """A full position that agrees with all the seat knows, the rest drawn anew; its chance is always reseeded.

        Required of every game with hidden information: it is what a search may look into, and the proof that
        nothing leaks. The seat's own observation, events and legal actions stay exactly as they are.
        """
        if not self.perfect_information:
            raise NotImplementedError(f"{type(self).__name__} has hidden information and no determinize()")
        return self.reseed(rng)

    def reseed(self, rng: Random) -> Self:
        """The same position with another future: every `Chance` field drawn anew."""
        fields = [f for f in self.__struct_fields__ if type(getattr(self, f)) is Chance]
        return replace(self, **{f: Chance.of(rng) for f in fields}) if fields else self

    def render(self) -> str:
        """The whole table as an onlooker who may know everything would see it."""
        return "\n\n".join(f"[player {p}]\n{self.observation(p)}" for p in range(self.players))

    def drawing(self) -> Drawing | None:
        """The board as an onlooker sees it, for pages that draw it, or None: `render` tells all there is."""
        return None

    def pgn(self, actions: Sequence[Action], players: Sequence[str], tags: Mapping[str, str]) -> str | None:
        """Play from this position on in Portable Game Notation, as programs of its kind read it; None: it has none.

        `actions`: of the seats to act, in order. `players`: names by seat. `tags`: what the head shall tell beside
        these ("Date", "Result", ...); they and names may be any text.
        """
        return None

    def action_table(self) -> tuple[Action, ...] | None:
        """Every action that can ever be legal, numbered by position (numeric face); None: there is no such list."""
        return None

    def features(self, player: Player) -> Sequence[float] | None:
        """The seat's view as numbers in [-1, 1], always of one length, or None (the numeric face uses tokens)."""
        return None


class TurnGame(Game):
    """A game in which one seat moves at a time: write `play` instead of `apply`."""

    @abstractmethod
    def play(self, action: Action) -> Self:
        """The position after the seat to act did this. Raises IllegalAction."""

    def apply(self, actions: Mapping[Player, Action]) -> Self:
        """See `Game.apply`."""
        if tuple(actions) != (acting := self.to_act()) or not acting:
            raise ValueError(f"actions of seats {tuple(actions)} were given; to act: {acting}")
        return self.play(actions[acting[0]])


class LiveGame(Game):
    """A game that drives something alive (a sandbox, a server): opened at the first `apply`, never in `initial`.

    It must be closed, is not cloned, and is exempt from pickling and replay. `apply` runs in a thread pool.
    """

    @abstractmethod
    def close(self) -> None:
        """Let go of what was opened. Safe to call twice."""
