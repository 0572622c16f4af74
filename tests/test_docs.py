"""The gallery says what the code says."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from arena.registry import game_ids, load, make_game, options_of
from tests.repository import ROOT

CHANGES = """
## [0.2.0]
- Chess-v1: stalemate is a draw.
- Chess-v1: so is bare king against bare king.
- ChessLike-v0: new.
## [0.1.0]
- Chess-v0: first rules.
"""


@pytest.fixture(scope="module")
def gallery() -> ModuleType:
    """The hook, loaded as MkDocs does: from its file."""
    spec = importlib.util.spec_from_file_location("gallery_hook", ROOT / "docs" / "gallery.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _cells(page: str, option: str) -> list[str]:
    """The row of an option in the table."""
    row = next(line for line in page.splitlines() if line.startswith(f"| `{option}` |"))
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]


@pytest.mark.parametrize("game_id", game_ids())
def test_a_page_tells_rules_options_and_a_position(gallery: ModuleType, game_id: str) -> None:
    page = gallery.page(game_id, "")
    assert page.startswith(f"# {game_id}\n")
    assert make_game(game_id, gallery.SEED).rules(0) in page
    told = {name: _cells(page, name) for name in options_of(load(game_id))}
    assert all(len(cells) == 4 and len(cells[3]) > 10 for cells in told.values()), told
    assert not re.search(r"rng|ValueError|:class:|bitboard|9-bit", page.partition("## A position")[0])
    assert f'gym.make("arena/{game_id}")' in page
    assert "What player " in page
    assert f"**{game_id}**" in page
    assert len(re.findall(r"^```", page, re.MULTILINE)) % 2 == 0


def test_every_game_is_in_the_table(gallery: ModuleType) -> None:
    rows = [line for line in gallery.index().splitlines() if line.startswith("| [")]
    assert [row.partition("]")[0].removeprefix("| [").replace("<wbr>", "") for row in rows] == list(game_ids())
    assert "Iterated<wbr>Prisoners<wbr>Dilemma-v0" in gallery.index()  # no word too wide for a phone
    assert {row.count("|") - row.count("\\|") for row in rows} == {4}
    assert all(re.search(r"\| \d+( or more)? \| \w.+\.<br><small>[\w, ]+</small> \|$", row) for row in rows)
    assert not re.search("[Bb]itboard|9-bit|python-chess", gallery.index())


def test_pages_are_the_same_every_time(gallery: ModuleType) -> None:
    assert gallery.pages("") == gallery.pages("")
    assert set(gallery.pages("")) == {"games/index.md", *(f"games/{i}.md" for i in game_ids())}


def test_history_comes_from_the_changelog_newest_first(gallery: ModuleType) -> None:
    newest, oldest = gallery.history("Chess-v1", CHANGES).splitlines()
    assert newest == "- **Chess-v1** stalemate is a draw.; so is bare king against bare king."
    assert oldest == "- **Chess-v0** first rules."
    assert gallery.history("ChessLike-v0", CHANGES) == "- **ChessLike-v0** new."
    assert gallery.history("Go-v0", CHANGES) == "- **Go-v0** as described here"


def test_text_cannot_end_its_code_block(gallery: ModuleType) -> None:
    assert gallery.fenced("a\n```\n# not a heading") == "````text\na\n```\n# not a heading\n````"


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_what_fences_a_block_is_known_to_the_site(path: Path) -> None:
    """MkDocs takes a fence with two words for text, and all up to the next fence with it."""
    fences = re.findall(r"^ *```(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(fences) % 2 == 0
    assert [fence for fence in fences if not re.fullmatch(r"\w*", fence)] == []
