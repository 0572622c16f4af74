"""What a store's games come to, worked out from all of them: what the counted tables must agree with."""

from collections import defaultdict

import numpy as np
import sqlalchemy as sa

from arena.tournaments import tables
from arena.tournaments.columns import Bools, Columns, Floats, Ints
from arena.tournaments.conduct import Conduct
from arena.tournaments.readings import ALIKE, AgentCount, EntryCount, PairCounts, Timeline, Totals
from arena.tournaments.scanning import counting
from arena.tournaments.store import Store

__all__ = ["pairs", "timeline", "totals"]


def outcomes(returns: Floats, forfeits: Bools) -> Ints:
    """Of two-player games, as numbers of `ratings.OUTCOMES`: the higher return wins, equal ones draw.

    Both arguments have the shape (games, 2). Who alone forfeited has lost.
    """
    earned = 1 + np.sign(returns[:, 1] - returns[:, 0])
    alone = forfeits.sum(axis=1) == 1
    return np.where(alone, np.where(forfeits[:, 0], 2, 0), earned).astype(np.int64)


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


def timeline(store: Store, entry: int) -> Timeline:
    """Of the two-player games that count."""
    games = counting(store, entry)
    query = sa.select(tables.games.c.ended, tables.games.c.outcome).where(tables.games.c.entry == entry)
    rows = store._guarded(lambda: store._connection.execute(query.order_by(tables.games.c.id)).all())
    drop = store.tournament().truncated == "drop"
    ended = np.array([row.ended for row in rows if not drop or row.outcome != "truncated"])
    last = np.full(games.block.max(initial=0) + 1, -np.inf)
    np.maximum.at(last, games.block, ended)
    order = np.lexsort((games.block, last[games.block]))
    _, firsts, inverse = np.unique(games.block[order], return_index=True, return_inverse=True)
    number = np.argsort(np.argsort(firsts))[inverse]
    first, second = games.agents[order].T
    return Timeline(last[games.block][order], first, second, outcomes(games.returns, games.forfeits)[order], number)


def totals(store: Store) -> Totals:
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
