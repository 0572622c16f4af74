import re
from typing import Any

import pytest

from arena.tournaments.board import AgentTotals, Board, Section
from arena.tournaments.conduct import Conduct
from arena.tournaments.site.pages import HEAT, Download, links, one_page, page, parts
from tests.tournaments.site.boards import board, section
from tests.tournaments.site.parsed import HOSTILE, Page

NAMES = ["ann", "bob", "cy"]


def two() -> Board:
    return board(NAMES, section(NAMES), section(NAMES, "ConnectFour-v0"))


def test_the_pages_there_are() -> None:
    assert [(part.key, part.kind) for part in parts(board(NAMES))] == [("index", "section"), ("method", "method")]
    assert [part.key for part in parts(two())] == ["index", "game-1", "game-2", "method"]
    bare = board(NAMES, section(NAMES), section(NAMES, "B"), overall=None)
    assert [part.kind for part in parts(bare)] == ["agents", "section", "section", "method"]
    with pytest.raises(KeyError):
        page(board(NAMES), "game-1")


def test_tabs_lead_to_every_page_and_say_where_one_is() -> None:
    tabs = links(two(), "game-1", games=True)
    assert [tab.address for tab in tabs] == [
        "index.html",
        "game-1.html",
        "game-2.html",
        "games-1.html",
        "method.html",
    ]
    assert [tab.title for tab in tabs if tab.here] == ["TicTacToe-v0"]
    assert "games-1.html" not in [tab.address for tab in links(two(), "index", games=False)]
    assert [tab.here for tab in links(two(), "games-2", games=True)] == [False, False, False, True, False]


@pytest.mark.parametrize("key", ["index", "game-1", "game-2", "method"])
def test_pages_are_whole_and_hold_no_script(key: str) -> None:
    shown = Page(page(two(), key, games=True, downloads=[Download("ratings.csv", "x")]))
    shown.assert_harmless()
    assert "script" not in shown.tags
    assert "script-src" not in shown.policy()
    ids = set(shown.values("id"))
    assert len(ids) == shown.values("id").__len__()
    for address in shown.values("href"):
        assert address.startswith(("index", "game", "method", "ratings.csv"))


def test_everything_on_one_page_has_anchors_for_its_tabs() -> None:
    shown = Page(one_page(two()))
    shown.assert_harmless()
    assert {address[1:] for address in shown.values("href")} <= set(shown.values("id"))
    assert {address[0] for address in shown.values("href")} == {"#"}
    assert "Games and replays" not in shown.text


def test_what_the_first_page_says() -> None:
    text = page(two(), "index", games=True)
    shown = Page(text)
    assert "1,234 of 2,000 games finished, 3 agents, 2 games, 2 void attempts" in shown.text
    overall = two().overall
    assert overall is not None
    first = overall.rows[0]
    (row,) = [row for row in shown.rows if row[0] == "1–2" and row[1].startswith("ann")]
    assert f"{first.value:.0f} ± {first.half:.0f}" in row[2].replace("−", "-")
    assert row[4:] == ["50 %", "a", "8", "4 / 2 / 2", "0", "0", "9.1 %", "132", "$1.25", "0.5 s / 2.2 s"]
    for said in (
        "Something to know.",
        "2 × ConnectionError: not today",
        "This is history, not the rating",
        "13.4 % of what is seen",
        "chance alone would make it 5.4 %",
        "That is more than chance",
        "Nash weight",
        "Maximal lottery",
        "2023-11-14 22:13 to 2023-11-14 22:52 UTC",
    ):
        assert said in shown.text
    assert ["ann against bob", "40", "71 %", "50 %", "−4.2"] in shown.rows
    assert ["TicTacToe-v0", "first seat", "35 ± 12", "55 %", "12"] in shown.rows
    assert ["1", "ann", "1"] in shown.rows
    assert "3 : 1" in shown.text
    assert "nan" not in shown.text


def test_the_page_of_a_game() -> None:
    shown = Page(page(two(), "game-1", games=True))
    assert "Games and replays" in shown.text
    assert "games-1.html#a=0&b=2" in shown.values("href")
    assert ["bob", "25 %n=4", "", "75 %n=4"] in shown.rows
    assert "games-1.html#a=0&b=2" not in Page(page(two(), "index", games=True)).values("href")
    assert not [address for address in Page(page(two(), "game-1")).values("href") if address.startswith("games")]


def test_the_method_page_tells_how_to_get_it_again() -> None:
    shown = Page(page(two(), "method"))
    for said in ("0 to 9", "arena 0.1.0", "store schema 4", "round-robin, 10 blocks", "arena tournament run x", "Cup"):
        assert said in shown.text
    assert "win : draw : loss  =  exp(d / 2) : exp(c) : exp(−d / 2)" in shown.text
    assert "One fit in which every game has the same weight" in shown.text
    assert "Plackett" not in shown.text
    kinds: list[Any] = ["ranked", "teams", "tasks", "scores", "overall"]
    every = board(NAMES, *[section(NAMES, kind=kind) for kind in kinds], overall=None, tournament=two().tournament)
    told = Page(page(every, "method")).text
    for said in ("Plackett", "Rasch", "sum of its members", "seed by seed"):
        assert said in told


def test_columns_that_nobody_has_anything_in_are_left_out() -> None:
    bare = section(NAMES, beside=None, curve=None, sides=[])
    quiet = {
        "forfeits": 0,
        "voids": 0,
        "conduct": Conduct(40, 40),
        "best": None,
        "letters": "",
        "p50": None,
        "p95": None,
    }
    for row in bare.rows:
        for name, value in quiet.items():
            object.__setattr__(row, name, value)
    shown = Page(page(board(NAMES, bare, voids=0, void_reasons=[])))
    heads = next(row for row in shown.rows if row[0] == "Rank")
    assert heads[1:3] + heads[4:] == ["Agent", "Elo ± 95 %", "Games", "W / D / L"]
    for said in ("How it went", "What one number", "What a seat", "Why attempts"):
        assert said not in shown.text


