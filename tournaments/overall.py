"""The games of a tournament in one table."""

from dataclasses import replace

import numpy as np

from arena.tournaments.board import Section
from arena.tournaments.conduct import Conduct
from arena.tournaments.heat import met
from arena.tournaments.ratings import Ratings, Results, rate
from arena.tournaments.readings import AgentCount, Latency
from arena.tournaments.sections import Known, Told, rows

__all__ = ["counted", "together"]


def together(made: list[Told], entries: list[int], known: Known) -> Section | None:
    """One fit of all two-player games, beside each agent's mean rank in its games; None: under two have been played.

    `entries`: the numbers of the sections' games in the store.
    """
    pairs = [(key, one) for key, one in zip(entries, made, strict=True) if one.counts is not None]
    if len(pairs) < 2:
        return None
    results = _joined([one.results for _, one in pairs if one.results is not None])
    sections = [one.section for _, one in pairs]
    whole = Section(
        "All two-player games",
        2,
        games=sum(section.games for section in sections),
        truncated=sum(section.truncated for section in sections),
        dropped=sum(section.dropped for section in sections),
        voids=sum(section.voids for section in sections),
        kind="overall",
    )
    counts = [counted(known, agent, {key for key, _ in pairs}) for agent in range(len(known.names))]
    _fill(whole, rate(results, anchors=known.tournament.anchors), counts, results, [one.section for one in made])
    return whole


def _fill(whole: Section, rated: Ratings, counts: list[AgentCount], results: Results, sections: list[Section]) -> None:
    heat = met(len(counts), results.first, results.second, results.outcome, results.times)
    whole.ratings, made = rated, rows(rated, counts)
    whole.rows = [replace(row, mean_rank=_mean_rank(row.agent, sections)) for row in made]
    whole.pairs = heat.cells([row.agent for row in whole.rows])
    whole.groups = len({row.group for row in whole.rows})


def _mean_rank(agent: int, sections: list[Section]) -> float | None:
    """Of its ranks in single games, but those of groups that are not compared; None: there are none."""
    found = [row.rank for section in sections if section.groups == 1 and (row := section.of(agent)) is not None]
    return sum(found) / len(found) if found else None


def _joined(every: list[Results]) -> Results:
    """Results of several games as one."""
    first, clusters = every[0], np.cumsum([0, *[int(one.cluster.max()) + 1 for one in every]])
    games = np.cumsum([0, *[len(one.games) for one in every]])
    ones = [np.ones(len(one.first)) for one in every]
    return Results(
        first.players,
        tuple([name for one in every for name in one.games]),
        np.concatenate([one.game + shift for one, shift in zip(every, games, strict=False)]),
        np.concatenate([one.first for one in every]),
        np.concatenate([one.second for one in every]),
        np.concatenate([one.outcome for one in every]),
        np.concatenate([one.cluster + shift for one, shift in zip(every, clusters, strict=False)]),
        np.concatenate([some if one.weight is None else one.weight for one, some in zip(every, ones, strict=True)]),
        np.concatenate([some if one.times is None else one.times for one, some in zip(every, ones, strict=True)]),
    )


def counted(known: Known, agent: int, entries: set[int]) -> AgentCount:
    """What is counted of an agent in some entries together."""
    counts = [count for (key, who), count in known.totals.agents.items() if who == agent and key in entries]
    latency = Latency({})
    for count in counts:
        latency = latency.plus(count.latency)
    return AgentCount(
        sum(count.games for count in counts),
        sum(count.forfeits for count in counts),
        sum(count.truncated for count in counts),
        sum(count.voids for count in counts),
        sum([count.conduct for count in counts], Conduct()),
        latency,
        sum([count.wasted for count in counts], Conduct()),
    )
