"""`arena games` and `arena agents`: what there is, read from the registry."""

import inspect
from collections.abc import Mapping

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from arena.cli.output import stdout
from arena.game import Game
from arena.registry import agent_names, canonical, game_ids, load, load_agent, make_game, options_of

__all__ = ["agents", "games"]


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
    console.print(escape(game.rules(0)))
    console.print("\n[bold]Options[/bold]")
    _options(console, options_of(cls), inspect.getdoc(cls.initial) or "")
    console.print(
        f"\n[dim]arena play {game_id}    arena tournament run --game {game_id} --agent random --agent first[/dim]"
    )


def _facts(cls: type[Game], game: Game) -> str:
    facts = [f"{game.players} player{'s' * (game.players != 1)}", *cls.tags]
    facts += ["zero-sum"] * cls.zero_sum + ["perfect information"] * cls.perfect_information
    return ", ".join(facts)


def _options(console: Console, options: Mapping[str, inspect.Parameter], about: str) -> None:
    if not options:
        console.print("  none")
        return
    for name, parameter in options.items():
        console.print(f"  {name}: {_type(parameter)}{_default(parameter)}", markup=False)
    if about:
        console.print(f"\n{about}", markup=False)


def _type(parameter: inspect.Parameter) -> str:
    annotation = parameter.annotation
    return getattr(annotation, "__name__", str(annotation)) if isinstance(annotation, type) else str(annotation)


def _default(parameter: inspect.Parameter) -> str:
    return "" if parameter.default is inspect.Parameter.empty else f" = {parameter.default!r}"


@click.command()
def agents() -> None:
    """List the agents with their options. A spec names one: `mcts?simulations=50`."""
    console = stdout()
    for name in agent_names():
        try:
            cls = load_agent(name)
        except ValueError as missing:
            console.print(f"[bold]{escape(name)}[/bold]  {escape(str(missing))}", style="dim")
            continue
        console.print(f"[bold]{escape(name)}[/bold]  {escape((inspect.getdoc(cls) or '').splitlines()[0])}")
        for key, parameter in inspect.signature(cls).parameters.items():
            if key != "name":
                console.print(f"    {key}: {_type(parameter)}{_default(parameter)}", markup=False)
