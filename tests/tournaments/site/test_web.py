import csv
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from arena.tournaments.board import Board
from arena.tournaments.config import parse
from arena.tournaments.report import board
from arena.tournaments.runner import run
from arena.tournaments.site import changes as telling
from arena.tournaments.site import snapshot as looking
from arena.tournaments.site.pages import parts
from arena.tournaments.site.snapshot import Missing, Snapshot
from arena.tournaments.store import Store, StoreError
from tests.tournaments.played import played
from tests.tournaments.site.parsed import HOSTILE, Page
from tests.tournaments.site.serving import changes, served

GAMES = ["TicTacToe", "ConnectFour", "Arithmetic"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("served")
    agents = [{"spec": "random", "name": HOSTILE[0]}, {"spec": "first", "name": HOSTILE[5]}]
    played(out, games=GAMES, agents=agents, blocks=3)
    return out


def test_every_page_and_file_is_served_and_harmless(folder: Path) -> None:
    with Store.open(folder) as store:
        shown, ids = board(store), sorted(store.finished())
    pages = ["", *[f"{part.key}.html" for part in parts(shown)], *[f"games-{k}.html" for k in (1, 2, 3)]]
    with served(folder) as client:
        for name in [*pages, *[f"game/{key}.html" for key in ids]]:
            answer = client.get(f"/{name}")
            assert answer.status_code == 200, name
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
            Page(answer.text).assert_harmless()
        rows = list(csv.reader(client.get("/games.csv").text.splitlines()))
        assert len(rows) == 1 + len(ids)
        assert json.loads(client.get("/ratings.json").content)["finished"] == len(ids)
        assert client.get("/games.parquet").content[:4] == b"PAR1"


def test_every_link_of_the_lists_leads_to_a_game(folder: Path) -> None:
    with served(folder) as client:
        for number in (1, 2, 3):
            listed = Page(client.get(f"/games-{number}.html").text)
            games = [link for link in listed.values("href") if link.startswith("game/")]
            assert games
            for link in games:
                replay = Page(client.get(f"/{link}").text)
                assert f"../games-{number}.html" in replay.values("href")


@pytest.mark.parametrize(
    "path",
    [
        "/nothing.html", "/games-0.html", "/games-4.html", "/games-٣.html", "/games-1e3.html", "/games-.html",
        f"/game/{'0' * 32}.html", "/game/%25.html", "/game/0.html", "/results.db", "/tournament.toml", "/games.xlsx",
        "/..%2fresults.db", "/%2e%2e/results.db", "/docs", "/openapi.json", f"/{'x' * 3000}.html",
    ],
)  # fmt: skip
def test_what_is_not_there_is_a_404_and_nothing_of_the_disk(folder: Path, path: str) -> None:
    with served(folder) as client:
        answer = client.get(path)
    assert answer.status_code == 404
    assert len(answer.content) < 300


def test_another_name_for_this_machine_is_refused(folder: Path) -> None:
    with served(folder, hosts=["127.0.0.1"]) as client:
        assert client.get("/").status_code == 200
        assert client.get("/", headers={"Host": "evil.example"}).status_code == 400


def test_pages_follow_a_run_and_everybody_who_listens_hears_of_it(tmp_path: Path) -> None:
    asked = parse({"games": ["TicTacToe"], "agents": ["random", "first"], "blocks": 2})
    Store.resume(tmp_path, asked).close()
    with served(tmp_path) as client, client.stream("GET", "/events") as one, client.stream("GET", "/events") as other:
        assert one.headers["content-type"].startswith("text/event-stream")
        heard = [one.iter_lines(), other.iter_lines()]
        assert [next(lines) for lines in heard] == ["retry: 2000"] * 2
        assert "0 of 4 games finished" in Page(client.get("/").text).text
        time.sleep(0.3)  # the server has looked once: what comes now is a change
        player = threading.Thread(target=lambda: run(asked, lambda: Store.resume(tmp_path, asked)))
        player.start()
        assert [next(changes(lines)) for lines in heard] == ["event: change"] * 2
        player.join(60)
        until = time.monotonic() + 30
        while "4 of 4 games finished" not in Page(client.get("/").text).text:
            assert time.monotonic() < until
            time.sleep(0.05)


def test_a_stream_says_that_it_is_there_and_ends_with_the_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "_ALIVE", 0.05)
    heard, ended = threading.Event(), threading.Event()

    def listen(address: str) -> None:
        with httpx.stream("GET", f"{address}/events", timeout=60) as answer:
            lines = answer.iter_lines()
            while next(lines) != ": here":
                continue
            heard.set()
            list(lines)
        ended.set()

    with served(folder) as client:
        listener = threading.Thread(target=listen, args=[client.base_url])
        listener.start()
        assert heard.wait(60)
    listener.join(60)
    assert ended.is_set()


def test_the_board_is_worked_out_once_for_many(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worked: list[Board] = []

    def work(store: Store) -> Board:
        worked.append(board(store))
        return worked[-1]

    monkeypatch.setattr(looking, "report", work)
    snapshot = Snapshot(folder)
    with ThreadPoolExecutor(8) as pool:
        pages = list(pool.map(snapshot.page, ["index"] * 24))
    assert len(set(pages)) == 1
    assert len(worked) == 1


def test_a_game_that_ends_makes_another_version_and_another_board(tmp_path: Path) -> None:
    played(tmp_path, games=["TicTacToe"], agents=["random", "first"], blocks=1)
    snapshot = Snapshot(tmp_path)
    before, version = snapshot.board().finished, snapshot.version()
    assert snapshot.version() == version
    played(tmp_path, games=["TicTacToe"], agents=["random", "first"], blocks=3)
    assert snapshot.version() != version
    until = time.monotonic() + 30
    while snapshot.board().finished == before:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert (before, snapshot.board().finished) == (2, 6)


def test_two_forms_of_one_game_lead_back_to_their_own_lists(tmp_path: Path) -> None:
    games = ["ConnectFour?columns=4&rows=4", "ConnectFour?columns=5&rows=4"]
    played(tmp_path, games=games, agents=["random", "first"], blocks=1)
    with Store.open(tmp_path) as store:
        keys = {kept.id: kept.episode.options["columns"] for kept in store.kept("")}
    snapshot = Snapshot(tmp_path)
    for key, columns in keys.items():
        assert f"../games-{1 if columns == 4 else 2}.html" in Page(snapshot.replay(key)).values("href")


def test_a_run_that_is_none_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="does not exist"):
        Snapshot(tmp_path / "none").board()
    with served(tmp_path / "none") as client:
        answer = client.get("/")
    assert answer.status_code == 503
    assert "does not exist" in answer.text


def test_missing_names_are_said(folder: Path) -> None:
    snapshot = Snapshot(folder)
    for ask in (snapshot.page, snapshot.replay, snapshot.file):
        with pytest.raises(Missing, match="nonsense"):
            ask("nonsense")


def test_nobody_is_told_of_a_change_while_a_board_is_worked_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = Snapshot(folder)
    due: list[bool] = []

    def work(store: Store) -> Board:
        due.append(snapshot.due)
        return board(store)

    monkeypatch.setattr(looking, "report", work)
    snapshot.board()
    assert due == [False]
