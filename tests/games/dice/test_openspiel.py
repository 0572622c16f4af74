"""One round of liar's dice against OpenSpiel, whose highest face is wild: the same bids, the same loser."""

from itertools import product
from random import Random
from typing import Any

import pytest

from arena.chance import Chance
from arena.games.dice.liarsdice import LiarsDice

pytestmark = pytest.mark.oracle


def paired(dice: int, sides: int, faces: tuple[int, ...]) -> tuple[LiarsDice, Any]:
    state = (
        pytest.importorskip("pyspiel").load_game(f"liars_dice(numdice={dice},dice_sides={sides})").new_initial_state()
    )
    for face in faces:
        state.apply_action(face)
    hands = tuple(" ".join(str(face + 1) for face in sorted(part)) for part in (faces[:dice], faces[dice:]))
    return LiarsDice(2, dice, sides, sides, Chance(1), (dice, dice), hands), state


def number(action: str, sides: int, bids: int) -> int:
    if action == "liar":
        return bids
    quantity, face = map(int, action.split(" x "))
    return (quantity - 1) * sides + face - 1


def same(game: LiarsDice, state: Any) -> list[tuple[str, int]]:
    """The legal actions of both, by our name and their number, checked to be the same."""
    assert game.to_act() == (state.current_player(),)
    bids = 2 * game.dice * game.sides
    legal = [(a, number(a, game.sides, bids)) for a in game.legal_actions(game.turn)]
    assert sorted(n for _, n in legal) == state.legal_actions()
    return legal


def same_loser(game: LiarsDice, state: Any, action: str, theirs: int) -> None:
    game, state = game.play(action), state.child(theirs)
    assert state.is_terminal()
    winner = state.returns().index(1.0)
    assert game.left[1 - winner] == game.dice - 1
    assert game.left[winner] == game.dice


def compare(game: LiarsDice, state: Any) -> None:
    for action, theirs in same(game, state):
        if action == "liar":
            same_loser(game, state, action, theirs)
        else:
            compare(game.play(action), state.child(theirs))


@pytest.mark.parametrize("sides", [2, 3, 4])
def test_every_round_with_one_die_each(sides: int) -> None:
    for faces in product(range(sides), repeat=2):
        compare(*paired(1, sides, faces))


@pytest.mark.parametrize(("dice", "sides"), [(1, 6), (2, 3), (2, 6), (5, 6)])
def test_random_rounds(dice: int, sides: int) -> None:
    rng = Random(dice)
    for _ in range(300):
        game, state = paired(dice, sides, tuple(rng.randrange(sides) for _ in range(2 * dice)))
        while True:
            action, theirs = rng.choice(same(game, state)[:8] + same(game, state)[-1:])
            if action == "liar":
                same_loser(game, state, action, theirs)
                break
            game = game.play(action)
            state.apply_action(theirs)


def test_one_die_each_is_worth_the_same() -> None:
    """With one die each a round is the game, and our winner is theirs."""
    game, state = paired(1, 6, (2, 4))
    for action in ("1 x 3", "2 x 5", "liar"):
        state.apply_action(number(action, 6, 12))
        game = game.play(action)
    assert list(game.returns()) == state.returns()
