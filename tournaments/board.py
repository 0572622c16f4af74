"""What a leaderboard says: the data that terminal, pages and downloads show. Nothing is worked out here."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from arena.tournaments.conduct import Conduct
from arena.tournaments.config import Tournament
from arena.tournaments.ratings import Ratings
from arena.tournaments.readings import Spent

__all__ = [
    "MARKS",
    "AgentTotals",
    "Beside",
    "Board",
    "Curve",
    "Kind",
    "Method",
    "Pair",
    "Residual",
    "Row",
    "Seat",
    "Section",
    "Standings",
]

_NONE = Conduct()
_NOT = Spent(0, 0, 0.0)


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
    """Probability that it is the best of those that can be compared with it."""
    letters: str = ""
    """Agents that share a letter do not differ significantly."""
    mean: float | None = None
    """Mean return, where tasks or scores are rated."""
    score: float | None = None
    """Mean normalised score where the game pays scores: 1 is the most there is, 0 as `Section.zero` says."""
    score_half: float | None = None
    """Half of its 95 % interval; None as in `half`."""
    p50: float | None = None
    """Median seconds of an answer of a model."""
    p95: float | None = None
    truncated: int = 0
    """Games that were cut short and count."""
    group: int = 0
    """Agents of different groups never met, not even through others, and are not compared."""
    shrunk: float | None = None
    """Its Elo in this game as the fit over all games sees it: nearer to the overall one where few games tell."""
    mean_rank: float | None = None
    """Mean of its ranks in the single games, in the table over all games."""
    wasted: Conduct = _NONE
    """How it answered in void attempts: tokens and cost that came to nothing."""

    @property
    def illegal(self) -> float:
        """The share of its replies that were illegal, unreadable or cut, 0 to 1."""
        return self.conduct.share(self.conduct.wrong)

    @property
    def tokens(self) -> float | None:
        """Tokens a move, read and written; None: no model was asked."""
        told = self.conduct
        return (told.prompt_tokens + told.completion_tokens) / told.turns if told.calls and told.turns else None

    @property
    def cost(self) -> float | None:
        """Dollars; None: no price is known."""
        return self.conduct.cost or None

    @property
    def win_rate(self) -> float | None:
        """(Wins + draws / 2) / games; None: nothing is won or lost."""
        counted = self.won + self.drawn + self.lost
        return (self.won + self.drawn / 2) / counted if counted else None


@dataclass(frozen=True)
class AgentTotals:
    """What is counted of one agent, over all games."""

    name: str
    games: int
    forfeits: int
    voids: int
    """Void attempts at games it sat in."""
    spec: str = ""
    """What it was made from."""
    identity: str = ""
    """What makes it the player it is: its spec without host, port and key."""
    conduct: Conduct = _NONE
    """How it answered in the games that count."""
    wasted: Conduct = _NONE
    """How it answered in void attempts."""
    p50: float | None = None
    """Median seconds of an answer of a model."""
    p95: float | None = None
    truncated: int = 0
    anchor: float | None = None
    """The Elo that the tournament fixes for it."""


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

    @property
    def circular(self) -> bool:
        """Whether cycles are more than chance makes: twice what it would give on average, and a point more."""
        return self.cycle > 2 * self.cycle_noise + 0.01


MARKS = {
    "undefeated": "never lost a point: only a weak prior says how far ahead it is",
    "winless": "never won a point: only a weak prior says how far behind it is",
    "one-sided": "some of its group never lost a point to the others: only a weak prior says how far ahead they are",
    "few games": "too few games for a rating that the prior does not touch",
    "separate group": "never met the agents of other groups, not even through others: it is not compared with them",
    "few common tasks": "shares few tasks with the others: the rating hangs on how hard the model takes tasks to be",
    "all solved": "solved every task: only a weak prior says how far ahead it is",
    "none solved": "solved no task: only a weak prior says how far behind it is",
    "never apart from a team-mate": "always on one side with somebody: nothing tells what is whose",
    "anchor": "its rating is given, not measured",
}
"""What the flags of rows mean."""

Kind = Literal["pairs", "ranked", "teams", "tasks", "scores", "overall"]


class Seat(NamedTuple):
    """What a seat, side or team of a game is worth."""

    label: str
    """"first seat", "seat 2", or the name of a team or role."""
    games: int
    share: float
    """(Wins + draws / 2) / games of those who sat there; of many seats, the share of opponents they came before."""
    elo: float | None = None
    """Elo points that it is worth."""
    half: float | None = None
    """Half of the 95 % interval."""


class Standings(NamedTuple):
    """What a Swiss or a knockout tournament has come to in one game, beside the ratings."""

    label: str
    """Of the game."""
    title: str
    """"Swiss, 5 rounds" or "Knockout"."""
    columns: tuple[str, ...]
    """Headings; the agent's comes first."""
    rows: list[tuple[int, tuple[str, ...]]]
    """Agent (number in `Board.agents`) and the other cells, in order."""
    bracket: tuple[tuple[tuple[int | None, int | None, str], ...], ...] = ()
    """Knockout: by round, every tie's two agents (None: not known yet, or none) and its result."""


