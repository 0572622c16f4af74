"""`arena rate` from outside: what is printed, what goes to standard error, and what is refused."""

import csv
import io
import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from arena.cli.main import cli
from arena.tournaments.ratings import Results, rate
from tests.cli.commands import arena

BATTLES = ["model_a,model_b,winner"] + ["x,y,model_a", "y,x,tie", "y,z,tie (bothbad)", "z,x,model_b"] * 20


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def put(*lines: str, name: str = "t.csv") -> str:
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return name


def table_of(done: Result) -> list[list[str]]:
    """The rows beneath the header, until a line of words."""
    lines = done.stdout.splitlines()
    head = next(k for k, line in enumerate(lines) if line.split()[:2] == ["rank", "agent"])
    end = next(k for k, line in enumerate(lines) if line.startswith("intervals: "))
    return [line.split() for line in lines[head + 1 : end]]


def test_battles_of_chatbot_arena() -> None:
    done = arena("rate", put(*BATTLES))
    assert done.exit_code == 0
    assert done.stderr == (
        "read t.csv: 80 rows of games of two (columns model_a as first, model_b as second, winner as outcome); "
        "3 players; 1 game; no column of clusters; 76 rows equal an earlier one, and count\n"
    )
    rows = [("all", *pair, cluster) for cluster, pair in enumerate(
        [("x", "y", "first"), ("y", "x", "draw"), ("y", "z", "draw"), ("z", "x", "second")] * 20
    )]  # fmt: skip
    expected = rate(Results.of(rows))
    shown = {row[1]: row for row in table_of(done)}
    for name, elo, half, low, high in zip(
        expected.players, expected.elo, expected.half, expected.standing.low, expected.standing.high, strict=True
    ):
        assert shown[name][0] == (str(low) if low == high else f"{low}-{high}")
        assert shown[name][2:4] == [f"{elo:.0f}", f"{half:.0f}"]
    assert shown["x"][-4:] == ["60", "40", "20", "0"]
    for part in (
        "first seat ",
        "cycles: ",
        "chance alone gives",
        "Nash averaging: x 100 %",
        "maximal lottery: x 100 %",
    ):
        assert part in done.stdout


def test_json_and_csv_say_the_same() -> None:
    name = put(*BATTLES)
    body = json.loads(arena("rate", name, "--json").stdout)
    rows = list(csv.DictReader(io.StringIO(arena("rate", name, "--csv").stdout)))
    assert [row["agent"] for row in rows] == [player["agent"] for player in body["players"]] == ["x", "y", "z"]
    for row, player in zip(rows, body["players"], strict=True):
        assert float(row["elo"]) == player["elo"]
        assert int(row["games"]) == player["games"]
        assert row["letters"] == player["letters"]
    assert body["kind"] == "pairs"
    assert body["columns"] == {"first": "model_a", "second": "model_b", "outcome": "winner"}
    assert np.shape(body["covariance"]["elo"]) == (3, 3)
    assert set(body["beside"]) == {"nash", "skill", "lottery", "clones", "cycle", "cycle_noise", "residuals"}
    assert sum(body["beside"]["nash"].values()) == pytest.approx(1)
    assert list(body["seats"]["all"]) == ["first seat"]
    both = arena("rate", name, "--json", "--csv")
    assert (both.exit_code, both.stderr) == (2, "arena: --json and --csv: choose one\n")


def test_anchors() -> None:
    name = put(*BATTLES)
    hard = json.loads(arena("rate", name, "--anchor", "y=1500", "--json").stdout)["players"]
    free = json.loads(arena("rate", name, "--json").stdout)["players"]
    by = {player["agent"]: player for player in hard}
    assert by["y"]["elo"] == pytest.approx(1500)
    assert by["y"]["half"] == pytest.approx(0, abs=1e-6)
    assert by["x"]["elo"] - by["z"]["elo"] == pytest.approx(free[0]["elo"] - free[2]["elo"], abs=1.0)
    soft = json.loads(arena("rate", name, "--anchor", "y=1500±30", "--json").stdout)["players"]
    assert {player["agent"]: player for player in soft}["y"]["half"] == pytest.approx(1.96 * 30, rel=0.05)
    assert arena("rate", name, "--anchor", "y=1500+-30").stdout == arena("rate", name, "--anchor", "y=1500±30").stdout
    for said, reason in [
        ("y", "'y': write NAME=ELO or NAME=ELO±SD"),
        ("y=", "'y=': write NAME=ELO"),
        ("y=high", "'y=high': write NAME=ELO"),
        ("nobody=1000", "nobody"),
        ("y=nan", "y"),
        ("y=1500±-3", "y"),
    ]:
        done = arena("rate", name, "--anchor", said)
        assert done.exit_code == 2, said
        assert reason in done.stderr
        assert done.stderr.count("\n") <= 2


