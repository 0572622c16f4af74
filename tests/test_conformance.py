"""The conformance kit on every id, with the options that change the shape of a game."""

from typing import Any

import pytest

from arena.registry import GAMES, load, options_of
from arena.testing import check_game

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "Arithmetic-v0": [{"operations": "/", "terms": 2, "digits": 1}, {"operations": "+-*/", "terms": 4, "digits": 3}],
    "CalculatorTask-v0": [{"steps": 1, "digits": 1, "max_calls": 1}, {"steps": 6, "digits": 5}],
    "Chess-v0": [
        {"chess960": True},
        {"chess960": True, "scharnagl": 0},
        {"fen": "8/5k2/8/8/8/8/1p6/4K3 b - - 0 1"},
        {"fen": "8/8/8/4k3/8/8/4P3/4K3 w - - 90 80"},
    ],
    "ConnectFour-v0": [{"columns": 4, "rows": 4, "connect": 3}, {"columns": 9, "rows": 7}],
    "Countdown-v0": [{"numbers": 3}, {"large": 4}],
    "IteratedPrisonersDilemma-v0": [{"rounds": 1}, {"rounds": 3, "talk": 2}, {"payoffs": (3, 2, 1, 0)}],
    "KuhnPoker-v0": [{"players": 3}, {"players": 6, "ante": 2}, {"bet": 3}],
    "LeducPoker-v0": [{"raises": 1}, {"raises": 4}],
    "LiarsDice-v0": [{"players": 6, "dice": 2}, {"players": 3, "wild": 1}, {"dice": 1, "sides": 2}],
    "Negotiation-v0": [{"turns": 2}, {"talk": False}],
    "RockPaperScissors-v0": [{"rounds": 7}],
    "SecretMafia-v0": [
        {"players": 6},
        {"players": 12, "rounds": 2},
        {"reveal_roles": False, "players": 9, "mafia": 3},
        {"max_days": 1},
    ],
    "TicTacToe-v0": [],
    "Wordle-v0": [{"hard": True}, {"length": 4}, {"length": 6, "turns": 3}],
}


@pytest.mark.parametrize("game_id", sorted(GAMES))
def test_the_id_keeps_the_contract(game_id: str) -> None:
    check_game(load(game_id), seeds=range(4), subprocess=True)


@pytest.mark.parametrize(
    ("game_id", "options"), [(game_id, options) for game_id, many in VARIANTS.items() for options in many]
)
def test_the_variant_keeps_the_contract(game_id: str, options: dict[str, Any]) -> None:
    check_game(load(game_id), options, seeds=range(2))


def test_every_id_has_its_variants_and_every_option_one() -> None:
    assert set(VARIANTS) == set(GAMES)
    for game_id, many in VARIANTS.items():
        varied = {name for options in many for name in options}
        assert varied == set(options_of(load(game_id))), game_id
