"""The table of finished blocks: what two-player games came to, kept while they are stored, so that no fit rescans them.

A block's pattern says how often who beat whom in it. When a block is whole, its pattern is counted; blocks that are
not are kept singly. All of it happens in the transaction that stores a game, under the lock of the block's row, so
that of several processes exactly one counts a block. What a look at all games finds comes out the same.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
import sqlalchemy as sa

from arena.tournaments import tables
from arena.tournaments.database import adding, upsert
from arena.tournaments.readings import ALIKE, Floats, Ints, PairCounts, Timeline
from arena.tournaments.schedule import Fixture
from arena.tournaments.totals import Attempt

__all__ = ["Game", "count", "pairs", "timeline"]

_NONE = "[]"
_PATTERN = msgspec.json.Decoder(list[tuple[int, int, int, int]])


class Game(NamedTuple):
    """A two-player game that was just stored. Agents and the entry are the store's numbers."""

    id: str
    block: str
    entry: int
    agents: tuple[int, int]
    returns: tuple[float, ...]
    forfeits: tuple[int, ...]
    """Positions in `agents`."""
    digest: str
    ended: float
    size: int
    """Games of its block, once that is whole."""
    truncated: bool
    dropping: bool
    """Whether truncated games do not count, as the tournament declares."""

    @property
    def counts(self) -> bool:
        """Whether it is one that counts."""
        return not (self.truncated and self.dropping)

    @classmethod
    def of(cls, fixture: Fixture, attempt: Attempt, size: int, *, dropping: bool) -> "Game":
        """A finished attempt."""
        entry, agents, seats, episode, _ = attempt
        returns = episode.returns or ()
        return cls(
            fixture.id,
            fixture.block,
            entry,
            (agents[0], agents[1]),
            tuple([returns[seat] for seat in seats]),
            tuple([at for at, seat in enumerate(seats) if seat in episode.forfeits]),
            episode.turns[-1].hash if episode.turns else "",
            episode.ended,
            size,
            episode.outcome == "truncated",
            dropping,
        )

    @property
    def outcome(self) -> int:
        """Index into `ratings.OUTCOMES`: the higher return wins, equal ones draw; who alone forfeited has lost."""
        if len(self.forfeits) == 1:
            return 2 if self.forfeits[0] == 0 else 0
        first, second = self.returns
        return 0 if first > second else 2 if second > first else 1


_LAST = "~"  # after every digest


class _Seating(NamedTuple):
    """What is added to a row of `tables.seatings`."""

    games: int = 0
    fresh: int = 0
    sound: int = 0
    low: str = _LAST
    high: str = ""

    def plus(self, game: Game, *, fresh: bool) -> "_Seating":
        games, known, sound, low, high = self
        if not game.forfeits:
            sound, low, high = sound + 1, min(low, game.digest), max(high, game.digest)
        return _Seating(games + 1, known + fresh, sound, low, high)


def count(connection: sa.Connection, games: Sequence[Game], worker: int) -> None:
    """Count games that were just stored. `worker`: whose rows are written."""
    dialect = connection.dialect.name
    blocks: defaultdict[str, list[Game]] = defaultdict(list)
    for game in games:
        blocks[game.block].append(game)
    moved: Counter[tuple[int, str]] = Counter()
    seated: dict[tuple[int, int, int], _Seating] = {}
    for _, members in sorted(blocks.items()):  # in order: two processes cannot wait for each other
        _count_block(connection, members, moved, seated)
    if rows := [_of_pattern(*key, worker, by) for key, by in sorted(moved.items()) if by and key[1] != _NONE]:
        connection.execute(adding(dialect, tables.patterns, ("blocks",)), rows)
    if seated:
        connection.execute(_add_seating(dialect), [_of_seating(*item, worker) for item in sorted(seated.items())])


