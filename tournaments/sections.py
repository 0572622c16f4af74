"""A game of a tournament as a section of its board: the model that fits it, a row for each agent, seats, heat map.

| seats | what is compared | kind |
|---|---|---|
| two | wins, draws and losses, with a term for the first seat | pairs |
| more, each for itself | rankings | ranked |
| more, in teams | which team came before which | teams |
| one, returns of 0 to 1 | solved tasks, each as hard as it is | tasks |
| one, any returns | better or worse on the same seed | scores |

Each model is loaded where a game needs it.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.game import Game
from arena.registry import make_game
from arena.tournaments.board import Kind, Row, Seat, Section
from arena.tournaments.config import GameEntry, Tournament
from arena.tournaments.heat import Heat, matched, met, ranked_before
from arena.tournaments.ratings import Mean, Ratings, Results, mean_returns, rate
from arena.tournaments.readings import AgentCount, Answers, EntryCount, PairCounts, RankedGames, Totals
from arena.tournaments.scores import NO_SEATS, Scale, comparisons, scale
from arena.tournaments.store import Store

__all__ = ["Known", "Told", "kind_of", "ranks", "rows", "told"]

Floats = NDArray[np.float64]

_TIED = 1e-6  # values that differ less are equal
_LOOK = 200  # games that tell how teams are called
FIRST, SECOND = "first seat", "second seat"


class Known(NamedTuple):
    """What all sections share."""

    tournament: Tournament
    names: tuple[str, ...]
    """Agents in the order of the board."""
    totals: Totals


class Told(NamedTuple):
    """A section and what it was made of."""

    section: Section
    results: Results | None = None
    """Two-player results, or comparisons on the same seeds, where it is rated by them."""
    counts: PairCounts | None = None
    """Of two-player games."""
    games: RankedGames | None = None
    """Of games of more seats."""
    heat: Heat | None = None
    """Where it is rated."""


def kind_of(game: Game) -> Kind:
    """The model that fits a game."""
    seats = game.players - len(game.house)
    if seats == 1:
        return "tasks" if tuple(game.reward_range()) == (0.0, 1.0) else "scores"
    teams = game.teams()
    if teams is not None and len(set(teams)) > 1:
        return "teams"
    return "pairs" if seats == 2 else "ranked"


def told(store: Store, key: int, entry: GameEntry, known: Known) -> Told:
    """The section of one game; `key`: its number in the store."""
    game, count = make_game(entry.id, 0, entry.options), known.totals.entries.get(key, EntryCount())
    section = Section(
        entry.label,
        game.players - len(game.house),
        games=count.games,
        truncated=count.truncated,
        dropped=count.dropped,
        voids=count.voids,
        kind=kind_of(game),
        game=entry.id,
    )
    if not section.games:
        return Told(section)
    return _MAKERS[section.kind](_Work(store, key, game, section, known))


class _Work(NamedTuple):
    """What a section is made from."""

    store: Store
    key: int
    game: Game
    section: Section
    known: Known

    @property
    def counts(self) -> list[AgentCount]:
        """Of every agent."""
        agents = self.known.totals.agents
        return [agents.get((self.key, agent), AgentCount()) for agent in range(len(self.known.names))]

    @property
    def compared(self) -> bool:
        """Whether two agents have games."""
        return sum(count.games > 0 for count in self.counts) > 1


def rows(rated: Ratings, counts: Sequence[AgentCount]) -> list[Row]:
    """A row for each agent that has games, best first; groups one after the other, each with ranks of its own."""
    played = [k for k in range(len(counts)) if counts[k].games]
    order = sorted(played, key=lambda k: (rated.groups[k], -rated.elo[k], rated.players[k]))
    stand, made = rated.standing, []
    for group, number in enumerate(dict.fromkeys([int(rated.groups[k]) for k in order])):
        own = [k for k in order if rated.groups[k] == number]
        for place, k in zip(ranks([float(rated.elo[k]) for k in own]), own, strict=True):
            row = _row(place, k, rated.players[k], float(rated.elo[k]), float(rated.half[k]), counts[k])
            row = replace(row, won=int(rated.wins[k]), drawn=int(rated.draws[k]), lost=int(rated.losses[k]))
            row = replace(row, low=int(stand.low[k]), high=int(stand.high[k]), best=float(stand.best[k]))
            made.append(replace(row, group=group, flags=rated.flags[k], letters=stand.letters[k]))
    return made


def ranks(values: list[float]) -> list[int]:
    """Of values in order: equal ones share the first one's.

    >>> ranks([5.0, 3.0, 3.0, 1.0])
    [1, 2, 2, 4]
    """
    found: list[int] = []
    for at, value in enumerate(values):
        tied = at > 0 and abs(value - values[at - 1]) < _TIED
        found.append(found[-1] if tied else at + 1)
    return found


def _row(place: int, agent: int, name: str, value: float, half: float | None, count: AgentCount) -> Row:
    return Row(
        rank=place,
        agent=agent,
        name=name,
        games=count.games,
        value=value,
        half=half,
        forfeits=count.forfeits,
        voids=count.voids,
        truncated=count.truncated,
        conduct=count.conduct,
        wasted=count.wasted,
        p50=count.latency.p50,
        p95=count.latency.p95,
    )


def _rate(work: _Work, rated: Ratings, heat: Heat) -> Heat:
    section = work.section
    section.ratings, section.rows = rated, rows(rated, work.counts)
    section.pairs = heat.cells([row.agent for row in section.rows])
    section.groups = len({row.group for row in section.rows})
    return heat


def _pairs(work: _Work) -> Told:
    names, section = work.known.names, work.section
    counts = work.store.pairs(work.key)
    results = Results(
        names,
        (section.label,),
        np.zeros(len(counts.first), dtype=np.int64),
        counts.first,
        counts.second,
        counts.outcome,
        counts.cluster,
        counts.weight,
        counts.times,
    )
    found = met(len(names), counts.first, counts.second, counts.outcome, counts.times)
    heat = _rate(work, rate(results, anchors=work.known.tournament.anchors), found)
    share = float((counts.times * np.array([1.0, 0.5, 0.0])[counts.outcome]).sum() / counts.times.sum())
    section.sides = _sides(section, {FIRST: (counts.games, share), SECOND: (counts.games, 1 - share)})
    return Told(section, results, counts, heat=heat)


def _sides(section: Section, seen: Mapping[str, tuple[int, float]]) -> list[Seat]:
    """`seen`: games and share of what could be won, by seat."""
    assert section.ratings is not None
    worth = section.ratings.seats.get(section.label, {})
    labels = dict.fromkeys([*seen, *worth])
    return [Seat(label, *seen.get(label, (0, 0.0)), *worth.get(label, (None, None))) for label in labels]


def _average(work: _Work, games: RankedGames) -> None:
    """Mean returns; a row for each agent that has played."""
    seats, names = games.agents.shape[1], work.known.names
    flat = games.agents.ravel(), np.repeat(games.cluster, seats), games.returns.ravel()
    means = mean_returns(len(names), *flat)
    ordered = sorted([(-mean.mean, names[k], k, mean) for k, mean in enumerate(means) if mean is not None])
    shared = ranks([mean.mean for _, _, _, mean in ordered])
    work.section.rows = [
        _row(place, k, name, mean.mean, mean.half, work.counts[k])
        for place, (_, name, k, mean) in zip(shared, ordered, strict=True)
    ]


def _ranked(work: _Work) -> Told:
    from arena.tournaments.ratings.ranked import RankedResults, RankedTable, rank, rate_ranked

    section, names = work.section, work.known.names
    games = work.store.ranked(work.key)
    if not work.compared:
        _average(work, games)
        return Told(section)
    places = rank(games.returns, games.forfeits)
    table = RankedTable(np.zeros(len(places), dtype=np.int64), games.agents, places, games.cluster)
    value = -places.astype(np.float64)
    rated = rate_ranked(RankedResults(names, (section.label,), (table,)), anchors=work.known.tournament.anchors)
    heat = _rate(work, rated, ranked_before(len(names), games.agents, value))
    shares = _before(value)
    section.sides = _sides(section, {f"seat {seat}": (len(value), share) for seat, share in enumerate(shares)})
    return Told(section, games=games, heat=heat)


def _before(value: Floats) -> list[float]:
    """Of every seat the share of the others it came before; `value` has the shape (games, seats)."""
    seats = value.shape[1]
    ahead = np.sign(value[:, :, None] - value[:, None, :]).sum(axis=2).mean(axis=0)
    return [float(share) for share in (1 + ahead / max(seats - 1, 1)) / 2]


def _teams(work: _Work) -> Told:
    from arena.tournaments.ratings.ranked import rank
    from arena.tournaments.ratings.teams import TeamResults, TeamTable, rate_teams

    section, names = work.section, work.known.names
    games = work.store.ranked(work.key)
    sides = [] if games.teams is None else np.unique(games.teams).tolist()
    if games.teams is None or len(sides) < 2 or not work.compared:
        _average(work, games)
        return Told(section)
    own = [games.teams == side for side in sides]
    earned = np.stack([_earned(games, mine) for mine in own], axis=1)
    members = np.stack([np.where(mine, games.agents, -1) for mine in own], axis=1)
    places, labels = rank(earned), _labels(games, sides)
    shape = (len(places), len(sides))
    zeros, side = np.zeros(len(places), dtype=np.int64), np.broadcast_to(np.arange(len(sides)), shape)
    table = TeamTable(zeros, members, side, places, games.cluster)
    team = np.searchsorted(np.array(sides), games.teams)
    value = -np.take_along_axis(places, team, axis=1).astype(np.float64)
    rated = rate_teams(TeamResults(names, (section.label,), labels, (table,)), anchors=work.known.tournament.anchors)
    heat = _rate(work, rated, ranked_before(len(names), games.agents, value, games.teams))
    shares = _before(-places.astype(np.float64))
    section.sides = _sides(section, {label: (len(places), share) for label, share in zip(labels, shares, strict=True)})
    return Told(section, games=games, heat=heat)


def _earned(games: RankedGames, mine: NDArray[np.bool_]) -> Floats:
    """The mean return of a team's members who have not forfeited, -inf where all have, shape (games,)."""
    sound = mine & ~games.forfeits
    count = sound.sum(axis=1)
    total = np.where(sound, games.returns, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), -np.inf)


