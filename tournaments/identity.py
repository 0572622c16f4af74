"""What makes two entries of a tournament the same game or the same player: every default filled in, nothing loaded."""

import inspect
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from arena.registry import AgentSpec, agent_call, load, load_agent, options_of

__all__ = ["game_terms", "identities", "identity", "policy"]

_PLACE = re.compile(r"(?:host|port|url|base_url|address)\Z")
_ADDRESS = re.compile(r"\A\w{1,20}://[^/]*/?")


def game_terms(game_id: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """All options of a game by name, those that are not given with their defaults: equal terms are the same game."""
    return _filled(options_of(load(game_id)), options)


def policy(spec: str) -> AgentSpec:
    """The spec with all options by name, those that are not given with their defaults. The agent is not made.

    Raises ValueError for an unknown agent or option, a missing one, and a value of another type.
    """
    kind, given = agent_call(spec)
    allowed = {key: p for key, p in inspect.signature(kind).parameters.items() if key != "name"}
    options = _filled(allowed, given)
    target = str(options.pop("target", ""))
    return AgentSpec(AgentSpec.parse(spec).name, target, tuple(options.items()))


def identity(spec: str, weight_version: str = "") -> str:
    """What makes two agents the same player: the spec in full, without addresses, names of secrets, `incidental`."""
    full = policy(spec)
    incidental = load_agent(full.name).incidental
    kept = [
        (key, value)
        for key, value in full.options
        if not (_PLACE.match(key) or key.endswith("_env") or key in incidental)
    ]
    places = {_ADDRESS.sub("", part) for part in full.target.split(",")} if "://" in full.target else {full.target}
    text = str(AgentSpec(full.name, ",".join(sorted(places - {""})), tuple(kept)))
    return f"{text}@{weight_version}" if weight_version else text


def identities(specs: Iterable[str]) -> list[str]:
    """The identity of every agent; equal ones (a null test: the same agent under two names) are numbered apart."""
    seen: dict[str, int] = {}
    names = []
    for name in map(identity, specs):
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return names


def _filled(parameters: Mapping[str, inspect.Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """What is given over the defaults, by name; a default that JSON cannot hold says nothing and is left out."""
    defaults = {key: p.default for key, p in parameters.items() if _is_json(p.default)}
    return {key: _plain(value) for key, value in sorted({**defaults, **given}.items())}


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _plain(value: Any) -> Any:
    """As JSON has it, and 1.0 as 1: the same number however it was written."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