def _count_block(
    connection: sa.Connection,
    games: list[Game],
    moved: Counter[tuple[int, str]],
    seated: dict[tuple[int, int, int], _Seating],
) -> None:
    """Games of one block: its row, and what changes in the tables of patterns and seatings."""
    one, ended = games[0], max([game.ended for game in games if game.counts], default=0.0)
    row = {"key": one.block, "entry": one.entry, "games": len(games), "pattern": _NONE, "counted": False}
    before = connection.execute(_open(connection.dialect.name), {**row, "ended": ended}).one()
    pattern, left = str(before.pattern), {game.id for game in games}
    for game in games:
        if game.counts:
            key = (game.entry, *game.agents)
            fresh = _fresh(connection, game, pattern, left)
            seated[key] = seated.get(key, _Seating()).plus(game, fresh=fresh)
            pattern = _with(pattern, game)
        left.discard(game.id)
    whole = before.games >= one.size
    change = {"of": one.block, "pattern": pattern, "counted": whole, "ended": max(before.ended, ended)}
    connection.execute(_CLOSE, change)
    if before.counted:
        moved[one.entry, str(before.pattern)] -= 1
    if whole:
        moved[one.entry, pattern] += 1


@cache
def _open(dialect: str) -> Any:
    """Make the block's row or add the game to it, and hold it until the transaction ends."""
    row = upsert(dialect, tables.blocks)
    more = row.on_conflict_do_update(index_elements=["key"], set_={"games": _BLOCKS.games + row.excluded.games})
    return more.returning(_BLOCKS.games, _BLOCKS.pattern, _BLOCKS.counted, _BLOCKS.ended)


def _with(pattern: str, game: Game) -> str:
    """The pattern with one more game."""
    there = Counter({(one, other, outcome): often for one, other, outcome, often in _PATTERN.decode(pattern)})
    there[game.agents[0], game.agents[1], game.outcome] += 1
    return msgspec.json.encode([(*key, often) for key, often in sorted(there.items())]).decode()


def _of_pattern(entry: int, pattern: str, worker: int, by: int) -> dict[str, Any]:
    return {"entry": entry, "pattern": pattern, "worker": worker, "blocks": by}


def _of_seating(key: tuple[int, int, int], seating: "_Seating", worker: int) -> dict[str, Any]:
    return {"entry": key[0], "first": key[1], "second": key[2], "worker": worker, **seating._asdict()}


def _fresh(connection: sa.Connection, game: Game, before: str, left: set[str]) -> bool:
    """Whether no game of the block and seating that counts was the same move by move; `left`: not yet counted."""
    if not any((one, other) == game.agents for one, other, _, _ in _PATTERN.decode(before)):
        return True
    games, agents = tables.games.c, msgspec.json.encode(game.agents).decode()
    alike = [games.block == game.block, games.digest == game.digest, games.agents == agents, games.id.not_in(left)]
    if game.dropping:
        alike.append(games.outcome != "truncated")
    return not connection.execute(sa.select(games.id).where(*alike).limit(1)).first()


@cache
def _add_seating(dialect: str) -> Any:
    row, there = upsert(dialect, tables.seatings), tables.seatings.c
    more = {name: there[name] + row.excluded[name] for name in ("games", "fresh", "sound")}
    more["low"] = sa.case((row.excluded.low < there.low, row.excluded.low), else_=there.low)
    more["high"] = sa.case((row.excluded.high > there.high, row.excluded.high), else_=there.high)
    return row.on_conflict_do_update(index_elements=["entry", "first", "second", "worker"], set_=more)


def pairs(connection: sa.Connection, entry: int, numbers: Ints) -> PairCounts:
    """The games of an entry that count, as `Store.pairs`; `numbers`: the store's of all agents, ascending."""
    clusters = sorted(_clusters(connection, entry).items())
    decoded = [_PATTERN.decode(pattern) for pattern, _ in clusters]
    rows = np.array([row for rows in decoded for row in rows], dtype=np.int64).reshape(-1, 4)
    lengths = np.array([len(rows) for rows in decoded], dtype=np.int64)
    rows, cluster, times = _expanded(rows, lengths, np.array([times for _, times in clusters], dtype=np.float64))
    seated = _seated(connection, entry)
    keys = np.array([row[:2] for row in seated], dtype=np.int64).reshape(-1, 2)
    shares = np.array([row[3] / row[2] for row in seated], dtype=np.float64)
    first, second, outcome = rows[:, 0], rows[:, 1], rows[:, 2]
    weight = shares[_found(keys, first, second)] if len(seated) else np.zeros(0)
    place = {int(number): at for at, number in enumerate(numbers)}
    alike = [(place[one], place[two]) for one, two, _, _, n, low, high in seated if n >= ALIKE and low == high]
    return PairCounts(
        np.searchsorted(numbers, first),
        np.searchsorted(numbers, second),
        outcome,
        cluster,
        times,
        weight,
        sum(row[2] for row in seated),
        sum(row[2] - row[3] for row in seated),
        sorted(alike),
    )