def _labels(games: RankedGames, sides: list[int]) -> tuple[str, ...]:
    """A team is called by its roles, the most frequent first, where it has any that no other has."""
    assert games.teams is not None
    roles: dict[int, Counter[str]] = {side: Counter() for side in sides}
    for row, named in zip(games.teams[:_LOOK].tolist(), games.roles[:_LOOK], strict=True):
        for side, role in zip(row, named, strict=False):
            roles[side][role] += bool(role)
    names = {side: ", ".join([role for role, count in found.most_common() if count]) for side, found in roles.items()}
    told = all(names.values()) and len(set(names.values())) == len(names)
    return tuple([names[side] if told else f"team {side}" for side in sides])


def _tasks(work: _Work) -> Told:
    from arena.tournaments.ratings.tasks import TaskResults, rate_tasks

    section, names = work.section, work.known.names
    if not work.compared:
        _average(work, work.store.ranked(work.key))
        return Told(section)
    answers = work.store.answers(work.key)
    items, task = np.unique(answers.seed, return_inverse=True)
    value = np.where(answers.forfeit, 0.0, answers.value)
    zeros = np.zeros(len(items), dtype=np.int64)
    results = TaskResults(names, (section.label,), tuple(items.tolist()), zeros, answers.agent, task, value)
    rated = rate_tasks(results, anchors=work.known.tournament.anchors)
    heat = _rate(work, rated, matched(len(names), answers.agent, answers.seed, value))
    section.rows = [replace(row, mean=mean) for row, mean in _means(section, answers, len(names))]
    (label,) = section.ratings.seats[section.label] if section.ratings else ("",)
    section.sides = _sides(section, {label: (len(value), float(value.mean()))})
    return Told(section, heat=heat)


