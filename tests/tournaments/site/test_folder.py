import json
import re
from pathlib import Path

import pytest

from arena.tournaments import downloads
from arena.tournaments.report import board
from arena.tournaments.site import games_page, replay_page, write_site
from arena.tournaments.site.folder import offered
from arena.tournaments.site.listing import Listed, listed
from arena.tournaments.store import Store
from tests.tournaments.played import played
from tests.tournaments.site.boards import board as made
from tests.tournaments.site.boards import section
from tests.tournaments.site.parsed import HOSTILE, Page

GAMES = ["TicTacToe", "ConnectFour", "KuhnPoker"]


def site(folder: Path, games: int | None = 10, blocks: int = 2) -> Path:
    played(folder / "run", games=GAMES, agents=["random", "first", "scripted:5"], blocks=blocks)
    with Store.open(folder / "run") as store:
        return write_site(store, folder / "site", games=games)


def test_a_site_links_to_nothing_that_is_not_there(tmp_path: Path) -> None:
    index = site(tmp_path)
    assert index == tmp_path / "site" / "index.html"
    pages = sorted((tmp_path / "site").rglob("*.html"))
    names = {str(path.relative_to(tmp_path / "site")) for path in pages}
    assert {"index.html", "game-1.html", "games-3.html", "method.html"} <= names
    assert len(names) == 1 + 3 + 3 + 1 + 10
    for path in pages:
        shown = Page(path.read_text(encoding="utf-8"))
        shown.assert_harmless()
        for address in shown.values("href"):
            target = address.partition("#")[0]
            assert not target or (path.parent / target).is_file(), f"{path} leads to {address}"


def test_replays_are_bounded_and_the_page_says_how_to_see_others(tmp_path: Path) -> None:
    site(tmp_path, games=4)
    assert len(list((tmp_path / "site" / "game").iterdir())) == 4
    text = Page((tmp_path / "site" / "games-1.html").read_text(encoding="utf-8")).text
    assert re.search(r"12 games finished\. \d can be seen move by move here; arena serve RUN", text)
    with Store.open(tmp_path / "run") as store:
        write_site(store, tmp_path / "all", games=None, files=False)
    assert len(list((tmp_path / "all" / "game").iterdir())) == 36
    assert "All listed can be seen" in Page((tmp_path / "all" / "games-1.html").read_text(encoding="utf-8")).text
    assert not list((tmp_path / "all").glob("*.csv"))


def test_downloads_lie_beside_the_pages(tmp_path: Path) -> None:
    index = site(tmp_path)
    addresses = Page(index.read_text(encoding="utf-8")).values("href")
    for name in ("ratings.csv", "ratings.json", "pairs.csv", "games.csv"):
        assert name in addresses
        assert (index.parent / name).stat().st_size
    assert json.loads((index.parent / "ratings.json").read_bytes())["title"]
    assert "games.pgn: no game here is written as PGN" in index.read_text(encoding="utf-8")


def test_every_download_is_told_or_its_absence() -> None:
    told = offered(list(downloads.FILES))
    assert [one.path for one in told] == list(downloads.FILES)
    assert all(one.what for one in told)
    few = offered(["ratings.csv"])
    assert [one.path for one in few] == ["ratings.csv", "", ""]
    assert all(one.what for one in few)


def test_a_second_writing_replaces_the_first(tmp_path: Path) -> None:
    before = site(tmp_path, blocks=1).read_text(encoding="utf-8")
    kept = set((tmp_path / "site" / "game").iterdir())
    after = site(tmp_path, blocks=2).read_text(encoding="utf-8")
    assert "18 of 18" in before
    assert "36 of 36" in after
    assert kept <= set((tmp_path / "site" / "game").iterdir())


def test_an_empty_run_has_a_site(tmp_path: Path) -> None:
    from arena.tournaments.config import parse

    Store.resume(tmp_path / "run", parse({"games": GAMES, "agents": ["random", "first"]})).close()
    with Store.open(tmp_path / "run") as store:
        index = write_site(store, tmp_path / "site")
    assert "No game is finished yet." in (index.parent / "games-2.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_replay_of_hostile_players(name: str, tmp_path: Path) -> None:
    played(tmp_path, games=["TicTacToe"], agents=[{"spec": "first", "name": name}, "scripted:</script><b>"], blocks=1)
    with Store.open(tmp_path) as store:
        kept = list(store.kept(""))
    for one in kept:
        text = replay_page(one, up="../", number=1)
        shown = Page(text)
        shown.assert_harmless()
        assert text.count("</script>") == 3, "two scripts and the data"
        assert text.count("<script>") == 2
        data = json.loads(re.findall(r'id="story">(.*?)</script>', text)[0])
        assert name in data["seats"] or name.replace("\ud800", "\ufffd") in data["seats"]
        assert "</script><b>" in data["texts"]
        assert shown.values("href") == ["../index.html", "../games-1.html"]


def test_a_replay_alone_has_no_links(tmp_path: Path) -> None:
    played(tmp_path, games=["TicTacToe"], agents=["first", "random"], blocks=1)
    with Store.open(tmp_path) as store:
        kept = next(iter(store.kept("")))
    shown = Page(replay_page(kept))
    assert shown.values("href") == []
    assert kept.id in shown.text
    assert "connect-src" not in shown.policy()
    assert Page(replay_page(kept, up="./")).values("href") == ["./index.html"]
    assert "connect-src 'self'" in Page(replay_page(kept, live="events")).policy()


def test_the_list_of_games(tmp_path: Path) -> None:
    played(tmp_path, games=["TicTacToe"], agents=["first", "scripted:1"], blocks=1)
    with Store.open(tmp_path) as store:
        shown = board(store)
        (games,) = listed(store, shown)
    page = Page(games_page(shown, 1, games, {games[0].id}))
    page.assert_harmless()
    assert f"game/{games[0].id}.html" in page.values("href")
    assert f"game/{games[1].id}.html" not in page.values("href")
    (row,) = [row for row in page.rows if row[0] == games[1].id[:8]]
    assert row[1] == "scripted:1 forfeit, first" or row[1] == "first, scripted:1 forfeit"
    assert row[2] in ("+1 : −1", "−1 : +1")
    assert set(page.values("data-agents")) == {"0 1", "1 0"}


def test_a_list_of_hostile_names() -> None:
    many = [Listed("f" * 32, (k, 0), (1.0, -1.0), (1,), True, 9, 2**62, 1.7e9, 1) for k in range(len(HOSTILE))]
    text = games_page(made(HOSTILE, section(HOSTILE, HOSTILE[0])), 1, many, {"f" * 32})
    page = Page(text)
    page.assert_harmless()
    assert page.tags.count("script") == 1
    assert page.text.count("truncated") == len(HOSTILE)
    assert not re.search("[\u202e\u200b\x1b\x00]", text)
