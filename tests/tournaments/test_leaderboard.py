import html as markup
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from arena.tournaments.board import Board
from arena.tournaments.config import dump, parse
from arena.tournaments.leaderboard import _pieces, html, write_html
from arena.tournaments.report import board
from arena.tournaments.runner import run
from arena.tournaments.store import Store

HOSTILE = [
    "<script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=\'owned\'">',
    "'; DROP TABLE games; --",
    "</style><style>*{display:none}</style>",
    "{{ 7 * 7 }} {% raw %}",
    "&lt;b&gt; ‮ right to left",
    "a" * 300,
]


def shown(folder: Path, **change: Any) -> Board:
    asked = parse({"games": ["TicTacToe"], "agents": ["random", "first"], "blocks": 3, **change})
    with Store.resume(folder, asked) as store:
        run(asked, store)
    with Store.open(folder) as store:
        return board(store)


def hostile(folder: Path, *more: str) -> Board:
    agents = [{"spec": f"scripted:{number}", "name": name} for number, name in enumerate([*HOSTILE, *more], 1)]
    games = ["TicTacToe", "KuhnPoker", "Arithmetic", "LiarsDice?players=3"]
    return shown(folder, games=games, agents=agents, blocks=1, name="<script>document.title='owned'</script>")


class Page(HTMLParser):
    """The tags, attributes and text of a page."""

    VOID = ("meta", "br", "link", "wbr")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_is_whole_and_alone(tmp_path: Path) -> None:
    text = html(shown(tmp_path, games=["TicTacToe", "KuhnPoker", "Arithmetic", "LiarsDice?players=3"]))
    page = Page(text)
    assert page.open == []
    assert not {"script", "img", "iframe", "object", "link", "base", "form"} & set(page.tags)
    assert not re.search(r"https?://|//[a-z]|url\(|@import", text)
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in ("style", "src")]
    assert {value[0] for name, value in page.attributes if name == "href"} == {"#"}
    ids = {value for name, value in page.attributes if name == "id"}
    assert {value[1:] for name, value in page.attributes if name == "href"} == ids


def test_the_policy_allows_its_own_style_and_nothing_else(tmp_path: Path) -> None:
    import base64
    import hashlib

    text = html(shown(tmp_path))
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = markup.unescape(re.findall(r'Content-Security-Policy" content="(.*?)"', text)[0])
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_names_are_text(tmp_path: Path) -> None:
    page = Page(html(hostile(tmp_path)))
    assert page.open == []
    assert not {"script", "img", "b"} & set(page.tags)
    assert page.tags.count("style") == 1
    for name in HOSTILE:
        assert name in page.text


def test_what_the_page_says(tmp_path: Path) -> None:
    board = shown(tmp_path, games=["TicTacToe", "KuhnPoker", "Arithmetic"], seed=40, name="Cup")
    text = Page(html(board)).text
    assert "Cup: leaderboard" in text
    assert "15 of 18 games finished" in text or "18 of 18 games finished" in text
    whole = board.overall
    assert whole is not None
    assert whole.ratings is not None
    for elo, half in zip(whole.ratings.elo, whole.ratings.half, strict=True):
        assert re.search(rf"{elo:.0f} ± {half:.0f}".replace("-", "−"), text)
    assert "The first seat is worth" in text
    assert "One seat: every agent played the same seeds alone." in text
    assert "40 to 42" in text
    assert f"arena tournament run {tmp_path}/tournament.toml --out {tmp_path}-again" in text
    assert dump(board.tournament) in text
    assert re.search(r"\d+ %n=12", text)


def test_how_agents_answered_is_told_where_there_is_anything_to_tell(tmp_path: Path) -> None:
    assert "How they answered" not in html(shown(tmp_path / "plain"))
    wrong = Page(html(shown(tmp_path / "wrong", agents=["first", "scripted:99"]))).text
    assert "How they answered" in wrong
    assert "Tokens in" not in wrong
    board = shown(tmp_path / "model", agents=["first", "modelled"], referee={"retries": 1})
    page = Page(html(board))
    assert page.open == []
    for told in (f"{board.conduct[1].prompt_tokens:,}", f"${board.conduct[1].cost:.2f}", "75 %", "Unreadable"):
        assert told in page.text
    assert re.search(r"retries \d+, unreadable [\d.]+ %, cut [\d.]+ %, tokens in [\d,]+, cached 75 %", page.text)


def test_names_break_at_their_joints_only() -> None:
    assert _pieces("mcts?simulations=50&c=2") == ["mcts?", "simulations=", "50&", "c=", "2"]
    assert _pieces("two words") == ["two words"]
    for name in [*HOSTILE, "?", "a??b", "=\n="]:
        assert "".join(_pieces(name)) == name
    assert max(map(len, _pieces("a" * 300))) < 30


def test_the_page_shows_ties_and_what_is_not_known(tmp_path: Path) -> None:
    agents = ["scripted:a", "scripted:b"]
    text = html(shown(tmp_path, games=["Arithmetic"], agents=agents, blocks=2))
    assert text.count('<td class="rank">1</td>') == 2
    assert text.count('<span class="plus">–</span>') == 2
    assert "<span>mean return</span>" in text
    assert "scripted:a</td>" in text
    assert "−0" not in text


def test_an_empty_run_has_a_page(tmp_path: Path) -> None:
    asked = parse({"games": ["TicTacToe", "Arithmetic"], "agents": ["random", "first"]})
    Store.resume(tmp_path, asked).close()
    with Store.open(tmp_path) as store:
        path = write_html(board(store), tmp_path / "deep" / "page.html")
    text = Page(path.read_text(encoding="utf-8")).text
    assert text.count("No game is finished yet.") == 2
    assert "nan" not in text


def dumped(page: Path, folder: Path, *flags: str) -> str:
    """The page's DOM once a real Chromium has loaded it."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert chromium is not None, "install chromium: .ci/apt chromium"
    still = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    command = [chromium, *still, f"--user-data-dir={folder}/profile", *flags, "--dump-dom", page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.fixture
def listener() -> Iterator[tuple[str, list[str]]]:
    """A local server's address, and the paths it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


@pytest.mark.browser
def test_names_are_inert_in_a_browser_and_nothing_is_requested(tmp_path: Path, listener: tuple[str, list[str]]) -> None:
    address, asked = listener
    lure = f'<img src="{address}/lure.png">'
    (tmp_path / "control.html").write_text(lure)
    dumped(tmp_path / "control.html", tmp_path)
    assert asked == ["/lure.png"], "the server hears what is requested"
    dom = dumped(write_html(hostile(tmp_path, lure), tmp_path / "page.html"), tmp_path)
    page = Page(dom)
    assert page.open == []
    title = "&lt;script&gt;document.title='owned'&lt;/script&gt;: leaderboard"
    assert re.findall(r"<title>(.*?)</title>", dom) == [title]
    assert not {"script", "img"} & set(page.tags)
    for name in [*HOSTILE, lure]:
        assert name in page.text
    assert asked == ["/lure.png"]


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1200])
def test_the_page_is_no_wider_than_its_screen(width: int, tmp_path: Path) -> None:
    write_html(hostile(tmp_path), tmp_path / "page.html")
    frame = tmp_path / "frame.html"
    frame.write_text(
        f"""<iframe src="page.html" style="width:{width}px;height:900px;border:0"
        onload="document.title = 'width ' + this.contentDocument.documentElement.scrollWidth"></iframe>"""
    )
    dom = dumped(frame, tmp_path, "--allow-file-access-from-files", "--hide-scrollbars")
    assert f"<title>width {width}</title>" in dom
