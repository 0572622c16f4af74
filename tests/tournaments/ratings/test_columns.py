"""What columns mean: every synonym, every label, and a line for whatever is not understood."""

import re
from collections.abc import Sequence

import numpy as np
import pytest

from arena.tournaments.ratings import OUTCOMES, Results, rate
from arena.tournaments.ratings.columns import NAMES, Given, give, kind_of, meant
from arena.tournaments.ratings.ranked import RankedResults
from arena.tournaments.ratings.table import Table, read_bytes
from arena.tournaments.ratings.tasks import TaskResults
from arena.tournaments.ratings.teams import TeamResults


def table(header: str, *rows: str) -> Table:
    return read_bytes("\n".join([header, *rows]).encode(), ".csv")


def given(header: str, *rows: str, mapped: dict[str, str] | None = None) -> Given:
    made = table(header, *rows)
    found = meant(made, mapped or {})
    return give(made, found, kind_of(found, made))


def duels(found: Given) -> list[tuple[str, str, str]]:
    results = found.results
    assert isinstance(results, Results)
    return [
        (results.players[a], results.players[b], OUTCOMES[outcome])
        for a, b, outcome in zip(results.first, results.second, results.outcome, strict=True)
    ]


GAMES = [("ann", "bob", "first"), ("bob", "cat", "draw"), ("cat", "ann", "second")]


@pytest.mark.parametrize(
    ("header", "labels"),
    [
        ("first,second,outcome", "first draw second"),
        ("First, SECOND ,Outcome", "First DRAW Second"),
        ("model_a,model_b,winner", "model_a tie model_b"),
        ("model_a,model_b,winner", "model_a tie·(bothbad) model_b"),
        ("Player A,Player-B,Winner", "player_a draw player_b"),
        ("white,black,result", "1-0 1/2-1/2 0-1"),
        ("white,black,result", "white ½-½ black"),
        ("player1,player2,result", "1 0.5 0"),
        ("home,away,result", "1.0 0.5 0.0"),
        ("home,away,winner", "home draw away"),
        ("a,b,winner", "ann draw ann"),
    ],
)
def test_columns_and_labels_of_games_of_two(header: str, labels: str) -> None:
    said = [label.replace("·", " ") for label in labels.split()]
    found = given(header, *[f"{a},{b},{label}" for (a, b, _), label in zip(GAMES, said, strict=True)])
    assert found.kind == "pairs"
    assert duels(found) == GAMES
    assert found.clustered == ""
    assert isinstance(found.results, Results)
    assert found.results.cluster.tolist() == [0, 1, 2], "every row by itself"


def test_the_same_ratings_as_from_rows() -> None:
    rows = [("g", "ann", "bob", "first", 0), ("h", "bob", "ann", "draw", 0), ("g", "bob", "cat", "second", 1)]
    found = given("game,first,second,outcome,seed", *[",".join(map(str, row)) for row in rows])
    direct = rate(Results.of([(game, a, b, outcome, (game, seed)) for game, a, b, outcome, seed in rows]))
    assert isinstance(found.results, Results)
    loaded = rate(found.results)
    order = [direct.players.index(name) for name in loaded.players]
    assert loaded.elo == pytest.approx(direct.elo[order])
    assert loaded.half == pytest.approx(direct.half[order])
    assert loaded.seats["h"]["first seat"] == pytest.approx(direct.seats["h"]["first seat"])
    assert len(set(found.results.cluster.tolist())) == 3, "seed 0 of another game is another cluster"


def test_a_cluster_goes_before_a_seed_and_what_is_left_over_is_not_used() -> None:
    found = given("first,second,outcome,seed,cluster,comment", "a,b,draw,1,x,hello", "a,b,draw,2,x,")
    assert found.clustered == "cluster"
    assert isinstance(found.results, Results)
    assert found.results.cluster.tolist() == [0, 0]
    assert found.used == {name: name for name in ("first", "second", "outcome", "cluster")}