def test_mean_returns_and_what_is_not_known() -> None:
    plain = section(
        NAMES, ratings=None, pairs=[], kind="scores", seats=1, zero="the least return", sides=[], beside=None
    )
    object.__setattr__(plain.rows[0], "half", None)
    shown = Page(page(board(NAMES, plain)))
    assert "Mean return ± 95 %" in shown.text
    assert "One seat: every agent played the same seeds alone." in shown.text
    assert "0 is the least return" in shown.text
    (row,) = [row for row in shown.rows if len(row) > 4 and row[1].startswith("ann")]
    assert (row[0], row[2][-1]) == ("1", "–")
    assert "Who beats whom" not in shown.text


def test_what_is_against_a_section_is_told() -> None:
    odd = section(NAMES, groups=2, dropped=3, truncated=5, voids=7)
    text = Page(page(board(NAMES, odd))).text
    for said in ("5 of them truncated", "3 truncated ones are left out", "7 void attempts", "2 groups never met"):
        assert said in text


def test_an_empty_run_has_pages() -> None:
    empty = [Section("TicTacToe-v0", 2), Section("ConnectFour-v0", 2)]
    none = board(NAMES, *empty, overall=None, standings=[], method=None, notes=[], finished=0)
    for part in parts(none):
        shown = Page(page(none, part.key, games=True))
        shown.assert_harmless()
    assert Page(one_page(none)).text.count("No game is finished yet.") == 2


@pytest.mark.parametrize(
    "render", [lambda b: page(b, games=True, live="events"), one_page, lambda b: page(b, "method")]
)
def test_hostile_text_is_text(render: Any) -> None:
    sections = [section(HOSTILE, label) for label in HOSTILE[:2]]
    totals = [AgentTotals(name, 1, 1, 1) for name in HOSTILE]
    bad = board(
        HOSTILE, *sections, agents=totals, notes=HOSTILE, void_reasons=[(name, 1) for name in HOSTILE],
        versions=dict.fromkeys(HOSTILE, "<b>"), toml="</pre>" + HOSTILE[0],
    )  # fmt: skip
    text = render(bad)
    shown = Page(text)
    shown.assert_harmless()
    assert shown.tags.count("script") == (1 if "data-live" in text else 0)
    assert not re.search("[\u202e\u200b\x1b\x00]", text)


def test_names_are_shown_whole_but_for_what_hides() -> None:
    shown = Page(page(board(HOSTILE)))
    for name in HOSTILE:
        assert name[:190].encode("unicode_escape").decode() in shown.text or name in shown.text


def test_a_wide_field_has_a_heat_map_of_its_best() -> None:
    names = [f"agent {k}" for k in range(HEAT + 5)]
    wide = section(names[:3])
    wide.rows = [wide.rows[0]] * len(names)
    wide.pairs = [[None] * len(names)] * len(names)
    shown = Page(page(board(names, wide)))
    assert f"The first {HEAT} of {HEAT + 5} agents" in shown.text
    assert max(map(len, shown.rows)) == HEAT + 1


def test_downloads_that_are_missing_say_why() -> None:
    offered = [Download("ratings.csv", "every table"), Download("", "games.parquet needs pyarrow")]
    shown = Page(page(board(NAMES), downloads=offered))
    assert "ratings.csv" in shown.values("href")
    assert "Not here" in shown.text
    assert "games.parquet needs pyarrow" in shown.text


def test_a_live_page_listens_to_its_own_server_alone() -> None:
    shown = Page(page(board(NAMES), live="events?run=1"))
    assert shown.values("data-live") == ["events?run=1"]
    assert "connect-src 'self'" in shown.policy()
    assert shown.tags.count("script") == 1
    assert "asks its own server" in shown.text


def test_the_page_of_a_game_has_its_own_notes() -> None:
    notes = ["TicTacToe-v0: odd", "ConnectFour-v0: even", "Of all games."]
    both = board(NAMES, section(NAMES), section(NAMES, "ConnectFour-v0"), notes=notes)
    shown = {key: Page(page(both, key)).text for key in ("index", "game-1", "game-2", "method")}
    assert [[note in shown[key] for note in notes] for key in ("index", "method")] == [[True] * 3] * 2
    assert [note in shown["game-1"] for note in notes] == [True, False, True]
    assert [note in shown["game-2"] for note in notes] == [False, True, True]


def test_what_a_heat_map_holds_depends_on_what_is_compared() -> None:
    told = {
        "pairs": "Score of the row against the column",
        "ranked": "came before the column",
        "teams": "the row’s team",
        "tasks": "on the same tasks",
    }
    for kind, words in told.items():
        shown = Page(page(board(NAMES, section(NAMES, kind=kind)), games=True))
        assert words in shown.text
    alone = Page(page(board(NAMES, section(NAMES, kind="tasks", seats=1)), games=True))
    assert "Solved / not" in alone.text
    assert "What a seat is worth" not in alone.text
    assert not [address for address in alone.values("href") if "#a=" in address], "they never meet in a game"


def test_many_notes_fold_and_few_do_not() -> None:
    many, few = [f"note {number}" for number in range(3)], ["note 0"]
    folded = Page(page(board(NAMES, notes=many)))
    assert "3 notes to read before" in folded.text
    assert "details" in folded.tags
    assert "note 2" in folded.text
    assert "notes to read before" not in Page(page(board(NAMES, notes=few))).text
