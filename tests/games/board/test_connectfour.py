import json
import pickle
from random import Random
from typing import Any

import msgspec
import pytest

from arena.game import IllegalAction
from arena.games.board.connectfour import ConnectFour, _shifts

START = ConnectFour.initial(Random(0))
OPTIONS: list[dict[str, int]] = [
    {},
    {"columns": 4, "rows": 4, "connect": 3},
    {"columns": 5, "rows": 4},
    {"columns": 4, "rows": 9, "connect": 5},
    {"columns": 9, "rows": 7},
    {"columns": 9, "rows": 9, "connect": 9},
    {"columns": 6, "rows": 7, "connect": 6},
]


def played(moves: str, start: ConnectFour = START) -> ConnectFour:
    game = start
    for move in moves:
        game = game.apply({game.to_act()[0]: move})
    return game


def cells(game: ConnectFour) -> list[list[str]]:
    """Rows from the top, as an observer reads them."""
    return [row.split(" ") for row in game.observation(0).split("\n")[1:-1]]


def winner(game: ConnectFour) -> str:
    """Square by square: whoever holds a line."""
    board, (columns, rows, connect) = cells(game), game.shape
    for r in range(rows):
        for c in range(columns):
            for dr, dc in ((0, 1), (1, 0), (1, 1), (1, -1)):
                if 0 <= r + dr * (connect - 1) < rows and 0 <= c + dc * (connect - 1) < columns:
                    line = {board[r + dr * i][c + dc * i] for i in range(connect)}
                    if len(line) == 1 and line != {"."}:
                        return line.pop()
    return ""


def test_positions_are_as_many_as_tromp_counts() -> None:
    """OEIS A212693: distinct positions after n discs, lines of four ending the game."""
    level, counts = {START}, []
    for _ in range(8):
        counts.append(len(level))
        level = {g.play(a) for g in level if g.to_act() for a in g.legal_actions(g.ply & 1)}
    assert counts == [1, 7, 49, 238, 1_120, 4_263, 16_422, 54_859]


@pytest.mark.parametrize("options", OPTIONS)
def test_random_games_against_a_board_of_letters(options: dict[str, int]) -> None:
    rng = Random(repr(options))
    for _ in range(30):
        game = ConnectFour.initial(rng, **options)
        columns, rows, _ = game.shape
        assert cells(game) == [["."] * columns] * rows
        while not game.over:
            before, mark = cells(game), "XO"[game.ply & 1]
            expected = tuple(str(c + 1) for c in range(columns) if before[0][c] == ".")
            assert game.legal_actions(game.ply & 1) == expected
            assert game.legal_actions(1 - game.ply & 1) == ()
            assert not winner(game)
            action = rng.choice(expected)
            row = max(r for r in range(rows) if before[r][int(action) - 1] == ".")
            before[row][int(action) - 1] = mark
            game = game.play(action)
            assert cells(game) == before
        won = winner(game)
        assert game.returns() == {"X": (1.0, -1.0), "O": (-1.0, 1.0), "": (0.0, 0.0)}[won]
        assert won or game.ply == columns * rows == game.max_turns()
        assert game.to_act() == ()
        assert game.legal_actions(0) == game.legal_actions(1) == ()


@pytest.mark.parametrize(
    ("moves", "line"),
    [("1122334", "row"), ("1212121", "column"), ("12233434464", "diagonal up"), ("76655454424", "diagonal down")],
)
def test_x_wins(moves: str, line: str) -> None:
    assert not played(moves[:-1]).over
    assert played(moves).returns() == (1.0, -1.0), line


def test_o_wins() -> None:
    assert not played("7171616").over
    assert played("71716161").returns() == (-1.0, 1.0)


def test_a_line_does_not_wrap_round_the_edge() -> None:
    assert not played("5161721").over  # X on 5, 6, 7 of the lowest row and 1 of the next


def test_a_full_board_is_a_draw() -> None:
    game = played("121212212121" + "343434434343" + "565656656565" + "777777")
    assert game.ply == 42
    assert game.over
    assert game.returns() == (0.0, 0.0)


def test_board_is_drawn_for_both_seats() -> None:
    game = played("443")
    board = ". . . . . . .\n" * 4 + ". . . O . . .\n. . X X . . .\n1 2 3 4 5 6 7"
    assert game.observation(0) == f"You are X.\n{board}"
    assert game.observation(1) == f"You are O.\n{board}"
    assert game.render() == board