def test_other_kinds_of_tables() -> None:
    matches = [f"{m},{a},{r},{s}" for m in range(30) for a, r, s in [("a", 1, 0), ("b", 2, 1), ("c", 3, 2)]]
    done = arena("rate", put("match,agent,rank,seat", *matches))
    assert (done.exit_code, table_of(done)[0][1]) == (0, "a")
    assert "seat 0 " in done.stdout
    assert "90 rows of seats of games" in done.stderr
    unseated = arena("rate", put("match,agent,rank", *[row.rpartition(",")[0] for row in matches]))
    assert "seat 0" not in unseated.stdout
    assert "no column of seats: what a seat is worth is not told" in unseated.stderr
    teams = [f"{m},{a},{s},{t}" for m in range(30) for a, s, t in [("a", 1, "x"), ("b", 1, "x"), ("c", 0, "y")]]
    assert table_of(arena("rate", put("match,agent,score,team", *teams)))[-1][1] == "c"
    answers = [f"{a},{q},{int(q % 10 < good)}" for q in range(60) for a, good in (("a", 8), ("b", 3))]
    solved = arena("rate", put("agent,item,score", *answers))
    assert table_of(solved)[0][1] == "a"
    assert table_of(solved)[0][-4:] == ["60", "48", "0", "12"]
    assert "average task" in solved.stdout
    anchored = arena("rate", "t.csv", "--anchor", "a=1500")
    assert (anchored.exit_code, table_of(anchored)[0][1:3]) == (0, ["a", "1500"])


def test_the_user_says_what_columns_are_and_which_kind() -> None:
    name = put("who began,other,how,match,agent,rank", "a,b,1-0,1,a,1", "b,a,0-1,1,b,2")
    mapped = ["--map", "who began=first", "--map", "other=second", "--map", "how=outcome"]
    torn = arena("rate", name, *mapped)
    assert torn.stderr == "arena: the columns may be pairs or ranked: say which with --kind\n"
    done = arena("rate", name, *mapped, "--kind", "pairs")
    assert "who began as first, other as second, how as outcome; not used: match, agent, rank" in done.stderr
    assert table_of(done)[0][1] == "a"
    for asked, said in [("=first", "COLUMN=NAME"), ("how", "COLUMN=NAME"), ("hwo=outcome", "Did you mean 'how'?")]:
        assert said in arena("rate", name, "--map", asked).stderr
    assert arena("rate", name, "--kind", "swiss").exit_code == 2


def test_games_and_rows_that_are_repeated() -> None:
    name = put("first,second,outcome,game", *["a,b,first,Chess"] * 3, *["b,a,first,Nim"] * 5)
    assert [row[1] for row in table_of(arena("rate", name))] == ["b", "a"]
    assert [row[1] for row in table_of(arena("rate", name, "--game", "Chess"))] == ["a", "b"]
    unknown = arena("rate", name, "--game", "Chss")
    assert (unknown.exit_code, "Did you mean 'Chess'?" in unknown.stderr) == (2, True)
    assert "no column of games" in arena("rate", put(*BATTLES, name="b.csv"), "--game", "x").stderr
    once = arena("rate", name, "--unique")
    assert "2 rows of games of two" in once.stderr
    assert "6 rows equal an earlier one, and are left out" in once.stderr
    assert {row[4 + 2] for row in table_of(once)} == {"2"} or "2" in table_of(once)[0]


@pytest.mark.parametrize("form", ["csv", "tsv", "json", "jsonl", "parquet"])
def test_standard_input_and_every_form(form: str) -> None:
    header, *rows = [row.split(",") for row in BATTLES]
    objects = [dict(zip(header, row, strict=True)) for row in rows]
    if form == "parquet":
        pa, pq = import_module("pyarrow"), import_module("pyarrow.parquet")
        pq.write_table(pa.Table.from_pylist(objects), "t.parquet")
    elif form in ("json", "jsonl"):
        text = json.dumps(objects) if form == "json" else "\n".join(map(json.dumps, objects))
        Path(f"t.{form}").write_text(text, encoding="utf-8")
    else:
        put(*["\t".join(row) if form == "tsv" else ",".join(row) for row in [header, *rows]], name=f"t.{form}")
    data = Path(f"t.{form}").read_bytes()
    piped = CliRunner().invoke(cli, ["rate", "-"], input=data)
    assert piped.stdout == arena("rate", f"t.{form}").stdout == arena("rate", put(*BATTLES, name="other.csv")).stdout
    assert piped.stderr.startswith("read standard input: 80 rows")


