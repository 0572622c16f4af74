"""What a store's games say: ratings, scores and their caveats, ready to be shown by a terminal, a page or a file."""

import shlex
from collections import Counter

import msgspec
import numpy as np
from numpy.typing import NDArray

from arena.tournaments.board import AgentTotals, Beside, Board, Curve, Method, Residual
from arena.tournaments.config import Tournament, dump
from arena.tournaments.downloads import available
from arena.tournaments.history import History
from arena.tournaments.notes import notes
from arena.tournaments.overall import counted, together
from arena.tournaments.past import places, rule
from arena.tournaments.schedules import most
from arena.tournaments.sections import Known, Told, told
from arena.tournaments.store import Store
from arena.tournaments.tables import SCHEMA
from arena.tournaments.terms import Schedule, Stop

__all__ = ["board"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_POINTS = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])  # of first and second seat, by outcome


def board(store: Store, *, whole: bool = True) -> Board:
    """Read a store and work all of it out.

    `whole`: with what is told beside the ratings and their history, which pages show and a terminal does not.
    """
    tournament, names = store.tournament(), tuple(store.agents().values())
    known = Known(tournament, names, store.totals())
    entries = store.entries()
    made = [told(store, key, entry, known) for key, entry in entries.items()]
    if whole:
        for key, one in zip(entries, made, strict=True):
            _beside(store, key, one, len(names))
    voids = sum(entry.voids for entry in known.totals.entries.values())
    shown = Board(
        tournament=tournament,
        toml=dump(tournament),
        versions=store.versions(),
        path=store.path,
        agents=_agents(tournament, known),
        sections=[one.section for one in made],
        overall=together(made, list(entries), known),
        finished=sum(entry.games + entry.dropped for entry in known.totals.entries.values()),
        planned=sum(most(History(tournament))),
        voids=voids,
        void_reasons=_reasons(store) if voids else [],
        notes=[],
        standings=places(store),
        spent=store.spent(),
        downloads=available(store),
    )
    shown.method = _method(shown, rule(store) if whole else "")
    shown.notes = notes(shown, [one.counts for one in made])
    return shown


def _reasons(store: Store) -> list[tuple[str, int]]:
    """The three most frequent reasons of void attempts."""
    return Counter(reason for _, _, reason in store.voids()).most_common(3)


def _agents(tournament: Tournament, known: Known) -> list[AgentTotals]:
    """What is counted of each, over all games."""
    specs = {entry.name: entry.spec for entry in tournament.agents}
    identities = dict(zip(specs, tournament.identities(), strict=True))
    agents = []
    for number, name in enumerate(known.names):
        of = counted(known, number, set(known.totals.entries))
        agents.append(
            AgentTotals(
                name,
                of.games,
                of.forfeits,
                of.voids,
                spec=specs.get(name, ""),
                identity=identities.get(name, ""),
                conduct=of.conduct,
                wasted=of.wasted,
                p50=of.latency.p50,
                p95=of.latency.p95,
                truncated=of.truncated,
                anchor=tournament.anchors.get(name),
            )
        )
    return agents


def _beside(store: Store, key: int, one: Told, agents: int) -> None:
    """Nash weights and their like, and the history."""
    from arena.tournaments.ratings.beside import beside

    section = one.section
    if one.results is not None and section.ratings is not None:
        found = beside(one.results, section.ratings)
        agents_of = [row.agent for row in section.rows]
        by = {
            name: {k: float(getattr(found, name)[k]) for k in agents_of}
            for name in ("nash", "skill", "lottery", "clones")
        }
        residuals = [Residual(*residual) for residual in found.residuals]
        section.beside = Beside(
            by["nash"], by["skill"], by["lottery"], found.cycle, found.cycle_noise, by["clones"], residuals
        )
    if one.counts is not None:
        past = store.timeline(key)
        section.curve = _curve(agents, past.ended, np.stack([past.first, past.second], axis=1), _POINTS[past.outcome])
    if one.games is not None:
        from arena.tournaments.ratings.ranked import rank

        order = rank(one.games.returns, one.games.forfeits)
        section.curve = _curve(agents, one.games.ended, one.games.agents, -order.astype(np.float64))


def _curve(agents: int, ended: Floats, seated: Ints, points: Floats) -> Curve:
    from arena.tournaments.ratings.online import curve

    drawn = curve(agents, ended, seated, points)
    known = ~np.isnan(drawn.elo)
    elo = {
        agent: [value if there else None for value, there in zip(line.tolist(), seen.tolist(), strict=True)]
        for agent, (line, seen) in enumerate(zip(drawn.elo.T, known.T, strict=True))
        if seen.any()
    }
    return Curve(drawn.games.tolist(), drawn.times.tolist(), elo)


def _method(shown: Board, rule: str) -> Method:
    asked = shown.tournament
    return Method(
        schedule=_told(asked.schedule),
        stop=_limits(asked.stop),
        ended=f"{shown.finished} of {shown.planned} games are finished{f'; {rule}' if rule else ''}",
        seeds=(asked.seed, shown.last_seed),
        schema=SCHEMA,
        command=_command(shown),
    )


def _told(schedule: Schedule) -> str:
    """The kind of schedule, and what was asked of it.

    >>> from arena.tournaments.terms import Swiss
    >>> _told(Swiss(rounds=5))
    'swiss (rounds 5)'
    """
    given = [f"{name} {_plain(getattr(schedule, name))}" for name in schedule.__struct_fields__]
    kind = str(schedule.__struct_config__.tag)
    return f"{kind} ({', '.join(given)})" if given else kind


def _limits(stop: Stop) -> str:
    """What ends it before its schedule does.

    >>> _limits(Stop(games=100, interval=40.0)), _limits(Stop())
    ('interval 40.0, games 100', '')
    """
    limits = [(name, getattr(stop, name)) for name in stop.__struct_fields__]
    return ", ".join([f"{name} {_plain(value)}" for name, value in limits if value is not None])


def _plain(value: object) -> str:
    if isinstance(value, msgspec.Struct):
        return " ".join([f"{name}={getattr(value, name)}" for name in value.__struct_fields__])
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _command(shown: Board) -> str:
    """The command that plays the same tournament again."""
    if str(shown.path).startswith("postgresql:"):  # its configuration stands on the page, in no folder that is known
        return "arena tournament run tournament.toml --out again"
    folder = shown.path.parent
    return f"arena tournament run {shlex.quote(str(folder / 'tournament.toml'))} --out {shlex.quote(str(folder))}-again"
