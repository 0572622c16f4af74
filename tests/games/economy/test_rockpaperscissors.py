from itertools import product
from random import Random

import pytest

from arena.game import IllegalAction
from arena.games.economy.rockpaperscissors import CHOICES, MAX_ROUNDS, RockPaperScissors
from tests.games.open_table import assert_sound, assert_survives, assert_wrong_seats_refused

START = RockPaperScissors.initial(Random(0))
PAIRS: list[tuple[str, str]] = list(product(CHOICES, CHOICES))
BEATS = {("rock", "scissors"), ("scissors", "paper"), ("paper", "rock")}


def thrown(game: RockPaperScissors, *rounds: tuple[str, str]) -> RockPaperScissors:
    for first, second in rounds:
        game = game.apply({0: first, 1: second})
    return game


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_one_round(first: str, second: str) -> None:
    end = thrown(START, (first, second))
    expected = 1.0 if (first, second) in BEATS else -1.0 if (second, first) in BEATS else 0.0
    assert end.returns() == (expected, -expected)
    assert end.to_act() == ()
    word = {1.0: "Player 0 wins", -1.0: "Player 1 wins", 0.0: "a tie"}[expected]
    assert end.events(0)[0].text == f"Round 1: Player 0 {first}, Player 1 {second}: {word}."


def test_every_match_of_three_rounds_pays_wins_less_losses() -> None:
    game = RockPaperScissors.initial(Random(0), rounds=3)
    for rounds in product(PAIRS, repeat=3):
        end = thrown(game, *rounds)
        lead = sum((r in BEATS) - (r[::-1] in BEATS) for r in rounds)
        assert end.returns() == (lead / 3, -lead / 3)
        assert sum(end.returns()) == 0.0
        assert "-0.0" not in str(end.returns())


def test_the_match_ends_after_its_rounds_and_says_so() -> None:
    game = RockPaperScissors.initial(Random(0), rounds=2)
    half = thrown(game, ("rock", "paper"))
    assert half.to_act() == (0, 1)
    assert half.returns() == (-0.5, 0.5)
    assert half.observation(0) == (
        "You are Player 0. Rounds won: you 0, the other player 1.\nRound 2 of 2: rock, paper or scissors?"
    )
    assert thrown(half, ("rock", "rock")).observation(1).endswith("The match is over.")
    with pytest.raises(ValueError, match="to act"):
        thrown(half, ("rock", "rock"), ("rock", "rock"))


def test_a_choice_is_not_seen_before_both_are_made() -> None:
    for first, second in PAIRS:
        end = thrown(START, (first, second))
        assert START.events(1) == ()
        assert len(end.events(1)) == 1


@pytest.mark.parametrize("text", ["R", "Rock!", "[rock]", " **rock** ", "ROCK", "stone"])
def test_reading(text: str) -> None:
    assert START.normalize(text, 0) == "rock"


@pytest.mark.parametrize("text", ["rock or paper", "", "rocks", "lizard", "r" * 1000])
def test_what_is_not_read_comes_back(text: str) -> None:
    assert START.normalize(text, 0) == text
    with pytest.raises(IllegalAction, match="rock, paper or scissors"):
        START.apply({0: "rock", 1: text})


def test_features() -> None:
    game = thrown(RockPaperScissors.initial(Random(0), rounds=4), ("rock", "scissors"))
    assert game.features(0) == (0.25, 0.25, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    assert game.features(1) == (0.25, 0.0, 0.25, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0)


@pytest.mark.parametrize("rounds", [1, 2, 7, MAX_ROUNDS])
def test_sound(rounds: int) -> None:
    game = RockPaperScissors.initial(Random(rounds), rounds=rounds)
    assert_sound(game, Random(rounds))
    assert_survives(game)
    assert_wrong_seats_refused(game)
    assert str(rounds) in game.rules(1)
    assert game.rules(0).split("For example: ")[1].split("\n")[0] in game.legal_actions(0)


@pytest.mark.parametrize("rounds", [0, -1, MAX_ROUNDS + 1, 1.0, "3", None, True])
def test_options(rounds: int) -> None:
    with pytest.raises(ValueError, match=r"^rounds=.*: allowed are 1 to 100$"):
        RockPaperScissors.initial(Random(0), rounds=rounds)


@pytest.mark.oracle
def test_openspiel() -> None:
    pyspiel = pytest.importorskip("pyspiel")
    matrix = pyspiel.load_game("matrix_rps")
    for a, b in product(range(3), repeat=2):
        first, second = matrix.row_action_name(a).lower(), matrix.col_action_name(b).lower()
        assert thrown(START, (first, second)).returns() == (matrix.row_utility(a, b), matrix.col_utility(a, b))
