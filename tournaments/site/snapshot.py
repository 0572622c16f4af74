"""A run that may still be played, as a server reads it: looked at seldom, worked out once for everybody who asks."""

import os
import threading
import time
from collections.abc import Callable
from math import inf
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, TypeVar, cast

from arena.tournaments import downloads
from arena.tournaments.board import Board
from arena.tournaments.config import GameEntry
from arena.tournaments.report import board as report
from arena.tournaments.site.folder import offered
from arena.tournaments.site.games import games_page
from arena.tournaments.site.listing import listed
from arena.tournaments.site.pages import page, parts
from arena.tournaments.site.replay import replay_page
from arena.tournaments.store import Store, StoreError, results_file

__all__ = ["Missing", "Snapshot"]

T = TypeVar("T")

_ID = 32  # hexadecimal digits of a game's id
_LARGE = 8 << 20  # bytes of a download that are kept in memory
_PAUSE = 3.0  # how many times as long as it takes to work a board out it is kept at least
_AGAIN = (0.05, 0.2)  # seconds before a store that cannot be read is tried again
_LONGEST = 10.0  # seconds that it is kept at least, whatever it took


class Missing(LookupError):
    """There is no such page, game or file."""


class Snapshot:
    """Pages and files of a run as it stands. Its methods may be called by many threads; one works, the others wait.

    The store is opened for every look: a run folder may get its first game, or another database, while it is watched.
    """

    def __init__(self, run: str | os.PathLike[str], live: str = "") -> None:
        """`live`: the address of the events that tell that something has changed."""
        self.run, self.live = str(run), live
        self._lock = threading.Lock()
        self._board: Board | None = None
        self._version: object = None
        self._until = 0.0

    def version(self) -> object:
        """Something that is another as soon as another game is finished or void. Raises StoreError."""
        if "://" not in self.run and (path := results_file(self.run)).exists():
            return _stamps(str(path))
        return self._read(lambda store: (store.spent(), len(store.voids())))

    @property
    def due(self) -> bool:
        """Whether `board` would be worked out anew, should the run have changed."""
        return time.monotonic() >= self._until

    def board(self) -> Board:
        """As it stands, or stood a moment ago. Raises StoreError."""
        with self._lock:
            if self._board is None or self.due:
                version = self.version()
                if self._board is None or version != self._version:
                    began = time.thread_time()  # what others on this machine do is no reason to wait longer
                    self._until, pause = inf, 0.0  # whoever is told of a change meanwhile would be given an older board
                    try:
                        self._board, self._version = self._read(report), version
                        pause = min(_PAUSE * (time.thread_time() - began), _LONGEST)
                    finally:
                        self._until = time.monotonic() + pause
            return self._board

    def page(self, key: str) -> str:
        """A page by the name of its file without `.html`. Raises Missing and StoreError."""
        board = self.board()
        if key.startswith("games-"):
            return self._games(board, key.removeprefix("games-"))
        if key not in {part.key for part in parts(board)}:
            raise Missing(f"there is no page {key[:80]!r}")
        there = self._read(downloads.available)
        return page(board, key, games=True, downloads=offered(there), live=self.live)

    def _games(self, board: Board, number: str) -> str:
        if not (number.isascii() and number.isdigit() and len(number) < 9 and 1 <= int(number) <= len(board.sections)):
            raise Missing(f"there is no game number {number[:80]!r}")
        games = self._read(lambda store: listed(store, board))[int(number) - 1]
        return games_page(board, int(number), games, {game.id for game in games}, live=self.live)

    def replay(self, key: str) -> str:
        """Any finished game, move by move. Raises Missing, StoreError, and EpisodeError for a damaged record."""
        if len(key) != _ID or not set(key) <= set("0123456789abcdef"):
            raise Missing(f"{key[:80]!r} is no game's id")
        kept = self._read(lambda store: next(iter(store.kept(key)), None))
        if kept is None:
            raise Missing(f"game {key} is not finished, or not of this run")
        labels = [(section.game, section.label) for section in self.board().sections]
        return replay_page(kept, up="../", number=_number(labels, kept.episode.env, kept.episode.options))

    def file(self, name: str) -> BinaryIO:
        """A download, to be read and closed; a large one lies on disk. Raises Missing and StoreError."""
        if name not in self._read(downloads.available):
            raise Missing(f"there is no file {name[:80]!r}")
        board, out = self.board(), cast("BinaryIO", SpooledTemporaryFile(_LARGE))  # noqa: SIM115 - who reads it closes it
        try:
            self._read(lambda store: downloads.save(name, store, board, out))
        except BaseException:
            out.close()
            raise
        out.seek(0)
        return out

    def _read(self, look: Callable[[Store], T]) -> T:
        for pause in _AGAIN:
            try:
                with Store.open(self.run) as store:
                    return look(store)
            except StoreError:  # a file that is just being written or put away is whole a moment later
                time.sleep(pause)
        with Store.open(self.run) as store:
            return look(store)


def _number(labels: list[tuple[str, str]], env: str, options: dict[str, object]) -> int:
    """The section that a game belongs to, from 1; 0 where that is not clear."""
    label = GameEntry(env, options).label
    exact = [number for number, (_, shown) in enumerate(labels, 1) if shown == label]
    same = [number for number, (game, _) in enumerate(labels, 1) if game == env]
    return exact[0] if exact else same[0] if len(same) == 1 else 0


def _stamps(path: str) -> tuple[tuple[int, int], ...]:
    """When the files of an SQLite database were written last, and how large they are."""
    found = []
    for name in (path, f"{path}-wal"):
        try:
            status = os.stat(name)  # noqa: PTH116 - both in one go, thousands of times
        except FileNotFoundError:
            continue
        found.append((status.st_mtime_ns, status.st_size))
    return tuple(found)
