import re

import pytest

from arena.tournaments.board import Curve, Row
from arena.tournaments.conduct import Conduct
from arena.tournaments.site.bars import bar, ends
from arena.tournaments.site.chart import chart, span
from arena.tournaments.site.columns import columns, told
from tests.tournaments.site.boards import section

NAMES = ["ann", "bob", "cy"]


def test_bars_lie_on_the_scale() -> None:
    one = section(NAMES)
    low, high = ends(one)
    for row in one.rows:
        drawn = bar(row, one)
        assert row.half is not None
        assert 0 < drawn.left <= drawn.at <= drawn.left + drawn.width < 100
        assert drawn.at == pytest.approx(100 * (row.value - low) / (high - low), abs=0.01)
        assert drawn.middle == pytest.approx(100 * (1000 - low) / (high - low), abs=0.01)


def test_a_bar_without_interval_or_scatter() -> None:
    alike = section(NAMES, ratings=None)
    alike.rows = [Row(rank=1, agent=0, name="a", games=1, value=5.0, half=None, forfeits=0, voids=0, conduct=Conduct())]
    assert bar(alike.rows[0], alike) == (50.0, 0.0, 50.0, None)


def points(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", path)]


def test_a_chart_holds_every_agent_within_its_plot() -> None:
    drawn = chart(section(NAMES).curve, [2, 0, 1], NAMES)
    assert drawn is not None
    assert [(line.name, line.colour) for line in drawn.lines] == [("cy", 0), ("ann", 1), ("bob", 2)]
    for line in drawn.lines:
        for x, y in points(line.path):
            assert drawn.left <= x <= drawn.width - drawn.right
            assert drawn.top <= y <= drawn.height - drawn.bottom
    ann, cy = points(drawn.lines[1].path), points(drawn.lines[0].path)
    assert ann[-1][1] < cy[-1][1], "the higher rating is drawn higher"
    assert len(cy) == len(ann) - 2, "nothing before the first game"
    assert [text for _, text in drawn.across] == ["10", "20", "30", "40"]
    assert all(drawn.top <= y <= drawn.height - drawn.bottom for y, _ in drawn.up)


def test_long_curves_are_thinned_and_end_where_they_end() -> None:
    n = 100_000
    curve = Curve(list(range(n)), [0.0] * n, {0: [float(k % 50) for k in range(n)]})
    drawn = chart(curve, [0], ["ann"])
    assert drawn is not None
    assert len(points(drawn.lines[0].path)) < 200
    assert points(drawn.lines[0].path)[-1][0] == drawn.width - drawn.right
    assert (drawn.lines[0].last, span(curve)) == ((n - 1) % 50, "")


def test_many_agents_are_grey_beyond_the_coloured() -> None:
    curve = Curve([1, 2], [1.0, 2.0], {k: [1000.0, 1000.0] for k in range(11)})
    drawn = chart(curve, list(range(11)), [str(k) for k in range(11)])
    assert drawn is not None
    assert [line.colour for line in drawn.lines] == [*range(8), -1, -1, -1]


EMPTY = Curve([], [], {}), Curve([1], [1.0], {0: [1.0]}), Curve([1, 2], [1.0, 2.0], {0: [None, None]})


@pytest.mark.parametrize("curve", [None, *EMPTY])
def test_nothing_is_drawn_of_nothing(curve: Curve | None) -> None:
    assert chart(curve, [0], ["ann"]) is None


def test_columns_tell_what_there_is() -> None:
    one = section(NAMES)
    table = {column.title: column for column in columns(one)}
    assert list(table) == [
        "P(best)", "Group", "Games", "W / D / L", "Forfeits", "Voids", "Illegal", "Tokens / move", "Cost", "p50 / p95",
    ]  # fmt: skip
    assert table["Forfeits"].cells == ["0", "1", "2"]
    assert [told(table["Forfeits"], k) for k in range(3)] == [False, True, True]
    object.__setattr__(one.rows[1], "score", 0.5)
    object.__setattr__(one.rows[1], "score_half", 0.125)
    object.__setattr__(one.rows[2], "mean_rank", 1.25)
    object.__setattr__(one.rows[2], "truncated", 9)
    table = {column.title: column for column in columns(one)}
    assert table["Score"].cells == ["–", "0.500 ± 0.125", "–"]
    assert table["Mean rank"].cells == ["–", "–", "1.2"]
    assert table["Truncated"].cells == ["0", "0", "9"]
