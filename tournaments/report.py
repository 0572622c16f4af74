"""What a store's games say: ratings, scores, means and their caveats, ready to be shown by a terminal or a page."""

from collections import Counter, defaultdict
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.board import AgentTotals, Board, Pair, Row, Section
from arena.tournaments.columns import Columns, Floats, Ints
from arena.tournaments.conduct import Conduct
from arena.tournaments.config import GameEntry, Tournament, dump
from arena.tournaments.ratings import Results, mean_returns, rate
from arena.tournaments.schedule import count, seats_of
from arena.tournaments.store import Store

__all__ = ["board", "outcomes"]

_TIED = 1e-6  # values that differ less are equal
_ALIKE = 4  # games of one pair, all alike, from which on that is worth a word


class _Played(NamedTuple):
    """The games of one entry that count, agents as numbers of the board."""

    label: str
    seats: int
    games: Columns
    dropped: int
    counts: Ints
    """Shape (3, agents): games, forfeits, void attempts."""
    conduct: Floats
    """Shape (agents, fields of `Conduct`)."""
    news: Floats
    """`Columns.news` of two-player games, else nothing."""


def outcomes(returns: Floats, forfeits: NDArray[np.bool_]) -> Ints:
    """Of two-player games, as numbers of `ratings.OUTCOMES`: the higher return wins, equal ones draw.

    Both arguments have the shape (games, 2). Who alone forfeited has lost.
    """
    earned = 1 + np.sign(returns[:, 1] - returns[:, 0])
    alone = forfeits.sum(axis=1) == 1
    return np.where(alone, np.where(forfeits[:, 0], 2, 0), earned).astype(np.int64)


def board(store: Store) -> Board:
    """Read a store and work all of it out."""
    tournament, agents, voids = store.tournament(), store.agents(), store.voids()
    names = list(agents.values())
    played = [_played(store, key, entry, tournament, voids) for key, entry in store.entries().items()]
    totals = sum([game.counts for game in played], np.zeros((3, len(names)), dtype=np.int64))
    return Board(
        tournament=tournament,
        toml=dump(tournament),
        versions=store.versions(),
        path=store.path,
        agents=[AgentTotals(name, *totals[:, k].tolist()) for k, name in enumerate(names)],
        sections=[_section(game, names) for game in played],
        overall=_overall(played, names),
        finished=sum(len(game.games.block) + game.dropped for game in played),
        planned=sum(count(tournament)),
        voids=len(voids),
        void_reasons=Counter(reason for _, _, reason in voids).most_common(3),
        notes=_notes(played, names, totals),
    )


def _played(
    store: Store, key: int, entry: GameEntry, tournament: Tournament, voids: list[tuple[int, tuple[int, ...], str]]
) -> _Played:
    seats, numbers = len(seats_of(entry)[1]), np.array(list(store.agents()), dtype=np.int64)
    games = store.columns(key, seats)
    games = games._replace(agents=np.searchsorted(numbers, games.agents))
    kept = games if tournament.truncated == "score" else games.only(~games.truncated)
    void = [agent for of, seated, _ in voids if of == key for agent in set(seated)]
    seated = (kept.agents.ravel(), kept.agents[kept.forfeits], np.searchsorted(numbers, np.array(void, dtype=np.int64)))
    counts = np.array([np.bincount(who, minlength=len(numbers)) for who in seated])
    news = kept.news() if seats == 2 else np.zeros(0)
    fields = kept.conduct.shape[2]
    conduct = np.zeros((len(numbers), fields))
    np.add.at(conduct, kept.agents.ravel(), kept.conduct.reshape(-1, fields))
    return _Played(entry.label, seats, kept, len(games.block) - len(kept.block), counts, conduct, news)


def _section(game: _Played, names: list[str]) -> Section:
    section = Section(game.label, game.seats, len(game.games.block), int(game.games.truncated.sum()))
    if section.games and section.seats == 2:
        _rate(section, _results([game], names), game.counts, game.conduct)
    elif section.games:
        _average(section, game, names)
    return section


def _overall(played: list[_Played], names: list[str]) -> Section | None:
    rated = [game for game in played if game.seats == 2 and len(game.games.block)]
    if not rated:
        return None
    games, truncated = [sum(len(g.games.block) for g in rated), sum(int(g.games.truncated.sum()) for g in rated)]
    whole = Section("All two-player games", 2, games, truncated)
    counts, conduct = sum([g.counts for g in rated]), sum([g.conduct for g in rated])
    _rate(whole, _results(rated, names), np.asarray(counts), np.asarray(conduct))
    return whole


