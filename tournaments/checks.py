"""Which terms a tournament may have: keys, names and ranges of a schedule, of stopping rules, anchors and endpoints."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

from arena.registry import unknown
from arena.tournaments.terms import (
    SCHEDULES,
    Adaptive,
    ConfigError,
    Gauntlet,
    Knockout,
    Listed,
    Schedule,
    Sprt,
    Stop,
    Swiss,
    schedule_of,
    stop_of,
)

__all__ = ["check_terms", "check_whole", "known_keys", "schedule_table", "stop_table"]

_MANY = 1_000_000_000
_ELO = 100_000.0  # points: beyond, no chance differs from 0 or 1
_LOGISTIC, _NORMALIZED = 1000.0, 100.0  # points of a sequential test; where its likelihoods are found with certainty
_ENDPOINT = re.compile(r"[^\s/@?#]+:\d{1,5}")


class _Terms(Protocol):
    """What is checked of a tournament."""

    @property
    def schedule(self) -> Schedule: ...
    @property
    def stop(self) -> Stop: ...
    @property
    def anchors(self) -> dict[str, float]: ...
    @property
    def endpoints(self) -> dict[str, int]: ...
    @property
    def store(self) -> str: ...
    @property
    def repetitions(self) -> int: ...


def known_keys(where: str, data: object, allowed: Sequence[str]) -> None:
    """Raise unless `data` is a table of these keys; `where` is its place, with a dot behind."""
    if not isinstance(data, Mapping):
        raise ConfigError(f"{where.rstrip('.')} must be a table, got {str(data)[:60]!r}")
    for key in data:
        if key not in allowed:
            raise ConfigError(str(unknown("config key", f"{where}{key}", [f"{where}{name}" for name in allowed])))


def check_whole(key: str, value: int, least: int, most: int) -> None:
    """Raise unless least <= value <= most."""
    if not least <= value <= most:
        raise ConfigError(f"{key}={value}: allowed are {least} to {most}")


def schedule_table(data: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration's schedule as a table of known keys; it may be one line of text (`schedule_of`)."""
    given = data.get("schedule", "round-robin")
    if isinstance(given, str):
        return schedule_of(given)
    known_keys("schedule.", given, ["kind", *{f: 0 for kind in SCHEDULES.values() for f in kind.__struct_fields__}])
    kind = given.get("kind")
    if kind is None:
        raise ConfigError(f"schedule.kind is missing: allowed are {', '.join(SCHEDULES)}")
    if not isinstance(kind, str) or kind not in SCHEDULES:
        raise ConfigError(str(unknown("schedule", kind, SCHEDULES)))
    known_keys("schedule.", given, ["kind", *SCHEDULES[kind].__struct_fields__])
    return dict(given)


