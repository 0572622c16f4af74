"""Every finished game of a store as one flat row, streamed: what downloads of games are made of."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from arena.tournaments import tables
from arena.tournaments.conduct import Conduct
from arena.tournaments.store import Store

__all__ = ["Listed", "SeatListed", "listed", "most_seats"]

_PAGE = 1000  # rows that are in memory at once
_COLUMNS = (
    "id", "block", "entry", "seed", "rotation", "repetition", "agents", "returns", "forfeits", "outcome", "reason",
    "plies", "digest", "conduct", "started", "ended",
)  # fmt: skip
_INTS = msgspec.json.Decoder(list[int])
_FLOATS = msgspec.json.Decoder(list[float])
_TABLE = msgspec.json.Decoder(list[list[float]])


class SeatListed(NamedTuple):
    """One seat of one game, those of the house apart."""

    agent: str
    earned: float
    """The return."""
    forfeit: bool
    conduct: Conduct


class Listed(NamedTuple):
    """One finished game."""

    id: str
    game: str
    """Its label in the tournament."""
    block: str
    """Games that share it share a seed and a table."""
    seed: int
    rotation: int
    repetition: int
    outcome: str
    """ "terminated" or "truncated"."""
    reason: str
    plies: int
    digest: str
    """Equal play, equal digest."""
    started: float
    """Seconds since the epoch."""
    ended: float
    seats: tuple[SeatListed, ...]

    @property
    def result(self) -> str:
        """Of two seats "first", "draw" or "second", as ratings count it; else ""."""
        if len(self.seats) != 2:
            return ""
        first, second = self.seats
        if first.forfeit != second.forfeit:
            return "second" if first.forfeit else "first"
        return "draw" if first.earned == second.earned else "first" if first.earned > second.earned else "second"


def listed(store: Store) -> Iterator[Listed]:
    """All finished games in the order of their ids, a few of them in memory at a time."""
    labels, names = {key: entry.label for key, entry in store.entries().items()}, store.agents()
    query = sa.select(*[tables.games.c[name] for name in _COLUMNS]).order_by(tables.games.c.id)
    with store.engine.connect() as connection:
        for row in connection.execution_options(yield_per=_PAGE).execute(query):
            yield _listed(row._mapping, labels, names)


def most_seats(store: Store) -> int:
    """The most seats that agents take in any game of the tournament."""
    with store.engine.connect() as connection:
        seats = connection.execute(sa.select(tables.entries.c.seats)).scalars().all()
    return max([len(_INTS.decode(text)) for text in seats], default=0)


def _listed(row: Any, labels: dict[int, str], names: dict[int, str]) -> Listed:
    forfeits = _INTS.decode(row["forfeits"])
    seated = zip(
        _INTS.decode(row["agents"]), _FLOATS.decode(row["returns"]), _TABLE.decode(row["conduct"]), strict=True
    )
    seats = [
        SeatListed(names[agent], earned, at in forfeits, Conduct.of(numbers))
        for at, (agent, earned, numbers) in enumerate(seated)
    ]
    return Listed(
        row["id"],
        labels[row["entry"]],
        row["block"],
        row["seed"],
        row["rotation"],
        row["repetition"],
        row["outcome"],
        row["reason"],
        row["plies"],
        row["digest"],
        row["started"],
        row["ended"],
        tuple(seats),
    )
