"""`arena games` and `arena agents`: what there is, read from the registry."""

import inspect
from collections.abc import Mapping

import click
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from arena.agent import Agent
from arena.cli.output import stdout
from arena.game import Game
from arena.registry import AgentSpec, agent_names, canonical, game_ids, load, load_agent, make_game, options_of

__all__ = ["agents", "default_of", "games", "meanings", "summary", "type_of"]


def summary(cls: type) -> str:
    """What the class is, for a user: the first paragraph of its docstring, on one line."""
    return " ".join((inspect.getdoc(cls) or "").partition("\n\n")[0].split())


def meanings(cls: type) -> dict[str, str]:
    """What each option means, with its range: sections `Options:` of the docstrings of the class and its bases.

    A line there is `name: meaning`, indented; a line that is indented further goes on with it.
    """
    found: dict[str, str] = {}
    for kind in reversed(cls.__mro__):
        name, section = "", inspect.cleandoc(kind.__doc__ or "").partition("\nOptions:\n")[2]
        for line in section.splitlines():
            if not line.startswith("    "):
                break
            if line.startswith("     "):
                found[name] += f" {line.strip()}"
            else:
                name, _, said = line.strip().partition(": ")
                found[name] = said
    return found


@click.command()
@click.argument("game", required=False)
@click.option("--tag", help="Only games with this tag.")
def games(game: str | None, tag: str | None) -> None:
    """List the games; with GAME, show its rules and options.

    \b
    arena games
    arena games --tag board
    arena games Chess-v0
    """
    try:
        if game is None:
            _list(tag)
        else:
            _show(canonical(game))
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _list(tag: str | None) -> None:
    classes = {game_id: load(game_id) for game_id in game_ids()}
    tags = sorted({known for cls in classes.values() for known in cls.tags})
    if tag is not None and tag not in tags:
        raise ValueError(f"unknown tag {tag!r}. Allowed: {', '.join(tags)}")
    table = Table("id", "players", "tags", "options", box=None, pad_edge=False, header_style="bold")
    for game_id, cls in classes.items():
        if tag is None or tag in cls.tags:
            options = ", ".join(options_of(cls)) or "-"
            table.add_row(game_id, str(make_game(cls).players), ", ".join(cls.tags), escape(options))
    stdout().print(table)


def _show(game_id: str) -> None:
    cls = load(game_id)
    game = make_game(cls)
    console = stdout()
    console.print(f"[bold]{game_id}[/bold]  {_facts(cls, game)}\n")
    console.print(f"{escape(summary(cls))}\n\n[bold]Rules[/bold]")
    console.print(escape(game.rules(0)))
    console.print("\n[bold]Options[/bold]")
    _options(console, options_of(cls), meanings(cls))
    console.print(
        f"\n[dim]arena play {game_id}    arena tournament run --game {game_id} --agent random --agent first[/dim]"
    )


def _facts(cls: type[Game], game: Game) -> str:
    facts = [f"{game.players} player{'s' * (game.players != 1)}", *cls.tags]
    facts += ["zero-sum"] * cls.zero_sum + ["perfect information"] * cls.perfect_information
    return ", ".join(facts)


def _options(console: Console, options: Mapping[str, inspect.Parameter], means: Mapping[str, str]) -> None:
    if not options:
        console.print("  none")
    for name, parameter in options.items():
        console.print(f"  {name}: {type_of(parameter)}{default_of(parameter)}", markup=False)
        if name in means:
            console.print(Padding(escape(means[name]), (0, 0, 0, 6), expand=False), style="dim")


def type_of(parameter: inspect.Parameter) -> str:
    """The type of an option as it is written."""
    annotation = parameter.annotation
    return getattr(annotation, "__name__", str(annotation)) if isinstance(annotation, type) else str(annotation)


def default_of(parameter: inspect.Parameter) -> str:
    """` = value`, or "" where there is none."""
    return "" if parameter.default is inspect.Parameter.empty else f" = {parameter.default!r}"


@click.command()
@click.argument("agent", required=False)
def agents(agent: str | None) -> None:
    """List the agents; with AGENT, show its options. A spec names one: `mcts?simulations=50`.

    \b
    arena agents
    arena agents mcts
    """
    if agent is None:
        _list_agents(stdout())
    else:
        _show_agent(stdout(), agent)


def _list_agents(console: Console) -> None:
    for name in agent_names():
        try:
            cls = load_agent(name)
        except ValueError as missing:
            console.print(f"[bold]{escape(name)}[/bold]  {escape(str(missing))}", style="dim")
            continue
        console.print(f"[bold]{escape(name)}[/bold]  {escape(summary(cls))}")
        for key, parameter in _agent_options(cls).items():
            console.print(f"    {key}: {type_of(parameter)}{default_of(parameter)}", markup=False)
    console.print("\n[dim]arena agents NAME says what its options mean[/dim]")


def _agent_options(cls: type[Agent]) -> dict[str, inspect.Parameter]:
    return {key: parameter for key, parameter in inspect.signature(cls).parameters.items() if key != "name"}


def _show_agent(console: Console, name: str) -> None:
    try:
        cls = load_agent(AgentSpec.parse(name).name)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    options = _agent_options(cls)
    console.print(f"[bold]{escape(name)}[/bold]  {escape(summary(cls))}\n\n[bold]Options[/bold]")
    _options(console, options, meanings(cls))
    target = ":TARGET" if "target" in options else ""
    given = [f"?{key}={p.default}" for key, p in options.items() if isinstance(p.default, int | float | str)]
    console.print(f"\nA spec: {escape(name)}{target}{escape(given[0] if given else '')}", style="dim")
