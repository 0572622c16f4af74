"""The table of formats: a name, and where its class is. Nothing is imported until it is asked for."""

import inspect
from importlib import import_module

from arena.adapters.datasets.format import Format
from arena.registry import AgentSpec, check_type, parameters, unknown

__all__ = ["FORMATS", "load_format", "make_format", "options_of_format"]

FORMATS: dict[str, str] = {
    "art": "arena.adapters.datasets.art:ART",
    "atif": "arena.adapters.datasets.atif:ATIF",
    "dpo": "arena.adapters.datasets.dpo:DPO",
    "episodes": "arena.adapters.datasets.turns:Episodes",
    "grpo": "arena.adapters.datasets.grpo:GRPO",
    "kto": "arena.adapters.datasets.kto:KTO",
    "minari": "arena.adapters.datasets.minari:Minari",
    "openrlhf": "arena.adapters.datasets.openrlhf:OpenRLHF",
    "prime_rl": "arena.adapters.datasets.prime_rl:PrimeRL",
    "sft": "arena.adapters.datasets.sft:SFT",
    "skyrl": "arena.adapters.datasets.skyrl:SkyRL",
    "slime": "arena.adapters.datasets.slime:Slime",
    "tinker": "arena.adapters.datasets.tinker:Tinker",
    "tinker_game": "arena.adapters.datasets.tinker:TinkerGame",
    "turns": "arena.adapters.datasets.turns:Turns",
    "verifiers": "arena.adapters.datasets.verifiers_v1:Verifiers",
    "verl": "arena.adapters.datasets.verl:Verl",
    "verl_prompts": "arena.adapters.datasets.verl_prompts:VerlPrompts",
}
"""Name of the format, "module:Class"."""


def load_format(name: str) -> type[Format]:
    """The class of a format, imported now. Raises ValueError for a name that is not in the table."""
    if name not in FORMATS:
        raise unknown("format", name, FORMATS)
    module, _, cls = FORMATS[name].partition(":")
    found: type[Format] = getattr(import_module(module), cls)
    return found


def options_of_format(name: str) -> dict[str, inspect.Parameter]:
    """The options of a format, by name."""
    return parameters(load_format(name))


def make_format(spec: str | Format) -> Format:
    """The format that a spec string names, such as `sft` or `dpo?rollouts=4`; a format comes back as it is.

    Raises ValueError for an unknown name, an unknown option or a value the format does not allow.
    """
    if isinstance(spec, Format):
        return spec
    parsed = AgentSpec.parse(spec)
    if parsed.target:
        raise ValueError(f"a format takes no target (got {parsed.target[:80]!r}); write name[?key=value&...]")
    allowed, options = options_of_format(parsed.name), dict(parsed.options)
    for key, value in options.items():
        if key not in allowed:
            raise unknown(f"option of format {parsed.name}", key, allowed)
        check_type(f"option {key} of format {parsed.name}", value, allowed[key])
    return load_format(parsed.name)(**options)
