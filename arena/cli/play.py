"""`arena play`: sit down at a game in the terminal."""

import asyncio
import secrets
import signal
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from threading import Timer, current_thread, main_thread
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from arena.agent import Agent, AgentError, AgentInfo, Reply, View
from arena.agents.human import LEFT, HumanAgent
from arena.asking import checked, waits
from arena.cli.errors import Failure, plain
from arena.cli.options import parse_options
from arena.cli.result import outcome, points
from arena.episode import Episode, Writer
from arena.game import Game
from arena.match import play_sync
from arena.referee import Referee
from arena.registry import canonical, make_agent, make_game

__all__ = ["play"]

_RETRIES = 100  # a person may slip as often as they like
_BESIDE_MODELS = 9  # what a model says may cost money
_WATCHED = 2  # a model that understands nothing is not asked for ever, as its answers may cost money
_LONGEST = 200  # characters of an action that are announced
_SEEDS = 100_000  # one of so many is drawn: short enough to type
_PATIENCE = 1.0  # seconds after which it is said that somebody thinks


def _patience(agents: Sequence[Agent], watch: bool) -> int:
    """How often a turn may be tried again: by anybody, as the referee has one number for all."""
    if watch:
        return _WATCHED
    return _BESIDE_MODELS if any(agent.served for agent in agents) else _RETRIES


class _Announced(Agent):
    """Says aloud what another agent plays, where everybody may know it, and keeps the moves."""

    def __init__(
        self, agent: Agent, console: Console, referee: Referee, moves: list[str] | None = None, *, aloud: bool = True
    ) -> None:
        self.agent, self.console, self.referee, self.name = agent, console, referee, agent.name
        self.moves, self.aloud = [] if moves is None else moves, aloud

    def act(self, view: View) -> Reply | Awaitable[Reply]:
        """See `Agent.act`."""
        with self._thinking(view):
            reply = self.agent.act(view)
        return self._told(view, checked(reply, self.agent))

    def _thinking(self, view: View) -> AbstractContextManager[None]:
        slow = (self.agent.blocking or self.agent.served) and len(view.game.to_act()) == 1  # there is one status line
        return _thinking(self.console, f"player {view.player} ({plain(self.name)})", slow)

    def _told(self, view: View, reply: Reply) -> Reply:
        said, who = self._said(view, reply), f"player {view.player} ({plain(self.name)})"
        if said.startswith("plays "):
            self.moves.append(f"{who} {said}")
        if self.aloud:
            self.console.print(Text.assemble((who, "bold"), f" {said}\n"))
        return reply

    def info(self) -> AgentInfo:
        """See `Agent.info`."""
        return self.agent.info()

    def _said(self, view: View, reply: Reply) -> str:
        """What the referee reads in the reply, never the reply itself: it may be long, and meant to deceive."""
        reading = self.referee.read(view.game, view.player, reply.text)
        if reply.truncated or reading.action is None:
            return f"is not understood: {_short(reading.reason or 'the reply was cut off')}"
        return f"plays {_short(reading.action)}"


class _AnnouncedLater(_Announced):
    """The same for an agent that is waited for, such as a served model."""

    async def act(self, view: View) -> Reply:
        """See `Agent.act`."""
        with self._thinking(view):
            reply = self.agent.act(view)
            reply = reply if isinstance(reply, Reply) else await reply
        return self._told(view, checked(reply, self.agent))


