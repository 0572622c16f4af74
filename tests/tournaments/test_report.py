from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arena.tournaments.board import Board, Pair
from arena.tournaments.config import parse
from arena.tournaments.ratings import OUTCOMES
from arena.tournaments.report import board
from arena.tournaments.runner import Aborted, run
from arena.tournaments.store import Store
from tests.tournaments.played import played
from tests.tournaments.scanning import outcomes

PLAIN: dict[str, Any] = {"games": ["TicTacToe"], "agents": ["random", "first", "mcts?simulations=5"], "blocks": 6}


def reported(folder: Path, **change: Any) -> Board:
    played(folder, **{**PLAIN, **change})
    return read(folder)


def read(folder: Path) -> Board:
    with Store.open(folder) as store:
        return board(store)


@pytest.mark.parametrize(
    ("returns", "forfeits", "expected"),
    [
        ((1.0, -1.0), (), "first"),
        ((0.0, 0.5), (), "second"),
        ((2.0, 2.0), (), "draw"),
        ((0.0, 0.0), (0,), "second"),
        ((5.0, 3.0), (0,), "second"),
        ((0.0, 0.0), (1,), "first"),
        ((0.0, 0.0), (0, 1), "draw"),
    ],
)
def test_outcomes(returns: tuple[float, float], forfeits: tuple[int, ...], expected: str) -> None:
    said = outcomes(np.array([returns]), np.array([[seat in forfeits for seat in range(2)]]))
    assert OUTCOMES[said[0]] == expected


def test_a_board_adds_up(tmp_path: Path) -> None:
    shown = reported(tmp_path, games=["TicTacToe", "KuhnPoker", "Arithmetic", "LiarsDice?players=3"])
    assert (shown.finished, shown.planned, shown.voids) == (108, 108, 0)
    assert [section.label for section in shown.sections] == [
        "TicTacToe-v0",
        "KuhnPoker-v0",
        "Arithmetic-v0",
        "LiarsDice-v0 (players=3)",
    ]
    assert [section.seats for section in shown.sections] == [2, 2, 1, 3]
    assert [section.games for section in shown.sections] == [36, 36, 18, 18]
    assert [section.ratings is not None for section in shown.sections] == [True, True, True, True]
    assert [agent.games for agent in shown.agents] == [24 + 24 + 6 + 18] * 3
    whole = shown.overall
    assert whole is not None
    assert whole.ratings is not None
    assert whole.games == 72
    assert whole.ratings.played.tolist() == [48, 48, 48]
    for section in [*shown.sections[:2], whole]:
        rated = section.ratings
        assert rated is not None
        assert rated.wins.sum() == rated.losses.sum()
        assert rated.wins.sum() + rated.draws.sum() // 2 == section.games
        for row in section.rows:
            k = row.agent
            assert (row.name, row.value, row.half) == (shown.agents[k].name, rated.elo[k], rated.half[k])
            assert (row.won, row.drawn, row.lost) == (rated.wins[k], rated.draws[k], rated.losses[k])
            assert section.of(k) is row
        check_pairs(section.pairs, section.games)


def check_pairs(pairs: list[list[Pair | None]], games: int) -> None:
    total = 0
    for i, row in enumerate(pairs):
        assert row[i] is None
        for j in range(i):
            one, other = row[j], pairs[j][i]
            assert one is not None
            assert other is not None
            assert one.score + other.score == pytest.approx(1)
            assert one.games == other.games
            total += one.games
    assert total == games


def test_order_is_by_rating(tmp_path: Path) -> None:
    (section,) = reported(tmp_path, blocks=20).sections
    assert section.rows[0].name == "mcts?simulations=5"
    assert [row.value for row in section.rows] == sorted([row.value for row in section.rows], reverse=True)


def test_pairs_are_in_the_order_of_the_rows(tmp_path: Path) -> None:
    (section,) = reported(tmp_path, agents=["scripted:nonsense", "first"]).sections
    assert [row.name for row in section.rows] == ["first", "scripted:nonsense"]
    assert section.pairs == [[None, Pair(1.0, 12)], [Pair(0.0, 12), None]]


def test_means_of_other_games(tmp_path: Path) -> None:
    (section,) = reported(tmp_path, games=["LiarsDice?players=3"], agents=["scripted:nonsense", "first"]).sections
    first, wrong = section.rows
    assert (first.name, wrong.name) == ("first", "scripted:nonsense")
    assert first.value > wrong.value
    assert first.forfeits == 0
    assert wrong.forfeits > 0
    assert first.games + wrong.games == 3 * section.games


