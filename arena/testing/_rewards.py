"""Checks of what is earned."""

from math import isfinite

from arena.testing._case import Case, Spot, short

EPSILON = 1e-9


def _finals(case: Case) -> list[Spot]:
    """The positions in which the games of random play ended."""
    return [
        Spot(play.positions[-1], play.seed, len(play.positions) - 1)
        for play in case.playthroughs
        if play.positions and not play.positions[-1].to_act()
    ]


def returns(case: Case) -> None:
    """`returns` has one finite float for every seat, in every position, and is fixed at the end."""
    for spot in (*case.spots, *_finals(case)):
        earned = spot.game.returns()
        if len(earned) != spot.game.players:
            raise spot.broken(f"returns() has {len(earned)} numbers for {spot.game.players} seats: give one each")
        if not all(isinstance(x, float) and isfinite(x) for x in earned):
            raise spot.broken(f"returns() is {short(earned)}: every entry must be a finite float (0.0, not 0)")
        if spot.game.returns() != earned:
            raise spot.broken(f"returns() changed from {short(earned)} while nothing was played")


def reward_range(case: Case) -> None:
    """Every final return lies within `reward_range`, whose low is below its high."""
    low, high = case.spot().game.reward_range()
    if not (isfinite(low) and isfinite(high) and low < high):
        raise case.spot().broken(f"reward_range() is {(low, high)}: give two finite numbers, the lower first")
    for spot in _finals(case):
        for p, earned in enumerate(spot.game.returns()):
            if not low - EPSILON <= earned <= high + EPSILON:
                raise spot.broken(f"player {p} ends with {earned}, outside reward_range() {(low, high)}: widen it")


def zero_sum(case: Case) -> None:
    """The final returns of a class that says `zero_sum = True` add up to zero."""
    for spot in _finals(case) if case.game.zero_sum else ():
        if abs(sum(spot.game.returns())) > EPSILON:
            raise spot.broken(f"zero_sum is True, but the final returns are {short(spot.game.returns())}: drop it")
