"""Splits: a seed group is on one side, always the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.adapters.datasets.splits import Split
from arena.adapters.datasets.trajectory import digest


@given(st.floats(0, 0.99), st.integers(), st.text())
def test_a_side_depends_on_the_group_and_the_seed_only(share: float, seed: int, task: str) -> None:
    assert Split(share, seed).side(task) == Split(share, seed).side(task)


@given(st.integers(0, 50), st.floats(0, 0.9), st.floats(0, 0.09))
def test_more_held_out_holds_out_what_was_held_out(seed: int, share: float, more: float) -> None:
    for task in map(digest, range(20)):
        if Split(share, seed).side(task) == "validation":
            assert Split(share + more, seed).side(task) == "validation"


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_about_the_share_is_held_out(share: float) -> None:
    held = sum(Split(share).side(digest(task)) == "validation" for task in range(10_000))
    assert abs(held / 10_000 - share) <= 0.02  # 4 standard deviations
    assert bool(held) is bool(share)


def test_another_seed_holds_out_others() -> None:
    first, second = (
        {task for task in range(1000) if Split(0.5, seed).side(digest(task)) == "train"} for seed in (0, 1)
    )
    assert 150 < len(first & second) < 350


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan"), 7])
def test_refusals(share: float) -> None:
    with pytest.raises(ValueError, match="allowed are 0 to below 1"):
        Split(share)
