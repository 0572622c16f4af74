"""Kuhn and Leduc poker against OpenSpiel: every deal, every line."""

from itertools import permutations
from typing import Any

import pytest

from arena.game import TurnGame
from arena.games.cards.kuhn import RANKS, KuhnPoker
from arena.games.cards.leduc import LeducPoker

pytestmark = pytest.mark.oracle

KUHN = {"check": 0, "fold": 0, "bet": 1, "call": 1}
LEDUC = {"fold": 0, "check": 1, "call": 1, "raise": 2}


def dealt(name: str, cards: tuple[int, ...]) -> Any:
    state = pytest.importorskip("pyspiel").load_game(name).new_initial_state()
    for card in cards:
        state.apply_action(card)
    return state


def compare(game: TurnGame, state: Any, numbers: dict[str, int], board: int | None = None) -> int:
    """Walk both trees; gives the number of ends."""
    if state.is_chance_node():
        assert board is not None
        state.apply_action(board)
    assert game.to_act() == (() if state.is_terminal() else (state.current_player(),))
    if state.is_terminal():
        assert list(game.returns()) == state.returns()
        return 1
    legal = game.legal_actions(game.to_act()[0])
    assert legal
    assert sorted(numbers[action] for action in legal) == state.legal_actions()
    return sum(compare(game.play(a), state.child(numbers[a]), numbers, board) for a in legal)


@pytest.mark.parametrize(("players", "ends"), [(2, 5), (3, 13), (4, 33)])
def test_kuhn(players: int, ends: int) -> None:
    deck = RANKS[-players - 1 :]
    for cards in permutations(range(players + 1), players):
        game = KuhnPoker(players, 1, 1, "".join(deck[card] for card in cards))
        assert compare(game, dealt(f"kuhn_poker(players={players})", cards), KUHN) == ends


def test_kuhn_bounds() -> None:
    pyspiel = pytest.importorskip("pyspiel")
    for players in range(2, 11):
        theirs = pyspiel.load_game(f"kuhn_poker(players={players})")
        ours = KuhnPoker(players, 1, 1, RANKS[-players:])
        assert ours.reward_range() == (theirs.min_utility(), theirs.max_utility())
        assert ours.max_turns() == theirs.max_game_length()


def test_leduc() -> None:
    for a, b, board in permutations(range(6), 3):
        game = LeducPoker(2, "".join("JQK"[card // 2] for card in (a, b, board)))
        assert (
            compare(game, dealt("leduc_poker", (a, b)), LEDUC, board) == 4 + 5 * 9
        )  # folds of round 1, ways through it, ends of round 2


def test_leduc_bounds() -> None:
    theirs = pytest.importorskip("pyspiel").load_game("leduc_poker")
    ours = LeducPoker(2, "JQK")
    assert ours.reward_range() == (theirs.min_utility(), theirs.max_utility())
    assert ours.max_turns() == theirs.max_game_length()
