"""What a leaderboard says: the data that terminal, pages and downloads show. Nothing is worked out here."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from arena.tournaments.conduct import Conduct
from arena.tournaments.config import Tournament
from arena.tournaments.ratings import Ratings

__all__ = ["AgentTotals", "Beside", "Board", "Curve", "Kind", "Pair", "Residual", "Row", "Section"]


class Pair(NamedTuple):
    """How one agent did against another: `score` is (wins + draws / 2) / games."""

    score: float
    games: int


@dataclass(frozen=True, kw_only=True)
class Row:
    """One agent in one table."""

    rank: int
    """From 1; equal values share one."""
    agent: int
    """Its number in `Board.agents`."""
    name: str
    games: int
    value: float
    """Elo where the table is rated, else the mean return."""
    half: float | None
    """Half of the 95 % interval; None: no block differs from another, which says nothing about scatter."""
    forfeits: int
    voids: int
    """Void attempts at games it sat in; whose fault they were is not known."""
    conduct: Conduct
    """How it answered in these games."""
    won: int = 0
    drawn: int = 0
    lost: int = 0
    flags: tuple[str, ...] = ()
    """What there is to say against its rating."""
    low: int = 0
    """The best rank of its 95 % interval, where the table is rated."""
    high: int = 0
    """The worst."""
    best: float | None = None
    """Probability that it is the best of the table."""
    letters: str = ""
    """Agents that share a letter do not differ significantly."""
    score: float | None = None
    """Mean normalised score, 0 to 1, where the game pays scores."""
    p50: float | None = None
    """Median seconds of an answer."""
    p95: float | None = None


@dataclass(frozen=True)
class AgentTotals:
    """What is counted of one agent, over all games."""

    name: str
    games: int
    forfeits: int
    voids: int
    """Void attempts at games it sat in."""


class Residual(NamedTuple):
    """A pair whose games differ from what the ratings say of them."""

    first: int
    """Number in `Board.agents`."""
    second: int
    games: int
    expected: float
    """Score of the first, 0 to 1."""
    seen: float
    z: float
    """The difference in standard errors."""


class Curve(NamedTuple):
    """Online Elo while games ended: history, not the rating."""

    games: list[int]
    """Games finished at every point."""
    times: list[float]
    """Seconds since the epoch at every point."""
    elo: dict[int, list[float | None]]
    """By agent; None: before its first game."""


class Beside(NamedTuple):
    """What is told beside the ratings, by agent (number in `Board.agents`)."""

    nash: dict[int, float]
    """Its weight in the equilibrium of the game of choosing an agent (Nash averaging)."""
    skill: dict[int, float]
    """Its expected score against that equilibrium, 0.5 for all that are in it."""
    lottery: dict[int, float]
    """Its weight in the maximal lottery of majorities."""
    cycle: float
    """Share of what is seen between pairs that no one number for each agent can tell, 0 to 1."""
    cycle_noise: float
    """What chance alone would give of it, if the ratings were the whole truth."""
    clones: dict[int, float]
    """How far the ratings of the others move, at most, in Elo, if this agent were there five more times."""
    residuals: list[Residual]
    """The most surprising pairs first."""


Kind = Literal["pairs", "ranked", "teams", "tasks", "scores"]


@dataclass
class Section:
    """One game of the tournament, or several together."""

    label: str
    seats: int
    games: int = 0
    truncated: int = 0
    rows: list[Row] = field(default_factory=list)
    """The agents that have games, best first."""
    ratings: Ratings | None = None
    """Of all agents, where the rows are rated; None: they hold mean returns."""
    pairs: list[list[Pair | None]] = field(default_factory=list)
    """Of every row against every row, where they are rated."""
    kind: Kind = "scores"
    """What is compared: results of two, ranks of many, teams, solved tasks, or scores on the same seeds."""
    game: str = ""
    """Id of the game; "": several."""
    beside: Beside | None = None
    curve: Curve | None = None

    def of(self, agent: int) -> Row | None:
        """The row of an agent."""
        return next((row for row in self.rows if row.agent == agent), None)


@dataclass
class Board:
    """A whole tournament as it stands."""

    tournament: Tournament
    toml: str
    versions: dict[str, str]
    path: Path
    agents: list[AgentTotals]
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
        ids = [entry.id for entry in self.tournament.games]
        games = ", ".join(entry.id if ids.count(entry.id) == 1 else entry.label for entry in self.tournament.games)
        return self.tournament.name or (games if len(self.tournament.games) < 4 else "Tournament")

    @property
    def conduct(self) -> list[Conduct]:
        """How each agent answered in the games of all sections, in the order of `agents`."""
        summed = [Conduct()] * len(self.agents)
        for row in (row for section in self.sections for row in section.rows):
            summed[row.agent] += row.conduct
        return summed

    @property
    def last_seed(self) -> int:
        """The seed of the last block."""
        asked = self.tournament
        return asked.seed + max(asked.blocks_of(entry) for entry in asked.games) - 1