def test_truncated_games_are_left_out_where_that_is_declared(tmp_path: Path) -> None:
    (section,) = reported(tmp_path / "score", max_turns=5).sections
    assert section.truncated > 0
    assert section.games == 36
    shown = reported(tmp_path / "drop", max_turns=5, truncated="drop")
    assert shown.sections[0].games == 36 - section.truncated
    assert shown.finished == 36
    assert shown.notes[0] == f"{section.truncated} truncated games are left out, as the tournament declares."


def test_voids_are_told(tmp_path: Path) -> None:
    shown = reported(tmp_path, agents=["moody", "first"], blocks=4)
    assert (shown.finished, shown.planned, shown.voids) == (4, 8, 4)
    assert shown.void_reasons == [("ConnectionError: not today", 4)]
    assert [agent.voids for agent in shown.agents] == [4, 4]
    assert [row.voids for row in shown.sections[0].rows] == [4, 4]


def test_who_never_finished_a_game_is_told(tmp_path: Path) -> None:
    shown = reported(tmp_path, agents=["moody", "first", "random"], blocks=1, seed=1)
    assert {row.name for row in shown.sections[0].rows} == {"random", "first"}
    assert shown.notes == ["moody has no finished game; 4 attempts with it were void."]
    assert shown.agents[0].voids == 4


def test_games_that_are_all_alike_are_told(tmp_path: Path) -> None:
    shown = reported(tmp_path, agents=["first", {"spec": "first", "name": "twin"}, "random"], blocks=4)
    (note,) = shown.notes
    assert note.startswith("TicTacToe-v0: nothing is random between first – twin; twin – first: all their games")


def test_repetitions_of_what_the_seed_decides_tell_nothing_new(tmp_path: Path) -> None:
    once = reported(tmp_path / "once", agents=["random", "first"], blocks=4)
    shown = reported(tmp_path / "often", agents=["random", "first"], blocks=4, repetitions=6)
    for row, often in zip(once.sections[0].rows, shown.sections[0].rows, strict=True):
        assert often.half == pytest.approx(row.half)
        assert often.games == 6 * row.games
    assert once.notes == []
    (note,) = shown.notes
    assert note.startswith("TicTacToe-v0: 40 games were played before in their block, move by move; they tell nothing")


def test_equal_values_share_a_rank(tmp_path: Path) -> None:
    agents = ["random", "scripted:0", "scripted:1", "scripted:nonsense"]
    (section,) = reported(tmp_path, games=["LiarsDice?players=3"], agents=agents, blocks=4).sections
    ranks = {row.rank: [other.name for other in section.rows if other.value == row.value] for row in section.rows}
    assert [row.rank for row in section.rows] == [rank for rank, names in ranks.items() for _ in names]
    assert max(map(len, ranks.values())) > 1


def test_a_run_without_a_game_is_a_board_too(tmp_path: Path) -> None:
    asked = parse({**PLAIN, "games": ["TicTacToe", "Arithmetic"]})
    Store.resume(tmp_path, asked).close()
    with Store.open(tmp_path) as store:
        shown = board(store)
    assert (shown.finished, shown.planned, shown.overall) == (0, 54, None)
    assert [section.games for section in shown.sections] == [0, 0]
    assert [section.rows for section in shown.sections] == [[], []]


def test_an_aborted_run_is_a_board_too(tmp_path: Path) -> None:
    asked = parse({**PLAIN, "agents": ["moody", "first"], "blocks": 50})
    with Store.resume(tmp_path, asked) as store, pytest.raises(Aborted):
        run(asked, store)
    shown = read(tmp_path)
    assert 0 < shown.finished < shown.planned
    assert shown.voids > 0


def test_names() -> None:
    asked = parse(PLAIN)
    shown = Board(asked, "", {}, Path(), [], [], None, 0, 0, 0, [], [])
    assert shown.title == "TicTacToe-v0"
    assert shown.last_seed == 5
    shown.tournament = parse({**PLAIN, "games": ["TicTacToe", "ConnectFour", "ConnectFour?columns=5"]})
    assert shown.title == "TicTacToe-v0, ConnectFour-v0, ConnectFour-v0 (columns=5)"
    shown.tournament = parse({**PLAIN, "name": "Cup"})
    assert shown.title == "Cup"
    shown.tournament = parse({**PLAIN, "games": ["TicTacToe", "Chess", "KuhnPoker", "LeducPoker"]})
    assert shown.title == "Tournament"
