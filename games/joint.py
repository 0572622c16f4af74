"""Joint moves: what games in which several seats act at once share."""

from collections.abc import Mapping

from arena.game import Action, Player

__all__ = ["BOTH", "expect"]

BOTH: tuple[Player, ...] = (0, 1)
"""`to_act()` of a game of two in which both decide at once."""


def expect(actions: Mapping[Player, Action], acting: tuple[Player, ...]) -> None:
    """Raise ValueError unless one action of every seat to act is given (in any order), and of nobody else.

    >>> expect({1: "rock", 0: "paper"}, BOTH)
    >>> expect({0: "rock"}, BOTH)
    Traceback (most recent call last):
    ValueError: actions of seats (0,) were given; to act: (0, 1)
    """
    if (tuple(actions) != acting and actions.keys() != set(acting)) or not acting:
        raise ValueError(f"actions of seats {tuple(actions)} were given; to act: {acting}")
