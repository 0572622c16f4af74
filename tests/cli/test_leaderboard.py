import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from arena.cli.demo import DEMO
from arena.cli.leaderboard import _about, _chance, _interval, _number, _print, print_board
from arena.episode import read
from arena.registry import AGENTS
from arena.tournaments.board import Row, Seat, Section
from arena.tournaments.conduct import Conduct, percent
from arena.tournaments.report import board
from arena.tournaments.runner import Tally
from arena.tournaments.store import Store
from tests.cli.commands import PAIR, SMALL, arena, run
from tests.tournaments.players import PLAYERS

ROW = Row(rank=3, agent=0, name="ann", games=1, value=1000.0, half=None, forfeits=0, voids=0, conduct=Conduct())


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_leaderboard_in_the_terminal() -> None:
    run("--game", "TicTacToe", "--game", "KuhnPoker", "--game", "Arithmetic", *PAIR, "--blocks", "3", "--out", "x")
    done = arena("leaderboard", "x")
    assert done.exit_code == 0
    for part in ("18 of 18 games finished", "All games 18 games", "Elo", "± 95 %", "mean rank", "groups"):
        assert part in done.output
    assert "first seat" in done.output
    assert "Arithmetic-v0 6 games, average task" in done.output
    assert "solved" in done.output
    one = arena("leaderboard", "x", "--game", "KuhnPoker-v0").output
    assert arena("leaderboard", "x", "--game", "KuhnPoker").output == one
    assert arena("leaderboard", "x", "--game", "arena/KuhnPoker-v0").output == one
    assert "KuhnPoker-v0 6 games" in one
    assert "TicTacToe" not in one.splitlines()[2]
    assert arena("leaderboard", "x/results.db").output == done.output


@pytest.mark.parametrize(("worth", "said"), [(-0.3, "first seat 0 ± 339 Elo"), (12.6, "first seat +13 ± 339 Elo")])
def test_what_rounds_to_zero_has_no_sign(worth: float, said: str) -> None:
    seats = [Seat("first seat", 1, 0.5, worth, 339.0), Seat("second seat", 1, 0.5)]
    assert _about(Section("Nim", 2, 1, sides=seats)) == f"1 games, {said}"
    assert (_number(-0.2, 0), _number(-0.0004, 3), _number(-1.5, 1)) == ("0", "0.000", "-1.5")


def narrow(width: int) -> str:
    """The leaderboard of x as a terminal of this width shows it."""
    out = io.StringIO()
    with Store.open("x") as store:
        print_board(board(store), Console(file=out, width=width))
    return out.getvalue()


def test_what_a_narrow_terminal_has_no_room_for_is_told_beneath(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AGENTS, "moody", PLAYERS["moody"])
    name = "a-name-that-is-rather-long"
    Path("cup.toml").write_text(
        'games = ["TicTacToe"]\nblocks = 6\nvoid_limit = 1.0\nvoid_retries = 0\n'
        f'agents = ["moody", "first", {{ spec = "scripted:nonsense", name = "{name}" }}]\n'
    )
    run("cup.toml", "--out", "x")
    wide = narrow(200)
    header = next(line for line in wide.splitlines() if "Elo" in line and "#" in line)
    counted = ["best", "groups", "games", "won", "drawn", "lost", "forfeits", "illegal", "voids"]
    assert header.split() == ["#", "agent", "Elo", "±", "95", "%", *counted]
    assert "forfeits:" not in wide
    assert "100 %" in wide
    assert "How they answered" not in wide, "no model was asked"
    usual = narrow(108)
    assert usual.splitlines()[3].split()[-9:] == counted
    assert f"\nmarks: {name} winless\n" in usual
    small = narrow(80)
    assert small.splitlines()[3].split()[-6:] == counted[:6]
    assert f"\nforfeits: {name} " in small
    assert f"\nillegal: {name} 100 %\n" in small, "nothing of those who have none"
    assert "\nvoids: " in small
    tiny = narrow(40)
    assert all(f"\n{word}: " in tiny for word in ("won", "lost", "forfeits", "illegal", "voids"))
    for width, text in ((200, wide), (108, usual), (80, small), (40, tiny)):
        assert max(map(len, text.splitlines())) <= width