def _means(section: Section, answers: Answers, agents: int) -> list[tuple[Row, float]]:
    """Every row with its mean return."""
    means = mean_returns(agents, answers.agent, answers.cluster, answers.value)
    return [(row, found.mean) for row in section.rows if (found := means[row.agent]) is not None]


def _scores(work: _Work) -> Told:
    section, names, tournament = work.section, work.known.names, work.known.tournament
    answers = work.store.answers(work.key)
    means = mean_returns(len(names), answers.agent, answers.cluster, answers.value)
    results = comparisons(names, section.label, answers)
    heat = None
    if len(results.outcome):
        found = met(len(names), results.first, results.second, results.outcome)
        heat = _rate(work, rate(results, prior=NO_SEATS, anchors=tournament.anchors), found)
        section.rows = [replace(row, mean=mean) for row, mean in _means(section, answers, len(names))]
    else:
        _average(work, work.store.ranked(work.key))
    shown = scale(work.game, tournament, names, means)
    if shown is not None:
        section.zero = shown.what
        section.rows = [_scored(row, shown, means[row.agent]) for row in section.rows]
    return Told(section, results if heat is not None else None, heat=heat)


def _scored(row: Row, shown: Scale, mean: Mean | None) -> Row:
    if mean is None:
        return row
    score, half = shown.of(mean)
    return replace(row, score=score, score_half=half)


_MAKERS: dict[Kind, Callable[[_Work], Told]] = {
    "pairs": _pairs,
    "ranked": _ranked,
    "teams": _teams,
    "tasks": _tasks,
    "scores": _scores,
}