def test_users_say_what_a_column_is() -> None:
    header, row = "White Elo name,who had black,How it ended,white", "ann,bob,1-0,1500"
    found = given(header, row, mapped={"White Elo name": "first", "who had black": "second", "How it ended": "outcome"})
    assert duels(found) == [("ann", "bob", "first")]


def test_ranked_games() -> None:
    rows = ["1,ann,1,0", "1,bob,2,1", "2,cat,1,1", "2,bob,1,0", "1,cat,3,2", "2,ann,3,2"]
    found = given("match,agent,rank,seat", *rows)
    assert (found.kind, found.seated) == ("ranked", True)
    results = found.results
    assert isinstance(results, RankedResults)
    (games,) = results.tables
    assert [[results.players[k] for k in row] for row in games.agents] == [["ann", "bob", "cat"], ["bob", "cat", "ann"]]
    assert games.ranks.tolist() == [[0, 1, 2], [0, 0, 2]] or games.ranks.tolist() == [[0, 1, 2], [0, 0, 1]]
    scored = given("episode,player,reward,position", *[f"{m},{a},{-int(r)},{s}" for m, a, r, s in map(_cut, rows)])
    assert isinstance(scored.results, RankedResults)
    assert scored.results.tables[0].ranks.tolist() == games.ranks.tolist()


def _cut(row: str) -> Sequence[str]:
    return row.split(",")


def test_without_seats_the_order_of_rows_is_none() -> None:
    """Rows often come best first: taken for seats, they would say that the first seat always wins."""
    rng = np.random.default_rng(0)
    rows = []
    for match in range(300):
        order = rng.permutation(4)
        rows += [f"{match},p{k},{rank}" for rank, k in enumerate(order, 1)]
    found = given("match,agent,rank", *rows)
    assert not found.seated
    assert isinstance(found.results, RankedResults)
    first = found.results.tables[0].ranks[:, 0]
    assert np.bincount(first, minlength=4).min() > 40, "the first place of the table has all ranks"
    again = given("match,agent,rank", *rows)
    assert isinstance(again.results, RankedResults)
    assert (again.results.tables[0].agents == found.results.tables[0].agents).all()


def test_teams() -> None:
    rows = ["1,a,1,x", "1,b,1,x", "1,c,0,y", "2,a,0,y", "2,b,3,x", "2,c,3,x"]
    found = given("match,agent,score,team", *rows)
    assert found.kind == "teams"
    results = found.results
    assert isinstance(results, TeamResults)
    (games,) = results.tables
    members = {frozenset(results.players[k] for k in team if k >= 0) for match in games.members for team in match}
    assert members == {frozenset("ab"), frozenset("c"), frozenset("a"), frozenset("bc")}
    best = [
        {results.players[k] for k in match[rank.argmin()] if k >= 0}
        for match, rank in zip(games.members, games.ranks, strict=True)
    ]
    assert best == [{"a", "b"}, {"b", "c"}]


def test_answers() -> None:
    rows = ["m,q1,true,x", "m,q2,Fail,x", "n,q1,0.25,x", "n,q1,1,y"]
    found = given("model,question,correct,game", *rows)
    assert found.kind == "tasks"
    results = found.results
    assert isinstance(results, TaskResults)
    assert results.score.tolist() == [1.0, 0.0, 0.25, 1.0]
    assert [results.players[k] for k in results.agent] == ["m", "m", "n", "n"]
    met = [(results.games[results.family[k]], results.tasks[k]) for k in results.task]
    assert met == [("x", "q1"), ("x", "q2"), ("x", "q1"), ("y", "q1")], "the same name in another game is another task"