def test_how_agents_answered_where_a_model_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AGENTS, "modelled", PLAYERS["modelled"])
    Path("cup.toml").write_text(
        'games = ["TicTacToe", "KuhnPoker"]\nblocks = 3\nagents = ["modelled", "first"]\nreferee = { retries = 1 }\n'
    )
    run("cup.toml", "--out", "x")
    wide = narrow(200).splitlines()
    header = next(line for line in wide if "Elo" in line and "#" in line)
    assert header.split()[-5:] == ["win", "rate", "illegal", "tokens/move", "cost"], "nobody forfeited"
    start = next(at for at, line in enumerate(wide) if line.startswith("How they answered"))
    columns = "agent replies retries illegal unreadable cut tokens in cached out / reply sec / reply cost"
    assert wide[start + 1].split() == columns.split()
    with Store.open("x") as store:
        counted = board(store).conduct[0]
    assert f"{counted.prompt_tokens:,}    75 %          4.0         0.50  ${counted.cost:.2f}" in wide[start + 2]
    assert percent(counted.share(counted.illegal)) in wide[start + 2]
    assert wide[start + 3].split()[-5:] == ["–"] * 5
    tiny = narrow(40)
    assert "\ncached: modelled 75 %\n" in tiny
    assert max(map(len, tiny.splitlines())) <= 40
    one = arena("leaderboard", "x", "--game", "KuhnPoker").output
    assert "How they answered" in one
    assert f"{counted.prompt_tokens:,}" not in one, "of the game that is shown only"


def test_names_are_not_markup() -> None:
    Path("cup.toml").write_text(
        'name = "[red]cup"\ngames = ["TicTacToe"]\nblocks = 1\n'
        'agents = [{ spec = "random", name = "[bold]x[/nothing]" }, { spec = "first", name = "\\u001b[31mred" }]\n'
    )
    run("cup.toml", "--out", "x")
    done = arena("leaderboard", "x")
    assert done.exit_code == 0
    assert "[red]cup" in done.output
    assert "[bold]x[/nothing]" in done.output
    assert "\\x1b[31mred" in done.output
    assert "\x1b" not in done.output


def test_leaderboard_as_a_page() -> None:
    run(*SMALL, "--out", "x")
    done = arena("leaderboard", "x", "--html", "new/page.html", "--game", "TicTacToe")
    assert done.output == "wrote new/page.html\n"
    assert Path("new/page.html").read_text().startswith("<!DOCTYPE html>")


def test_leaderboard_as_a_site() -> None:
    run(*SMALL, "--out", "x")
    done = arena("leaderboard", "x", "--html", "pages")
    assert done.output == "wrote pages/index.html\n"
    for name in ("index.html", "method.html", "games-1.html", "ratings.csv", "games.csv"):
        assert Path("pages", name).exists()
    assert len(list(Path("pages/game").iterdir())) == 4


def test_leaderboard_as_data() -> None:
    run("--game", "TicTacToe", "--game", "KuhnPoker", *PAIR, "--blocks", "2", "--out", "x")
    done = arena("leaderboard", "x", "--json")
    loaded = json.loads(done.stdout)
    assert (loaded["schema"], loaded["finished"], len(loaded["sections"])) == (1, 8, 2)
    one = arena("leaderboard", "x", "--json", "--game", "KuhnPoker", "--csv", "kuhn.csv")
    assert [section["label"] for section in json.loads(one.stdout)["sections"]] == ["KuhnPoker-v0"]
    assert one.stderr == "wrote kuhn.csv\n"
    with Path("kuhn.csv").open(newline="") as file:
        assert {line["game"] for line in csv.DictReader(file)} == {"KuhnPoker-v0"}


def test_downloads() -> None:
    run(*SMALL, "--out", "x")
    done = arena("leaderboard", "x", "--download", "files")
    names = ["ratings.csv", "ratings.json", "pairs.csv", "games.csv", "games.parquet"]
    assert done.output.splitlines() == [f"wrote files/{name}" for name in names]
    assert sorted(path.name for path in Path("files").iterdir()) == sorted(names)


