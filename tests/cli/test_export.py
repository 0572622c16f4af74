"""`arena export`: from runs and files, as whole episodes and as rows."""

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from arena.adapters.datasets.exporting import Progress
from arena.adapters.datasets.formats import FORMATS
from arena.cli import exporting
from arena.cli.exporting import StoreSource, following, ratings_of
from arena.episode import Episode, read, write
from arena.game import replace
from arena.replaying import replay
from arena.tournaments.store import Store
from tests.cli.commands import arena
from tests.tournaments.played import played

TOYS = "tests.adapters.datasets.toys"


CUP: dict[str, Any] = {
    "games": ["TicTacToe", "KuhnPoker"],
    "agents": ["random", "first", "mcts?simulations=20"],
    "blocks": 3,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs `cup` (three agents of other strength), `x` (4 games) and `task`, and x as kept.jsonl."""
    folder = tmp_path_factory.mktemp("runs")
    played(folder / "cup", **CUP)
    played(folder / "x", games=["TicTacToe"], agents=["random", "first"], blocks=2)
    played(folder / "task", games=["Arithmetic"], agents=["random"], blocks=1)
    with Store.open(folder / "x") as store:
        write(folder / "kept.jsonl", store.episodes())
    return folder


@pytest.fixture(autouse=True)
def _elsewhere(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(runs, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for name in ("Seats", "Groups", "Moves"):
        monkeypatch.setitem(FORMATS, name.lower(), f"{TOYS}:{name}")


def rows(folder: str, split: str = "train") -> list[dict[str, Any]]:
    files = sorted(Path(folder, "data").glob(f"{split}-*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.mark.parametrize("name", ["all.jsonl", "all.jsonl.zst"])
def test_whole_episodes_are_read_back(name: str) -> None:
    assert arena("export", "cup", "--out", name).output == f"wrote 36 episodes to {name}\n"
    episodes = list(read(name))
    assert len(episodes) == 36
    for episode in episodes:
        replay(episode)
    done = arena("export", "cup", "--game", "KuhnPoker", "--agent", "first", "--out", f"kuhn-{name}")
    assert done.output == f"wrote 12 episodes to kuhn-{name}\n"
    assert {episode.env for episode in read(f"kuhn-{name}")} == {"KuhnPoker-v0"}
    done = arena("export", name, "--game", "KuhnPoker", "--winners", "--agent", "first", "--out", f"won-{name}")
    won = list(read(f"won-{name}"))
    assert 0 < len(won) < 12
    assert all((episode.returns or ())[[s.agent for s in episode.seats].index("first")] > 0 for episode in won)


def test_to_a_pipe() -> None:
    done = arena("export", "x")
    assert done.stderr == "4 episodes\n"
    assert [json.loads(line)["env"] for line in done.stdout.splitlines()] == ["TicTacToe-v0"] * 4
    assert len(arena("export", "x", "--max-rows", "3").stdout.splitlines()) == 3


def test_rows_for_a_trainer() -> None:
    done = arena("export", "cup", "--format", "seats", "--as", "jsonl", "--winners", "--legal", "--out", "deep/data")
    assert done.exit_code == 0, done.output
    found = rows("deep/data")
    assert {row["reward"] > 0 for row in found} == {True}
    assert done.stdout.startswith(
        f"wrote {len(found)} rows (train {len(found)}) of {len(found)} seats of 36 episodes to deep/data: 1 jsonl file"
    )
    assert f"left out: {72 - len(found)} seats by outcome\n" in done.stdout
    assert json.loads(Path("deep/data/export.json").read_text())["asked"]["filters"] == {
        "outcomes": ["win"],
        "legal": True,
    }


def test_files_and_folders_give_what_the_run_gives() -> None:
    asked = ("--format", "seats", "--as", "jsonl", "--advantage", "rae", "--validation", "0.3")
    Path("files").mkdir()
    arena("export", "cup", "--out", "files/all.jsonl.zst")
    for source, out in (("cup", "a"), ("cup/results.db", "b"), ("files/all.jsonl.zst", "c"), ("files", "d")):
        assert arena("export", source, *asked, "--out", out).exit_code == 0
    for split in ("train", "validation"):
        assert rows("a", split) == rows("b", split) == rows("c", split) == rows("d", split) != []
    other = arena("export", "cup", *asked, "--split-seed", "1", "--out", "e")
    assert other.exit_code == 0
    assert {row["id"] for row in rows("e", "validation")} != {row["id"] for row in rows("a", "validation")}


def test_every_filter_can_be_named() -> None:
    base = ("export", "cup", "--format", "seats", "--as", "jsonl")
    for at, (asked, holds) in enumerate(
        (
            (("--game", "KuhnPoker"), lambda row: row["game"] == "KuhnPoker-v0"),
            (("--agent", "random", "--agent", "first"), lambda row: row["agent"] in ("random", "first")),
            (("--seat", "1"), lambda row: row["id"].endswith("-1")),
            (("--outcome", "draw", "--outcome", "loss"), lambda row: row["reward"] <= 0),
            (("--min-reward", "1"), lambda row: row["reward"] >= 1),
            (("--no-truncated",), lambda row: True),
            (("--max-rows", "7"), lambda row: True),
        )
    ):
        done = arena(*base, *asked, "--out", f"o{at}")
        assert done.exit_code == 0, done.output
        found = rows(f"o{at}")
        assert found
        assert all(map(holds, found)), asked
    assert len(rows("o6")) == 7


def test_the_rating_of_the_opponent_is_that_of_the_runs_board() -> None:
    with Store.open("cup") as store:
        ratings = ratings_of(store)
    middle = sorted(ratings.values())[len(ratings) // 2]
    done = arena("export", "cup", "--format", "seats", "--as", "jsonl", "--min-rating", str(middle), "--out", "strong")
    assert done.exit_code == 0, done.output
    arena("export", "cup", "--out", "all.jsonl")
    expected = {
        f"{episode.id}-{seat}"
        for episode in read("all.jsonl")
        for seat in (0, 1)
        if ratings[episode.env, episode.seats[1 - seat].agent] >= middle
    }
    assert {row["id"] for row in rows("strong")} == expected
    assert 0 < len(expected) < 72


def test_void_attempts_of_a_run_are_counted() -> None:
    def voided(number: int, episode: Episode) -> Episode:
        return replace(episode, outcome="void", returns=None, reason="down") if number % 2 else episode

    played("y", voided, games=["KuhnPoker"], agents=["random", "first"], blocks=4)
    with Store.open("y") as store:
        assert len(list(StoreSource(store, (), ()))) == StoreSource(store, (), ()).__length_hint__() == 8
    done = arena("export", "y", "--format", "seats", "--as", "jsonl", "--out", "data")
    assert "left out: 4 void episodes\n" in done.stdout
    assert len(rows("data")) == 8
    assert arena("export", "y", "--out", "all.jsonl").stdout == "wrote 4 episodes to all.jsonl\n"


def test_what_lacks() -> None:
    done = arena("export", "x", "--format", "seats?lacks=random", "--as", "jsonl", "--out", "data")
    assert done.exit_code == 2
    assert "4 of 4 episodes lack what seats needs: the random was not recorded (4 seats)" in done.stderr
    assert not Path("data").exists()
    done = arena("export", "x", "--format", "seats?lacks=random", "--as", "jsonl", "--skip-lacking", "--out", "data")
    assert done.exit_code == 0
    assert "left out: 4 seats: the random was not recorded\n" in done.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["none"], "none does not exist; name a run, a .jsonl or .jsonl.zst file of episodes, or a folder of such"),
        (["none.jsonl"], "none.jsonl does not exist"),
        (["x", "--game", "Chess"], "unknown game of this run 'Chess'"),
        (["x", "--agent", "randm"], "unknown agent of this run 'randm'. Did you mean 'random'?"),
        (["x", "--agent", "random", "--agent", "fist"], "unknown agent of this run 'fist'. Did you mean 'first'?"),
        (["kept.jsonl", "--agent", "randm"], "unknown agent of these episodes 'randm'. Did you mean 'random'?"),
        (["kept.jsonl", "--min-rating", "3"], "kept.jsonl has no ratings"),
        (["task", "--min-rating", "3", "--format", "seats", "--out", "z"], "none of the run's games is rated"),
        (["x", "--format", "sets", "--out", "z"], "unknown format 'sets'. Did you mean 'seats'? Allowed: "),
        (
            ["x", "--format", "seats?lack=3", "--out", "z"],
            "unknown option of format seats 'lack'. Did you mean 'lacks'?",
        ),
        (["x", "--format", "seats?lacks=3", "--out", "z"], "option lacks of format seats must be str"),
        (["x", "--format", "seats:here", "--out", "z"], "a format takes no target"),
        (["x", "--format", "seats"], "format seats is a folder: name a new one with --out"),
        (["x", "--format", "seats", "--out", "x"], "x is not empty; name a new folder"),
        (["x", "--format", "seats", "--out", "kept.jsonl"], "kept.jsonl exists"),
        (["x", "--format", "moves", "--as", "parquet", "--out", "z"], "unknown kind of file of format moves 'parquet'"),
        (["x", "--format", "seats", "--validation", "1", "--out", "z"], "validation=1.0: allowed are 0 to below 1"),
        (["x", "--format", "seats", "--advantage", "rae", "--decay", "1", "--out", "z"], "decay=1.0"),
        (["x", "--format", "seats", "--decay", "0.5", "--out", "z"], "--decay is of --advantage rae"),
        (["x", "--format", "seats", "--seat", "4", "--out", "z"], "nothing passed the filters seat (of 8)"),
        (["x", "--seat", "4"], "nothing passed the filters seat (of 8)"),
        (["x", "--seat", "4", "--out", "z.jsonl"], "nothing passed the filters seat (of 8)"),
        (["x", "--split-seed", "3"], "--split-seed is for formats of rows"),
        (["x", "--format", "seats", "--scale", "--out", "z"], "--scale is of --advantage group"),
        (["x", "--dedup"], "--dedup is for formats of rows; --format jsonl writes whole episodes"),
        (["x", "--as", "parquet"], "--as is for formats of rows"),
        (["x", "--advantage", "rae", "--out", "z.jsonl"], "--advantage is for formats of rows"),
        (["x", "--out", "kept.jsonl"], "kept.jsonl exists; name a new file"),
        (["x", "--out", "x/results.db"], "x/results.db: allowed are names that end in .jsonl or .jsonl.zst"),
        (["x", "--out", "z.csv"], "z.csv: allowed are names that end in .jsonl or .jsonl.zst"),
        ([], "Missing argument 'RUN'"),
    ],
)
def test_refusals(args: list[str], message: str) -> None:
    before = sorted(Path().rglob("*"))
    done = arena("export", *args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(Path().rglob("*")) == before


def test_the_formats_are_told() -> None:
    told = arena("export", "--list")
    assert told.exit_code == 0
    assert arena("export", "--formats").output == told.output
    for name in FORMATS:
        assert f"\n{name}  " in told.output
    for part in (
        "jsonl  whole episodes",
        "seats  A row for each seat.\n    for the tests; here\n    rows of each seat; files: parquet, jsonl, ",
        "    ?lacks: str = ''\n        the agent whose record lacks something.\n",
        "rows of each group; files: jsonl, jsonl.zst",
    ):
        assert part in told.output


def test_a_format_whose_package_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMATS, "odd", "arena_odd_package:Odd")
    assert "\nodd  needs arena_odd_package\n" in arena("export", "--list").output


def test_help_teaches() -> None:
    told = arena("export", "--help").output
    for part in ("arena export runs/demo --format", "--list", "--skip-lacking", "README.md"):
        assert part in told


@pytest.mark.parametrize("terminal", [True, False])
def test_how_far_it_is(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10_000, 6))
    monkeypatch.setattr(exporting, "time", type("Clock", (), {"monotonic": lambda: next(clock)}))
    out = io.StringIO()
    with following(Console(file=out, force_terminal=terminal, width=120)) as report:
        for done in range(4):
            report(Progress("reading", done, 4 if terminal else None, done * 2))
        report(Progress("writing", 8, 8, 16))
    if terminal:
        assert "reading episodes" in out.getvalue()
        assert "writing seats" in out.getvalue()
        assert "8/8" in out.getvalue()
    else:
        assert out.getvalue() == "reading episodes 1, 2 rows\nreading episodes 3, 6 rows\n"


STOPPED = """
import os, signal, sys
from arena.adapters.datasets import exporting
from arena.cli.main import main
seen = exporting._Job._count
def count(*args):
    os.kill(os.getpid(), signal.SIGINT)
    return seen(*args)
exporting._Job._count = count
sys.argv = ["arena", "export", "x", "--format", "verl_prompts", "--as", "jsonl", "--out", "data"]
main()
"""


def test_ctrl_c_leaves_nothing() -> None:
    before = sorted(Path().rglob("*"))
    done = subprocess.run([sys.executable, "-c", STOPPED], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.splitlines()[-1] == "stopped"
    assert sorted(Path().rglob("*")) == before
