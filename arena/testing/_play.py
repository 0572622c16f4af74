"""Checks of play as a whole: it starts, goes on, ends, and everything is defined on the way."""

import inspect
import json
from collections.abc import Mapping, Sequence
from random import Random
from types import NoneType

from arena.game import Drawing, Game, IllegalAction
from arena.testing._case import Case, Spot, Violation, attempt, short

PER_SEAT: dict[str, tuple[type, ...]] = {
    "rules": (str,),
    "observation": (str,),
    "legal_actions": (tuple, NoneType),
    "events": (Sequence,),
    "fallback": (str, NoneType),
    "scores": (Mapping,),
    "features": (Sequence, NoneType),
    "role": (str,),
}
PER_GAME: dict[str, tuple[type, ...]] = {
    "to_act": (tuple,),
    "returns": (tuple,),
    "reward_range": (tuple,),
    "max_turns": (int, NoneType),
    "max_length": (int,),
    "max_action": (int,),
    "action_table": (tuple, NoneType),
    "teams": (tuple, NoneType),
    "render": (str,),
    "drawing": (Drawing, NoneType),
}
FACTS = ("reward_range", "action_table", "max_turns", "max_length", "max_action")


def plays(case: Case) -> None:
    """`initial` deals, and random legal play raises nothing and stays within the class."""
    for play in case.playthroughs:
        if play.error is not None:
            if not play.positions:
                raise Violation(f"no first position (seed {play.seed}): {play.error!r}") from play.error
            raise Violation(
                f"random legal play broke off at move {len(play.positions)} with {play.error!r}: what legal_actions "
                f"lists, or sample_action gives, must be accepted (seed {play.seed})"
            ) from play.error
        for ply, position in enumerate(play.positions):
            if type(position) is not case.game:
                raise Violation(
                    f"a position is a {type(position).__name__}: initial() and apply() must return "
                    f"{case.game.__name__} (seed {play.seed}, after {ply} moves)"
                )


def ends(case: Case) -> None:
    """A game that declares `max_turns` is over after so many `apply` calls."""
    for play in case.playthroughs:
        bound = play.positions[0].max_turns() if play.positions else None
        if bound is None or play.error is not None:
            continue
        played = len(play.positions) - 1
        if played > bound or (played == bound and play.positions[-1].to_act()):
            raise Violation(
                f"max_turns() is {bound}, but the game is not over after {min(played, bound)} calls of apply(): "
                f"raise the bound to what rules and options guarantee, or return None (seed {play.seed})"
            )


def seats(case: Case) -> None:
    """`to_act` names seats of the game, each once, in ascending order."""
    for spot in case.spots:
        acting, players = spot.game.to_act(), spot.game.players
        if list(acting) != sorted(set(acting)) or not all(0 <= p < players for p in acting):
            raise spot.broken(f"to_act() is {acting}: name seats of range({players}), each once, in ascending order")


def _defined(spot: Spot, name: str, kinds: tuple[type, ...], *args: object) -> None:
    call = f"{name}({', '.join(map(str, args))})"
    try:
        value = getattr(spot.game, name)(*args)
    except Exception as error:
        raise spot.broken(
            f"{call} raised {error!r}: everything but apply() is defined in every position, for every seat"
        ) from error
    if not isinstance(value, kinds) or (str not in kinds and isinstance(value, str)):
        raise spot.broken(f"{call} is {short(value)}: return {' or '.join(k.__name__ for k in kinds)}")


def defined(case: Case) -> None:
    """Everything but `apply` is defined, with its type, in every position and for every seat."""
    for spot in case.spots:
        players = spot.game.players
        if not isinstance(players, int) or players < 1:
            raise spot.broken(f"players is {players!r}: it must be a whole number of at least 1")
        for p in range(players):
            for name, kinds in PER_SEAT.items():
                _defined(spot, name, kinds, p)
            _defined_of_text(spot, p)
        for name, kinds in PER_GAME.items():
            _defined(spot, name, kinds)
        if (teams := spot.game.teams()) is not None and len(teams) != players:
            raise spot.broken(f"teams() has {len(teams)} entries for {players} seats")


def _defined_of_text(spot: Spot, player: int) -> None:
    if (error := attempt(spot.game.normalize, "pass", player)) is not None:
        raise spot.broken(f"normalize('pass', {player}) raised {error!r}: unknown text comes back as it is")
    error = attempt(spot.game.check, player, "pass")
    if error is not None and not isinstance(error, IllegalAction):
        raise spot.broken(f"check({player}, 'pass') raised {error!r}: only IllegalAction may come out")


def options(case: Case) -> None:
    """The signature of `initial` is the catalogue of options: `rng` first, then names with defaults."""
    parameters = list(inspect.signature(case.game.initial).parameters.values())
    if not parameters or parameters[0].name != "rng":
        raise Violation("the first parameter of initial() must be rng: `def initial(cls, rng: Random, size: int = 3)`")
    for parameter in parameters[1:]:
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            raise Violation(f"initial() takes {parameter}: spell every option out, so that unknown ones are refused")
        if parameter.default is parameter.empty:
            raise Violation(f"the option {parameter.name} of initial() has no default: give it one")


def json_options(case: Case) -> None:
    """Options, the defaults included, survive JSON: the deal is equal and can be hashed."""
    parameters = list(inspect.signature(case.game.initial).parameters.values())[1:]
    given = {p.name: p.default for p in parameters if p.default is not p.empty} | dict(case.options)
    try:
        returned = json.loads(json.dumps(given))
    except (TypeError, ValueError) as error:
        raise Violation(f"the options {short(given)} do not survive JSON ({error}): use numbers and texts") from None
    seed = case.seeds[0]
    first, again = case.game.initial(Random(seed), **given), case.game.initial(Random(seed), **returned)
    if first != again or attempt(hash, again):
        raise Violation(
            f"the options {short(given)} give another game after a round trip through JSON: lists arrive where "
            "tuples were, so write `tuple(option)` in initial()"
        )


def _facts(game: Game) -> dict[str, object]:
    facts: dict[str, object] = {name: getattr(game, name)() for name in FACTS}
    facts["players"] = game.players
    return facts | {f"rules({p})": game.rules(p) for p in range(game.players)}


def options_only(case: Case) -> None:
    """What faces ask once (players, rules, bounds, action table) is the same in every position of every deal."""
    first = _facts(case.spot().game)
    for spot in case.spots:
        for name, value in _facts(spot.game).items():
            if value != first.get(name):
                raise spot.broken(
                    f"{name} is {short(value)}, but {short(first.get(name))} at the first deal: it may depend on "
                    "the options only, never on the deal or the position"
                )
