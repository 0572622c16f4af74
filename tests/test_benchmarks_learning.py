"""What the benchmarks of learning are made of, as far as it needs neither torch nor PettingZoo's classic games."""

import pytest
from scipy.stats import ttest_1samp, ttest_ind

from benchmarks import __main__ as command
from benchmarks import timing
from benchmarks.learning.intervals import difference, interval
from benchmarks.timing import Spread

OURS, THEIRS = [0.90, 0.85, 0.93, 0.88, 0.91], [0.89, 0.80, 0.95, 0.84, 0.70]


def test_the_interval_is_students() -> None:
    expected = ttest_1samp(OURS, 0.0).confidence_interval(0.95)
    assert interval(OURS) == pytest.approx((sum(OURS) / 5, expected.low, expected.high))


def test_the_interval_of_a_difference_is_welchs() -> None:
    expected = ttest_ind(OURS, THEIRS, equal_var=False).confidence_interval(0.95)
    found = difference(OURS, THEIRS)
    assert found == pytest.approx((sum(OURS) / 5 - sum(THEIRS) / 5, expected.low, expected.high))
    assert difference(THEIRS, OURS) == pytest.approx((-found.middle, -found.high, -found.low))


def test_seeds_that_all_say_the_same_leave_a_point() -> None:
    assert difference([0.5, 0.5], [0.25, 0.25]) == Spread(0.25, 0.25, 0.25)


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(timing, "find_spec", lambda name: None)
    command.main(["--only", "sb3,sb3_strength,sb3_poker", "--secs", "0.001"])
    assert capsys.readouterr().out.count("torch is not installed") == 3


def test_they_are_not_among_the_usual_ones() -> None:
    assert not {"sb3", "sb3_strength", "sb3_poker"} & set(command.USUAL)
    assert {"sb3", "sb3_strength", "sb3_poker"} < set(command.BENCHMARKS)
