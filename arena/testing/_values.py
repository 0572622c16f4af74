"""Checks of positions as values: frozen, hashed, compared, pickled, copied, and never changed."""

import copy
import pickle
from collections.abc import Callable
from itertools import islice

from arena.game import Game, LiveGame
from arena.testing._case import Case, Spot, Violation, attempt, change, short, steps, view
from arena.testing._play import PER_GAME, PER_SEAT


def image(game: Game) -> bytes | str:
    """The whole content of a value, so that a change of it shows."""
    try:
        return pickle.dumps(game)
    except (pickle.PicklingError, TypeError, AttributeError):  # `pickling` reports it
        return repr(game)


def purity(case: Case) -> None:
    """`apply` leaves the value it is called on as it was, and the old value gives the same child again."""
    for spot in case.asking(40):
        before = image(spot.game)
        position, moves = next(steps(spot.game, 0, 1))
        child = position.apply(moves)
        if image(spot.game) != before:
            raise spot.broken(
                "apply() changed the value it was called on: build the next one with replace() or type(self)(...), "
                "and keep nothing in it that can be changed (tuple, not list)"
            )
        grandchild = list(islice(steps(child, 1, 2), 3))
        if spot.game.apply(moves) != child or list(islice(steps(child, 1, 2), 3)) != grandchild:
            raise spot.broken(f"apply({short(moves)}) gave another position the second time: hold all state in fields")


def _reads(game: Game) -> dict[str, object]:
    seen = {f"{name}({p})": getattr(game, name)(p) for name in PER_SEAT for p in range(game.players)}
    return seen | {f"{name}()": getattr(game, name)() for name in PER_GAME}


def reads(case: Case) -> None:
    """Looking at a position changes nothing, and shows the same every time."""
    for spot in case.spots:
        before, first = image(spot.game), _reads(spot.game)
        for name, again in _reads(spot.game).items():
            if first[name] != again:
                raise spot.broken(f"{name} changed {change(first[name], again)} while nothing was played")
        if image(spot.game) != before:
            raise spot.broken("looking at the position changed it: everything but apply() only looks")


def frozen(case: Case) -> None:
    """No field of a value can be set."""
    game = case.spot().game
    for name in game.__struct_fields__:
        if not isinstance(attempt(setattr, game, name, getattr(game, name)), AttributeError):
            raise Violation(f"the field {name} can be set: leave the class frozen, and apply() builds a new value")


def hashing(case: Case) -> None:
    """A value can be hashed, so every field of it can."""
    for spot in case.spots:
        if (error := attempt(hash, spot.game)) is not None:
            kinds = ", ".join(
                f"{name}: {type(value).__name__}"
                for name in spot.game.__struct_fields__
                if attempt(hash, value := getattr(spot.game, name))
            )
            raise spot.broken(f"hash() of a position raised {error!r} ({kinds}): hold tuples and frozensets instead")


def equality(case: Case) -> None:
    """Positions reached in the same way are equal and hash alike; those that look different are not equal."""
    for play in case.playthroughs:
        position = case.initial(play.seed)
        for ply, (old, moves) in enumerate(zip(play.positions[:40], play.moves, strict=False)):
            spot = Spot(old, play.seed, ply)
            if position != old or not position == old or hash(position) != hash(old):
                raise spot.broken("the same moves gave an unequal position or another hash: leave __eq__ as it is")
            if not moves:
                break
            child = position.apply(moves)
            if child == position and view(child) != view(position):
                raise spot.broken("two positions that look different are equal: leave __eq__ as it is")
            position = child


def _continues(spot: Spot, twin: Game, how: str) -> None:
    if twin != spot.game or view(twin) != view(spot.game):
        raise spot.broken(f"a {how} position is not equal to the original: leave __reduce__, __copy__ and __eq__ alone")
    for (a, _), (b, _) in zip(steps(spot.game, 2, 6), steps(twin, 2, 6), strict=False):
        if a != b or view(a) != view(b):
            raise spot.broken(f"a {how} position played on differently: keep all state in the fields")


def pickling(case: Case) -> None:
    """A position pickled in the middle of a game is equal and plays on identically."""
    for spot in (*case.asking(15), case.spots[-1]):
        try:
            twin = pickle.loads(pickle.dumps(spot.game))  # noqa: S301 - our own bytes
        except Exception as error:
            raise spot.broken(f"pickling a position raised {error!r}: hold data only, no handles") from error
        _continues(spot, twin, "pickled")


def copying(case: Case) -> None:
    """`copy.copy` and `copy.deepcopy` of a position are equal and play on identically."""
    makers: tuple[tuple[str, Callable[[Game], Game]], ...] = (("copied", copy.copy), ("deep-copied", copy.deepcopy))
    for spot in (*case.asking(8), case.spots[-1]):
        for how, make in makers:
            _continues(spot, make(spot.game), how)


def closing(case: Case) -> None:
    """A LiveGame can be closed twice, before it was opened and after the end."""
    for spot in (case.spot(), case.spots[-1]):
        for _ in range(2):
            if isinstance(spot.game, LiveGame) and (error := attempt(spot.game.close)) is not None:
                raise spot.broken(f"close() raised {error!r}: it must be safe before the first apply() and twice")
