"""The report and the picture of `examples.train_llm`: what they say of figures that are known."""

from typing import Any
from xml.etree import ElementTree as ET

import pytest

from examples.train_llm import picture, report
from examples.train_llm.intervals import interval

SVG = "{http://www.w3.org/2000/svg}"


def figures(won: int, drawn: int, illegal: int) -> dict[str, Any]:
    """Of 100 games against each opponent; all others were lost."""
    of_random = {"games": 100, "won": won, "drawn": 10, "illegal": illegal, "returns": (2 * won + 10 - 100) / 100}
    perfect = {"games": 100, "won": 0, "drawn": drawn, "illegal": illegal, "returns": (drawn - 100) / 100}
    return {"random": of_random, "minimax": perfect}


def run(gain: int = 20, seconds: float = 100.0, illegal: int = 2) -> dict[str, Any]:
    """A run in which GRPO wins and draws `gain` more games of 100."""
    before, after = figures(60, 30, 9), figures(60 + gain, 30 + gain, illegal)
    rows = [{"name": name, "elo": 1000.0 + at, "half": 20.0} for at, name in enumerate(("grpo", "sft", "random"))]
    return {
        "records": {"cpu_seconds": seconds},
        "figures": {
            "cpu_seconds": seconds,
            "sft": {"sampled": before, "greedy": before},
            "grpo": {"sampled": after, "greedy": after},
        },
        "rating": {"cpu_seconds": seconds, "rows": rows, "difference": 120.0, "half": 30.0},
    }


def test_an_interval_is_students() -> None:
    found = interval([0.1, 0.2, 0.6])
    assert found.mean == pytest.approx(0.3)
    assert found.half == pytest.approx(4.302653 * 0.264575 / 3**0.5, rel=1e-5)
    assert not found.above_zero
    assert interval([0.2, 0.21, 0.22]).above_zero


def test_one_run_says_nothing_about_the_next() -> None:
    assert interval([5.0]).half == float("inf")
    assert not interval([5.0]).above_zero


def test_the_advantage_is_paired_by_run() -> None:
    found = report.advantage([run(20), run(22), run(24)])
    assert found.mean == pytest.approx((3 * 22 / 100) / 2)
    assert found.above_zero
    assert not report.advantage([run(20), run(-20), run(10)]).above_zero


def test_goals_are_reached_or_not() -> None:
    assert set(report.goals([run(20), run(21), run(22)]).values()) == {True}
    lost = report.goals([run(20, seconds=301, illegal=6), run(-40), run(-40, illegal=8)])
    assert set(lost.values()) == {False}


def test_the_slowest_run_counts() -> None:
    found = report.goals([run(20, seconds=10), run(20, seconds=310)])
    assert not found["every run within 15 CPU-minutes"]


def test_what_is_told() -> None:
    told = report.tell({4: run(20), 5: run(22)})
    assert "2 run(s), seeds 4, 5;" in told
    assert "| won against random | 60.0 ± 0.0 % | 81.0 ± 12.7 % | +21.0 ± 12.7 % |" in told
    assert "| grpo | 1000 ± 20 | 1000 ± 20 |" in told
    assert "| grpo less sft | 120 ± 30 | 120 ± 30 |" in told
    assert "| seed 4 | 100 | 100 | 100 | 300 |" in told
    assert "- reached: illegal under 5 %" in told


def test_one_run_has_no_interval() -> None:
    told = report.tell({4: run(20)})
    assert "| won against random | 60.0 % | 80.0 % | +20.0 % |" in told
    assert "- NOT reached: GRPO above SFT" in told


def curve(offset: float) -> list[picture.Point]:
    stages = ["sft"] * 3 + ["grpo"] * 4
    return [
        {"stage": stage, "seconds": at * 50 + offset, **figures(10 * at + 5, 10 * at, 30 - 4 * at)}
        for at, stage in enumerate(stages)
    ]


def test_the_picture_is_an_svg_with_a_line_for_every_run_and_one_for_the_mean() -> None:
    root = ET.fromstring(picture.draw([curve(0.0), curve(5.0)]))
    panels = root.findall(f"{SVG}g")
    assert len(panels) == 3
    for panel in panels:
        lines = [path for path in panel.findall(f"{SVG}path") if path.get("fill") == "none"]
        assert len(lines) == 2 * (2 + 1)
        assert {path.get("stroke-width") for path in lines} == {"1", "3"}


def test_a_curve_stands_where_it_was_measured() -> None:
    root = ET.fromstring(picture.draw([curve(0.0)]))
    thick = [path.get("d") or "" for path in root.findall(f"{SVG}g[2]/{SVG}path") if path.get("stroke-width") == "3"]
    sft, grpo = ([tuple(map(float, at.split())) for at in path[1:].split("L")] for path in thick)
    assert list(sft[0]) == pytest.approx([0.0, 220 * 0.95])
    assert sft[-1] == grpo[0]
    assert list(grpo[-1]) == pytest.approx([300.0, 220 * 0.35])


def test_runs_that_looked_at_other_steps_cannot_be_drawn_together() -> None:
    with pytest.raises(ValueError, match="zip"):
        picture.draw([curve(0.0), curve(0.0)[:-1]])
