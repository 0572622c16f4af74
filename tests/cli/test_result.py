"""How an end is told."""

from typing import Any

import pytest

from arena.cli.result import outcome, points
from arena.registry import make_game

ENDS: list[tuple[str, dict[str, Any], tuple[float, ...], int | None, str]] = [
    ("TicTacToe-v0", {}, (1.0, -1.0), 0, "You win."),
    ("TicTacToe-v0", {}, (1.0, -1.0), 1, "You lose."),
    ("TicTacToe-v0", {}, (-1.0, 1.0), None, "Player 1 wins."),
    ("TicTacToe-v0", {}, (0.0, 0.0), 0, "Draw."),
    ("KuhnPoker-v0", {"bet": 3}, (-4.0, 4.0), 1, "You win."),
    ("Wordle-v0", {}, (5 / 6,), 0, "You earn 0.833 of at most 1."),
    ("Wordle-v0", {}, (0.0,), None, "Player 0 earns 0 of at most 1."),
    ("Negotiation-v0", {}, (0.6, 0.4), 0, "You earn 0.6, the other player 0.4."),
    ("IteratedPrisonersDilemma-v0", {}, (30.0, 20.0), None, "Player 0 earned the most."),
    ("IteratedPrisonersDilemma-v0", {}, (30.0, 30.0), None, "All earn the same."),
    ("LiarsDice-v0", {"players": 4}, (1.0, -1.0, 1 / 3, -1 / 3), 2, "You come 2nd of 4."),
    ("LiarsDice-v0", {"players": 4}, (1.0, -1.0, 1 / 3, -1 / 3), 0, "You come 1st of 4."),
    ("KuhnPoker-v0", {"players": 3}, (2.0, -1.0, -1.0), 1, "You come 2nd of 3, tied."),
]


@pytest.mark.parametrize(("game_id", "options", "returns", "seat", "said"), ENDS)
def test_an_end_is_told_in_a_sentence(
    game_id: str, options: dict[str, Any], returns: tuple[float, ...], seat: int | None, said: str
) -> None:
    assert outcome(make_game(game_id, 0, options), returns, seat) == said


def test_a_team_wins_together() -> None:
    game = make_game("SecretMafia-v0", 0)
    teams = game.teams()
    assert teams is not None
    won = tuple(1.0 if team == 0 else -1.0 for team in teams)
    mafia = teams.index(1)
    village = [p for p in range(7) if p != mafia]
    assert outcome(game, won, village[0]) == "Your team wins."
    assert outcome(game, won, mafia) == "Your team loses."
    assert outcome(game, won, None) == f"Players {', '.join(map(str, village[:-1]))} and {village[-1]} won."
    assert outcome(game, (0.0,) * 7, 0) == "Draw."
    assert outcome(game, tuple(-r for r in won), None) == f"Player {mafia} won."


def test_points_have_a_sign_where_there_may_be_losses_and_nothing_is_plus_nothing() -> None:
    duel, task = make_game("TicTacToe-v0", 0), make_game("Wordle-v0", 0)
    assert [points(duel, earned) for earned in (1.0, 0.0, -1.0, 1 / 3)] == ["+1", "0", "-1", "+0.333333"]
    assert [points(task, earned) for earned in (1.0, 0.0, 2 / 3, 30.0)] == ["1", "0", "0.667", "30"]
