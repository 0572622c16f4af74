from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from arena.episode import Episode
from arena.tournaments.board import Board, Pair
from arena.tournaments.config import parse
from arena.tournaments.ratings import OUTCOMES
from arena.tournaments.report import board
from arena.tournaments.runner import Aborted, run
from arena.tournaments.store import Store
from arena.tournaments.tables import SCHEMA
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
    assert (whole.label, whole.kind, whole.games) == ("All games", "overall", 108)
    assert [row.games for row in whole.rows] == [72, 72, 72]
    assert [section.kind for section in shown.sections] == ["pairs", "pairs", "tasks", "ranked"]
    for section in [*shown.sections, whole]:
        rated = section.ratings
        assert rated is not None
        for row in section.rows:
            k = row.agent
            assert (row.name, row.value, row.half) == (shown.agents[k].name, rated.elo[k], rated.half[k])
            assert (row.won, row.drawn, row.lost) == (rated.wins[k], rated.draws[k], rated.losses[k])
            assert row.low <= row.rank <= row.high
            assert section.of(k) is row
        assert sum(row.best or 0.0 for row in section.rows) == pytest.approx(1)
    for section in shown.sections[:2]:
        assert section.ratings is not None
        assert section.ratings.wins.sum() + section.ratings.draws.sum() // 2 == section.games
        check_pairs(section.pairs, section.games)
        assert [(seat.label, seat.games) for seat in section.sides] == [("first seat", 36), ("second seat", 36)]
        assert section.sides[0].share + section.sides[1].share == pytest.approx(1)


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


def test_rankings_of_three(tmp_path: Path) -> None:
    (section,) = reported(tmp_path, games=["LiarsDice?players=3"], agents=["scripted:nonsense", "first"]).sections
    first, wrong = section.rows
    assert (first.name, wrong.name) == ("first", "scripted:nonsense")
    assert first.value > wrong.value
    assert section.kind == "ranked"
    assert [seat.label for seat in section.sides] == ["seat 0", "seat 1", "seat 2"]
    assert all(seat.games == section.games and seat.elo is not None for seat in section.sides)
    assert section.pairs[0][1] == Pair(1.0, section.pairs[0][1].games if section.pairs[0][1] else 0)
    assert first.won + first.drawn + first.lost == first.games
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


def test_the_table_over_all_games(tmp_path: Path) -> None:
    assert reported(tmp_path / "one").overall is None, "one game is its own table"
    shown = reported(tmp_path / "two", games=["TicTacToe", "KuhnPoker"])
    whole = shown.overall
    assert whole is not None
    assert whole.spread is not None
    for row in whole.rows:
        ranks = [own.rank for section in shown.sections if (own := section.of(row.agent)) is not None]
        assert row.mean_rank == pytest.approx(sum(ranks) / 2)
        assert row.win_rate == pytest.approx((row.won + row.drawn / 2) / row.games)
        for section in shown.sections:
            own = section.of(row.agent)
            assert own is not None
            assert own.shrunk is not None
    cell = whole.pairs[0][1]
    assert cell is not None
    assert cell.games == 24, "of both games"


def test_teams_have_sides(tmp_path: Path) -> None:
    (section,) = reported(tmp_path, games=["SecretMafia"], agents=["random", "first"], blocks=3).sections
    assert (section.kind, section.rated) == ("teams", True)
    assert "Mafia" in [side.label for side in section.sides]
    town, mafia = section.sides
    assert town.share + mafia.share == pytest.approx(1)
    assert town.elo == pytest.approx(-(mafia.elo or 0.0))


def test_tasks_are_rated_where_two_did_them(tmp_path: Path) -> None:
    alone = reported(tmp_path / "alone", games=["Arithmetic"], agents=["first"]).sections[0]
    assert (alone.kind, alone.rated, alone.rows[0].value) == ("tasks", False, 0.0)
    section = reported(tmp_path / "two", games=["Arithmetic"], agents=["first", "random"], blocks=8).sections[0]
    assert section.rated
    assert [row.mean for row in section.rows] == [0.0, 0.0]
    assert "none solved" in section.rows[0].flags
    assert [side.label for side in section.sides] == ["average task"]
    assert section.pairs[0][1] == Pair(0.5, 8)


def test_agents_that_never_met_are_not_compared(tmp_path: Path) -> None:
    tables = [["random", "first"], ["mcts?simulations=5", "scripted:nonsense"]]
    asked = parse({**PLAIN, "agents": [*tables[0], *tables[1]], "schedule": {"kind": "list", "tables": tables}})
    with Store.resume(tmp_path, asked) as store:
        run(asked, store)
    shown = read(tmp_path)
    (section,) = shown.sections
    assert section.groups == 2
    assert [row.group for row in section.rows] == [0, 0, 1, 1]
    assert [row.rank for row in section.rows] == [1, 2, 1, 2]
    assert any("2 groups of agents never met" in note for note in shown.notes)
    assert "separate group" in shown.marks
    assert shown.planned == shown.finished == 24


