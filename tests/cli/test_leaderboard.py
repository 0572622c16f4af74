import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from arena.cli.demo import DEMO
from arena.cli.leaderboard import _about, _number, print_board
from arena.episode import read, replay
from arena.registry import AGENTS
from arena.tournaments.board import Section
from arena.tournaments.conduct import percent
from arena.tournaments.ratings import Results, rate
from arena.tournaments.report import board
from arena.tournaments.runner import Tally
from arena.tournaments.store import Store
from tests.cli.commands import PAIR, SMALL, arena, run
from tests.tournaments.players import PLAYERS


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_leaderboard_in_the_terminal() -> None:
    run("--game", "TicTacToe", "--game", "KuhnPoker", "--game", "Arithmetic", *PAIR, "--blocks", "3", "--out", "x")
    done = arena("leaderboard", "x")
    assert done.exit_code == 0
    for part in ("18 of 18 games finished", "All two-player games 12 games", "Elo", "± 95 %"):
        assert part in done.output
    assert "mean return" in done.output
    assert "first seat" in done.output
    one = arena("leaderboard", "x", "--game", "KuhnPoker-v0").output
    assert arena("leaderboard", "x", "--game", "KuhnPoker").output == one
    assert arena("leaderboard", "x", "--game", "arena/KuhnPoker-v0").output == one
    assert "KuhnPoker-v0 6 games" in one
    assert "TicTacToe" not in one.splitlines()[2]
    assert arena("leaderboard", "x/results.db").output == done.output


@pytest.mark.parametrize(("worth", "said"), [(-0.3, "first seat 0 ± 339 Elo"), (12.6, "first seat +13 ± 339 Elo")])
def test_what_rounds_to_zero_has_no_sign(worth: float, said: str) -> None:
    seats = {"Nim": {"first seat": (worth, 339.0)}}
    rated = rate(Results.of([("Nim", "ann", "bob", "draw", 0)]))._replace(seats=seats)
    assert _about(Section("Nim", 2, 1, ratings=rated)) == f"1 games, {said}"
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
    counted = ["games", "won", "drawn", "lost", "forfeits", "illegal", "voids"]
    assert header.split() == ["#", "agent", "Elo", "±", "95", "%", *counted]
    assert "forfeits:" not in wide
    assert "100 %" in wide
    assert "How they answered" not in wide, "no model was asked"
    usual = narrow(88)
    assert usual.splitlines()[3].split()[-7:] == counted
    assert f"\nmarks: {name} winless\n" in usual
    small = narrow(66)
    assert small.splitlines()[3].split()[-4:] == counted[:4]
    assert f"\nforfeits: {name} " in small
    assert f"\nillegal: {name} 100 %\n" in small, "nothing of those who have none"
    assert "\nvoids: " in small
    tiny = narrow(40)
    assert all(f"\n{word}: " in tiny for word in ("won", "lost", "forfeits", "illegal", "voids"))
    for width, text in ((200, wide), (88, usual), (66, small), (40, tiny)):
        assert max(map(len, text.splitlines())) <= width


def test_how_agents_answered_where_a_model_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AGENTS, "modelled", PLAYERS["modelled"])
    Path("cup.toml").write_text(
        'games = ["TicTacToe", "KuhnPoker"]\nblocks = 3\nagents = ["modelled", "first"]\nreferee = { retries = 1 }\n'
    )
    run("cup.toml", "--out", "x")
    wide = narrow(200).splitlines()
    header = next(line for line in wide if "Elo" in line and "#" in line)
    assert header.split()[-2:] == ["lost", "illegal"], "nobody forfeited: the wrong ones were retried"
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
    done = arena("leaderboard", "x", "--html", "page.html")
    assert done.output == "wrote page.html\n"
    assert Path("page.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["leaderboard", "none"], "none/results.db does not exist"),
        (["leaderboard", "x", "--game", "Chess"], "unknown game of this run 'Chess'. Allowed: TicTacToe-v0"),
        (["export", "none"], "none/results.db does not exist"),
        (["export", "x", "--game", "Chess"], "unknown game of this run 'Chess'"),
        (["export", "x", "--agent", "randm"], "unknown agent of this run 'randm'. Did you mean 'random'?"),
        (["export", "x", "--format", "xml"], "'xml' is not"),
        (["export", "x", "--out", "x/kept.jsonl"], "x/kept.jsonl exists; name a new file"),
        (["export", "x", "--out", "x/results.db"], "x/results.db: allowed are names that end in .jsonl or .jsonl.zst"),
        (["export", "x", "--out", "z.csv"], "z.csv: allowed are names that end in .jsonl or .jsonl.zst"),
    ],
)
def test_refusals_of_readers(args: list[str], message: str) -> None:
    run(*SMALL, "--out", "x")
    Path("x/kept.jsonl").touch()
    done = arena(*args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.mark.parametrize("name", ["all.jsonl", "all.jsonl.zst"])
def test_export_is_read_back(name: str) -> None:
    run("--game", "TicTacToe", "--game", "KuhnPoker", *PAIR, "--blocks", "2", "--out", "x")
    assert arena("export", "x", "--out", name).output == f"wrote 8 episodes to {name}\n"
    episodes = list(read(name))
    assert len(episodes) == 8
    for episode in episodes:
        replay(episode)
    done = arena("export", "x", "--game", "KuhnPoker", "--agent", "first", "--out", f"kuhn-{name}")
    assert done.output == f"wrote 4 episodes to kuhn-{name}\n"
    assert {episode.env for episode in read(f"kuhn-{name}")} == {"KuhnPoker-v0"}


def test_export_to_a_pipe() -> None:
    run(*SMALL, "--out", "x")
    done = arena("export", "x")
    assert done.stderr == "4 episodes\n"
    assert [json.loads(line)["env"] for line in done.stdout.splitlines()] == ["TicTacToe-v0"] * 4


def test_the_demo() -> None:
    done = arena("demo", "--out", "runs/demo", "--blocks", "1")
    assert done.exit_code == 0
    for part in (
        "48 of 48 games finished",
        "All two-player games",
        "± 95 %",
        "leaderboard.html",
        "Next:  arena leaderboard",
    ):
        assert part in done.stdout
    assert sorted(path.name for path in Path("runs/demo").iterdir()) == [
        "episodes.jsonl.zst",
        "leaderboard.html",
        "results.db",
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
