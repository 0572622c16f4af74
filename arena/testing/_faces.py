"""Checks of what the numeric face and the prompts rely on."""

from collections.abc import Iterator
from itertools import chain

from arena.game import Game, Player
from arena.testing._case import Case, Violation, accepts, short

EXAMPLE = "For example:"


def action_table(case: Case) -> None:
    """`action_table`, where there is one, has every listed legal action, and each once."""
    table = case.spot().game.action_table()
    if table is None:
        return
    known = set(table)
    if len(known) != len(table) or not all(isinstance(a, str) for a in table):
        raise Violation("action_table() must list texts, each once")
    for spot in case.spots:
        for p in spot.game.to_act():
            if missing := [a for a in spot.game.legal_actions(p) or () if a not in known]:
                raise spot.broken(
                    f"{short(missing[0])} is legal for player {p} but not in action_table(): list every action that "
                    "can ever be legal, or return None"
                )


def features(case: Case) -> None:
    """`features`, where there are any, are numbers in [-1, 1], always and for all seats of one length."""
    first = case.spot().game.features(0)
    size = None if first is None else len(first)
    for spot in case.spots:
        for p in range(spot.game.players):
            values = spot.game.features(p)
            if (None if values is None else len(values)) != size:
                raise spot.broken(f"features({p}) is of another length than the first ({size}): keep one length")
            for i, x in enumerate(values or ()):
                if not isinstance(x, (int, float)) or not -1 <= x <= 1:
                    raise spot.broken(f"features({p})[{i}] is {x!r}: scale it to a number in [-1, 1]")


def _asked(case: Case, player: Player) -> Iterator[Game]:
    """Positions in which the seat is asked: first those at hand, then those of further deals."""
    further = (position for seed in range(1000, 1020) for position, _ in case.play(seed))
    at_hand = (spot.game for spot in case.spots)
    return (game for game in chain(at_hand, further) if player in game.to_act())


def _acceptable(game: Game, player: Player, example: str) -> bool:
    return accepts(game, player, example) or accepts(game, player, game.normalize(example, player))


def rules_example(case: Case) -> None:
    """A line `For example: ...` in `rules` shows an action that is legal somewhere, as written or normalised."""
    game = case.spot().game
    for p in range(game.players):
        lines = [line.strip() for line in game.rules(p).splitlines()]
        for example in [line.removeprefix(EXAMPLE).strip() for line in lines if line.startswith(EXAMPLE)]:
            asked = False
            for position in _asked(case, p):
                asked = True
                if _acceptable(position, p, example):
                    break
            else:
                if asked:
                    raise Violation(
                        f"rules({p}) say {EXAMPLE} {short(example)}, which was legal in no position reached: nothing "
                        "but an action in its exact form may stand on that line, and it should be legal early on"
                    )