def stop_table(data: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration's stopping rules as a table of known keys; they may be one line of text (`stop_of`)."""
    given = data.get("stop", {})
    if isinstance(given, str):
        return stop_of(given)
    known_keys("stop.", given, Stop.__struct_fields__)
    if given.get("sprt") is not None:
        known_keys("stop.sprt.", given["sprt"], Sprt.__struct_fields__)
    return dict(given)


def check_terms(asked: _Terms, agents: Sequence[str], games: Sequence[tuple[str, int]]) -> None:
    """Raise ConfigError unless the tournament can be scheduled and ended so.

    `agents` are their names; `games` are (id, seats that agents take).
    """
    _check_schedule(asked.schedule, agents, games)
    _check_stop(asked, agents, games)
    for name, elo in asked.anchors.items():
        _check_name("agent in anchors", name, agents)
        _check_share(f"anchors.{name}", elo, -_ELO, _ELO)
    for place, most in asked.endpoints.items():
        if not _ENDPOINT.fullmatch(place):
            raise ConfigError(f"endpoints {place[:80]!r}: write host and port, such as 127.0.0.1:30000")
        check_whole(f"endpoints.{place}", most, 1, 100_000)
    _check_store(asked.store)


def _check_schedule(asked: Schedule, agents: Sequence[str], games: Sequence[tuple[str, int]]) -> None:
    match asked:
        case Gauntlet(anchors):
            for name in anchors:
                _check_name("agent in schedule.anchors", name, agents)
            _check_once("schedule.anchors", anchors)
        case Swiss(rounds):
            check_whole("schedule.rounds", 1 if rounds is None else rounds, 1, 100_000)
        case Adaptive(uniform):
            _check_share("schedule.uniform", uniform, 0.0, 1.0)
        case Knockout(extra):
            check_whole("schedule.extra", extra, 0, _MANY)
            for game, seats in games:
                if seats != 2:
                    raise ConfigError(f"{game} has {seats} seats for agents: a knockout needs games of two")
        case Listed(tables):
            _check_tables(tables, agents, games)


def _check_tables(tables: Sequence[Sequence[str]], agents: Sequence[str], games: Sequence[tuple[str, int]]) -> None:
    if not tables:
        raise ConfigError('schedule.tables is missing: write tables = [["NAME", "NAME"]]')
    sizes = {len(table) for table in tables}
    seen: dict[tuple[str, ...], int] = {}
    for number, table in enumerate(tables):
        for name in table:
            _check_name(f"agent in schedule.tables[{number}]", name, agents)
        if len(set(table)) < min(len(table), len(agents)):
            raise ConfigError(f"schedule.tables[{number}] has an agent twice")
        if (other := seen.setdefault(tuple(sorted(table)), number)) != number:
            raise ConfigError(f"schedule.tables[{number}] is the same table as [{other}]; leave one out")
    for game, seats in games:
        if seats > 1 and seats not in sizes:
            raise ConfigError(f"{game} has {seats} seats for agents, and no table in schedule.tables has as many")
    if odd := sizes - {seats for _, seats in games if seats > 1}:
        raise ConfigError(f"schedule.tables has a table of {min(odd)}, and no game of as many seats is to be paired")


def _check_stop(terms: _Terms, agents: Sequence[str], games: Sequence[tuple[str, int]]) -> None:
    asked = terms.stop
    for key in ("interval", "dollars", "minutes"):
        if (value := getattr(asked, key)) is not None and not 0 < value < math.inf:
            raise ConfigError(f"stop.{key}={value}: allowed are numbers above 0")
    if asked.ranks is not None and not 0.5 < asked.ranks < 1:
        raise ConfigError(f"stop.ranks={asked.ranks}: allowed are probabilities above 0.5, below 1")
    for key, most in (("games", 1 << 62), ("tokens", 1 << 62)):
        if (value := getattr(asked, key)) is not None:
            check_whole(f"stop.{key}", value, 1, most)
    if asked.sprt:
        _check_sprt(asked.sprt, terms.repetitions, agents, games)


def _check_sprt(test: Sprt, repetitions: int, agents: Sequence[str], games: Sequence[tuple[str, int]]) -> None:
    limit = _LOGISTIC if test.model == "logistic" else _NORMALIZED / max(repetitions / 3, 1) ** 0.5
    for key in ("elo0", "elo1"):
        _check_share(f"stop.sprt.{key}", getattr(test, key), -limit, limit)
    if test.elo0 >= test.elo1:
        raise ConfigError(f"stop.sprt.elo1={test.elo1:g}: allowed are numbers above elo0, which is {test.elo0:g}")
    for key in ("alpha", "beta"):
        if not 0 < (value := getattr(test, key)) < 0.5:
            raise ConfigError(f"stop.sprt.{key}={value}: allowed are chances above 0, below 0.5")
    if len(test.agents) not in (0, 2):
        raise ConfigError(f"stop.sprt.agents must be two names, got {len(test.agents)}")
    for name in test.agents:
        _check_name("agent in stop.sprt.agents", name, agents)
    _check_once("stop.sprt.agents", test.agents)
    if all(seats != 2 for _, seats in games):
        raise ConfigError("stop.sprt needs a game of two seats")


def _check_store(store: str) -> None:
    if not store:
        return
    parts = urlsplit(store)
    if parts.scheme not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise ConfigError("store must be the URL of a PostgreSQL database: write postgresql://HOST/NAME")
    if parts.password:
        raise ConfigError("store carries a password: it belongs in the environment; set PGPASSWORD or use ~/.pgpass")


def _check_name(what: str, name: str, agents: Sequence[str]) -> None:
    if name not in agents:
        raise ConfigError(str(unknown(what, name, agents)))


def _check_once(key: str, names: Sequence[str]) -> None:
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"{key} has {twice[0]!r} twice")


def _check_share(key: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:  # not a number, too
        raise ConfigError(f"{key}={value}: allowed are {least:g} to {most:g}")