@contextmanager
def _heard_at_once() -> Iterator[None]:
    """Ctrl-C ends the game. In a loop of its own, asyncio would first wait for the line that the person types."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or current_thread() is not main_thread():
        yield
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _thinking(console: Console, who: str, slow: bool) -> Iterator[None]:
    """Say that somebody thinks, once it takes long, as long as it takes."""
    if not slow or not console.is_terminal:
        yield
        return
    status = console.status(f"{escape(who)} is thinking")
    timer = Timer(_PATIENCE, status.start)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # it may be about to start the status
        status.stop()


def _short(text: str) -> str:
    return plain(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")


@click.command()
@click.argument("game")
@click.option("--seat", default=0, show_default=True, help="Your seat, from 0.")
@click.option("--against", multiple=True, default=("random",), show_default=True, metavar="SPEC",
              help="Who holds the other seats; once for all, or once for each.")  # fmt: skip
@click.option("--option", "-o", "options", multiple=True, metavar="KEY=VALUE", help="An option of the game.")
@click.option("--seed", type=int, help="The deal; the same seed is the same game. Drawn and told if not given.")
@click.option("--record", metavar="FILE", help="Append the game to a .jsonl or .jsonl.zst file.")
@click.option("--watch", is_flag=True, help="Nobody sits down: --against holds every seat.")
def play(
    game: str,
    seat: int,
    against: tuple[str, ...],
    options: tuple[str, ...],
    seed: int | None,
    record: str | None,
    watch: bool,
) -> None:
    """Play GAME in the terminal.

    \b
    arena play ConnectFour-v0 --seat 0 --against mcts
    arena play Chess --against 'minimax?depth=3' --seat 1
    arena play LiarsDice -o players=4 --against 'mcts?simulations=100'
    arena play TicTacToe --watch --against minimax --against random
    """
    console = Console(highlight=False)
    drawn = secrets.randbelow(_SEEDS) if seed is None else seed
    try:
        given, game_id = parse_options(options), canonical(game)
        position = make_game(game_id, drawn, given)
        agents = _seats(position, seat, against, watch)
        referee = Referee(retries=_patience(agents, watch))
        with console.status("trying out the other players") if console.is_terminal else ExitStack():
            _try_out(game_id, agents, drawn, given, referee)
        with _recording(record) as out, _heard_at_once(), _closing(agents):
            if seed is None:
                console.print(f"seed {drawn}: --seed {drawn} plays it again\n", style="dim")
            held = _at_the_table(position, agents, console, referee, None if watch else seat)
            episode = play_sync(game_id, held, drawn, given, referee)
            if out is not None:
                out.write(episode)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    except KeyboardInterrupt:
        raise click.Abort from None
    _report(console, position, episode, None if watch else seat)
    if record is not None:
        console.print(f"recorded in {escape(plain(record))}", style="dim")
    if episode.outcome == "void" and not _left(episode):
        raise Failure(f"no result: {episode.reason}")


@contextmanager
def _recording(path: str | None) -> Iterator[Writer | None]:
    """The file, open before the first move: nobody plays a game that cannot be kept. Raises ValueError."""
    if path is None:
        yield None
        return
    if not path.endswith((".jsonl", ".jsonl.zst")):
        raise ValueError(f"--record {path}: allowed are names that end in .jsonl or .jsonl.zst")
    try:
        out = Writer(path)
    except OSError as error:
        raise ValueError(f"--record {path} cannot be written: {error.strerror or error}") from None
    with out:
        yield out


def _seats(position: Game, seat: int, against: tuple[str, ...], watch: bool) -> list[Agent]:
    players = position.players
    if not watch and not 0 <= seat < players:
        raise ValueError(f"--seat {seat}: {type(position).__name__} has seats 0 to {players - 1}")
    others = players if watch else players - 1
    if len(against) not in (1, others):
        several = f" or {others}" if others > 1 else ""
        raise ValueError(f"{len(against)} agents were given with --against; give 1{several}")
    names = against * others if len(against) == 1 else against
    held = [make_agent(name) for name in names]
    if not watch:
        held.insert(seat, make_agent("human"))
    return held


def _try_out(game_id: str, agents: list[Agent], seed: int, options: Mapping[str, Any], referee: Referee) -> None:
    """Every agent but people prepares and makes a first move, so that a game does not break off later.

    Raises ValueError.
    """
    position = make_game(game_id, seed, options)
    first = min(position.to_act(), default=0)
    for name, agent in {agent.name: agent for agent in agents if not isinstance(agent, HumanAgent)}.items():
        try:
            if (ready := agent.prepare(position, referee)) is not None:
                asyncio.run(_awaited(ready))
        except AgentError as error:
            raise ValueError(f"{name} cannot play {game_id} here: {error}") from None
        seated: list[str | Agent] = ["random"] * position.players
        seated[first] = agent
        tried = play_sync(game_id, seated, seed, options, max_turns=1)
        if tried.outcome == "void":
            raise ValueError(f"{name} cannot play {game_id} here: {tried.reason.removeprefix('ValueError: ')}")


async def _awaited(what: Awaitable[None]) -> None:
    await what


@contextmanager
def _closing(agents: list[Agent]) -> Iterator[None]:
    try:
        yield
    finally:
        for agent in agents:
            if (closed := agent.close()) is not None:
                asyncio.run(_awaited(closed))


def _at_the_table(
    position: Game, agents: list[Agent], console: Console, referee: Referee, seat: int | None
) -> list[Agent]:
    """The agents as they play here: people have the rules before them; moves are told where the game does not."""
    known = position.perfect_information and len(position.to_act()) == 1
    events = type(position).events is not Game.events
    moves: list[str] = []
    for player, agent in enumerate(agents):
        if isinstance(agent, HumanAgent):
            agent.moves = moves
            agent.welcome(position.rules(player))
    if not known and seat is not None:
        return agents
    aloud = seat is None or not events
    return [
        (_AnnouncedLater if waits(type(agent)) else _Announced)(
            agent, console, referee, moves, aloud=aloud and not isinstance(agent, HumanAgent)
        )
        for agent in agents
    ]


def _left(episode: Episode) -> bool:
    return episode.reason.startswith(f"AgentError: {LEFT}")


def _report(console: Console, position: Game, episode: Episode, seat: int | None) -> None:
    if episode.outcome == "void":
        if _left(episode):
            console.print("\nYou left the table; no result.")
        return
    returns = episode.returns or ()
    console.print(f"\n{escape(episode.final[seat or 0])}\n")
    if episode.outcome == "truncated":
        console.print(f"The game was cut short: {escape(plain(episode.reason))}", style="yellow")
    else:
        console.print(outcome(position, returns, seat), style="bold")
    for player, earned in enumerate(returns if position.players > 1 else ()):
        you = " (you)" if player == seat else ""
        forfeit = " by forfeit" if player in episode.forfeits else ""
        name = escape(plain(episode.seats[player].agent))
        console.print(f"player {player}, {name}{you}: {points(position, earned)}{forfeit}")
