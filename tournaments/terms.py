"""How a tournament is scheduled and when it ends, as its configuration says it: data only, checked where it is read."""

from typing import Literal

import msgspec

__all__ = ["SCHEDULES", "Adaptive", "Gauntlet", "Knockout", "Listed", "RoundRobin", "Schedule", "Sprt", "Stop", "Swiss"]


class RoundRobin(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="round-robin"):
    """Every pair of agents, as many blocks as the tournament says."""


class Gauntlet(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="gauntlet"):
    """The anchors meet everybody else, and the others do not meet each other."""

    anchors: tuple[str, ...] = ()
    """Names of agents; (): the first one."""


class Swiss(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="swiss"):
    """Rounds, in which agents with like scores meet who have not met before."""

    rounds: int | None = None
    """None: as many as a knockout would have. In each, a pairing plays the tournament's blocks."""


class Knockout(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="knockout"):
    """A bracket; a tie is the tournament's blocks, and further ones while it is level."""

    extra: int = 20
    """Further blocks of a level tie, until the better seeded agent (the one listed first) goes on."""


class Adaptive(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="adaptive"):
    """Each time the pair whose games would narrow the ratings most; as many blocks as a round robin has, at most."""

    uniform: float = 0.2
    """The share of blocks whose pair is drawn at random."""


class Listed(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="list"):
    """These tables and no others, each the tournament's blocks."""

    tables: tuple[tuple[str, ...], ...] = ()
    """Names of the agents at each."""


Schedule = RoundRobin | Gauntlet | Swiss | Knockout | Adaptive | Listed
SCHEDULES: dict[str, type[Schedule]] = {
    "round-robin": RoundRobin,
    "gauntlet": Gauntlet,
    "swiss": Swiss,
    "knockout": Knockout,
    "adaptive": Adaptive,
    "list": Listed,
}


class Sprt(msgspec.Struct, frozen=True, omit_defaults=True):
    """A sequential test between two agents: is the first `elo1` better than the second, or only `elo0`?"""

    elo0: float = 0.0
    elo1: float = 50.0
    alpha: float = 0.05
    """The chance to accept `elo1` where `elo0` is true."""
    beta: float = 0.05
    """The chance to accept `elo0` where `elo1` is true."""
    model: Literal["logistic", "normalized"] = "logistic"


class Stop(msgspec.Struct, frozen=True, omit_defaults=True):
    """When a tournament ends before its schedule does: as soon as one of these holds."""

    interval: float | None = None
    """Every rating's 95 % interval is at most this many Elo points wide, from end to end."""
    ranks: float | None = None
    """Of all agents next to each other in the table, the better one is better with this probability."""
    sprt: Sprt | None = None
    games: int | None = None
    """Games finished."""
    tokens: int | None = None
    """Tokens spent, prompts and answers, void attempts too."""
    dollars: float | None = None
    """Where prices are known."""
    minutes: float | None = None
    """Of this run."""