def test_names_are_hostile() -> None:
    names = ["[bold]x[/nothing]", "\x1b[31mred\x07", "=cmd()", "\u202eevil", "名前", "a b"]
    rows = [f'"{a}","{b}",first' for k, a in enumerate(names) for b in names[:k]]
    name = put("first,second,outcome", *rows, name="[red]t.csv")
    done = arena("rate", name)
    assert done.exit_code == 0
    assert "\x1b" not in done.output
    assert "\u202e" not in done.output
    assert "[bold]x[/nothing]" in done.stdout
    assert "\\x1b[31mred\\x07" in done.stdout
    assert "read [red]t.csv: " in done.stderr
    cells = {row["agent"] for row in csv.DictReader(io.StringIO(arena("rate", name, "--csv").stdout))}
    assert cells == {"'=cmd()" if text == "=cmd()" else text for text in names}
    text = arena("rate", name, "--json").stdout
    assert text.isascii()
    assert {player["agent"] for player in json.loads(text)["players"]} == set(names)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "the file is empty"),
        (b"first,second,outcome\r\n", "there are no rows beneath the columns first, second, outcome"),
        (b"first,second,outcome\na,b,draw\na,b\n", "line 3: 2 cells, where the first line names 3 columns"),
        (b"first,second,outcome\na,b,won\n", "line 2: outcome 'won' is not known."),
        (b"first,second,outcome\n" + b"a" * 1_000_000 + b",b,draw\n", "line 2: a cell has over 131,072 characters"),
        (b"first,second,outcome\n" + b"a" * 5000 + b",b,draw\n", "line 2: a first of 5,000 characters"),
        (b"first,second,\x1b[31m\na,b,draw\n", "no column outcome among first, second, \\x1b[31m"),
        (b"first,second,outcome\na,\xff,draw\n", "line 2: the file is not UTF-8"),
        (b"\x00\x01\x02", "no rows"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(data: bytes, said: str) -> None:
    Path("t.csv").write_bytes(data)
    done = arena("rate", "t.csv")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("arena: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr
    assert len(done.stderr) < 700


def test_files_that_are_not_there() -> None:
    Path("folder.csv").mkdir()
    for name in ("nothing.csv", "folder.csv"):
        done = arena("rate", name)
        assert (done.exit_code, done.stderr.startswith(f"arena: {name}: ")) == (2, True)
    assert "a table ends in .csv" in arena("rate", put("x", name="t.xlsx")).stderr


@pytest.mark.parametrize(
    "rows",
    [
        ["a,b,first"],
        ["a,b,draw"] * 50,
        ["a,b,first"] * 100,
        ["a,b,first", "c,d,second"],
        ["a,b,first", "b,c,first", "c,a,first"] * 30,
    ],
    ids=["one game", "all draws", "undefeated", "two groups", "a circle"],
)
def test_hostile_results_are_finite_and_flagged(rows: list[str]) -> None:
    name = put("first,second,outcome", *rows)
    done = arena("rate", name)
    assert done.exit_code == 0
    assert "nan" not in done.stdout.lower()
    body = json.loads(arena("rate", name, "--json").stdout)
    assert all(np.isfinite([player["elo"], player["half"], player["best"]]).all() for player in body["players"])
    if rows[-1] == "c,d,second":
        assert "there are groups, which cannot be compared" in done.stdout
        assert {player["group"] for player in body["players"]} == {0, 1}
    if rows == ["a,b,first"] * 100:
        assert "undefeated" in body["players"][0]["flags"]


def test_surprising_pairs_are_told() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for a in range(6):
        for b in range(a):
            wins = rng.random(60) < (0.95 if (a, b) == (4, 1) else 0.5)
            rows += [f"p{a},p{b},{'first' if won else 'second'}" for won in wins]
    done = arena("rate", put("first,second,outcome", *rows))
    assert "surprising: p1 against p4, 60 games: expected 0." in done.stdout
    assert " standard errors)" in done.stdout


def test_help_tells_columns_and_examples() -> None:
    done = arena("rate", "--help")
    assert done.exit_code == 0
    for part in (
        "arena rate battles.csv",
        "first, second, outcome",
        "match, agent, rank or score",
        "--anchor NAME=ELO",
    ):
        assert part in done.output


def test_a_table_for_each_game() -> None:
    chess = ["a,b,first,Chess", "a,b,draw,Chess", "b,c,first,Chess"] * 10
    nim = ["c,a,first,[red]Nim", "c,b,first,[red]Nim"] * 10
    name = put("first,second,outcome,game", *chess, *nim)
    done = arena("rate", name, "--each", "--anchor", "c=1200")
    assert done.exit_code == 0
    parts = done.stdout.split("\n\n")
    assert [part.splitlines()[0] for part in parts] == ["All games", "Chess", "[red]Nim"]
    assert "Chess: first seat " in parts[0]
    body = json.loads(arena("rate", name, "--each", "--json").stdout)
    for game, part in zip(("Chess", "[red]Nim"), parts[1:], strict=True):
        alone = json.loads(arena("rate", name, "--game", game, "--json").stdout)["players"]
        assert body["games"][game] == alone
        assert [row.split()[1] for row in part.splitlines()[2:]] == [player["agent"] for player in alone]
    rows = list(csv.DictReader(io.StringIO(arena("rate", name, "--each", "--csv").stdout)))
    assert [row["game"] for row in rows] == [""] * 3 + ["Chess"] * 3 + ["[red]Nim"] * 3
    assert "All games" not in arena("rate", name).stdout
    assert json.loads(arena("rate", put(*BATTLES), "--each", "--json").stdout).get("games") is None
