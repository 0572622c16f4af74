"""Chance: counter-based, frozen, fair."""

import pickle
from collections import Counter
from random import Random

import pytest

from arena.chance import Chance


def test_the_nth_draw_of_a_key_is_always_the_same() -> None:
    first, second = Chance(9), Chance(9)
    for _ in range(5):
        a, first = first.integers(6, 4)
        b, second = second.integers(6, 4)
        assert a == b
    assert first == second == Chance(9, 5)


def test_draws_differ_from_key_to_key_and_from_turn_to_turn() -> None:
    draws = {Chance(key, n).integers(1000, 3)[0] for key in range(30) for n in range(30)}
    assert len(draws) > 890


def test_integers_are_uniform() -> None:
    counts: Counter[int] = Counter()
    chance = Chance(1)
    for _ in range(3000):
        dice, chance = chance.integers(6, 5)
        counts.update(dice)
    chi_squared = sum((counts[face] - 2500) ** 2 / 2500 for face in range(6))
    assert set(counts) == set(range(6))
    assert chi_squared < 20.5  # 0.1 % point of chi squared with 5 degrees of freedom


@pytest.mark.parametrize(("high", "count"), [(1, 3), (2, 500), (6, 64), (1 << 80, 2), (1 << 400, 3)])
def test_any_size_stays_in_range(high: int, count: int) -> None:
    numbers, after = Chance(3).integers(high, count)
    assert len(numbers) == count
    assert all(0 <= number < high for number in numbers)
    assert after == Chance(3, 1)


@pytest.mark.parametrize(("high", "count"), [(0, 1), (-6, 1), (6, -1)])
def test_impossible_draws_are_refused(high: int, count: int) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        Chance(1).integers(high, count)


def test_draw_gives_a_private_generator() -> None:
    one, after = Chance(5).draw()
    two, _ = Chance(5).draw()
    assert [one.random() for _ in range(3)] == [two.random() for _ in range(3)]
    assert after == Chance(5, 1)
    assert after.draw()[0].random() != Chance(5).draw()[0].random()


def test_of_takes_its_key_from_the_generator_and_pickles() -> None:
    chance = Chance.of(Random(4))
    assert chance == Chance.of(Random(4)) != Chance.of(Random(5))
    assert pickle.loads(pickle.dumps(chance)) == chance