def _clusters(connection: sa.Connection, entry: int) -> Counter[str]:
    """How many blocks have each pattern: the finished ones as counted, the others singly."""
    whole, part = tables.patterns.c, tables.blocks.c
    counted = sa.select(whole.pattern, sa.func.sum(whole.blocks)).where(whole.entry == entry).group_by(whole.pattern)
    single = sa.select(part.pattern, sa.func.count()).where(part.entry == entry, part.counted == sa.false())
    clusters: Counter[str] = Counter()
    for query in (counted, single.group_by(part.pattern)):
        for pattern, blocks in connection.execute(query):
            clusters[pattern] += int(blocks)
    return Counter({pattern: blocks for pattern, blocks in clusters.items() if blocks and pattern != _NONE})


def _expanded(rows: Ints, lengths: Ints, times: Floats) -> tuple[Ints, Ints, Floats]:
    """A row a game: the games, the number of their pattern, and how often it is there."""
    often = rows[:, 3]
    of = np.repeat(np.arange(len(lengths)), lengths)
    return np.repeat(rows, often, axis=0), np.repeat(of, often), np.repeat(times[of], often)


def _seated(connection: sa.Connection, entry: int) -> list[tuple[int, int, int, int, int, str, str]]:
    """Rows (first, second, games, fresh, sound, low, high), in order."""
    there = tables.seatings.c
    sums = [sa.func.sum(there[name]) for name in ("games", "fresh", "sound")]
    query = sa.select(there.first, there.second, *sums, sa.func.min(there.low), sa.func.max(there.high))
    grouped = query.where(there.entry == entry).group_by(there.first, there.second)
    rows: Sequence[Any] = connection.execute(grouped.order_by(there.first, there.second)).all()
    return [
        (one, two, int(games), int(fresh), int(sound), low, high) for one, two, games, fresh, sound, low, high in rows
    ]


def _found(keys: Ints, first: Ints, second: Ints) -> Ints:
    """Where each pair stands in `keys`, which are sorted."""
    base = int(max(keys.max(), first.max(initial=0), second.max(initial=0))) + 1
    return np.searchsorted(keys[:, 0] * base + keys[:, 1], first * base + second)


def timeline(connection: sa.Connection, entry: int, numbers: Ints) -> Timeline:
    """The games of an entry that count, as `Store.timeline`."""
    there = tables.blocks.c
    query = sa.select(there.ended, there.pattern).where(there.entry == entry, there.pattern != _NONE)
    found = connection.execute(query.order_by(there.ended, there.key)).all()
    known = {pattern: number for number, pattern in enumerate(dict.fromkeys([pattern for _, pattern in found]))}
    decoded = [np.array(_PATTERN.decode(pattern), dtype=np.int64) for pattern in known]
    games = [np.repeat(rows, rows[:, 3], axis=0) for rows in decoded]
    parts = [games[known[pattern]] for _, pattern in found]
    rows = np.concatenate([np.zeros((0, 4), dtype=np.int64), *parts])
    block = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    ended = np.array([ended for ended, _ in found], dtype=np.float64)
    return Timeline(
        ended[block], np.searchsorted(numbers, rows[:, 0]), np.searchsorted(numbers, rows[:, 1]), rows[:, 2], block
    )


_BLOCKS = tables.blocks.c
_CLOSE = (
    sa.update(tables.blocks)
    .where(_BLOCKS.key == sa.bindparam("of"))
    .values({name: sa.bindparam(name) for name in ("pattern", "counted", "ended")})
)