@pytest.mark.parametrize(("connect", "shifts"), [(3, (1, 1)), (4, (1, 2)), (5, (1, 2, 1)), (9, (1, 2, 4, 1))])
def test_shifts_add_up_to_the_line(connect: int, shifts: tuple[int, ...]) -> None:
    assert _shifts(1, connect) == shifts
    assert _shifts(8, connect) == tuple(8 * s for s in shifts)


@pytest.mark.parametrize("action", ["", "0", "8", "07", "٣", "²", "4 ", "col 4", "\ud800", "1" * 1_000_000, "\x00"])
def test_hostile_text_is_illegal_and_changes_nothing(action: str) -> None:
    with pytest.raises(IllegalAction, match="write the number of a column that is not full, 1 to 7"):
        START.play(action)
    assert ConnectFour() == START


def test_full_column_is_named() -> None:
    game = played("333333")
    assert "3" not in game.legal_actions(0)
    with pytest.raises(IllegalAction, match="column 3 is full"):
        game.play("3")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": 3}, "columns=3: allowed are 4 to 9"),
        ({"columns": 10}, "columns=10: allowed are 4 to 9"),
        ({"rows": 10}, "rows=10: allowed are 4 to 9"),
        ({"rows": "6"}, "rows='6': allowed are 4 to 9"),
        ({"columns": 7.0}, "columns=7.0: allowed are 4 to 9"),
        ({"connect": 2}, "connect=2: allowed are 3 to 7"),
        ({"columns": 5, "rows": 8, "connect": 9}, "connect=9: allowed are 3 to 8"),
        ({"connect": True}, "connect=True: allowed are 3 to 7"),
    ],
)
def test_bad_options_name_what_is_allowed(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        ConnectFour.initial(Random(0), **options)


@pytest.mark.parametrize("options", OPTIONS)
def test_facts_follow_the_options(options: dict[str, int]) -> None:
    game = ConnectFour.initial(Random(0), **options)
    columns, rows, connect = game.shape
    for player in (0, 1):
        rules = game.rules(player)
        assert f"{columns} columns and {rows} rows. You are {'XO'[player]}" in rules
        assert f"\n{connect} of your discs" in rules
        assert rules.split("For example: ")[1].split("\n")[0] in game.legal_actions(0)
    table = game.action_table()
    rng = Random(3)
    while game.to_act():
        legal = game.legal_actions(game.to_act()[0])
        assert set(legal) <= set(table)
        for player in (0, 1):
            assert len(game.observation(player)) <= game.max_length()
            assert len(game.features(player)) == 2 * columns * rows
        game = game.play(rng.choice(legal))


def test_features_show_discs_from_the_seats_side() -> None:
    game = played("443")
    mine, theirs = [0.0] * 42, [0.0] * 42
    mine[3] = mine[2] = theirs[7 + 3] = 1.0
    assert list(game.features(0)) == mine + theirs
    assert list(game.features(1)) == theirs + mine


def test_pickled_and_decoded_games_go_on_alike() -> None:
    game = played("12", ConnectFour.initial(Random(0), columns=5, rows=5))
    twins = [pickle.loads(pickle.dumps(game)), msgspec.json.decode(msgspec.json.encode(game), type=ConnectFour)]
    assert json.loads(msgspec.json.encode(game))["shape"] == [5, 5, 4]
    for twin in twins:
        assert twin == game
        assert hash(twin) == hash(game)
        assert played("3345", twin) == played("3345", game)


@pytest.mark.oracle
def test_open_spiel_agrees() -> None:
    pyspiel = pytest.importorskip("pyspiel")
    rng = Random(2)
    for _ in range(300):
        game, state = START, pyspiel.load_game("connect_four").new_initial_state()
        while not state.is_terminal():
            assert game.to_act() == (state.current_player(),)
            legal = game.legal_actions(state.current_player())
            assert [int(a) - 1 for a in legal] == state.legal_actions()
            drawn = "\n".join("".join(row) for row in cells(game)) + "\n"
            assert drawn == str(state).replace("x", "X").replace("o", "O")
            action = rng.choice(legal)
            game = game.play(action)
            state.apply_action(int(action) - 1)
        assert game.to_act() == ()
        assert list(game.returns()) == state.returns()
