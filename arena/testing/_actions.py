"""Checks of actions: what is listed is legal, what is not is refused, and nothing else may be asked of `apply`."""

from collections.abc import Iterator
from random import Random

from arena.game import Action, Game, IllegalAction, Player
from arena.testing._case import Case, Moves, Spot, accepts, attempt, draw, evenly, joint, short
from arena.testing._values import image

MAX_ACTIONS = 64


def legal_list(case: Case) -> None:
    """`legal_actions` is a tuple of texts, each once; `()` for seats not to act, never empty for the others."""
    for spot in case.spots:
        acting = spot.game.to_act()
        for p in range(spot.game.players):
            legal = spot.game.legal_actions(p)
            if p not in acting:
                if legal != ():
                    raise spot.broken(f"legal_actions({p}) is {short(legal)}, but {p} is not to act: return ()")
            elif legal is not None:
                _listed(spot, p, legal)


def _listed(spot: Spot, player: Player, legal: tuple[Action, ...]) -> None:
    if not isinstance(legal, tuple) or not all(isinstance(a, str) for a in legal):
        raise spot.broken(f"legal_actions({player}) is {short(legal)}: return a tuple of str")
    if not legal:
        raise spot.broken(f"player {player} is to act, but legal_actions({player}) is empty: offer a pass, or skip it")
    if len(set(legal)) != len(legal):
        raise spot.broken(f"legal_actions({player}) lists an action twice: {short(legal)}")


def legal_apply(case: Case) -> None:
    """Every listed action is accepted by `apply`, whatever the other seats do at the same moment."""
    for spot in case.asking(25):
        for p in spot.game.to_act():
            for i, action in enumerate(evenly(spot.game.legal_actions(p) or (), MAX_ACTIONS)):
                if (error := attempt(spot.game.apply, joint(spot.game, p, action, i))) is not None:
                    raise spot.broken(
                        f"apply() refused {short(action)} of player {p}, which legal_actions({p}) lists: {error!r}"
                    )


def _unlisted(legal: tuple[Action, ...]) -> Iterator[Action]:
    for action in evenly(legal, 5):
        yield from (action + " ", " " + action, action + "\n", action.upper(), action + action, action + "\0")
    yield from ("", "none of these", "0", "-1", "None")


def illegal(case: Case) -> None:
    """Where there is a list, an action that is not in it raises IllegalAction and leaves the value as it was."""
    for spot in case.asking(25):
        before = image(spot.game)
        for p in spot.game.to_act():
            legal = spot.game.legal_actions(p)
            for action in _unlisted(legal) if legal else ():
                if action not in (legal or ()):
                    _refused(spot, p, action)
        if image(spot.game) != before:
            raise spot.broken("an illegal action changed the value: raise IllegalAction before anything else")


def _refused(spot: Spot, player: Player, action: Action) -> None:
    error = attempt(spot.game.apply, joint(spot.game, player, action))
    if error is None:
        raise spot.broken(
            f"apply() took {short(action)}, which legal_actions({player}) does not list: membership in the list "
            "decides; read other forms in normalize()"
        )
    if not isinstance(error, IllegalAction):
        raise spot.broken(f"apply() raised {error!r} for the unlisted {short(action)}: raise IllegalAction(reason)")


def blame(case: Case) -> None:
    """In a joint move, IllegalAction says whose action it was: `IllegalAction(reason, player)`."""
    for spot in case.asking(25):
        acting = spot.game.to_act()
        for p in acting if len(acting) > 1 else ():
            error = attempt(spot.game.apply, joint(spot.game, p, "no such action"))
            if isinstance(error, IllegalAction) and error.player != p:
                raise spot.broken(
                    f"player {p} broke the rules in a joint move, but IllegalAction names player {error.player}: "
                    "raise IllegalAction(reason, player)"
                )


def _wrong_seats(game: Game) -> Iterator[Moves]:
    moves = {p: draw(game, p, Random(0)) for p in game.to_act()}
    some = next(iter(moves.values()), "pass")
    if moves:
        yield {}
        yield {p: a for p, a in moves.items() if p != game.to_act()[-1]}
    yield from (moves | {p: some} for p in (*range(game.players), game.players, -1) if p not in moves)
    yield from ({p: some} for p in range(game.players) if (p,) != game.to_act())


def wrong_seats(case: Case) -> None:
    """Actions of other seats than `to_act()` are the caller's bug: `apply` raises ValueError, not IllegalAction."""
    for spot in case.asking(25):
        _all_refused(spot, f"to_act() is {spot.game.to_act()}")


def _all_refused(spot: Spot, why: str) -> None:
    for moves in _wrong_seats(spot.game):
        error = attempt(spot.game.apply, moves)
        if not isinstance(error, ValueError) or isinstance(error, IllegalAction):
            raise spot.broken(
                f"apply() of {short(moves)} {'was accepted' if error is None else f'raised {error!r}'}, but {why}: "
                "raise a plain ValueError (TurnGame does)"
            )


def key_order(case: Case) -> None:
    """The order of the keys in a joint move means nothing."""
    for spot in case.asking(25):
        moves = {p: draw(spot.game, p, Random(0)) for p in spot.game.to_act()}
        if len(moves) < 2:
            continue
        back = dict(reversed(moves.items()))
        if (error := attempt(spot.game.apply, back)) or spot.game.apply(back) != spot.game.apply(moves):
            raise spot.broken(
                f"apply({back}) differs from apply({moves}){f' and raised {error!r}' if error else ''}: compare "
                "`actions.keys()` with the seats to act, and go through the seats in order"
            )


def final(case: Case) -> None:
    """After the end nobody is to act, nothing is legal, and `apply` raises ValueError."""
    for play in case.playthroughs:
        if not play.positions or play.positions[-1].to_act():
            continue
        spot = Spot(play.positions[-1], play.seed, len(play.positions) - 1)
        if legal := [p for p in range(spot.game.players) if spot.game.legal_actions(p) != ()]:
            raise spot.broken(f"the game is over, but legal_actions() of players {legal} is not ()")
        _all_refused(spot, "the game is over")
        error = attempt(spot.game.apply, {})
        if not isinstance(error, ValueError) or isinstance(error, IllegalAction):
            raise spot.broken(f"apply({{}}) after the end gave {error!r}: raise a plain ValueError (TurnGame does)")


def samples(case: Case) -> None:
    """`sample_action` is legal, and depends on the position and its rng only."""
    for spot in case.asking(25):
        for p in spot.game.to_act():
            for seed in range(4):
                action = spot.game.sample_action(p, Random(seed))
                if not isinstance(action, str) or not accepts(spot.game, p, action):
                    raise spot.broken(f"sample_action({p}) gave {short(action)}, which is not legal")
                if spot.game.sample_action(p, Random(seed)) != action:
                    raise spot.broken(f"sample_action({p}) gave two answers for one rng: draw from its rng only")


def fallback(case: Case) -> None:
    """The `fallback` of a seat to act is legal, or None."""
    for spot in case.spots:
        for p in spot.game.to_act():
            action = spot.game.fallback(p)
            if action is not None and not accepts(spot.game, p, action):
                raise spot.broken(f"fallback({p}) is {short(action)}, not legal now: return a legal one or None")


def normalize(case: Case) -> None:
    """`normalize` leaves a listed action as it is: it is canonical already."""
    for spot in case.asking(25):
        for p in spot.game.to_act():
            for action in evenly(spot.game.legal_actions(p) or (), MAX_ACTIONS):
                if (other := spot.game.normalize(action, p)) != action:
                    raise spot.broken(f"normalize({action!r}, {p}) is {short(other)}: legal actions stay as they are")
