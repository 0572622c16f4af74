from collections import Counter
from itertools import product
from random import Random
from typing import Any

import pytest

from arena.game import Event, IllegalAction
from arena.games.words.lists import answers, guesses
from arena.games.words.wordle import LETTERS, Wordle, mark
from arena.testing import check_game
from arena.text import transcript


def by_counting(guess: str, secret: str) -> str:
    """The marks by another way: of each letter, as many places are marked as the words share."""
    marks = ["G" if a == b else "-" for a, b in zip(guess, secret, strict=True)]
    for letter in set(guess):
        shared = min(guess.count(letter), secret.count(letter))
        greens = sum(a == b == letter for a, b in zip(guess, secret, strict=True))
        others = [i for i, a in enumerate(guess) if a == letter and marks[i] == "-"]
        for i in others[: shared - greens]:
            marks[i] = "Y"
    return "".join(marks)


PUBLISHED = [
    ("crane", "crane", "GGGGG"),
    ("allee", "eagle", "YY-YG"),
    ("speed", "abide", "--Y-Y"),
    ("speed", "erase", "Y-YY-"),
    ("speed", "steal", "G-G--"),
    ("speed", "crepe", "-YGY-"),
    ("geese", "elder", "-YY--"),
    ("mamma", "maxim", "GGY--"),
    ("llama", "label", "GYY--"),
    ("array", "hairy", "YY--G"),
    ("eerie", "there", "Y-Y-G"),
]


@pytest.mark.parametrize(("guess", "secret", "marks"), PUBLISHED)
def test_marks_of_repeated_letters(guess: str, secret: str, marks: str) -> None:
    assert mark(guess, secret) == marks == by_counting(guess, secret)


def test_marks_of_all_words_of_three_letters() -> None:
    words = ["".join(word) for length in (1, 2, 3, 4) for word in product("abc", repeat=length)]
    for guess in words:
        for secret in words:
            if len(guess) == len(secret):
                assert mark(guess, secret) == by_counting(guess, secret)


def test_marks_of_real_words() -> None:
    rng = Random(0)
    for length in (4, 5, 6):
        for _ in range(5_000):
            guess, secret = rng.choice(guesses(length)), rng.choice(answers(length))
            assert mark(guess, secret) == by_counting(guess, secret)


def played(secret: str, *words: str, turns: int = 6, hard: bool = False) -> Wordle:
    game = Wordle(secret, turns, hard)
    for word in words:
        game = game.apply({0: word})
    return game


def test_a_game_that_is_solved() -> None:
    game = played("crepe", "speed", "crane")
    assert game.events(0) == (Event("Guess 1: speed -YGY-"), Event("Guess 2: crane GG--G"))
    assert game.returns() == (0.0,)
    assert game.to_act() == (0,)
    assert game.observation(0) == (
        "Places: c r e _ e\n"
        "In the word: c (at least 1), e (at least 2; not in place 4), p (at least 1), r (at least 1)\n"
        "Not in the word: a d n s\n"
        "Guess 3 of 6:"
    )
    ended = game.apply({0: "crepe"})
    assert ended.events(0)[2:] == (Event("Guess 3: crepe GGGGG"),)
    assert transcript(ended.events(0), ended.observation(0)).count("Solved") == 1
    assert ended.observation(0).endswith("Solved with guess 3 of 6.")
    assert ended.returns() == (4 / 6,)
    assert ended.to_act() == ()
    assert ended.legal_actions(0) == ()


def test_letters_known_exactly_and_where_they_are_not() -> None:
    game = played("abide", "speed")
    assert "In the word: d (at least 1; not in place 5), e (exactly 1; not in place 3 4)" in game.observation(0)
    assert "Not in the word: p s" in game.observation(0)
    assert Wordle("abide").observation(0) == ("Places: _ _ _ _ _\nIn the word: ?\nNot in the word: ?\nGuess 1 of 6:")


@pytest.mark.parametrize(
    ("turns", "returns"), [(1, [1.0]), (4, [1.0, 0.75, 0.5, 0.25]), (5, [1.0, 0.8, 0.6, 0.4, 0.2])]
)
def test_returns_fall_by_equal_steps_and_stay_in_zero_to_one(turns: int, returns: list[float]) -> None:
    for wrong, expected in enumerate(returns):
        game = played("abide", *["crane"] * wrong, "abide", turns=turns)
        assert game.returns() == pytest.approx((expected,))
    lost = played("abide", *["crane"] * turns, turns=turns)
    assert lost.returns() == (0.0,)
    assert lost.to_act() == ()
    assert lost.observation(0).endswith("Not solved. The word was abide.")
    assert "abide" not in transcript(lost.events(0), "")
    assert lost.determinize(0, Random(0)).observation(0) == lost.observation(0)


def test_the_secret_is_told_only_at_the_end() -> None:
    for seed in range(30):
        game, rng = Wordle.initial(Random(seed)), Random(seed)
        while game.to_act():
            assert game.secret not in transcript(game.events(0), game.observation(0)) + game.rules(
                0
            ) + game.render() or (game.secret == answers(5)[0])
            game = game.apply({0: rng.choice(game.legal_actions(0))})


def test_determinize_draws_every_word_that_agrees_and_no_other() -> None:
    game = played("abide", "house", "tread")
    agreeing = {
        word
        for word in answers(5)
        if by_counting("house", word) == game.marks[0] and by_counting("tread", word) == game.marks[1]
    }
    assert game.secret in agreeing
    assert len(agreeing) > 3
    drawn = Counter(game.determinize(0, Random(seed)).secret for seed in range(100 * len(agreeing)))
    assert set(drawn) == agreeing
    assert min(drawn.values()) > 60
    assert max(drawn.values()) < 145


