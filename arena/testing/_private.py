"""Checks of what each seat may know: the history it is told, and that nothing private leaks."""

from collections.abc import Iterator
from random import Random

from arena.chance import Chance
from arena.game import Event, Game, Player
from arena.testing._case import Case, Spot, attempt, change, short, steps

MAX_PLIES = 300


def events(case: Case) -> None:
    """Events are `Event`s whose sender and audience are seats; a sender belongs to the audience."""
    for spot in case.spots:
        seats = range(spot.game.players)
        for p in seats:
            for event in spot.game.events(p):
                if not isinstance(event, Event) or not isinstance(event.text, str):
                    raise spot.broken(f"events({p}) holds {short(event)}: it must hold Event(text, sender, audience)")
                if event.sender is not None and event.sender not in seats:
                    raise spot.broken(f"{short(event)} has no valid sender: a seat, or None for the game")
                _audience(spot, event)


def _audience(spot: Spot, event: Event) -> None:
    if event.audience is None:
        return
    if not isinstance(event.audience, tuple) or any(q not in range(spot.game.players) for q in event.audience):
        raise spot.broken(f"{short(event)} has no valid audience: a tuple of seats, or None for everybody")
    if event.sender is not None and event.sender not in event.audience:
        raise spot.broken(f"the sender of {short(event)} does not belong to its audience: add the seat")


def append_only(case: Case) -> None:
    """The events a seat has seen are a prefix of those it has seen later."""
    for play in case.playthroughs:
        seen: dict[Player, tuple[Event, ...]] = {}
        for spot in play.spots(60):
            for p in range(spot.game.players):
                now = tuple(spot.game.events(p))
                if now[: len(seen.get(p, ()))] != seen.get(p, ()):
                    raise spot.broken(f"events({p}) no longer begin with what they were: only ever append to them")
                seen[p] = now


def audience(case: Case) -> None:
    """A seat is told only events it may know of."""
    for spot in case.spots:
        for p in range(spot.game.players):
            if hidden := [e for e in spot.game.events(p) if not e.seen_by(p)]:
                raise spot.broken(f"player {p} is told {short(hidden[0])}: keep events for which e.seen_by(p) only")


def _rng(seed: int) -> Random:
    """A generator that is not the one of any deal: `Random(0)` would draw the Chance of seed 0 once more."""
    return Random(f"guess {seed}")


def _guesses(case: Case, count: int) -> Iterator[tuple[Spot, Player, Game]]:
    """Positions as the seats may imagine them."""
    for spot in (*case.asking(count), case.spots[-1]):
        for p in range(spot.game.players):
            for seed in range(3):
                yield spot, p, spot.game.determinize(p, _rng(seed))


def _known(game: Game, player: Player) -> dict[str, object]:
    return {
        "observation": game.observation(player),
        "events": tuple(game.events(player)),
        "legal_actions": game.legal_actions(player),
        "rules": game.rules(player),
        "role": game.role(player),
        "features": game.features(player),
    }


def determinize(case: Case) -> None:
    """What the seat knows is untouched by `determinize`, so none of it was another's secret."""
    for spot, p, guess in _guesses(case, 30):
        if type(guess) is not case.game:
            raise spot.broken(f"determinize({p}) gave a {type(guess).__name__}, not a {case.game.__name__}")
        known, kept = _known(spot.game, p), _known(guess, p)
        for name, value in known.items():
            if kept[name] != value:
                raise spot.broken(
                    f"determinize({p}) changed {name} of player {p} {change(value, kept[name])}: either it shows what "
                    "is secret, or determinize() redraws what the seat knows"
                )


def determinize_repeats(case: Case) -> None:
    """`determinize` depends on the position and its rng only, and leaves the position as it was."""
    for spot, p, guess in _guesses(case, 10):
        again = [spot.game.determinize(p, _rng(seed)) for seed in range(3)]
        if guess not in again:
            raise spot.broken(f"determinize({p}) gave two answers for one rng: draw from its rng only")


def determinize_plays(case: Case) -> None:
    """What `determinize` gives can be played to its end."""
    for spot, p, guess in _guesses(case, 4):
        if guess == spot.game:
            continue
        if (error := attempt(_play_on, guess)) is not None:
            raise spot.broken(f"what determinize({p}) gave could not be played on: {error!r}")


def _play_on(game: Game) -> None:
    for position, _ in steps(game, 0, MAX_PLIES):
        position.returns()


def reseeding(case: Case) -> None:
    """`determinize` and `reseed` draw every `Chance` anew: no search may look at the dice to come."""
    for spot, p, guess in _guesses(case, 10):
        for how, other in ((f"determinize({p})", guess), ("reseed()", spot.game.reseed(_rng(p)))):
            for name in spot.game.__struct_fields__:
                chance = getattr(spot.game, name)
                if type(chance) is Chance and getattr(other, name).key == chance.key:
                    raise spot.broken(f"{how} left the Chance field {name} as it was: end with .reseed(rng)")
