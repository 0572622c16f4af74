"""What a store tells, worked out from its games one by one."""

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import sqlalchemy as sa

from arena.tournaments import tables
from arena.tournaments.columns import Bools, Columns, Floats, Ints
from arena.tournaments.conduct import Conduct
from arena.tournaments.database import Database
from arena.tournaments.history import Result
from arena.tournaments.readings import ALIKE, AgentCount, EntryCount, PairCounts, RankedGames, Spent, Timeline, Totals

if TYPE_CHECKING:
    from arena.tournaments.reader import Reader

__all__ = ["counting", "outcomes", "pairs", "ranked", "results", "spent", "timeline", "totals"]

_TEAMS = msgspec.json.Decoder(list[list[int]])
_ROLES = msgspec.json.Decoder(tuple[str, ...])
_INTS = msgspec.json.Decoder(tuple[int, ...])
_FLOATS = msgspec.json.Decoder(tuple[float, ...])


def outcomes(returns: Floats, forfeits: Bools) -> Ints:
    """Of two-player games, as numbers of `ratings.OUTCOMES`: the higher return wins, equal ones draw.

    Both arguments have the shape (games, 2). Who alone forfeited has lost.
    """
    earned = 1 + np.sign(returns[:, 1] - returns[:, 0])
    alone = forfeits.sum(axis=1) == 1
    return np.where(alone, np.where(forfeits[:, 0], 2, 0), earned).astype(np.int64)


def counting(store: "Reader", entry: int) -> Columns:
    """The games of an entry that count, agents by position."""
    games = store.columns(entry, store.seats()[entry])
    numbers = np.array(list(store.agents()), dtype=np.int64)
    games = games._replace(agents=np.searchsorted(numbers, games.agents))
    return games if store.tournament().truncated == "score" else games.only(~games.truncated)


def pairs(games: Columns) -> PairCounts:
    """Of the two-player games that count."""
    first, second = games.agents.T
    news = games.news()
    again = len(news) - round(float(news.sum()))
    ones = np.ones(len(first))
    outcome = outcomes(games.returns, games.forfeits)
    return PairCounts(first, second, outcome, games.block, ones, news, len(first), again, alike(games))


def alike(games: Columns) -> list[tuple[int, int]]:
    """Seatings whose games were all the same, forfeits apart."""
    sound = games.only(games.forfeits.sum(axis=1) == 0)
    seen: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for (first, second), digest in zip(sound.agents.tolist(), sound.digest.tolist(), strict=True):
        seen[first, second].append(digest)
    return [seated for seated, digests in sorted(seen.items()) if len(digests) >= ALIKE and len(set(digests)) == 1]


def ranked(store: "Reader", entry: int) -> RankedGames:
    """Of the games that count."""
    games = counting(store, entry)
    names = [tables.games.c[name] for name in ("seed", "teams", "roles", "outcome", "ended")]
    query = sa.select(*names).where(tables.games.c.entry == entry).order_by(tables.games.c.id)
    rows = store._guarded(lambda: store._connection.execute(query).all())
    if store.tournament().truncated == "drop":
        rows = [row for row in rows if row.outcome != "truncated"]
    teams = _TEAMS.decode(f"[{','.join(row.teams for row in rows)}]")
    return RankedGames(
        games.agents,
        games.returns,
        games.forfeits,
        games.block,
        np.array([row.seed for row in rows], dtype=np.int64),
        np.array(teams, dtype=np.int64) if any(teams) else None,
        [_ROLES.decode(row.roles) for row in rows],
        np.array([row.ended for row in rows], dtype=np.float64),
    )


def timeline(store: "Reader", entry: int) -> Timeline:
    """Of the two-player games that count."""
    games = counting(store, entry)
    query = sa.select(tables.games.c.ended, tables.games.c.outcome).where(tables.games.c.entry == entry)
    rows = store._guarded(lambda: store._connection.execute(query.order_by(tables.games.c.id)).all())
    drop = store.tournament().truncated == "drop"
    ended = np.array([row.ended for row in rows if not drop or row.outcome != "truncated"])
    last = np.full(len(ended), -np.inf)
    np.maximum.at(last, games.block, ended)
    order = np.lexsort((games.block, last[games.block]))
    _, number = np.unique(last[games.block][order], return_inverse=True)
    first, second = games.agents[order].T
    return Timeline(last[games.block][order], first, second, outcomes(games.returns, games.forfeits)[order], number)


def totals(store: "Reader") -> Totals:
    """Of all games and void attempts; what was timed is not read."""
    agents: dict[tuple[int, int], AgentCount] = {}
    entries: dict[int, EntryCount] = {}
    position = {number: at for at, number in enumerate(store.agents())}
    voids = [(entry, {position[agent] for agent in seated}) for entry, seated, _ in store.voids()]
    for entry, seats in store.seats().items():
        games = counting(store, entry)
        finished = len(store.columns(entry, seats).block)
        void = [who for of, who in voids if of == entry]
        truncated = int(games.truncated.sum())
        entries[entry] = EntryCount(len(games.block), truncated, finished - len(games.block), len(void))
        for agent in {*np.unique(games.agents).tolist(), *[agent for who in void for agent in who]}:
            mine = games.agents == agent
            agents[entry, agent] = AgentCount(
                int(mine.sum()),
                int((mine & games.forfeits).sum()),
                int((mine & games.truncated[:, None]).sum()),
                sum(agent in who for who in void),
                Conduct.of(games.conduct[mine].sum(axis=0).tolist()),
            )
    return Totals(agents, entries)


def spent(store: "Reader") -> Spent:
    """Of all games that count."""
    conduct = sum([count.conduct for count in store.totals().agents.values()], Conduct())
    return Spent(len(store.finished()), conduct.prompt_tokens + conduct.completion_tokens, conduct.cost)


def results(
    connection: sa.Connection, database: Database, after: int, numbers: tuple[dict[int, int], dict[int, int]]
) -> tuple[list[Result], int]:
    """Finished games since a marker, as `Store.results`; `numbers`: of entries and agents."""
    entries, agents = numbers
    marker = database.marker(connection)  # before the games are read: what is stored meanwhile comes again
    names = ("id", "block", "entry", "seed", "agents", "returns", "forfeits", "outcome")
    query = sa.select(*[tables.games.c[name] for name in names]).where(tables.games.c.seq >= after)
    seated: dict[str, tuple[int, ...]] = {}
    found = []
    for key, block, entry, seed, who, returns, forfeits, outcome in connection.execute(
        query.order_by(tables.games.c.seq)
    ):
        if who not in seated:
            seated[who] = tuple([agents[agent] for agent in _INTS.decode(who)])
        values = _FLOATS.decode(returns), _INTS.decode(forfeits)
        found.append(Result(key, block, entries[entry], seed, seated[who], *values, outcome == "truncated"))
    return found, marker
