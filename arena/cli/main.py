"""The `arena` command. A subcommand's module is imported when it is called, so that help comes at once."""

import difflib
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, ClassVar, NoReturn

import click

from arena.cli.errors import Failure, plain
from arena.version import __version__

__all__ = ["LazyGroup", "cli", "main"]

COMMANDS = {
    "agents": ("arena.cli.catalogue:agents", "List the agents, with their options."),
    "demo": (
        "arena.cli.demo:demo",
        "Play a rated tournament of built-in agents, or with a served model.",
    ),
    "export": ("arena.cli.export:export", "Write the episodes of a run for a trainer, or as JSON lines."),
    "games": ("arena.cli.catalogue:games", "List the games, or show one with its rules and options."),
    "leaderboard": ("arena.cli.leaderboard:leaderboard", "Show the ratings of a run, in the terminal or as a page."),
    "models": ("arena.cli.models:models", "Ask a served model what it is and can do."),
    "play": ("arena.cli.play:play", "Sit down at a game in the terminal."),
    "rate": ("arena.cli.rate:rate", "Rate the players of any table of results."),
    "serve": ("arena.cli.serve:serve", "Show the leaderboard of a run in a browser, live."),
    "show": ("arena.cli.show:show", "List the games of a run, and tell one move by move."),
    "train": ("arena.cli.train:train", "Train a policy that then plays as an agent."),
    "tournament": ("arena.cli.tournament:tournament", "Run a tournament, or go on with one."),
}


class LazyGroup(click.Group):
    """A group that knows its commands by table, and says all of an error in one line."""

    table: ClassVar = COMMANDS

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See `click.Group.list_commands`."""
        return sorted(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See `click.Group.get_command`."""
        if cmd_name not in self.table:
            return None
        module, _, name = self.table[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See `click.Group.resolve_command`; an unknown name is told the nearest."""
        name = args[0]
        if name not in self.table and not name.startswith("-"):
            near = difflib.get_close_matches(name, self.table, 1, 0.5)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"unknown command {name[:80]!r}.{hint} Allowed: {', '.join(sorted(self.table))}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table's own words: no command is imported for them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in sorted(self.table.items())])

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> NoReturn:
        """Run; a user's error is one line on stderr and exit code 2 (or the command's own)."""
        extra["standalone_mode"] = False
        try:
            code = super().main(args, *rest, **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.ctx.get_help() if error.ctx else str(error))
            sys.exit(0)
        except click.ClickException as error:
            click.echo(f"arena: {_one_line(error)}", err=True)
            sys.exit(max(error.exit_code, 1) if isinstance(error, Failure) else 2)
        except OSError as error:
            if isinstance(error, BrokenPipeError):  # whoever read our output has gone, as with `| head`
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                sys.exit(1)
            click.echo(plain(f"arena: {error.filename or 'a file'}: {error.strerror or error}"), err=True)
            sys.exit(2)
        except click.Abort:
            click.echo("stopped", err=True)
            sys.exit(130)
        sys.exit(code if isinstance(code, int) else 0)


def _one_line(error: click.ClickException) -> str:
    return plain(" ".join(error.format_message().split()))


@click.group(cls=LazyGroup, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="arena")
def cli() -> None:
    """Games, questions and tool tasks in text; any policy at the table; ratings that can be trusted.

    \b
    arena demo                                a rated tournament in about a minute
    arena games Chess                         rules and options of a game
    arena play ConnectFour --against mcts     sit down yourself
    arena tournament run --game TicTacToe --agent random --agent 'mcts?simulations=50'
    arena leaderboard runs/demo               who is best, and how sure that is
    arena show runs/demo                      the games, to read move by move
    arena rate results.csv                    the same ratings for a table of your own
    """


def main() -> None:
    """The entry point of the `arena` command."""
    cli.main()
