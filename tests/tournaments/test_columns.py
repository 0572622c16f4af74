from arena.tournaments.columns import Columns

ROWS = [
    ("[1,2]", "[1.0,-1.0]", "[]", "b", "terminated", "x"),
    ("[2,1]", "[-1.0,1.0]", "[0]", "a", "truncated", "y"),
    ("[1,3]", "[0.5,0.5]", "[0,1]", "b", "terminated", "x"),
]


def test_rows_become_columns() -> None:
    games = Columns.of(ROWS, 2)
    assert games.agents.tolist() == [[1, 2], [2, 1], [1, 3]]
    assert games.returns.tolist() == [[1, -1], [-1, 1], [0.5, 0.5]]
    assert games.forfeits.tolist() == [[False, False], [True, False], [True, True]]
    assert games.block.tolist() == [0, 1, 0]
    assert games.truncated.tolist() == [False, True, False]
    assert games.digest.tolist() == ["x", "y", "x"]


def test_no_row_is_a_table_too() -> None:
    games = Columns.of([], 3)
    assert games.agents.shape == games.returns.shape == games.forfeits.shape == (0, 3)
    assert len(games.block) == len(games.truncated) == len(games.digest) == 0


def test_some_of_them() -> None:
    games = Columns.of(ROWS, 2)
    kept = games.only(~games.truncated)
    assert kept.agents.tolist() == [[1, 2], [1, 3]]
    assert all(len(column) == 2 for column in kept)
