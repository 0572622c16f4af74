"""The pages in a real Chromium, from disk, at the width of a desktop and of a phone."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from arena.episode import Attempt, Episode
from arena.game import replace
from arena.tournaments.site import page, write_site
from arena.tournaments.store import Store
from tests.tournaments.played import played
from tests.tournaments.site.boards import board, section
from tests.tournaments.site.browser import Tab, browser
from tests.tournaments.site.parsed import HOSTILE
from tests.tournaments.site.serving import served

pytestmark = pytest.mark.browser

WIDTHS = (1280, 390)
BIG = "<b>big</b>\u202e\u200b" + "never breaks" * 90_000
GAMES = ["TicTacToe", "ConnectFour", "KuhnPoker", "Arithmetic", "Chess?fen=4k3/P7/8/8/8/8/8/4K2R w K - 0 1"]


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def spoiled(number: int, episode: Episode) -> Episode:
    """The episode with everything in it that a player may write."""
    if number % 7:
        return episode
    turn = episode.turns[0]
    raw = HOSTILE[number % len(HOSTILE)]
    bad = Attempt(BIG if number % 2 else raw, "illegal", raw, reasoning="\n".join(HOSTILE), latency=1.25)
    turn.attempts = (bad, *turn.attempts)
    return replace(episode, gaps=(raw,))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of hostile players."""
    out = tmp_path_factory.mktemp("site")
    agents = [{"spec": "random", "name": HOSTILE[0]}, {"spec": "first", "name": HOSTILE[5]}]
    agents += [{"spec": f"scripted:{k}", "name": name} for k, name in enumerate(HOSTILE[6:8] + HOSTILE[3:4])]
    played(out / "run", spoiled, games=GAMES, agents=agents, blocks=1, name=HOSTILE[1], max_turns=30)
    with Store.open(out / "run") as store:
        write_site(store, out / "site", games=12)
    return out / "site"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of well-behaved players, with a replay of every game."""
    out = tmp_path_factory.mktemp("plain")
    played(
        out / "run",
        games=["TicTacToe", "ConnectFour", "KuhnPoker"],
        agents=["first", "random", "scripted:7"],
        blocks=10,
    )
    with Store.open(out / "run") as store:
        write_site(store, out / "site", games=None, files=False)
    return out / "site"


async def assert_quiet(tab: Tab, address: str, width: int) -> None:
    """Nothing is wider than the screen, nothing complains, and nothing else is asked for."""
    shown = await tab.run("[document.documentElement.scrollWidth, document.title, document.images.length]")
    assert shown[0] == width, f"{address} is {shown[0]} wide on {width}"
    assert shown[1] != "owned"
    assert shown[2] == 0
    assert tab.complaints == []
    assert tab.requests == [address.partition("#")[0]], f"{address} asks for {tab.requests}"


def replays(folder: Path, marker: str, section: int) -> list[str]:
    """Addresses of games whose pages hold the marker, of one list of games."""
    listed = (folder / f"games-{section}.html").read_text(encoding="utf-8")
    found = [path for path in sorted((folder / "game").iterdir()) if path.name in listed]
    return [path.as_uri() for path in found if marker in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("dark", [False, True])
def test_pages_fit_complain_of_nothing_and_ask_for_nothing(folder: Path, dark: bool) -> None:
    async def look() -> None:
        async with browser() as tab:
            for width in WIDTHS:
                await tab.sized(width, dark=dark)
                for path in [*sorted(folder.glob("*.html")), *sorted((folder / "game").iterdir())[:4]]:
                    for place in ("", "#1", "#9999", "#2,1") if path.parent.name == "game" else ("",):
                        await tab.open(path.as_uri() + place)
                        await assert_quiet(tab, path.as_uri(), width)

    run(look())


def test_what_breaks_the_policy_is_heard(folder: Path, tmp_path: Path) -> None:
    async def look() -> None:
        async with browser() as tab:
            await tab.sized(1280)
            await tab.open((folder / "index.html").as_uri())
            assert tab.complaints == []
            await tab.run("document.body.append(Object.assign(document.createElement('script'), {text: 'x = 1'}))")
            await tab.run("document.body.insertAdjacentHTML('beforeend', '<img src=\"lure.png\">')")
            await tab.run("new Promise(done => setTimeout(done, 200))")
            assert "script" in " ".join(tab.complaints)
            assert "image" in " ".join(tab.complaints)
            assert await tab.run("typeof x") == "undefined"

    run(look())


def test_a_game_is_walked_through_by_keys_buttons_slider_and_links(plain: Path) -> None:
    async def look() -> None:
        async with browser() as tab:
            await tab.sized(1280)
            address = replays(plain, '"own":true', 1)[0]
            await tab.open(address)
            assert await tab.text("#where") == "Start"
            assert "Rules, as told to seat 0" in await tab.text("#turns")
            last = int(await tab.run("document.getElementById('slider').max"))
            for _ in range(2):
                await tab.press("ArrowRight")
            assert (await tab.text("#where")).startswith("Ply 2 of")
            assert await tab.run("location.hash") == "#2"
            assert "The referee read: legal" in await tab.text("#turns")
            assert await tab.run("document.querySelectorAll('.board .new').length") == 1
            await tab.press("ArrowLeft")
            assert (await tab.text("#where")).startswith("Ply 1 of")
            await tab.press("End")
            assert await tab.run("location.hash") == f"#{last}"
            assert "Outcome: terminated" in await tab.text("#turns")
            assert await tab.run("document.getElementById('on').disabled")
            await tab.press("ArrowRight")
            assert await tab.run("location.hash") == f"#{last}"
            await tab.press("Home")
            assert await tab.text("#where") == "Start"
            await tab.run("document.getElementById('on').click()")
            assert await tab.run("location.hash") == "#1"
            slide = "document.getElementById('slider'); s.value = 3; s.dispatchEvent(new Event('input'))"
            await tab.run(f"{{ const s = {slide} }}")
            assert await tab.run("location.hash") == "#3"
            await tab.open(address + "#2,1")
            assert (await tab.text("#where")).startswith("Ply 2 of")
            assert "Seat 1, shown at ply 1" in await tab.text("#table")
            assert "You are O" in await tab.text("#table")
            await tab.run("location.hash = '#1,1'")
            await tab.run("new Promise(done => setTimeout(done, 100))")
            assert "its rules; it was shown nothing yet" in await tab.text("#table")
            assert "was not asked here" in await tab.text("#turns")
            pick = "const s = document.getElementById('seat'); s.value = ''; s.dispatchEvent(new Event('change'))"
            await tab.run(f"{{ {pick} }}")
            assert await tab.run("location.hash") == "#1"
            assert await tab.run("document.querySelectorAll('#table svg').length") == 1
            assert tab.complaints == []

    run(look())


def test_a_game_is_walked_through_by_touch(plain: Path) -> None:
    async def look() -> None:
        async with browser() as tab:
            await tab.sized(390)
            await tab.open(replays(plain, '"own":true', 2)[0])
            for across, expected in ((-120, "#1"), (-120, "#2"), (120, "#1"), (-15, "#1")):
                await tab.swipe("#where", across)
                assert await tab.run("location.hash") == expected, across
            assert tab.complaints == []

    run(look())


def test_boards_are_drawn_as_the_game_says(plain: Path, folder: Path) -> None:
    async def look() -> None:
        async with browser() as tab:
            await tab.sized(1280)
            await tab.open(replays(plain, '"holes"', 2)[0] + "#9999")
            assert await tab.run("document.querySelectorAll('.board .hole').length") == 42
            discs = await tab.run("document.querySelectorAll('.board .disc').length")
            told = await tab.run("document.querySelector('.board').getAttribute('aria-label')")
            assert discs == told.count("X") + told.count("O")
            assert discs >= 4
            await tab.open(replays(folder, "\\u2654", 5)[0])
            assert await tab.run("document.querySelectorAll('.board .piece.o0').length") == 3
            assert await tab.run("document.querySelectorAll('.board .piece.o1').length") == 1
            assert await tab.run("document.querySelectorAll('.board .dark').length") == 32
            await tab.open(replays(plain, "[player 0]", 3)[0] + "#1")
            assert "[player 1]" in await tab.text("#table")

    run(look())


def test_hostile_and_endless_replies_are_text(folder: Path) -> None:
    async def look() -> None:
        async with browser() as tab:
            addresses = [path.as_uri() for path in (folder / "game").iterdir() if len(path.read_bytes()) > 1_000_000]
            assert addresses, "a game with the endless reply is among those that are shown"
            for width in WIDTHS:
                await tab.sized(width)
                await tab.open(addresses[0] + "#1")
                said = "document.querySelector('#turns .said:not(.thought)')"
                assert await tab.run(f"{said}.textContent.length") < 4100
                assert (await tab.run(f"{said}.textContent")).startswith("<b>big</b>U+202EU+200B")
                assert "Show all 1,080,012 characters" in await tab.text("#turns")
                thought = await tab.run("document.querySelector('.thought').textContent")
                assert "<script>document.title='owned'</script>" in thought
                assert "U+001B[31mU+0000" in thought
                await tab.run("document.querySelector('#turns button').click()")
                assert await tab.run(f"{said}.textContent.length") > len(BIG)
                await assert_quiet(tab, addresses[0], width)

    run(look())


def test_the_list_of_games_is_searched_and_paged(plain: Path) -> None:
    async def look() -> None:
        async with browser() as tab:
            await tab.sized(1280)
            address = (plain / "games-1.html").as_uri()
            rows = "document.querySelectorAll('#games tbody tr:not([hidden])').length"
            await tab.open(address)
            assert await tab.run(rows) == 50
            assert await tab.text("#page") == "1–50 of 60"
            await tab.run("document.getElementById('on').click()")
            assert await tab.run(rows) == 10
            assert await tab.text("#page") == "51–60 of 60"
            await tab.run("location.hash = '#a=0&b=1'")
            await tab.run("new Promise(done => setTimeout(done, 100))")
            assert await tab.run(rows) == 20
            texts = await tab.run(
                "[...document.querySelectorAll('#games tbody tr:not([hidden])')].map(r => r.innerText)"
            )
            assert all("first" in text and "random" in text for text in texts)
            await tab.open(address + "#q=forfeit")
            forfeits = await tab.run(rows)
            assert 0 < forfeits < 60
            await tab.open(address + "#q=nobody")
            assert await tab.run("document.getElementById('none').hidden") is False
            await tab.open(address + "#a=99&q=")
            assert await tab.text("#page") == "1–50 of 60"
            assert tab.complaints == []

    run(look())


def test_without_scripts_the_pages_still_tell(plain: Path) -> None:
    async def look() -> None:
        async with browser() as tab:
            await tab.sized(390)
            await tab.call("Emulation.setScriptExecutionDisabled", value=True)
            await tab.open((plain / "games-1.html").as_uri())
            count = "document.querySelectorAll('#games tbody tr:not([hidden])').length"
            assert await tab.run(count) == 60
            assert await tab.run("document.querySelector('.tools').hidden")
            await tab.open(replays(plain, '"own":true', 1)[0])
            assert "arena show RUN" in await tab.text("main")

    run(look())


def test_a_live_page_shows_what_has_changed() -> None:
    finished, listening = [10], asyncio.Event()
    changed = asyncio.Event()

    async def events(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b": hello\n\n")
        listening.set()
        await changed.wait()
        await response.write(b"event: change\ndata: 1\n\n")
        await asyncio.sleep(5)
        return response

    async def index(request: web.Request) -> web.Response:
        shown = board(HOSTILE[:3], section(HOSTILE[:3]), finished=finished[0])
        return web.Response(text=page(shown, live="events"), content_type="text/html")

    async def look() -> None:
        app = web.Application()
        app.add_routes([web.get("/", index), web.get("/events", events)])
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        async with browser() as tab:
            await tab.sized(1280)
            await tab.open(f"http://{host}:{port}/")
            await asyncio.wait_for(listening.wait(), 30)
            assert "10 of 2,000 games finished" in await tab.text("main")
            finished[0] = 11
            changed.set()
            seen = "new Promise(done => { const look = () => document.body.innerText.includes('11 of 2,000')"
            await tab.run(f"{seen} ? done() : setTimeout(look, 20); look(); }})")
            assert "11 of 2,000 games finished" in await tab.text("main")
            assert await tab.run("document.querySelector('.live').hidden") is False
            ours = f"http://{host}:{port}/"
            assert {address for address in tab.requests if "favicon" not in address} == {ours, f"{ours}events"}
            assert [text for text in tab.complaints if "404" not in text] == []
        await runner.cleanup()

    run(look())


def test_a_served_page_follows_the_run(tmp_path: Path) -> None:
    asked = played(tmp_path, games=["TicTacToe"], agents=["random", "first"], blocks=1)

    async def look(address: str) -> None:
        async with browser() as tab:
            await tab.sized(390)
            await tab.open(address)
            assert "2 of 2 games finished" in await tab.text()
            for _ in range(200):
                if await tab.run("[...document.querySelectorAll('.live')].some((mark) => !mark.hidden)"):
                    break
                await asyncio.sleep(0.05)
            else:
                raise AssertionError("the page does not say that it is live")
            await asyncio.sleep(0.5)  # the server has looked once
            await asyncio.to_thread(lambda: played(tmp_path, games=["TicTacToe"], agents=["random", "first"], blocks=4))
            for _ in range(1200):
                if "8 of 8 games finished" in await tab.text():
                    break
                await asyncio.sleep(0.05)
            else:
                raise AssertionError(await tab.text())
            assert not tab.complaints
            assert {request.split("/")[2] for request in tab.requests} == {address.split("/")[2]}
            assert await tab.run("document.documentElement.scrollWidth <= innerWidth")

    assert asked.blocks == 1
    with served(tmp_path) as client:
        asyncio.run(look(str(client.base_url)))
