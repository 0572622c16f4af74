"""What a store's games say: ratings, scores, means and their caveats, ready to be shown by a terminal or a page."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from arena.tournaments.config import GameEntry, Tournament, dump
from arena.tournaments.ratings import Mean, Outcome, Ratings, Results, mean_returns, rate
from arena.tournaments.schedule import count, seats_of
from arena.tournaments.store import GameRow, Store

__all__ = ["Agent", "Board", "Pair", "Section", "board", "outcome"]

_ALIKE = 4  # games of one pair, all alike, from which on that is worth a word


@dataclass(frozen=True)
class Pair:
    """How one agent did against another: `score` is (wins + draws / 2) / games."""

    score: float
    games: int


@dataclass(frozen=True)
class Agent:
    """What is counted of one agent, over all games."""

    name: str
    games: int
    forfeits: int
    voids: int
    """Void attempts at games it sat in."""


@dataclass
class Section:
    """One game of the tournament, or all two-player ones together. Lists run over the board's agents."""

    label: str
    seats: int
    games: int = 0
    truncated: int = 0
    ratings: Ratings | None = None
    means: list[Mean | None] = field(default_factory=list)
    pairs: list[list[Pair | None]] = field(default_factory=list)
    forfeits: list[int] = field(default_factory=list)
    voids: list[int] = field(default_factory=list)
    """Void attempts at games an agent sat in; whose fault they were is not known."""

    @property
    def order(self) -> list[int]:
        """The agents, best first; those without games are left out."""
        if self.ratings is not None:
            rated = self.ratings
            played = [k for k in range(len(rated.players)) if rated.played[k]]
            return sorted(played, key=lambda k: (rated.groups[k], -rated.elo[k], rated.players[k]))
        ranked = [(-mean.mean, k) for k, mean in enumerate(self.means) if mean is not None]
        return [k for _, k in sorted(ranked)]


@dataclass
class Board:
    """A whole tournament as it stands."""

    tournament: Tournament
    toml: str
    versions: dict[str, str]
    path: Path
    agents: list[Agent]
    sections: list[Section]
    overall: Section | None
    """All two-player games in one fit; None: there are none."""
    finished: int
    planned: int
    voids: int
    void_reasons: list[tuple[str, int]]
    notes: list[str]
    """What a reader should know before believing the tables."""

    @property
    def title(self) -> str:
        """The tournament's name, else its games."""
        games = ", ".join(entry.id for entry in self.tournament.games)
        return self.tournament.name or (games if len(self.tournament.games) < 4 else "Tournament")

    @property
    def last_seed(self) -> int:
        """The seed of the last block."""
        asked = self.tournament
        return asked.seed + max(asked.blocks_of(entry) for entry in asked.games) - 1


def outcome(returns: tuple[float, ...], forfeits: Iterable[int]) -> Outcome:
    """Of a two-player game: the higher return wins, equal ones draw; who alone forfeited has lost."""
    lost = set(forfeits)
    if len(lost) == 1:
        return "second" if 0 in lost else "first"
    return "draw" if returns[0] == returns[1] else "first" if returns[0] > returns[1] else "second"


def board(store: Store) -> Board:
    """Read a store and work all of it out."""
    tournament, entries, names = store.tournament(), store.entries(), store.agents()
    rows, dropped = _counted(store.games(), tournament)
    voids = store.voids()
    by_entry = {key: [row for row in rows if row.entry == key] for key in entries}
    void_seats = {key: [seats for entry, seats, _ in voids if entry == key] for key in entries}
    sections = [_section(entry, by_entry[key], void_seats[key], names) for key, entry in entries.items()]
    return Board(
        tournament=tournament,
        toml=dump(tournament),
        versions=store.versions(),
        path=store.path,
        agents=_agents(list(names.values()), sections),
        sections=sections,
        overall=_overall(sections, by_entry, entries, names),
        finished=len(rows) + dropped,
        planned=sum(count(tournament)),
        voids=len(voids),
        void_reasons=Counter(reason for _, _, reason in voids).most_common(3),
        notes=_notes(by_entry, entries, names, dropped),
    )


def _agents(names: list[str], sections: list[Section]) -> list[Agent]:
    """What is counted over all games."""
    return [
        Agent(
            name,
            sum(mean.games for s in sections if (mean := s.means[k]) is not None),
            sum(s.forfeits[k] for s in sections),
            sum(s.voids[k] for s in sections),
        )
        for k, name in enumerate(names)
    ]