def _results(played: list[_Played], names: list[str]) -> Results:
    columns, weights, blocks = [], [], 0
    for number, (_, _, games, _, _, _, news) in enumerate(played):
        first, second = games.agents.T
        same = np.full(len(first), number, dtype=np.int64)
        columns.append((same, first, second, outcomes(games.returns, games.forfeits), games.block + blocks))
        weights.append(news)
        blocks += int(games.block.max()) + 1
    game, one, other, outcome, block = [np.concatenate(parts) for parts in zip(*columns, strict=True)]
    labels = tuple([game.label for game in played])
    return Results(tuple(names), labels, game, one, other, outcome, block, np.concatenate(weights))


def _rate(section: Section, results: Results, counts: Ints, conduct: Floats) -> None:
    """Rate all agents; a row for each that has played."""
    rated = section.ratings = rate(results)
    played = np.flatnonzero(rated.played).tolist()
    order = sorted(played, key=lambda k: (rated.groups[k], -rated.elo[k], rated.players[k]))
    ranks = _ranks([float(rated.elo[k]) for k in order])
    section.rows = [
        Row(
            rank=rank,
            agent=k,
            name=rated.players[k],
            games=int(rated.played[k]),
            value=float(rated.elo[k]),
            half=float(rated.half[k]),
            forfeits=int(counts[1, k]),
            voids=int(counts[2, k]),
            won=int(rated.wins[k]),
            drawn=int(rated.draws[k]),
            lost=int(rated.losses[k]),
            flags=rated.flags[k],
            conduct=Conduct.of(conduct[k].tolist()),
        )
        for rank, k in zip(ranks, order, strict=True)
    ]
    section.pairs = _pairs(results, order)


def _pairs(results: Results, order: list[int]) -> list[list[Pair | None]]:
    n = len(results.players)
    points, games = np.zeros((n, n)), np.zeros((n, n), dtype=np.int64)
    for one, other, worth in (
        (results.first, results.second, (1, 0.5, 0)),
        (results.second, results.first, (0, 0.5, 1)),
    ):
        np.add.at(points, (one, other), np.array(worth)[results.outcome])
        np.add.at(games, (one, other), 1)
    return [
        [Pair(float(points[i, j] / games[i, j]), int(games[i, j])) if games[i, j] else None for j in order]
        for i in order
    ]


def _average(section: Section, game: _Played, names: list[str]) -> None:
    """Mean returns; a row for each agent that has played."""
    games, seats = game.games, game.seats
    means = mean_returns(len(names), games.agents.ravel(), np.repeat(games.block, seats), games.returns.ravel())
    ranked = sorted([(-mean.mean, k, mean) for k, mean in enumerate(means) if mean is not None])
    ranks = _ranks([mean.mean for _, _, mean in ranked])
    section.rows = [
        Row(
            rank=rank,
            agent=k,
            name=names[k],
            games=mean.games,
            value=mean.mean,
            half=mean.half,
            forfeits=int(game.counts[1, k]),
            voids=int(game.counts[2, k]),
            conduct=Conduct.of(game.conduct[k].tolist()),
        )
        for rank, (_, k, mean) in zip(ranks, ranked, strict=True)
    ]


def _ranks(values: list[float]) -> list[int]:
    """Of values in order: equal ones share the first one's.

    >>> _ranks([5.0, 3.0, 3.0, 1.0])
    [1, 2, 2, 4]
    """
    ranks: list[int] = []
    for at, value in enumerate(values):
        tied = at > 0 and abs(value - values[at - 1]) < _TIED
        ranks.append(ranks[-1] if tied else at + 1)
    return ranks


def _notes(played: list[_Played], names: list[str], totals: Ints) -> list[str]:
    dropped = sum(game.dropped for game in played)
    notes = [f"{dropped} truncated games are left out, as the tournament declares."] if dropped else []
    notes += [
        f"{name} has no finished game; {voids} attempts with it were void."
        for name, games, voids in zip(names, totals[0], totals[2], strict=True)
        if voids and not games
    ]
    for game in played:
        again = len(game.news) - round(float(game.news.sum()))
        if again:
            notes.append(
                f"{game.label}: {again} games were played before in their block, move by move; they tell nothing new,"
                " and make no interval smaller."
            )
        alike = [" – ".join(names[agent] for agent in seated) for seated in _alike(game.games)]
        if alike:
            notes.append(
                f"{game.label}: nothing is random between {'; '.join(alike)}: all their games in these seats"
                " are the same move by move, and prove less than their number says."
            )
    return notes


def _alike(games: Columns) -> list[tuple[int, ...]]:
    """Seatings whose games were all the same, forfeits apart."""
    sound = games.only(games.forfeits.sum(axis=1) == 0)
    seen: defaultdict[tuple[int, ...], list[str]] = defaultdict(list)
    for seated, digest in zip(map(tuple, sound.agents.tolist()), sound.digest.tolist(), strict=True):
        seen[seated].append(digest)
    return [seated for seated, digests in sorted(seen.items()) if len(digests) >= _ALIKE and len(set(digests)) == 1]