def test_standings_of_a_swiss_tournament_and_of_a_knockout() -> None:
    agents = 'agents = ["random", "first", "scripted:nonsense", { spec = "first", name = "[red]second" }]\n'
    Path("swiss.toml").write_text(f'games = ["TicTacToe"]\nblocks = 1\n{agents}[schedule]\nkind = "swiss"\n')
    Path("cup.toml").write_text(f'games = ["TicTacToe"]\nblocks = 1\n{agents}[schedule]\nkind = "knockout"\n')
    run("swiss.toml", "--out", "x")
    swiss = arena("leaderboard", "x").output
    start = swiss.splitlines().index("Swiss All games")
    assert swiss.splitlines()[start + 1].split() == ["#", "agent", "points", "opponents'", "points", "byes"]
    assert [line.split()[0] for line in swiss.splitlines()[start + 2 : start + 6]] == ["1", "2", "3", "4"]
    assert "[red]second" in swiss
    run("cup.toml", "--out", "y")
    cup = arena("leaderboard", "y").output
    assert "Knockout All games" in cup
    first = next(line for line in cup.splitlines() if line.startswith("round 1: "))
    assert first.count(" – ") == 2
    assert first.count(" : ") == 2
    assert "round 2: " in cup


def test_seats_and_teams_are_told() -> None:
    agents = [*PAIR, "--agent", "scripted:nonsense"]
    run("--game", "LiarsDice?players=3", "--game", "SecretMafia", *agents, "--blocks", "2", "--out", "x")
    shown = arena("leaderboard", "x").output
    dice, mafia = shown.split("SecretMafia-v0 ")
    assert ", seat 0 " in dice
    assert ", seat 2 " in dice
    assert "first  shared  behind" in dice
    assert ", Mafia " in mafia.splitlines()[0]


def test_ranks_chances_and_seats_as_they_are_shown() -> None:
    assert _interval(ROW) == "3"
    assert _interval(replace(ROW, low=2, high=4)) == "2–4"
    assert _interval(replace(ROW, low=3, high=3)) == "3"
    assert _chance(None) == "–"
    seats = [Seat(f"seat {k}", 1, 0.5, 10.0 * k, 5.0) for k in range(4)]
    assert _about(Section("Nim", 4, 1, truncated=1, dropped=2, sides=seats)) == "1 games, 1 truncated, 2 left out"
    out = io.StringIO()
    _print(Section("Nim", 4, 1, rows=[ROW], sides=seats), Console(file=out, width=120))
    assert "Elo of seats: seat 0 0 ± 5, seat 1 +10 ± 5, seat 2 +20 ± 5, seat 3 +30 ± 5\n" in out.getvalue()
    about = _about(Section("Golf", 1, 2, zero='the mean of "random"'))
    assert about == '2 games, score 0: the mean of "random"'


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["leaderboard", "none"], "none/results.db does not exist"),
        (["leaderboard", "x", "--game", "Chess"], "unknown game of this run 'Chess'. Allowed: TicTacToe-v0"),
        (
            ["leaderboard", "x", "--game", "TicTacToe", "--html", "pages"],
            "--game: a site and downloads are of all games",
        ),
        (
            ["leaderboard", "x", "--game", "TicTacToe", "--download", "x"],
            "--game: a site and downloads are of all games",
        ),
        (["leaderboard", "x", "--csv", "none/x.csv"], "none/x.csv"),
    ],
)
def test_refusals_of_readers(args: list[str], message: str) -> None:
    run(*SMALL, "--out", "x")
    done = arena(*args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr


def test_the_demo() -> None:
    done = arena("demo", "--out", "runs/demo", "--blocks", "1")
    assert done.exit_code == 0
    for part in (
        "48 of 48 games finished",
        "All games 48 games",
        "mean rank",
        "± 95 %",
        "site/index.html",
        "Next:  arena serve",
    ):
        assert part in done.stdout
    assert sorted(path.name for path in Path("runs/demo").iterdir()) == [
        "episodes.jsonl.zst",
        "leaderboard.html",
        "results.db",
        "site",
        "tournament.toml",
    ]
    assert len(list(read("runs/demo/episodes.jsonl.zst"))) == 48
    again = arena("demo", "--out", "runs/demo", "--blocks", "1")
    assert again.exit_code == 0
    assert len(list(read("runs/demo/episodes.jsonl.zst"))) == 48


def test_a_demo_that_was_stopped_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.cli.demo.play_all", lambda *_: Tally(total=48, finished=3, stopped=True))
    monkeypatch.setattr("arena.cli.demo.DEMO", {**DEMO, "agents": ["random", "first"]})
    run("--game", "TicTacToe", *PAIR, "--out", "runs/demo")
    done = arena("demo", "--out", "runs/demo", "--blocks", "1")
    assert done.exit_code == 130
    assert "the same command goes on" in done.stdout
