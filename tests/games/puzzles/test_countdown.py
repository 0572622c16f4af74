import time
from collections.abc import Iterator
from itertools import combinations
from random import Random
from typing import Any

import pytest

from arena.game import IllegalAction
from arena.games.puzzles.countdown import HIGH, LARGE, LOW, SMALL, Countdown, evaluate
from arena.registry import make_game
from arena.testing import check_game


def reachable(numbers: tuple[int, ...]) -> set[int]:
    """Every value the rules allow: brute force over subsets, values of a set from those of its two parts."""
    values: dict[tuple[int, ...], set[int]] = {}
    indices = tuple(range(len(numbers)))
    for size in range(1, len(numbers) + 1):
        for chosen in combinations(indices, size):
            values[chosen] = {numbers[chosen[0]]} if size == 1 else set(_joined(chosen, values))
    return set().union(*values.values())


def _joined(chosen: tuple[int, ...], values: dict[tuple[int, ...], set[int]]) -> Iterator[int]:
    for size in range(1, len(chosen) // 2 + 1):
        for part in combinations(chosen, size):
            rest = tuple(i for i in chosen if i not in part)
            for a in values[part]:
                for b in values[rest]:
                    yield a + b
                    yield a * b
                    if a != b:
                        yield abs(a - b)
                    if a % b == 0:
                        yield a // b
                    if b % a == 0:
                        yield b // a


@pytest.mark.parametrize("options", [{"numbers": 3}, {"numbers": 4, "large": 0}, {"numbers": 5, "large": 3}, {}])
def test_every_target_can_be_reached(options: dict[str, int]) -> None:
    for seed in range(25):
        game = Countdown.initial(Random(seed), **options)
        assert game.target in reachable(game.numbers)


def test_the_brute_force_gives_published_results() -> None:
    """952 from 25 50 75 100 3 6 (television, 1997); 1 to 6 reach all of 1 to 283 but not 284 (OEIS A060315)."""
    assert 952 in reachable(FIFTY)
    assert 824 not in reachable((1, 1, 2, 2, 3, 3))
    values = reachable((1, 2, 3, 4, 5, 6))
    assert set(range(1, 284)) <= values
    assert 284 not in values
    assert reachable((3, 7)) == {3, 7, 10, 21, 4}


def test_tiles_are_those_of_the_game() -> None:
    low, seen = HIGH, set()
    for seed in range(400):
        game = Countdown.initial(Random(seed))
        large = [n for n in game.numbers if n in LARGE]
        small = [n for n in game.numbers if n not in LARGE]
        seen.add(len(large))
        assert len(game.numbers) == 6
        assert sorted(game.numbers) == list(game.numbers)
        assert len(set(large)) == len(large)
        assert all(n in SMALL and small.count(n) <= 2 for n in small)
        assert LOW <= game.target <= HIGH
        low = min(low, game.target)
        assert game.question == f"Numbers: {' '.join(map(str, game.numbers))}\nTarget: {game.target}"
    assert seen == {0, 1, 2, 3, 4}
    assert low < 150


@pytest.mark.parametrize("large", range(5))
def test_the_count_of_large_numbers_is_an_option(large: int) -> None:
    for seed in range(20):
        game = Countdown.initial(Random(seed), large=large)
        assert sum(n in LARGE for n in game.numbers) == large


FIFTY = (25, 50, 75, 100, 3, 6)
VALUES = [
    ("100", 100),
    ("100+3", 103),
    (" 100 - 3 * 6 ", 82),
    ("(100 - 3) * 6", 582),
    ("100 - 50 - 25", 25),
    ("100 - (50 - 25)", 75),
    ("100 / 50 / (6 / 3)", 1),
    ("75 / 25 * 3", 9),
    ("100*6/3", 200),
    ("((((((100))))))", 100),
    ("100\t+ 6", 106),
    ("(75 + 50) * (6 - 3) + 100 / 25", 379),
    ("006 + 3", 9),
    ("100 * 75 * 50 * 25 * 6 * 3", 168_750_000),
    ("((100 + 6) * 3 * 75 - 50) / 25", 952),
]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_expressions_have_the_value_of_the_school_rules(text: str, value: int) -> None:
    assert evaluate(text, FIFTY) == value


def test_random_expressions_have_the_value_python_gives_them() -> None:
    for seed in range(500):
        game, rng = Countdown.initial(Random(seed)), Random(seed)
        text = game.sample_action(0, rng)
        assert evaluate(text, game.numbers) == eval(text.replace("/", "//"))


ILLEGAL = [
    ("", "write an answer"),
    ("100 +", "ends too early"),
    ("(", "ends too early"),
    ("()", "wrong place"),
    ("(100", r"a \( is not closed"),
    ("100)", r"a \) closes nothing"),
    ("100 50", "50 stands in the wrong place"),
    ("100 (50)", r"\( stands in the wrong place"),
    ("* 100", "wrong place"),
    ("-3", "wrong place"),
    ("100 - -3", "wrong place"),
    ("100 ** 3", "wrong place"),
    ("100 // 3", "wrong place"),
    ("3 - 6", "3 - 6 is not a whole number above zero"),
    ("(3 + 3)", "3 is not among the numbers left: 25 50 75 100 6"),
    ("50 - (25 + 25)", "25 is not among"),
    ("75 - 3 * 25", "75 - 75 is not a whole number above zero"),
    ("100 / 3", "100 / 3 is not a whole number above zero"),
    ("100 / 75 * 3", "100 / 75 is not"),
    ("7", "7 is not among the numbers left: 25 50 75 100 3 6"),
    ("0 + 3", "0 is not among"),
    ("100 + 6 x", "write an expression"),
    ("1e2", "write an expression"),
    ("100.0", "write an expression"),
    ("abs(3)", "write an expression"),
    ("100 +\n3", "write an expression"),
    ("٣", "write an expression"),
    ("6²", "write an expression"),
    ("６", "write an expression"),
    ("\ud800", "write an expression"),
    ("\0", "write an expression"),
    ("9" * 16_000, "999999999 is not among"),
    ("(" * 16_000, "ends too early"),
    ("(" * 10**6, "at most 16000 characters"),
    ("9" * 10**5, "at most 16000 characters"),
]


@pytest.mark.parametrize(("text", "why"), ILLEGAL)
def test_what_breaks_the_rules_is_illegal(text: str, why: str) -> None:
    game = Countdown.of(500, FIFTY)
    shown = why.replace("25 50 75 100 3 6", "3 6 25 50 75 100").replace("25 50 75 100 6", "6 25 50 75 100")
    with pytest.raises(IllegalAction, match=shown):
        game.check(0, text)
    with pytest.raises(IllegalAction):
        game.apply({0: text})


@pytest.mark.parametrize("unit", ["(", ")", "9", "1+", "(1+", " ", "((1))", "\t", "+", "1 ", "\ud800"])
def test_reading_is_linear_and_does_not_recurse(unit: str) -> None:
    start = time.process_time()
    with pytest.raises(IllegalAction):
        evaluate(unit * (10**6 // len(unit)), [1] * 10)
    assert time.process_time() - start < 5.0


def test_a_number_may_be_used_as_often_as_it_is_given() -> None:
    assert evaluate("7 * 7", (7, 7, 1)) == 49
    with pytest.raises(IllegalAction, match="left: 1"):
        evaluate("7 * 7 + 7", (7, 7, 1))


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("100 * 3", 1.0),
        ("75 * (6 - 3) + 25 + 50", 1.0),
        ("100 * 3 + 6", 0.5),
        ("6 * 50", 1.0),
        ("100 * (6 - 3) + 75 / 25", 0.7),
        ("75 * 3 + 50 + 25 + 6", 0.5),
        ("100 * 6 / 3 + 75 + 25 - 50", 0.0),
        ("3", 0.0),
    ],
)
def test_points_are_those_of_television_out_of_ten(text: str, points: float) -> None:
    ended = Countdown.of(300, FIFTY).apply({0: text})
    assert ended.returns() == (points,)
    assert ended.scores(0) == {"points": points}
    assert ended.to_act() == ()


@pytest.mark.parametrize(
    ("away", "points"),
    [(0, 1.0), (1, 0.7), (5, 0.7), (6, 0.5), (10, 0.5), (11, 0.0), (-5, 0.7), (-10, 0.5), (-11, 0.0)],
)
def test_the_edges_of_the_points(away: int, points: float) -> None:
    assert Countdown.of(300 - away, FIFTY).apply({0: "100 * 3"}).returns() == (points,)


@pytest.mark.parametrize(
    "text",
    ["100 × 3", "100*3=300", "So: <answer>100 * 3 = 300</answer>", r"\boxed{100 · 3}", "Final answer: 6 ÷ 3 × 100"],
)
def test_other_spellings_are_normalised(text: str) -> None:
    game = Countdown.of(300, FIFTY)
    with pytest.raises(IllegalAction):
        game.check(0, text)
    game.check(0, game.normalize(text, 0))


def test_the_example_of_the_rules_is_true() -> None:
    rules = Countdown.initial(Random(0)).rules(0)
    example = rules.partition("you could write: ")[2].partition("\n")[0]
    assert "To make 487 from 4 5 7 50 75 100" in rules
    assert Countdown.of(487, (4, 5, 7, 50, 75, 100)).apply({0: example}).returns() == (1.0,)


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        ({"numbers": 2}, "numbers=2: allowed are 3 to 6"),
        ({"numbers": 7}, "numbers=7: allowed are 3 to 6"),
        ({"large": 5}, "large=5: allowed are 0 to 4 with numbers=6, or None"),
        ({"large": 4, "numbers": 3}, "large=4: allowed are 0 to 3 with numbers=3, or None"),
        ({"large": True}, "large.*None"),
    ],
)
def test_bad_options_name_the_allowed_values(options: dict[str, Any], allowed: str) -> None:
    with pytest.raises(ValueError, match=allowed):
        make_game("Countdown-v0", 0, options)