class Method(NamedTuple):
    """How the tables came about, and how to get them again."""

    schedule: str
    stop: str
    """What the tournament is to end by."""
    ended: str
    """Why it is where it is: "every game is finished", "120 of 200 games are finished", ..."""
    seeds: tuple[int, int]
    """The first and the last block's."""
    schema: int
    """Of the store."""
    command: str
    """Plays the same tournament again."""


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
    """Of every row against every row, where they are compared by pairs; many seats: who came before whom."""
    kind: Kind = "scores"
    """What is compared: results of two, ranks of many, teams, solved tasks, or scores on the same seeds."""
    game: str = ""
    """Id of the game; "": several."""
    beside: Beside | None = None
    curve: Curve | None = None
    sides: list[Seat] = field(default_factory=list)
    """What its seats are worth; []: it has one, or several games are told together."""
    zero: str = ""
    """What a normalised score of 0 is, where there are scores: `the mean of "random"`, "the least return"."""
    spread: float | None = None
    """Over all games: Elo points by which a rating in one game differs from the overall one, beyond chance."""
    dropped: int = 0
    """Truncated games that are left out, as the tournament declares."""
    voids: int = 0
    """Void attempts."""
    groups: int = 1
    """How many groups of agents there are that cannot be compared."""

    @property
    def rated(self) -> bool:
        """Whether the rows hold Elo, not mean returns."""
        return self.ratings is not None

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
    """One fit of all rated games, each with the same weight; None: there are fewer than two."""
    finished: int
    planned: int
    voids: int
    void_reasons: list[tuple[str, int]]
    notes: list[str]
    """What a reader should know before believing the tables."""
    method: Method | None = None
    standings: list[Standings] = field(default_factory=list)
    """Of Swiss and knockout tournaments."""
    spent: Spent = _NOT
    """Void attempts and games that are left out too."""
    downloads: tuple[str, ...] = ()
    """Names of the files that `arena.tournaments.downloads.write` makes of this run."""

    @property
    def title(self) -> str:
        """The tournament's name, else its games."""
        ids = [entry.id for entry in self.tournament.games]
        games = ", ".join(entry.id if ids.count(entry.id) == 1 else entry.label for entry in self.tournament.games)
        return self.tournament.name or (games if len(self.tournament.games) < 4 else "Tournament")

    @property
    def marks(self) -> dict[str, str]:
        """The flags that any row has, and what they mean."""
        tables = [*self.sections, *([self.overall] if self.overall is not None else [])]
        seen = {flag for section in tables for row in section.rows for flag in row.flags}
        return {flag: meaning for flag, meaning in MARKS.items() if flag in seen}

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
