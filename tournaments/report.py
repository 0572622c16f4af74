"""What a store's games say: ratings, scores and their caveats, ready to be shown by a terminal, a page or a file."""

import shlex
from collections import Counter

import msgspec
import numpy as np

from arena.tournaments.board import AgentTotals, Beside, Board, Curve, Method, Residual
from arena.tournaments.conduct import Conduct
from arena.tournaments.config import Tournament, dump
from arena.tournaments.notes import notes
from arena.tournaments.schedule import count
from arena.tournaments.sections import Known, Told, told
from arena.tournaments.store import Store
from arena.tournaments.tables import SCHEMA
from arena.tournaments.terms import Schedule, Stop

__all__ = ["board"]

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
    voids = store.voids()
    shown = Board(
        tournament=tournament,
        toml=dump(tournament),
        versions=store.versions(),
        path=store.path,
        agents=_agents(tournament, known),
        sections=[one.section for one in made],
        overall=None,
        finished=sum(entry.games + entry.dropped for entry in known.totals.entries.values()),
        planned=sum(count(tournament)),
        voids=len(voids),
        void_reasons=Counter(reason for _, _, reason in voids).most_common(3),
        notes=[],
        spent=store.spent(),
    )
    shown.method = _method(shown)
    shown.notes = notes(shown, [one.counts for one in made])
    return shown


def _agents(tournament: Tournament, known: Known) -> list[AgentTotals]:
    """What is counted of each, over all games."""
    specs = {entry.name: entry.spec for entry in tournament.agents}
    identities = dict(zip(specs, tournament.identities(), strict=True))
    agents = []
    for number, name in enumerate(known.names):
        counts = [of for (_, agent), of in known.totals.agents.items() if agent == number]
        latency = counts[0].latency if counts else None
        for more in counts[1:]:
            latency = latency.plus(more.latency) if latency else more.latency
        agents.append(
            AgentTotals(
                name,
                sum(of.games for of in counts),
                sum(of.forfeits for of in counts),
                sum(of.voids for of in counts),
                spec=specs.get(name, ""),
                identity=identities.get(name, ""),
                conduct=sum([of.conduct for of in counts], Conduct()),
                p50=latency.p50 if latency else None,
                p95=latency.p95 if latency else None,
                truncated=sum(of.truncated for of in counts),
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
    if section.kind == "pairs" and section.rows:
        section.curve = _curve(store, key, agents)


def _curve(store: Store, key: int, agents: int) -> Curve:
    from arena.tournaments.ratings.online import curve

    past = store.timeline(key)
    seats, points = np.stack([past.first, past.second], axis=1), _POINTS[past.outcome]
    drawn = curve(agents, past.ended, seats, points)
    known = ~np.isnan(drawn.elo)
    elo = {
        agent: [None if value != value else value for value in drawn.elo[:, agent].tolist()]
        for agent in np.flatnonzero(known.any(axis=0)).tolist()
    }
    return Curve(drawn.games.tolist(), drawn.times.tolist(), elo)


def _method(shown: Board) -> Method:
    asked = shown.tournament
    return Method(
        schedule=_told(asked.schedule),
        stop=_limits(asked.stop),
        ended=f"{shown.finished} of {shown.planned} games are finished",
        seeds=(asked.seed, shown.last_seed),
        schema=SCHEMA,
        command=_command(shown),
    )


def _told(schedule: Schedule) -> str:
    """The kind of schedule, and what was asked of it.

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
    folder = shown.path.parent
    return f"arena tournament run {shlex.quote(str(folder / 'tournament.toml'))} --out {shlex.quote(str(folder))}-again"
