from arena.tournaments.columns import Columns
from arena.tournaments.conduct import Conduct

ROWS = [
    ("[1,2]", "[1.0,-1.0]", "[]", "b", "terminated", "x", "[[3,3],[2,2]]"),
    ("[2,1]", "[-1.0,1.0]", "[0]", "a", "truncated", "y", "[[2,4,1,0,1],[2,2,0,0,0,2,9,0,5,0.5]]"),
    ("[1,3]", "[0.5,0.5]", "[0,1]", "b", "terminated", "x", "[[],[0]]"),
]


def test_rows_become_columns() -> None:
    games = Columns.of(ROWS, 2)
    assert games.agents.tolist() == [[1, 2], [2, 1], [1, 3]]
    assert games.returns.tolist() == [[1, -1], [-1, 1], [0.5, 0.5]]
    assert games.forfeits.tolist() == [[False, False], [True, False], [True, True]]
    assert games.block.tolist() == [0, 1, 0]
    assert games.truncated.tolist() == [False, True, False]
    assert games.digest.tolist() == ["x", "y", "x"]
    assert games.conduct.shape == (3, 2, len(Conduct.__struct_fields__))
    assert games.conduct[1].tolist() == [[2, 4, 1, 0, 1, 0, 0, 0, 0, 0, 0], [2, 2, 0, 0, 0, 2, 9, 0, 5, 0.5, 0]]
    assert not games.conduct[2].any()


def test_no_row_is_a_table_too() -> None:
    games = Columns.of([], 3)
    assert games.agents.shape == games.returns.shape == games.forfeits.shape == (0, 3)
    assert len(games.block) == len(games.truncated) == len(games.digest) == 0


def test_some_of_them() -> None:
    games = Columns.of(ROWS, 2)
    kept = games.only(~games.truncated)
    assert kept.agents.tolist() == [[1, 2], [1, 3]]
    assert all(len(column) == 2 for column in kept)


def repeated(*games: tuple[int, int, int, str]) -> Columns:
    """Games (block, first, second, digest)."""
    rows = [
        (f"[{one},{two}]", "[0,0]", "[]", str(block), "terminated", digest, "[[],[]]")
        for block, one, two, digest in games
    ]
    return Columns.of(rows, 2)


def test_games_that_were_not_repeated_are_all_news() -> None:
    games = repeated((0, 0, 1, "x"), (0, 1, 0, "x"), (1, 0, 1, "x"), (1, 1, 0, "y"))
    assert games.news().tolist() == [1] * 4, "alike in another block or seating is not repeated"
    assert Columns.of([], 2).news().tolist() == []


def test_repetitions_that_are_alike_count_once() -> None:
    games = repeated((0, 0, 1, "x"), (0, 0, 1, "x"), (0, 0, 1, "x"), (1, 0, 1, "y"), (1, 1, 0, "z"), (1, 1, 0, "w"))
    news = games.news()
    assert news.tolist() == [0.5, 0.5, 0.5, 0.5, 1, 1]
    assert news.sum() == len({("x", 0), ("y", 1), ("z", 1), ("w", 1)})
