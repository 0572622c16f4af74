"""`arena play`: sit down at a game in the terminal."""

from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from arena.agent import Agent, Reply, View
from arena.cli.errors import plain
from arena.cli.options import parse_options
from arena.episode import Episode, Writer
from arena.game import Game
from arena.match import play_sync
from arena.referee import Referee
from arena.registry import canonical, make_agent, make_game

__all__ = ["play"]

_RETRIES = 100  # a person may slip as often as they like
_LONGEST = 200  # characters of an action that are announced


class _Announced(Agent):
    """Says aloud what another agent plays, where everybody may know it."""

    def __init__(self, agent: Agent, console: Console, referee: Referee) -> None:
        self.agent, self.console, self.referee, self.name = agent, console, referee, agent.name

    def act(self, view: View) -> Reply:
        """See `Agent.act`."""
        reply = self.agent.act(view)
        if not isinstance(reply, Reply):
            raise TypeError(f"agent {self.name!r} answers asynchronously, which `arena play` does not support yet")
        who = (f"player {view.player} ({plain(self.name)})", "bold")
        self.console.print(Text.assemble(who, f" {self._said(view, reply)}\n"))
        return reply

    def _said(self, view: View, reply: Reply) -> str:
        """What the referee reads in the reply, never the reply itself: it may be long, and meant to deceive."""
        reading = self.referee.read(view.game, view.player, reply.text)
        if reply.truncated or reading.action is None:
            return f"is not understood: {_short(reading.reason or 'the reply was cut off')}"
        return f"plays {_short(reading.action)}"


def _short(text: str) -> str:
    return plain(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")


@click.command()
@click.argument("game")
@click.option("--seat", default=0, show_default=True, help="Your seat, from 0.")
@click.option("--against", multiple=True, default=("random",), show_default=True, metavar="SPEC",
              help="Who holds the other seats; once for all, or once for each.")  # fmt: skip
@click.option("--option", "-o", "options", multiple=True, metavar="KEY=VALUE", help="An option of the game.")
@click.option("--seed", default=0, show_default=True, help="The deal; the same seed is the same game.")
@click.option("--record", type=click.Path(dir_okay=False, writable=True), metavar="FILE",
              help="Append the game to a .jsonl or .jsonl.zst file.")  # fmt: skip
@click.option("--watch", is_flag=True, help="Nobody sits down: --against holds every seat.")
def play(
    game: str, seat: int, against: tuple[str, ...], options: tuple[str, ...], seed: int, record: str | None, watch: bool
) -> None:
    """Play GAME in the terminal.

    \b
    arena play ConnectFour-v0 --seat 0 --against mcts
    arena play Chess --against minimax?depth=3 --seat 1
    arena play LiarsDice -o players=4 --against mcts?simulations=100
    arena play TicTacToe --watch --against minimax --against random
    """
    console, referee = Console(highlight=False), Referee(retries=_RETRIES)
    try:
        given = parse_options(options)
        position = make_game(game, seed, given)
        agents = _seats(position, seat, against, watch)
        if watch or position.perfect_information:
            agents = [agent if agent.name == "human" else _Announced(agent, console, referee) for agent in agents]
        episode = play_sync(canonical(game), agents, seed, given, referee)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    except KeyboardInterrupt:
        raise click.Abort from None
    _report(console, episode, None if watch else seat)
    if record is not None:
        with Writer(record) as out:
            out.write(episode)
        console.print(f"recorded in {escape(record)}", style="dim")


def _seats(position: Game, seat: int, against: tuple[str, ...], watch: bool) -> list[Agent]:
    players = position.players
    if not watch and not 0 <= seat < players:
        raise ValueError(f"--seat {seat}: {type(position).__name__} has seats 0 to {players - 1}")
    others = players if watch else players - 1
    if len(against) not in (1, others):
        raise ValueError(f"{len(against)} agents were given with --against; give one, or {others}")
    names = against * others if len(against) == 1 else against
    held = [make_agent(name) for name in names]
    if not watch:
        held.insert(seat, make_agent("human"))
    return held


def _report(console: Console, episode: Episode, seat: int | None) -> None:
    if episode.outcome == "void":
        console.print(f"\nno result: {escape(plain(episode.reason))}", style="yellow")
        return
    shown: dict[str, Any] = {"style": "bold"}
    console.print(f"\n{escape(episode.final[seat or 0])}")
    for player, earned in enumerate(episode.returns or ()):
        you = " (you)" if player == seat else ""
        forfeit = " by forfeit" if player in episode.forfeits else ""
        console.print(f"player {player}, {escape(episode.seats[player].agent)}{you}: {earned:+g}{forfeit}", **shown)
