from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from arena.registry import GAMES
from arena.tournaments.board import Section
from arena.tournaments.config import parse
from arena.tournaments.ratings import Mean, rate
from arena.tournaments.readings import Answers
from arena.tournaments.report import board
from arena.tournaments.scores import NO_SEATS, Scale, comparisons, scale
from arena.tournaments.store import Store
from tests.tournaments.golf import Golf, Range
from tests.tournaments.played import played

AGENTS: list[Any] = ["random", "scripted:4", "scripted:2", "first"]


@pytest.fixture(autouse=True)
def _games() -> Iterator[None]:
    GAMES.update({"Golf-v0": "tests.tournaments.golf:Golf", "Range-v0": "tests.tournaments.golf:Range"})
    yield
    for name in ("Golf-v0", "Range-v0"):
        del GAMES[name]


def answers(rows: list[tuple[int, int, float, bool]]) -> Answers:
    agent, seed, value, forfeit = zip(*rows, strict=True)
    numbers = np.array(agent), np.array(seed), np.array(value, dtype=np.float64), np.array(forfeit)
    return Answers(*numbers, np.array(seed) * 100 + np.array(agent))


def section(folder: Path, game: str = "Golf", agents: list[Any] = AGENTS) -> Section:
    played(folder, games=[game], agents=agents, blocks=30)
    with Store.open(folder) as store:
        (one,) = board(store).sections
    return one


def test_a_seed_is_lucky_for_all(tmp_path: Path) -> None:
    one = section(tmp_path)
    assert (one.kind, one.rated, one.games) == ("scores", True, 120)
    best = one.rows[0]
    assert (best.name, best.lost) == ("scripted:4", 0)
    assert best.won + best.drawn == 90, "it met three agents on thirty seeds"
    two, first = one.of(2), one.of(3)
    assert two is not None
    assert first is not None
    pair = one.pairs[one.rows.index(two)][one.rows.index(first)]
    assert pair == (1.0, 30), "2 is more than 0 on every seed, whatever its luck"
    assert one.beside is not None


def test_scores_are_told_on_a_scale(tmp_path: Path) -> None:
    one = section(tmp_path / "random")
    assert one.zero == "the mean of 'random'"
    by = {row.name: row for row in one.rows}
    means = {name: row.mean or 0.0 for name, row in by.items()}
    assert by["random"].score == 0.0
    assert means["scripted:4"] - means["scripted:2"] == pytest.approx(2)
    span = 7 - means["random"]
    assert by["scripted:4"].score == pytest.approx((means["scripted:4"] - means["random"]) / span)
    assert by["scripted:4"].score_half == pytest.approx(by["scripted:2"].score_half)
    one = section(tmp_path / "none", agents=["scripted:4", "first"])
    assert one.zero == "the least return"
    assert one.rows[0].score == pytest.approx(((one.rows[0].mean or 0.0) + 6) / 13)


def test_a_game_without_bounds_has_no_scale(tmp_path: Path) -> None:
    one = section(tmp_path, "Range")
    assert one.zero == ""
    assert {row.score for row in one.rows} == {None}
    assert one.rated


def test_one_agent_alone_is_not_rated(tmp_path: Path) -> None:
    one = section(tmp_path, agents=["scripted:4"])
    assert not one.rated
    assert one.rows[0].score == pytest.approx((one.rows[0].value + 6) / 13)
    assert one.beside is None


def test_what_random_earns_may_be_all_there_is() -> None:
    asked = parse({"games": ["Golf"], "agents": ["random", "first"]})
    game, names = Golf.initial(Random(0)), ("random", "first")
    assert scale(game, asked, names, [Mean(7.0, None, 3), Mean(1.0, None, 3)]) is None
    assert scale(game, asked, names, [None, Mean(1.0, None, 3)]) == Scale(-6.0, 7.0, "the least return")
    assert scale(Range.initial(Random(0)), asked, names, [Mean(0.0, None, 3), None]) is None


def test_an_agent_called_random_is_not_taken_for_one() -> None:
    asked = parse({"games": ["Golf"], "agents": [{"spec": "first", "name": "random"}, "scripted:2"]})
    found = scale(Golf.initial(Random(0)), asked, ("random", "scripted:2"), [Mean(0.0, None, 3)] * 2)
    assert found == Scale(-6.0, 7.0, "the least return")


def test_comparisons() -> None:
    told = comparisons(
        ("ann", "bob", "cat"),
        "Golf",
        answers(
            [
                (0, 5, 1.0, False), (1, 5, 0.5, False), (2, 5, 1.0 + 1e-12, False),
                (0, 6, -9.0, False), (1, 6, -8.0, True), (0, 7, 1.0, False),
            ]
        ),
    )  # fmt: skip
    rows = sorted(
        zip(told.first.tolist(), told.second.tolist(), told.outcome.tolist(), told.cluster.tolist(), strict=True)
    )
    assert rows == [(0, 1, 0, 0), (0, 1, 0, 1), (0, 2, 1, 0), (1, 2, 2, 0)]


def test_repeated_answers_count_by_their_mean() -> None:
    told = comparisons(("ann", "bob"), "Golf", answers([(0, 5, 1.0, False), (0, 5, 0.0, False), (1, 5, 0.5, False)]))
    assert told.outcome.tolist() == [1]


def test_no_seat_is_worth_anything() -> None:
    rows = [(agent, seed, float(agent), False) for agent in range(2) for seed in range(20)]
    rated = rate(comparisons(("ann", "bob"), "Golf", answers(rows)), prior=NO_SEATS)
    ((worth, half),) = rated.seats["Golf"].values()
    assert abs(worth) < 1e-3
    assert half < 1e-3
    assert rated.elo[1] > rated.elo[0]


def test_agents_without_a_common_seed_are_not_compared() -> None:
    told = comparisons(("ann", "bob"), "Golf", answers([(0, 5, 1.0, False), (1, 6, 0.0, False)]))
    assert len(told.outcome) == 0
