"""Advantages: when a baseline is read, what is never mixed, and what a group tells."""

from itertools import pairwise
from math import inf, nan
from random import Random
from statistics import fmean, stdev

import pytest

from arena.rollouts.advantages import RoleBaseline, group_relative


def test_a_baseline_is_read_before_it_is_updated() -> None:
    baseline = RoleBaseline(decay=0.9)
    assert baseline.advantage("TicTacToe-v0", "X", 1.0) == 1.0  # updated first, it would be 0.9
    assert baseline.baselines == {("TicTacToe-v0", "X"): pytest.approx(0.1)}
    assert baseline.advantage("TicTacToe-v0", "X", 1.0) == pytest.approx(0.9)
    assert baseline.advantage("TicTacToe-v0", "X", -1.0) == pytest.approx(-1.19)


def test_a_baseline_follows_the_closed_form() -> None:
    rng, decay = Random(0), 0.95
    rewards = [rng.choice((1.0, 0.0, -1.0)) for _ in range(300)]
    baseline = RoleBaseline()
    for n, reward in enumerate(rewards):
        expected = sum((1 - decay) * decay ** (n - 1 - i) * rewards[i] for i in range(n))
        assert baseline.advantage("g", "r", reward) == pytest.approx(reward - expected)


def test_roles_and_games_are_never_mixed() -> None:
    """All returns of three streams, shuffled into one another, give what each gives alone."""
    rng = Random(1)
    streams = {key: [rng.uniform(-1, 1) for _ in range(50)] for key in (("a", "x"), ("a", "y"), ("b", "x"))}
    order = [key for key in streams for _ in range(50)]
    rng.shuffle(order)
    mixed, left = RoleBaseline(), {key: iter(rewards) for key, rewards in streams.items()}
    found: dict[tuple[str, str], list[float]] = {key: [] for key in streams}
    for game, role in order:
        found[game, role].append(mixed.advantage(game, role, next(left[game, role])))
    for (game, role), rewards in streams.items():
        alone = RoleBaseline()
        assert found[game, role] == [alone.advantage(game, role, reward) for reward in rewards]


def test_a_role_that_always_wins_earns_nothing_more_in_the_end() -> None:
    baseline = RoleBaseline()
    for _ in range(400):
        first, second = baseline.advantage("g", "first", 1.0), baseline.advantage("g", "second", -1.0)
    assert [first, second] == pytest.approx([0.0, 0.0], abs=1e-6)


def test_a_baseline_can_be_taken_up_again() -> None:
    one, two = RoleBaseline(), RoleBaseline()
    for reward in (1.0, -1.0, 1.0):
        one.advantage("g", "r", reward)
    two.baselines |= one.baselines
    assert two.advantage("g", "r", 0.5) == one.advantage("g", "r", 0.5)


@pytest.mark.parametrize("decay", [-0.1, 1.0, nan, inf])
def test_a_decay_that_is_none_is_refused(decay: float) -> None:
    with pytest.raises(ValueError, match="allowed are 0 to below 1"):
        RoleBaseline(decay)


@pytest.mark.parametrize("reward", [nan, inf, -inf])
def test_returns_that_are_not_finite_are_refused_and_not_counted(reward: float) -> None:
    baseline = RoleBaseline()
    with pytest.raises(ValueError, match="finite"):
        baseline.advantage("g", "r", reward)
    assert baseline.baselines == {}
    with pytest.raises(ValueError, match="finite"):
        group_relative([1.0, reward])


@pytest.mark.parametrize("scale", [False, True])
def test_a_group_of_one_or_of_equals_gives_zeros(scale: bool) -> None:
    assert group_relative([], scale) == []
    assert group_relative([0.7], scale) == [0.0]
    assert group_relative([0.1] * 7, scale) == [0.0] * 7


def test_a_group_is_centred_and_scaled_by_the_deviation_of_a_sample() -> None:
    rng = Random(2)
    for size in (2, 3, 8, 100):
        rewards = [rng.uniform(-5, 5) for _ in range(size)]
        plain, scaled = group_relative(rewards), group_relative(rewards, scale=True)
        assert fmean(plain) == pytest.approx(0.0, abs=1e-12)
        assert [a - b for a, b in pairwise(plain)] == pytest.approx([a - b for a, b in pairwise(rewards)])
        assert stdev(scaled) == pytest.approx(1.0)
        assert [p / stdev(rewards) for p in plain] == pytest.approx(scaled)