def _counted(rows: list[GameRow], tournament: Tournament) -> tuple[list[GameRow], int]:
    """The games that count, and how many truncated ones were left out."""
    if tournament.truncated == "score":
        return rows, 0
    kept = [row for row in rows if not row.truncated]
    return kept, len(rows) - len(kept)


def _section(entry: GameEntry, rows: list[GameRow], voids: list[tuple[int, ...]], names: dict[int, str]) -> Section:
    number = {key: k for k, key in enumerate(names)}
    forfeited = Counter(number[row.agents[at]] for row in rows for at in row.forfeits)
    void = Counter(number[key] for seated in voids for key in set(seated))
    section = Section(entry.label, len(seats_of(entry)[1]), len(rows), sum(row.truncated for row in rows))
    section.forfeits = [forfeited[k] for k in range(len(names))]
    section.voids = [void[k] for k in range(len(names))]
    section.means = _means(rows, number)
    if section.seats == 2 and rows:
        _rate(section, _results({entry.label: rows}, names))
    return section


def _overall(
    sections: list[Section], by_entry: dict[int, list[GameRow]], entries: dict[int, GameEntry], names: dict[int, str]
) -> Section | None:
    rated = [(key, section) for key, section in zip(entries, sections, strict=True) if section.ratings is not None]
    if not rated:
        return None
    parts = [section for _, section in rated]
    whole = Section("All two-player games", 2, sum(s.games for s in parts), sum(s.truncated for s in parts))
    whole.forfeits = [sum(s.forfeits[k] for s in parts) for k in range(len(names))]
    whole.voids = [sum(s.voids[k] for s in parts) for k in range(len(names))]
    _rate(whole, _results({entries[key].label: by_entry[key] for key, _ in rated}, names))
    return whole


def _results(games: dict[str, list[GameRow]], names: dict[int, str]) -> Results:
    return Results.of(
        [
            (label, names[row.agents[0]], names[row.agents[1]], outcome(row.returns, row.forfeits), row.block)
            for label, rows in games.items()
            for row in rows
        ],
        list(names.values()),
    )


def _rate(section: Section, results: Results) -> None:
    section.ratings = rate(results)
    n = len(results.players)
    points, games = np.zeros((n, n)), np.zeros((n, n), dtype=np.int64)
    for one, other, worth in (
        (results.first, results.second, (1, 0.5, 0)),
        (results.second, results.first, (0, 0.5, 1)),
    ):
        np.add.at(points, (one, other), np.array(worth)[results.outcome])
        np.add.at(games, (one, other), 1)
    section.pairs = [
        [Pair(float(points[i, j] / games[i, j]), int(games[i, j])) if games[i, j] else None for j in range(n)]
        for i in range(n)
    ]


def _means(rows: list[GameRow], number: dict[int, int]) -> list[Mean | None]:
    seated = [
        (number[key], row.block, earned) for row in rows for key, earned in zip(row.agents, row.returns, strict=True)
    ]
    if not seated:
        return [None] * len(number)
    player, block, value = zip(*seated, strict=True)
    _, cluster = np.unique(np.array(block), return_inverse=True)
    return mean_returns(len(number), np.array(player), cluster, np.array(value, dtype=np.float64))


def _notes(
    by_entry: dict[int, list[GameRow]], entries: dict[int, GameEntry], names: dict[int, str], dropped: int
) -> list[str]:
    notes = [f"{dropped} truncated games are left out, as the tournament declares."] if dropped else []
    for key, rows in by_entry.items():
        alike = [" – ".join(names[agent] for agent in seated) for seated in _alike(rows)]
        if alike:
            notes.append(
                f"{entries[key].label}: nothing is random between {'; '.join(alike)}: all their games in these seats"
                " are the same move by move, and prove less than their number says."
            )
    return notes


def _alike(rows: list[GameRow]) -> list[tuple[int, ...]]:
    """Seatings whose games were all the same, forfeits apart."""
    seen: defaultdict[tuple[int, ...], list[str]] = defaultdict(list)
    for row in rows:
        if not row.forfeits:
            seen[row.agents].append(row.digest)
    return [seated for seated, digests in sorted(seen.items()) if len(digests) >= _ALIKE and len(set(digests)) == 1]
