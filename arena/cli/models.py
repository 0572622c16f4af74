"""`arena models probe`: what a served model is, can do, and how fast."""

import asyncio
from typing import Any, ClassVar

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from arena.adapters.models.probe import Probe, probe
from arena.agent import Agent
from arena.cli.errors import Failure, plain, refusing
from arena.cli.main import LazyGroup
from arena.cli.output import stdout
from arena.model import Model, ModelError
from arena.registry import make_agent

__all__ = ["models", "probe_command"]


class _Models(LazyGroup):
    table: ClassVar = {"probe": ("arena.cli.models:probe_command", "Ask a served model what it is and can do.")}


@click.group(cls=_Models, no_args_is_help=True)
def models() -> None:
    """Served models.

    \b
    arena models probe 'sglang:http://127.0.0.1:30000'
    arena models probe 'openai:https://host/v1?model=NAME&api_key_env=VARIABLE'
    """


@click.command("probe")
@click.argument("spec")
def probe_command(spec: str) -> None:
    """Say what the model of an agent SPEC is, what it can do, and how fast; about a dozen short questions are asked.

    \b
    arena models probe 'sglang:http://127.0.0.1:30000?model=qwen'
    arena models probe 'openai:https://host/v1?model=NAME&api_key_env=VARIABLE'

    Exit codes: 0 it answers; 1 it does not; 2 the spec is wrong.
    """
    with refusing():
        agent = make_agent(spec)
        model = _model_of(agent)
    try:
        found = asyncio.run(_probed(model, agent))
    except ModelError as error:
        raise Failure(plain(str(error))) from error
    _show(found, stdout())


def _model_of(agent: Agent) -> Model:
    model: Any = getattr(agent, "model", None)
    if not isinstance(model, Model):
        raise ValueError(f"agent {agent.name!r} asks no model; name one such as sglang:http://127.0.0.1:30000")
    return model


async def _probed(model: Model, agent: Agent) -> Probe:
    try:
        return await probe(model)
    finally:
        if (closed := agent.close()) is not None:
            await closed


def _show(found: Probe, console: Console) -> None:
    info = found.info
    facts = {
        "server": " ".join(filter(None, (info.server or "unknown", info.url and f"at {info.url}"))),
        "model": info.model,
        "context": f"{info.context} tokens" if info.context else "not told",
        "weight version": info.weight_version,
        "tokenizer": info.tokenizer_hash,
        "chat template": info.template_hash,
        **info.details,
        "first answer": f"{found.first_seconds:.2f} s",
        "speed": _speeds(found),
    }
    table = Table(box=None, show_header=False, pad_edge=False)
    for what, said in facts.items():
        if said:
            table.add_row(f"[dim]{escape(plain(what))}[/dim]", escape(plain(said)))
    for finding in found.findings:
        mark = "[green]yes[/green]" if finding.works else "[yellow]no[/yellow]"
        told = f"  [dim]{escape(plain(finding.said))}[/dim]" if finding.said else ""
        table.add_row(f"[dim]{escape(finding.what)}[/dim]", mark + told)
    console.print(table)


def _speed(rate: float) -> str:
    return f"{rate:.0f} tokens/s" if rate else "speed not told"


def _speeds(found: Probe) -> str:
    alone, together = _speed(found.tokens_per_second), _speed(found.tokens_per_second_at_once)
    return f"{alone} alone, {together} at {found.at_once} at once"