@pytest.mark.parametrize("options", [{}, {"numbers": 3, "large": 0}, {"numbers": 4, "large": 4}])
def test_the_contract_holds(options: dict[str, Any]) -> None:
    check_game(Countdown, options)


@pytest.mark.parametrize("numbers", [3, 4, 5, 6])
def test_a_way_to_the_target_is_told_at_the_end_and_not_before(numbers: int) -> None:
    for seed in range(50):
        game = Countdown.initial(Random(seed), numbers=numbers)
        ended = game.apply({0: str(game.numbers[-1])})
        verdict, _, way = ended.observation(0).partition(f" One way to {game.target}: ")
        away = game.target - game.numbers[-1]
        assert verdict == f"Your calculation gives {game.numbers[-1]}: {away} away from the target."
        assert evaluate(way, game.numbers) == game.target
        assert ended.determinize(0, Random(1)).observation(0) == ended.observation(0)
        assert way not in repr(game.determinize(0, Random(1)))
        assert game.apply({0: way}).observation(0) == f"Your calculation gives {game.target}: the target."


def test_a_puzzle_of_ones_own_has_no_way_to_tell() -> None:
    ended = Countdown.of(300, FIFTY).apply({0: "100 * 3 + 6"})
    assert ended.observation(0) == "Your calculation gives 306: 6 away from the target."


def test_nothing_is_hidden_but_a_way() -> None:
    game = Countdown.initial(Random(0))
    assert game.perfect_information
    assert game.determinize(0, Random(1)) == Countdown.of(game.target, game.numbers)
    assert len({len(Countdown.initial(Random(s), numbers=n).features(0)) for s in range(9) for n in (3, 6)}) == 1