def test_determinize_keeps_what_the_seat_sees() -> None:
    for hard in (False, True):
        game, rng = Wordle.initial(Random(7), hard=hard), Random(7)
        while game.to_act():
            for seed in range(10):
                other = game.determinize(0, Random(seed))
                assert other.observation(0) == game.observation(0)
                assert other.events(0) == game.events(0)
                assert other.legal_actions(0) == game.legal_actions(0)
            game = game.apply({0: rng.choice(game.legal_actions(0))})
        assert game.determinize(0, Random(0)) == game


def uses_hints(word: str, history: list[tuple[str, str]]) -> bool:
    """Hard mode by its definition: every hint of every guess before."""
    for guess, marks in history:
        hinted = Counter(letter for letter, hint in zip(guess, marks, strict=True) if hint != "-")
        if any(hint == "G" and word[i] != guess[i] for i, hint in enumerate(marks)):
            return False
        if any(word.count(letter) < count for letter, count in hinted.items()):
            return False
    return True


@pytest.mark.parametrize("length", [4, 5, 6])
def test_hard_mode_lists_the_words_that_use_every_hint(length: int) -> None:
    for seed in range(3):
        game, rng = Wordle.initial(Random(seed), length=length, turns=4, hard=True), Random(seed)
        while game.to_act():
            history = list(zip(game.guessed, game.marks, strict=True))
            legal = game.legal_actions(0)
            assert list(legal) == [word for word in guesses(length) if uses_hints(word, history)]
            assert game.secret in legal
            game = game.apply({0: rng.choice(legal)})


@pytest.mark.parametrize(
    ("guess", "word", "why"),
    [
        ("array", "crane", "hard mode: letter 5 must be y"),
        ("hardy", "early", "hard mode: letter 1 must be h"),
        ("hardy", "handy", "hard mode: the guess must use r"),
        ("array", "silly", "hard mode: the guess must use a, r"),
        ("array", "arrya", "write one English word"),
    ],
)
def test_hard_mode_says_which_hint_is_not_used(guess: str, word: str, why: str) -> None:
    with pytest.raises(IllegalAction, match=why):
        played("hairy", guess, hard=True).play(word)


def test_hard_mode_asks_for_a_letter_as_often_as_it_is_known() -> None:
    game = played("elder", "geese", hard=True)
    assert game.marks == ("-YY--",)
    with pytest.raises(IllegalAction, match=r"the guess must use 2 x e$"):
        game.play("beach")
    assert "eerie" in game.legal_actions(0)


HOSTILE = ["", "cran", "cranes", "CRANE", "crane ", "zzzzz", "ｃｒａｎｅ", "\ud800", "\0" * 5, "crane\n", "(" * 10**6]


@pytest.mark.parametrize("text", HOSTILE)
def test_anything_else_is_illegal_and_changes_nothing(text: str) -> None:
    game = Wordle("abide")
    assert text not in game.legal_actions(0)
    with pytest.raises(IllegalAction, match="write one English word of 5 letters"):
        game.play(text)
    assert game == Wordle("abide")


def test_nothing_is_played_after_the_end() -> None:
    with pytest.raises(IllegalAction, match="over"):
        played("abide", "abide").play("crane")


def test_spelling_is_normalised() -> None:
    game = Wordle("abide")
    assert {game.normalize(text, 0) for text in ("CRANE", " crane\n", '"Crane."', "[crane]", "**crane**")} == {"crane"}


def test_features_tell_what_is_known() -> None:
    game = played("abide", "speed")
    features = game.features(0)
    assert len(features) == 5 * 26 + 26 + 1 == len(Wordle("crane", 3).features(0))
    cell = {(place, letter): features[place * 26 + i] for place in range(5) for i, letter in enumerate(LETTERS)}
    assert all(cell[place, "s"] == cell[place, "p"] == -1.0 for place in range(5))
    assert [cell[place, "e"] for place in range(5)] == [0.0, 0.0, -1.0, -1.0, 0.0]
    assert features[130 + LETTERS.index("d")] == 1 / 5
    assert features[-1] == 1 / 6
    solved = played("abide", "abide").features(0)
    assert [solved[place * 26 + LETTERS.index(letter)] for place, letter in enumerate("abide")] == [1.0] * 5
    assert sum(x == 1.0 for x in solved[:130]) == 5
    assert sum(x == -1.0 for x in solved[:130]) == 125


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        ({"length": 7}, "length=7: allowed are 4, 5, 6"),
        ({"turns": 0}, "turns=0: allowed are 1 to 20"),
        ({"turns": 21}, "turns=21: allowed are 1 to 20"),
        ({"hard": 1}, "hard=1: allowed are true and false"),
    ],
)
def test_bad_options_name_the_allowed_values(options: dict[str, Any], allowed: str) -> None:
    with pytest.raises(ValueError, match=allowed):
        Wordle.initial(Random(0), **options)


@pytest.mark.parametrize("options", [{}, {"length": 4, "turns": 3, "hard": True}, {"length": 6, "turns": 20}])
def test_the_contract_holds(options: dict[str, Any]) -> None:
    check_game(Wordle, options)


def test_the_rules_state_the_options() -> None:
    rules = Wordle.initial(Random(0), length=6, turns=8, hard=True).rules(0)
    assert "6 letters in at most 8 guesses" in rules
    assert "Hard mode" in rules
    assert "1/8 less" in rules
    assert "Hard mode" not in Wordle.initial(Random(0)).rules(0)
    example = rules.partition("For example: ")[2].partition("\n")[0]
    assert example in Wordle.initial(Random(0), length=6).legal_actions(0)
