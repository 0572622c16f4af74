"""How a tournament is scheduled and when it ends, as its configuration says it; and how one line of text says it.

`arena.tournaments.checks` says which values are allowed.
"""

from typing import Any, Literal, get_args, get_origin, get_type_hints
from urllib.parse import unquote

import msgspec

from arena.registry import parse_value, unknown

__all__ = [
    "SCHEDULES",
    "Adaptive",
    "ConfigError",
    "Gauntlet",
    "Knockout",
    "Listed",
    "RoundRobin",
    "Schedule",
    "Sprt",
    "Stop",
    "Swiss",
    "schedule_of",
    "stop_of",
]


class ConfigError(ValueError):
    """The configuration cannot be played; one line says why and what is allowed."""


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
    """Further blocks of a level tie, until the better seeded agent goes on."""
    seeding: Literal["listed", "rated"] = "listed"
    """Agents are seeded as they are listed, or by the Elo of the tournament's `anchors`; those without come last."""
    third: bool = False
    """Whether the losers of the semi-finals meet for the third place."""


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
    """What the Elo points of `elo0` and `elo1` are: of the score, or of the score over its standard deviation."""
    agents: tuple[str, ...] = ()
    """Names of the two; (): the first two of the tournament."""


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


def schedule_of(text: str) -> dict[str, Any]:
    """The table that one line stands for: a kind, and options as a query.

    Lists are separated by commas, the agents of a table by bars; what would separate is written %2C and %7C within a
    name, & as %26 and % as %25.

    >>> schedule_of("adaptive?uniform=0.1"), schedule_of("gauntlet?anchors=random,mcts%26co")
    ({'kind': 'adaptive', 'uniform': 0.1}, {'kind': 'gauntlet', 'anchors': ['random', 'mcts&co']})
    >>> schedule_of("list?tables=a|b,a|c")
    {'kind': 'list', 'tables': [['a', 'b'], ['a', 'c']]}

    Raises ConfigError for an unknown kind or option.
    """
    kind, _, query = text.strip().partition("?")
    if kind not in SCHEDULES:
        raise ConfigError(str(unknown("schedule", kind, SCHEDULES)))
    hints = get_type_hints(SCHEDULES[kind])
    table: dict[str, Any] = {"kind": kind}
    for key, value in _pairs(query, "&"):
        if key not in hints:
            raise ConfigError(str(unknown(f"option of schedule {kind}", key, hints)))
        table[key] = _listed(value, hints[key])
    return table


def _listed(text: str, hint: Any) -> Any:
    """The text as a value: a tuple is split at commas, a tuple of tuples at bars as well."""
    if get_origin(hint) is not tuple:
        return parse_value(unquote(text))
    parts = text.split(",") if text else []
    if get_origin(get_args(hint)[0]) is tuple:
        return [[unquote(name) for name in part.split("|")] for part in parts]
    return [unquote(part) for part in parts]


def stop_of(text: str) -> dict[str, Any]:
    """The table that one line stands for; `sprt` is elo0:elo1, then alpha, beta and the model where they are given.

    >>> stop_of("interval=100,games=2000"), stop_of("sprt=0:50:0.1")
    ({'interval': 100, 'games': 2000}, {'sprt': {'elo0': 0, 'elo1': 50, 'alpha': 0.1}})

    Raises ConfigError for an unknown rule.
    """
    table: dict[str, Any] = {}
    for key, value in _pairs(text.strip(), ","):
        if key not in Stop.__struct_fields__:
            raise ConfigError(str(unknown("stopping rule", key, Stop.__struct_fields__)))
        table[key] = _sprt(value) if key == "sprt" else parse_value(value)
    if not table:
        raise ConfigError(f"no stopping rule: write NAME=VALUE,... of {', '.join(Stop.__struct_fields__)}")
    return table


_SPRT = ("elo0", "elo1", "alpha", "beta", "model")


def _sprt(text: str) -> dict[str, Any]:
    values = text.split(":")
    if not 2 <= len(values) <= len(_SPRT):
        raise ConfigError(f"sprt={text[:60]!r}: write {':'.join(_SPRT)}; the last three may be left out")
    return dict(zip(_SPRT, map(parse_value, values), strict=False))


def _pairs(text: str, separator: str) -> list[tuple[str, str]]:
    """The (key, value) of every part of the text. Raises ConfigError for a part without a value, or a key twice."""
    pairs = [
        (key.strip(), value.strip()) for key, _, value in [p.partition("=") for p in text.split(separator)] if text
    ]
    for key, value in pairs:
        if not value:
            raise ConfigError(f"{key[:60]!r} has no value: write NAME=VALUE{separator}...")
        if sum(key == other for other, _ in pairs) > 1:
            raise ConfigError(f"{key[:60]!r} stands there twice")
    return pairs
