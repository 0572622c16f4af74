"""The games of a tournament in one table."""

from dataclasses import replace

from arena.tournaments.board import Section
from arena.tournaments.conduct import Conduct
from arena.tournaments.heat import Heat
from arena.tournaments.readings import AgentCount, Latency
from arena.tournaments.sections import Known, Told, rows

__all__ = ["counted", "together"]


def together(made: list[Told], entries: list[int], known: Known) -> Section | None:
    """One fit of all rated games, each with the same weight; None: under two are rated.

    `entries`: the numbers of the sections' games in the store. Rows of single games are told their ratings as this fit
    sees them (`Row.shrunk`).
    """
    rated = [(key, one) for key, one in zip(entries, made, strict=True) if one.section.ratings is not None]
    if len(rated) < 2:
        return None
    from arena.tournaments.ratings.overall import overall

    sections = [one.section for _, one in rated]
    tables = {section.label: section.ratings for section in sections if section.ratings is not None}
    joint = overall(tables, anchors=known.tournament.anchors)
    for section in sections:
        shrunk = joint.games[section.label]
        section.rows = [replace(row, shrunk=float(shrunk[row.agent])) for row in section.rows]
    whole = Section(
        "All games",
        0,
        games=sum(section.games for section in sections),
        truncated=sum(section.truncated for section in sections),
        dropped=sum(section.dropped for section in sections),
        voids=sum(section.voids for section in sections),
        kind="overall",
        spread=joint.spread,
    )
    keys = {key for key, _ in rated}
    counts = [counted(known, agent, keys) for agent in range(len(known.names))]
    whole.ratings = joint.ratings
    whole.rows = [replace(row, mean_rank=_mean_rank(row.agent, sections)) for row in rows(joint.ratings, counts)]
    whole.groups = len({row.group for row in whole.rows})
    heat = Heat(len(known.names))
    for _, one in rated:
        if one.heat is not None:
            heat.points += one.heat.points
            heat.games += one.heat.games
    whole.pairs = heat.cells([row.agent for row in whole.rows])
    return whole


def _mean_rank(agent: int, sections: list[Section]) -> float | None:
    """Of its ranks in single games, but those of groups that are not compared; None: there are none."""
    found = [row.rank for section in sections if section.groups == 1 and (row := section.of(agent)) is not None]
    return sum(found) / len(found) if found else None


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