def test_anchors_hold_the_scale(tmp_path: Path) -> None:
    shown = reported(tmp_path, anchors={"first": 1500.0})
    (section,) = shown.sections
    row = section.of(1)
    assert row is not None
    assert row.value == pytest.approx(1500)
    assert row.half == pytest.approx(0, abs=1e-6)
    assert "anchor" in row.flags
    assert [agent.anchor for agent in shown.agents] == [None, 1500.0, None]


def test_what_is_told_beside_the_ratings(tmp_path: Path) -> None:
    folder = tmp_path
    shown = reported(folder)
    (section,) = shown.sections
    told, history = section.beside, section.curve
    assert told is not None
    assert sum(told.nash.values()) == pytest.approx(1)
    assert set(told.nash) == set(told.clones) == {0, 1, 2}
    assert 0 <= told.cycle <= 1
    assert history is not None
    assert history.games[-1] == 36
    assert history.games == sorted(history.games)
    assert history.times == sorted(history.times)
    assert all(len(line) == len(history.games) for line in history.elo.values())
    with Store.open(folder) as store:
        plain = board(store, whole=False)
    assert (plain.sections[0].beside, plain.sections[0].curve) == (None, None)
    assert [row.value for row in plain.sections[0].rows] == [row.value for row in section.rows]


def test_who_they_are_and_how_to_play_it_again(tmp_path: Path) -> None:
    shown = reported(tmp_path / "a run", seed=7)
    assert [agent.spec for agent in shown.agents] == PLAIN["agents"]
    assert shown.agents[2].identity.startswith("mcts?")
    method = shown.method
    assert method is not None
    assert (method.seeds, method.schema) == ((7, 12), SCHEMA)
    assert (method.schedule, method.stop) == ("round-robin", "")
    assert method.ended == "36 of 36 games are finished"
    assert method.command.endswith("a run/tournament.toml' --out '" + str(tmp_path / "a run") + "'-again")


def test_the_stopping_rule_is_told(tmp_path: Path) -> None:
    for most, said in ((10, "; budget: 36 of 10 games are spent"), (100, "")):
        method = reported(tmp_path / str(most), stop={"games": most}).method
        assert method is not None
        assert method.stop == f"games {most}"
        assert method.ended == f"36 of 36 games are finished{said}"
    agents = ["first", {"spec": "first", "name": "twin"}]
    method = reported(tmp_path / "sprt", agents=agents, stop={"sprt": {"elo1": 400}}, blocks=40).method
    assert method is not None
    assert "twin" in method.ended or "log likelihood ratio" in method.ended


def test_what_void_attempts_took_is_told_apart(tmp_path: Path) -> None:
    def void(number: int, episode: Episode) -> Episode:
        return replace(episode, outcome="void", returns=None, reason="gone") if number < 2 else episode

    played(tmp_path, void, games=["TicTacToe"], agents=["modelled", "first"], blocks=4, referee={"retries": 1})
    shown = read(tmp_path)
    row = shown.sections[0].of(0)
    assert row is not None
    assert row.voids == 2
    assert row.wasted.calls > 0
    assert row.wasted == shown.agents[0].wasted
    wasted = row.wasted.prompt_tokens + row.wasted.completion_tokens
    assert shown.spent.tokens == wasted + row.conduct.prompt_tokens + row.conduct.completion_tokens
    note = f"Games that do not count (void, or left out) took {wasted:,} tokens and ${row.wasted.cost:,.2f}"
    assert shown.notes[0].startswith(note)
    assert row.tokens == pytest.approx((row.conduct.prompt_tokens + row.conduct.completion_tokens) / row.conduct.turns)
    assert row.cost == row.conduct.cost > 0


def test_pairs_that_no_number_tells(tmp_path: Path) -> None:
    """Rock, paper, scissors: each beats one and loses to the other, whatever the seats."""
    beats = {(0, 1), (1, 2), (2, 0)}

    def circle(number: int, episode: Episode) -> Episode:
        first, second = [names.index(seat.agent) for seat in episode.seats]
        last = replace(episode.turns[-1], hash=f"{number:032x}")
        won = (first, second) in beats
        return replace(
            episode, returns=(1.0, -1.0) if won else (-1.0, 1.0), turns=[*episode.turns[:-1], last], forfeits=()
        )

    names = ["random", "scripted:0|1|2", "first"]
    played(tmp_path, circle, games=["TicTacToe"], agents=names, blocks=20)
    shown = read(tmp_path)
    told = shown.sections[0].beside
    assert told is not None
    assert told.circular
    assert list(told.nash.values()) == pytest.approx([1 / 3] * 3, abs=0.02)
    assert any("goes round in circles" in note for note in shown.notes)
    assert any("the ratings do not fit 3 pairs" in note for note in shown.notes)


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
