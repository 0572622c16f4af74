import re
from pathlib import Path
from typing import Any

from arena.tournaments.board import Board
from arena.tournaments.config import dump, parse
from arena.tournaments.leaderboard import html, write_html
from arena.tournaments.report import board
from arena.tournaments.store import Store
from tests.tournaments.played import played
from tests.tournaments.site.parsed import HOSTILE, Page

FOUR = ["TicTacToe", "KuhnPoker", "Arithmetic", "LiarsDice?players=3"]


def shown(folder: Path, **change: Any) -> Board:
    played(folder, **{"games": ["TicTacToe"], "agents": ["random", "first"], "blocks": 3, **change})
    with Store.open(folder) as store:
        return board(store)


def test_the_page_is_whole_and_alone(tmp_path: Path) -> None:
    text = html(shown(tmp_path, games=FOUR))
    page = Page(text)
    page.assert_harmless()
    assert "script" not in page.tags
    assert not re.search(r"https?://|//[a-z]|url\(|@import", re.sub(r"sha256-[\w+/=]+", "", text))
    assert {value[0] for value in page.values("href")} == {"#"}
    assert {value[1:] for value in page.values("href")} <= set(page.values("id"))


def test_names_are_text(tmp_path: Path) -> None:
    agents = [{"spec": f"scripted:{number}", "name": name} for number, name in enumerate(HOSTILE, 1)]
    page = Page(html(shown(tmp_path, games=FOUR, agents=agents, blocks=1, name=HOSTILE[0])))
    page.assert_harmless()
    assert "script" not in page.tags
    for name in HOSTILE:
        assert name[:190] in page.text or name.encode("unicode_escape").decode() in page.text


def test_what_the_page_says(tmp_path: Path) -> None:
    board = shown(tmp_path, games=FOUR[:3], seed=40, name="Cup")
    text = Page(html(board)).text
    assert "Cup: leaderboard" in text
    assert "18 of 18 games finished" in text
    for section in board.sections:
        assert section.label in text
        for row in section.rows:
            told = f"{row.value:.0f} ± {row.half:.0f}" if section.rated else f"{row.value:.3f}"
            assert told.replace("-", "−") in text
    assert "40 to 42" in text
    assert "tournament.toml" in text
    assert dump(board.tournament) in text
    assert re.search(r"\d+ %n=6", text)


def test_how_agents_answered_is_told_where_there_is_anything_to_tell(tmp_path: Path) -> None:
    assert "How they answered" not in html(shown(tmp_path / "plain"))
    wrong = Page(html(shown(tmp_path / "wrong", agents=["first", "scripted:99"]))).text
    assert "How they answered" in wrong
    assert "Tokens in" not in wrong
    board = shown(tmp_path / "model", agents=["first", "modelled"], referee={"retries": 1})
    page = Page(html(board))
    page.assert_harmless()
    for told in (f"{board.conduct[1].prompt_tokens:,}", f"${board.conduct[1].cost:.2f}", "75 %", "Unreadable"):
        assert told in page.text
    assert re.search(r"retries \d+, unreadable [\d.]+ %, cut [\d.]+ %, tokens in [\d,]+, cached 75 %", page.text)


def test_an_empty_run_has_a_page(tmp_path: Path) -> None:
    asked = parse({"games": ["TicTacToe", "Arithmetic"], "agents": ["random", "first"]})
    Store.resume(tmp_path, asked).close()
    with Store.open(tmp_path) as store:
        path = write_html(board(store), tmp_path / "deep" / "page.html")
    text = Page(path.read_text(encoding="utf-8")).text
    assert text.count("No game is finished yet.") == 2
    assert "nan" not in text
