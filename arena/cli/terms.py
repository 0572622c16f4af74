"""Options of `arena tournament run` as the terms of a tournament."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from arena.registry import unknown
from arena.tournaments.config import ConfigError, Tournament, load, parse

__all__ = ["asked_for", "with_terms"]


def asked_for(
    config: str | None, games: Sequence[str], agents: Sequence[str], options: Mapping[str, Any]
) -> Tournament:
    """The tournament of a file or of games and agents; `options` that are not None or () change it."""
    given = {key: value for key, value in options.items() if value not in (None, ())}
    caps, anchors = given.pop("cap", ()), given.pop("anchor", ())
    if "endpoint" in given:
        given["endpoints"] = dict(_numbered("endpoint", text, int) for text in given.pop("endpoint"))
    if "stop" in given:
        given["stop"] = ",".join(given["stop"])
    if config is None:
        if not games or not agents:
            raise ConfigError("name a CONFIG.toml, or games and agents: --game ID --agent SPEC --agent SPEC")
        return with_terms(parse({"games": list(games), "agents": list(agents), **given}), caps, anchors)
    if games or agents:
        raise ConfigError("games and agents stand in CONFIG.toml; leave out --game and --agent, or the file")
    return with_terms(parse({**msgspec.to_builtins(load(config)), **given}), caps, anchors)


def with_terms(asked: Tournament, caps: Sequence[str], anchors: Sequence[str]) -> Tournament:
    """With caps (AGENT=N) and anchors (NAME or NAME=ELO), which name agents of the tournament."""
    if not caps and not anchors:
        return asked
    table = msgspec.to_builtins(asked)
    names = [entry.name for entry in asked.agents]
    for text in caps:
        name, number = _numbered("cap", text, int)
        table["agents"][_place(name, names)]["concurrency"] = number
    for text in anchors:
        name, elo = (text, _ANCHOR) if text in names else _numbered("anchor", text, float)
        table.setdefault("anchors", {})[names[_place(name, names)]] = elo
    return parse(table)


_ANCHOR = 1000.0  # Elo of an anchor that is named alone


def _place(name: str, names: Sequence[str]) -> int:
    if name not in names:
        raise ConfigError(str(unknown("agent", name, names)))
    return names.index(name)


def _numbered(option: str, text: str, kind: type[int] | type[float]) -> tuple[str, Any]:
    """The name and the number of NAME=NUMBER; names may have equals signs."""
    name, _, number = text.rpartition("=")
    try:
        return name, kind(number)
    except ValueError:
        example = {"cap": "random=4", "endpoint": "127.0.0.1:30000=64", "anchor": "random=1000"}[option]
        raise ConfigError(f"--{option} {text[:60]!r}: write NAME=NUMBER, such as {example}") from None
