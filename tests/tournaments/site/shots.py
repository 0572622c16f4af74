"""The pictures of `docs/images`, taken of a run: `python -m tests.tournaments.site.shots RUN docs/images`."""

import asyncio
import sys
import tempfile
from pathlib import Path

from arena.tournaments.site import write_site
from arena.tournaments.store import Store
from tests.tournaments.site.browser import browser

__all__ = ["take"]


async def take(site: Path, out: Path) -> None:
    """Leaderboard and replay, at the width of a desktop and of a phone."""
    first = site / "index.html"
    rated = first if 'class="standing"' in first.read_text(encoding="utf-8") else site / "game-2.html"
    game = _of_list(site, 2 if (site / "games-2.html").exists() else 1)
    pages = {"leaderboard": rated.as_uri(), "replay": f"{game.as_uri()}#12"}
    async with browser() as tab:
        for name, address in pages.items():
            for width, height, suffix in ((1280, 900, ""), (390, 844, "-phone")):
                await tab.sized(width, height)
                await tab.open(address)
                await tab.shot(out / f"{name}{suffix}.png")


def _of_list(site: Path, number: int) -> Path:
    """The first game of a list that has a page."""
    listed = (site / f"games-{number}.html").read_text(encoding="utf-8")
    return min((path for path in (site / "game").iterdir() if path.name in listed), key=lambda p: listed.index(p.name))


def main() -> None:
    """Take them."""
    run, out = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        with Store.open(run) as store:
            write_site(store, folder, files=False)
        asyncio.run(take(Path(folder), Path(out)))


if __name__ == "__main__":
    main()
