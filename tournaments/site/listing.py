"""Which games a site lists and which it shows move by move: bounded, however many there are.

Games are taken round by round: of every seating (agents in their seats) of every game the newest, then the second
newest, and so on. So each pairing is there before any is there twice.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
import zstandard

from arena.episode import Episode
from arena.tournaments import tables
from arena.tournaments.board import Board
from arena.tournaments.store import Kept, Store, StoreError

__all__ = ["LISTED", "REPLAYS", "Listed", "chosen", "episodes", "listed"]

LISTED = 1000
"""Games that the list of one game holds."""
REPLAYS = 300
"""Games that a site shows move by move, where nobody says how many."""
_BATCH = 50  # episodes read at once

_INTS = msgspec.json.Decoder(tuple[int, ...])
_FLOATS = msgspec.json.Decoder(tuple[float, ...])
_EPISODE = msgspec.json.Decoder(Episode)


class Listed(NamedTuple):
    """One finished game of a list."""

    id: str
    agents: tuple[int, ...]
    """Numbers in `Board.agents`."""
    returns: tuple[float, ...]
    forfeits: tuple[int, ...]
    """Positions in `agents`."""
    truncated: bool
    plies: int
    seed: int
    ended: float
    round: int
    """From 1: how many games of its seating are newer, and one."""


def listed(store: Store, board: Board, most: int = LISTED) -> list[list[Listed]]:
    """For every section of the board at most so many games, the newest first. Raises StoreError."""
    numbers = {key: number for number, key in enumerate(store.agents())}
    return [_of_entry(store, key, numbers, most) for key in islice(store.entries(), len(board.sections))]


def chosen(games: Sequence[Sequence[Listed]], most: int | None = REPLAYS) -> list[str]:
    """The ids of those that are shown move by move, at most so many; None: all."""
    every = sorted([game for of_one in games for game in of_one], key=lambda game: (game.round, -game.ended, game.id))
    return [game.id for game in every[:most]]


def episodes(store: Store, ids: Sequence[str]) -> Iterator[Kept]:
    """The episodes of these games, in this order within batches. Raises StoreError."""
    unpack = zstandard.ZstdDecompressor().decompress
    for start in range(0, len(ids), _BATCH):
        batch = ids[start : start + _BATCH]
        query = sa.select(tables.episodes.c.game, tables.episodes.c.data).where(tables.episodes.c.game.in_(batch))
        with _errors(store), store.engine.connect() as connection:
            rows = {row[0]: bytes(row[1]) for row in connection.execute(query)}
        for key in batch:
            if key in rows:
                with _errors(store):
                    episode = _EPISODE.decode(unpack(rows[key]))
                yield Kept(key, episode)


def _of_entry(store: Store, entry: int, numbers: dict[int, int], most: int) -> list[Listed]:
    c = tables.games.c
    age = sa.func.row_number().over(partition_by=c.agents, order_by=[c.ended.desc(), c.id]).label("age")
    names = [c.id, c.agents, c.returns, c.forfeits, c.outcome, c.plies, c.seed, c.ended]
    inner = sa.select(*names, age).where(c.entry == entry).subquery()
    query = sa.select(inner).order_by(inner.c.age, inner.c.ended.desc(), inner.c.id).limit(most)
    with _errors(store), store.engine.connect() as connection:
        games = [_listed(tuple(row), numbers) for row in connection.execute(query)]
    return sorted(games, key=lambda game: (-game.ended, game.id))


def _listed(row: Sequence[Any], numbers: dict[int, int]) -> Listed:
    key, agents, returns, forfeits, outcome, *counted = row
    seated = tuple([numbers[agent] for agent in _INTS.decode(agents)])
    return Listed(key, seated, _FLOATS.decode(returns), _INTS.decode(forfeits), outcome == "truncated", *counted)


@contextmanager
def _errors(store: Store) -> Iterator[None]:
    try:
        yield
    except (sa.exc.DatabaseError, zstandard.ZstdError, msgspec.DecodeError, KeyError) as error:
        reason = str(getattr(error, "orig", None) or error).split("\n", 1)[0]
        raise StoreError(f"{store.path} cannot be read: {reason}; it was left as it is") from error
