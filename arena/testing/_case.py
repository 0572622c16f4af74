"""A game under test: its options, its seeds, and the positions that random play reaches."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any, TypeVar

from arena.game import Action, Event, Game, IllegalAction, LiveGame, Player

__all__ = ["Case", "Moves", "Playthrough", "Spot", "Violation", "random_playthrough"]

G = TypeVar("G", bound=Game)
T = TypeVar("T")
Moves = dict[Player, Action]
SeatView = tuple[str, tuple[Event, ...], tuple[Action, ...] | None]

MAX_SPOTS = 90


class Violation(Exception):
    """A rule of the contract is broken; the message says which, and what to do about it."""


def random_playthrough(
    game: type[G], options: Mapping[str, Any] | None = None, *, seed: int = 0, max_plies: int = 2000
) -> Iterator[G]:
    """The positions of one game of random play, from the deal to the end (at most `max_plies` moves later).

    The deal is `game.initial(Random(seed), **options)`. A LiveGame is closed when the iterator is.

    >>> from arena.games.board.tictactoe import TicTacToe
    >>> [position.to_act() for position in random_playthrough(TicTacToe, seed=1)][-1]
    ()
    """
    with closing(steps(game.initial(Random(seed), **(options or {})), seed, max_plies)) as play:
        for position, _ in play:
            yield position


def steps(position: G, seed: int, max_plies: int) -> Generator[tuple[G, Moves], None, None]:
    """Random play from a position: each position with the moves made in it, `{}` in the last."""
    rng = Random(f"moves {seed}")
    try:
        for _ in range(max_plies):
            moves = {p: draw(position, p, rng) for p in position.to_act()}
            yield position, moves
            if not moves:
                return
            position = position.apply(moves)
        yield position, {}
    finally:
        if isinstance(position, LiveGame):
            position.close()


def draw(game: Game, player: Player, rng: Random) -> Action:
    """A random action of the list, or of `sample_action` where there is none."""
    legal = game.legal_actions(player)
    return rng.choice(legal) if legal else game.sample_action(player, rng)


def joint(game: Game, player: Player, action: Action, seed: int = 0) -> Moves:
    """A joint move in which `player` does `action` and the others something legal."""
    rng = Random(seed)
    return {p: action if p == player else draw(game, p, rng) for p in game.to_act()}


def view(game: Game) -> tuple[SeatView, ...]:
    """What every seat can see."""
    return tuple([(game.observation(p), tuple(game.events(p)), game.legal_actions(p)) for p in range(game.players)])


def attempt(call: Callable[..., object], *args: object) -> Exception | None:
    """What the call raised, or None."""
    try:
        call(*args)
    except Exception as error:  # noqa: BLE001 - whatever a game under test raises is a finding
        return error
    return None


def refused(call: Callable[..., object], *args: object) -> bool:
    """Whether the call raised IllegalAction; other errors go through."""
    try:
        call(*args)
    except IllegalAction:
        return True
    return False


def accepts(game: Game, player: Player, action: Action) -> bool:
    """Whether the seat may take the action: by the list, or by `check` where there is none."""
    legal = game.legal_actions(player)
    return action in legal if legal is not None else not refused(game.check, player, action)


def short(value: object, limit: int = 60) -> str:
    """The value for a message: its repr, cut in the middle."""
    if isinstance(value, str) and len(value) > limit:
        return f"{value[:12]!r}... ({len(value):,} characters)"
    text = repr(value)
    return text if len(text) <= 3 * limit else f"{text[: 2 * limit]} ... {text[-limit:]}"


def change(old: object, new: object) -> str:
    """`from ... to ...` for a message; of long texts what is around their first difference."""
    if isinstance(old, str) and isinstance(new, str) and max(len(old), len(new)) > 60:
        at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        old, new = (f"...{text[max(at - 25, 0) : at + 25]}..." for text in (old, new))
    return f"from {short(old)} to {short(new)}"


def evenly(items: Sequence[T], count: int) -> Sequence[T]:
    """At most `count` items, evenly spaced, the first and the last among them."""
    if len(items) <= count:
        return items
    return [items[i * (len(items) - 1) // max(count - 1, 1)] for i in range(count)]


@dataclass(frozen=True)
class Spot:
    """A reached position, and how to reach it again."""

    game: Game
    seed: int
    ply: int

    def broken(self, message: str) -> Violation:
        """The finding, with its place."""
        return Violation(f"{message} (seed {self.seed}, after {self.ply} moves)")


@dataclass
class Playthrough:
    """One game of random play; `error` is what broke it off."""

    seed: int
    positions: list[Game] = field(default_factory=list)
    moves: list[Moves] = field(default_factory=list)
    error: Exception | None = None

    def spots(self, count: int) -> list[Spot]:
        """At most `count` of its positions, evenly spaced."""
        return [Spot(self.positions[i], self.seed, i) for i in evenly(range(len(self.positions)), count)]


@dataclass(frozen=True)
class Case:
    """What a check is given: the class, one set of options, the seeds, and what random play reached."""

    game: type[Game]
    options: Mapping[str, Any]
    seeds: tuple[int, ...]
    max_plies: int

    def initial(self, seed: int) -> Game:
        """The first position of a seed."""
        return self.game.initial(Random(seed), **self.options)

    def play(self, seed: int) -> Generator[tuple[Game, Moves], None, None]:
        """Random play of a seed: each position with the moves made in it."""
        return steps(self.initial(seed), seed, self.max_plies)

    def spot(self) -> Spot:
        """The first position of the first seed."""
        return self.spots[0]

    def asking(self, count: int) -> Sequence[Spot]:
        """At most `count` of the spots in which somebody is asked."""
        return evenly([s for s in self.spots if s.game.to_act()], count)

    def open_text(self, count: int) -> Sequence[tuple[Spot, Player]]:
        """At most `count` pairs of a spot and a seat that may write open text there."""
        found = [(s, p) for s in self.asking(MAX_SPOTS) for p in s.game.to_act() if s.game.legal_actions(p) is None]
        return evenly(found, count)

    @cached_property
    def playthroughs(self) -> tuple[Playthrough, ...]:
        """One game of random play for every seed."""
        return tuple([self._record(seed) for seed in self.seeds])

    @cached_property
    def spots(self) -> tuple[Spot, ...]:
        """The positions to look at: all of short games, evenly spaced ones of long games."""
        count = max(MAX_SPOTS // len(self.seeds), 2)
        return tuple([spot for play in self.playthroughs for spot in play.spots(count)])

    def _record(self, seed: int) -> Playthrough:
        record = Playthrough(seed)
        try:
            with closing(self.play(seed)) as play:
                for position, moves in play:
                    record.positions.append(position)
                    record.moves.append(moves)
        except Exception as error:  # noqa: BLE001 - the check `plays` reports it
            record.error = error
        return record
