import base64
import hashlib
import json
import re

import pytest

from arena.tournaments.site.look import embedded, number, pieces, policy, render, signed, visible
from tests.tournaments.site.parsed import HOSTILE, Page


def digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@pytest.mark.parametrize("text", [*HOSTILE, "\ud800 lone", "<!--<script>", "a\u2028b", ""])
def test_embedded_data_stays_in_its_element_and_comes_back(text: str) -> None:
    data = {"a": [text, {text: 1.5}], "b": None}
    written = embedded(data)
    assert json.loads(written) == data
    assert written.isascii()
    assert not re.search("[<>&]", written)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_json_has_not_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        embedded(value)


def test_what_hides_is_written_as_an_escape() -> None:
    assert visible("a\u200bb\u202e\x00\n") == r"a\u200bb\u202e\x00\n"
    assert visible("plain ☃ עברית") == "plain ☃ עברית"
    assert visible("x" * 300) == "x" * 199 + "…"
    assert visible("\ud800") == r"\ud800"
    for name in HOSTILE:
        assert visible(name, 1000).isprintable()


def test_names_break_at_their_joints_only() -> None:
    assert pieces("mcts?simulations=50&c=2") == ["mcts?", "simulations=", "50&", "c=", "2"]
    assert pieces("two words") == ["two ", "words"]
    for name in [*HOSTILE, "?", "a??b", "=\n=", ""]:
        assert "".join(pieces(name)) == name
    assert max(map(len, pieces("a" * 300))) < 30


def test_numbers() -> None:
    assert [number(x, d) for x, d in ((-0.4, 0), (1234.5, 0), (-3.14159, 2))] == ["0", "1234", "−3.14"]
    assert [signed(x) for x in (2.0, -0.25, 0.0)] == ["+2", "−0.25", "0"]


def test_the_policy_allows_this_style_and_these_scripts_and_nothing_else() -> None:
    assert policy("s") == f"default-src 'none'; style-src '{digest('s')}'; base-uri 'none'; form-action 'none'"
    both = policy("s", "a", "b", live=True)
    assert f"script-src '{digest('a')}' '{digest('b')}'; connect-src 'self'; base-uri" in both
    assert "unsafe" not in both


def test_a_page_holds_what_its_policy_names() -> None:
    text = render("base.html.j2", styles=["replay.css"], scripts=["board.js", "games.js"], live="events")
    page = Page(text)
    page.assert_harmless()
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(scripts) == 3
    assert page.policy() == policy(style, *scripts, live=True)
    assert page.values("data-live") == ["events"]
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|url\(|@import|\beval\b|innerHTML|insertAdjacent", text)


def test_a_lone_surrogate_can_be_written() -> None:
    assert render("base.html.j2", live="\ud800").encode()