LONG = "x" * 300
WRONG = [
    ("first,second,outcome", ["a,b,wins"], "line 2: outcome 'wins' is not known."),
    ("first,second,outcome", ["a,b,draw", "a,b,frist"], "line 3: outcome 'frist' is not known. Did you mean 'first'?"),
    ("first,second,outcome", ["a,b,"], "line 2: outcome '' is not known"),
    ("first,second,outcome", ["a,b,*"], "line 2: outcome '*' is not known"),
    ("model_a,model_b,winner", ["a,b,1"], "line 2: outcome '1' is not known"),
    ("first,second,outcome", ["a,b,c", "b,c,draw"], "line 2: outcome 'c' is a player who was not in this game"),
    ("first,second,outcome", ["x,white,draw", "x,white,white"], "line 3: 'white' is a label of outcomes and a player"),
    ("first,second,outcome", ["a,a,draw"], "line 2: 'a' cannot play against itself"),
    ("first,second,outcome", ["a,b,draw", ",b,draw"], "line 3: no first"),
    ("first,second,outcome,seed", ["a,b,draw,  "], "line 2: no seed"),
    ("first,second,outcome", [f"{LONG},b,draw"], "line 2: a first of 300 characters: allowed are 200"),
    ("first,second", ["a,b"], "no column outcome among first, second"),
    (
        "model,score",
        ["a,1"],
        "no column match among model, score. Kinds of tables: pairs: first, second, outcome; ranked",
    ),
    ("first,white,second,outcome", ["a,b,c,draw"], ""),
    ("white,home,second,outcome", ["a,b,c,draw"], "columns 'white', 'home' may each be first: say which with --map"),
    ("match,agent,rank,item,score", ["1,a,1,q,1"], "the columns may be ranked or tasks: say which with --kind"),
    ("match,agent,rank", ["1,a,1"], "line 2: match '1' has one row"),
    ("match,agent,rank", ["1,a,1", "1,a,2"], "line 2: 'a' cannot play against itself"),
    ("match,agent,rank", ["1,a,1", "1,b,best"], "line 3: rank 'best': allowed are numbers"),
    ("match,agent,rank", ["1,a,1", "1,b,inf"], "line 3: rank 'inf': allowed are numbers"),
    ("match,agent,rank,seat", ["1,a,1,0", "1,b,2,0"], "line 3: match '1' has seat 0 twice"),
    ("match,agent,score,team", ["1,a,1,x", "1,b,1,x"], "a match of one team"),
    ("match,agent,score,team", ["1,a,1,x", "1,b,0,x", "1,c,0,y"], "team 'x' has two results in one match"),
    ("agent,item,score", ["a,q,1", "a,r,7"], "line 3: score 7: allowed are 0 to 1"),
    ("agent,item,score", ["a,q,maybe"], "line 2: score 'maybe': allowed are numbers, true and false"),
]


@pytest.mark.parametrize(("header", "rows", "said"), WRONG, ids=[f"{case[0]} {case[2][:40]}" for case in WRONG])
def test_what_is_not_understood_is_said_with_its_line(header: str, rows: list[str], said: str) -> None:
    if not said:  # the name itself goes before another name for it
        assert duels(given(header, *rows)) == [("a", "c", "draw")]
        return
    with pytest.raises(ValueError, match=re.escape(said)) as error:
        given(header, *rows)
    assert len(str(error.value)) < 700
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("mapped", "said"),
    [
        ({"whit": "first"}, "no column 'whit'. Did you mean 'white'? Allowed: white, black, result"),
        ({"white": "frist"}, "a column cannot be 'frist'. Did you mean 'first'? Allowed: first"),
        ({"white": "first", "black": "first"}, "two columns are mapped to first: 'white' and 'black'"),
    ],
)
def test_a_mapping_that_cannot_be(mapped: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        given("white,black,result", "a,b,1-0", mapped=mapped)


def test_half_a_character_is_no_name() -> None:
    made = read_bytes(b'[{"first": "\\ud800", "second": "b", "outcome": "draw"}]', ".json")
    found = meant(made, {})
    with pytest.raises(ValueError, match=r"row 1: first '.*' is no Unicode text"):
        give(made, found, kind_of(found, made))


def test_too_many_players() -> None:
    with pytest.raises(ValueError, match="1,002 different players: allowed are 1,000"):
        given("first,second,outcome", *[f"a{k},b{k},draw" for k in range(501)])


def test_no_name_has_two_meanings() -> None:
    every = [name for name, others in NAMES.items() for name in (name, *others)]
    assert len(every) == len(set(every))
