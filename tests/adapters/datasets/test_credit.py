"""Advantages: the order in which baselines are read and updated, and that roles, games and agents are not mixed."""

from collections.abc import Iterable
from random import Random
from statistics import fmean, stdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.adapters.datasets.credit import Credit, Earned, group_credit, rae_credit


def earned(*rewards: float, **more: Any) -> list[Earned]:
    of: dict[str, Any] = {"seat": 0, "group": "g", "agent": "ann", "game": "Kuhn", "role": "first"} | more
    return [
        Earned(episode, of["seat"], of["group"], of["agent"], of["game"], of["role"], r)
        for episode, r in enumerate(rewards)
    ]


def values(found: Iterable[tuple[int, int, float]]) -> list[float]:
    return [advantage for _, _, advantage in found]


def test_a_baseline_is_read_before_it_is_updated() -> None:
    assert values(rae_credit(earned(1, 1, 1), 0.5)) == [1, 0.5, 0.25]
    assert values(rae_credit(earned(-2, 4), 0.0)) == [-2, 6]


def test_seats_of_one_role_are_judged_by_the_same_baseline() -> None:
    """Three villagers of one lost game, then of one won."""
    lost = [Earned(0, seat, "", "a", "Mafia", "villager", -1.0) for seat in (0, 2, 3)]
    won = [one._replace(episode=1, reward=1.0) for one in lost]
    before = -(1 - 0.5**3)
    assert values(rae_credit([*lost, *won], 0.5)) == pytest.approx([-1.0] * 3 + [1.0 - before] * 3)


def test_the_order_matters_and_is_the_one_given() -> None:
    assert values(rae_credit(earned(1, 0, 0), 0.5)) == [1, -0.5, -0.25]
    assert values(rae_credit(earned(0, 0, 1), 0.5)) == [0, 0, 1]


KEYS = st.fixed_dictionaries({name: st.sampled_from(["a", "b"]) for name in ("agent", "game", "role")})


@given(st.lists(st.tuples(KEYS, st.floats(-9, 9)), max_size=30), st.floats(0, 0.99))
def test_roles_games_and_agents_do_not_mix(made: list[tuple[dict[str, str], float]], decay: float) -> None:
    """Each stream by itself gives what it gives among the others."""
    all_of = [
        Earned(at, 0, "", key["agent"], key["game"], key["role"], reward) for at, (key, reward) in enumerate(made)
    ]
    together = {one[0]: one[2] for one in rae_credit(all_of, decay)}
    for key in {tuple(sorted(key.items())) for key, _ in made}:
        stream = [one for one in all_of if (("agent", one.agent), ("game", one.game), ("role", one.role)) == key]
        for episode, _, advantage in rae_credit(stream, decay):
            assert together[episode] == advantage


def test_zero_sum_self_play_does_not_average_out() -> None:
    """The second seat wins always: beside its own past that is nothing, beside both seats it would be half the pot."""
    played = [Earned(n, seat, "", "a", "K", f"seat {seat}", 2.0 * seat - 1) for n in range(200) for seat in (0, 1)]
    late = values(rae_credit(played, 0.9))[-2:]
    assert late == pytest.approx([0, 0], abs=1e-6)


def test_groups_are_compared_within() -> None:
    two = sorted(earned(1, 0, -1) + earned(5, 5, group="h"), key=lambda one: one.group)
    assert values(group_credit(two, False)) == [1, 0, -1, 0, 0]
    assert values(group_credit(earned(4, 4, 9, group="x") + earned(7, group="y"), False))[-1] == 0


@given(st.lists(st.integers(-5, 5), min_size=2, max_size=9))
def test_scaled_by_the_deviation(rewards: list[int]) -> None:
    found = values(group_credit(earned(*rewards), True))
    if len(set(rewards)) == 1:
        assert found == [0] * len(rewards)
    else:
        mean, deviation = fmean(rewards), stdev(rewards)
        assert found == pytest.approx([(reward - mean) / deviation for reward in rewards])


def test_whose_it_is_comes_along() -> None:
    rng = Random(0)
    some = [Earned(rng.randrange(99), rng.randrange(3), "g", "a", "K", "r", rng.random()) for _ in range(20)]
    for found in (rae_credit(some, 0.9), group_credit(some, False)):
        assert [one[:2] for one in found] == [(one.episode, one.seat) for one in some]


def test_refusals() -> None:
    with pytest.raises(ValueError, match="advantage 'best': allowed are none, rae, group"):
        Credit("best")  # type: ignore[arg-type]  # what a command line may say
    for decay in (1.0, -0.1, float("nan")):
        with pytest.raises(ValueError, match="decay"):
            Credit("rae", decay)
