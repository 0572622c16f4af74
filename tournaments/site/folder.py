"""A run's site in a folder: it opens from disk, asks no network, and is as large as it needs to be."""

from collections.abc import Sequence
from pathlib import Path

from arena.tournaments import downloads
from arena.tournaments.board import Board
from arena.tournaments.report import board as report
from arena.tournaments.site.games import games_page
from arena.tournaments.site.listing import LISTED, REPLAYS, Listed, chosen, episodes, listed
from arena.tournaments.site.pages import Download, page, parts
from arena.tournaments.site.replay import replay_page
from arena.tournaments.store import Store

__all__ = ["WHAT", "offered", "write_site"]

WHAT = {
    "ratings.csv": "every table, a line an agent",
    "ratings.json": "everything on these pages as data",
    "pairs.csv": "who met whom, how often and how it ended",
    "games.csv": "every finished game, a line each",
    "games.parquet": "the same for data frames",
    "games.pgn": "games of chess, for chess programs",
}
_WHY = {
    "games.parquet": "games.parquet needs pyarrow: pip install 'gymnasium-arena[parquet]'",
    "games.pgn": "games.pgn: no game here is written as PGN",
}


def write_site(
    store: Store, out: str | Path, *, games: int | None = REPLAYS, files: bool = True, shown: Board | None = None
) -> Path:
    """Write the pages into a folder, over those that are there; the path of `index.html`.

    `games`: how many are shown move by move; None: all that are listed, up to 1,000 of every game (`listing`).
    `files`: whether downloads are written too. `shown`: the store's board where it is at hand. Pages of games that
    an earlier call wrote stay, so that links to them hold. Raises StoreError, and OSError.
    """
    folder, shown = Path(out), report(store) if shown is None else shown
    folder.mkdir(parents=True, exist_ok=True)
    every = listed(store, shown, LISTED)
    replays = _replays(store, folder, every, games)
    if files:
        downloads.write(store, shown, folder)
    for part in parts(shown):
        told = offered(downloads.available(store)) if files else []
        _write(folder / f"{part.key}.html", page(shown, part.key, games=True, downloads=told))
    for number, of_one in enumerate(every, 1):
        _write(folder / f"games-{number}.html", games_page(shown, number, of_one, replays))
    return folder / "index.html"


def offered(names: Sequence[str]) -> list[Download]:
    """Downloads with these names, and why others are not there."""
    there = [Download(name, WHAT.get(name, "")) for name in names]
    return [*there, *[Download("", why) for name, why in _WHY.items() if name not in names]]


def _replays(store: Store, folder: Path, every: list[list[Listed]], most: int | None) -> set[str]:
    """Write them; their ids."""
    number = {game.id: of for of, games in enumerate(every, 1) for game in games}
    written = set()
    for kept in episodes(store, chosen(every, most)):
        place = folder / "game" / f"{kept.id}.html"
        place.parent.mkdir(exist_ok=True)
        _write(place, replay_page(kept, up="../", number=number[kept.id]))
        written.add(kept.id)
    return written


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
