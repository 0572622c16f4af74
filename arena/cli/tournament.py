"""`arena tournament run`: play a tournament to its end, or go on with one."""

import json
import re
import shlex
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar

import click
from rich.console import Console

from arena.cli.errors import Failure, naming, plain, refusing
from arena.cli.estimate import tell_games, tell_spending
from arena.cli.leaderboard import print_board
from arena.cli.main import LazyGroup
from arena.cli.output import program, stdout
from arena.cli.progress import following
from arena.cli.terms import asked_for
from arena.registry import AgentSpec
from arena.tournaments.config import Tournament, dump
from arena.tournaments.leaderboard import write_html
from arena.tournaments.report import board
from arena.tournaments.runner import Aborted, Stalled, Tally, run
from arena.tournaments.store import Store, StoreError, database_of

__all__ = ["STOPPED", "play_all", "run_command", "tell_unfinished", "tournament"]

_SLUG = 40  # characters of a folder's name, beside its hash
STOPPED = 130  # exit code, as after Ctrl-C


class _Tournament(LazyGroup):
    table: ClassVar = {"run": ("arena.cli.tournament:run_command", "Play a tournament, or go on with one.")}


@click.group(cls=_Tournament, no_args_is_help=True)
def tournament() -> None:
    """Tournaments: agents, games, seed blocks with all rotations of the seats, ratings.

    \b
    arena tournament run config.toml --out runs/first
    arena tournament run --game TicTacToe --agent random --agent 'minimax?depth=2' --blocks 20
    """


@click.command("run")
@click.argument("config", required=False, type=click.Path(dir_okay=False), metavar="[CONFIG.toml]")
@click.option("--game", "games", multiple=True, metavar="ID[?KEY=VALUE&...]", help="A game; may be repeated.")
@click.option("--agent", "agents", multiple=True, metavar="SPEC", help="An agent; may be repeated.")
@click.option("--blocks", type=int, help="Seed blocks: one seed, every rotation of the seats.  [default: 10]")
@click.option("--seed", type=int, help="The first block's seed; the others follow.  [default: 0]")
@click.option("--repetitions", type=int, help="How often each game of a block is played.  [default: 1]")
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    help="The run folder.  [default: runs/NAME of the file, or of games and agents]",
)
@click.option("--concurrency", type=int, help="Games at once.  [default: 32]")
@click.option("--workers", type=int, help="Processes for searches.  [default: one a core]")
@click.option(
    "--deadline", type=float, metavar="SECONDS", help="For one game; then it is void: played again, never scored."
)
@click.option("--turn-seconds", type=float, metavar="SECONDS",
              help="For one answer; then a local agent forfeits, and a served one makes the game void.")  # fmt: skip
@click.option("--max-turns", type=int, help="Plies; then a game is truncated.")
@click.option("--schedule", metavar="KIND[?OPTION=VALUE&...]", help="Who meets whom: round-robin, gauntlet, swiss, "
              "knockout, adaptive or list.  [default: round-robin]")  # fmt: skip
@click.option("--stop", multiple=True, metavar="RULE=VALUE", help="End early: interval=ELO, ranks=P, sprt=ELO0:ELO1, "
              "games=N, tokens=N, dollars=N, minutes=N; may be repeated, and the first that holds counts.")  # fmt: skip
@click.option("--anchor", multiple=True, metavar="AGENT[=ELO]", help="Whose Elo is fixed (1000 if not said); may be "
              "repeated.")  # fmt: skip
@click.option("--store", metavar="URL", help="A PostgreSQL database (postgresql://...) instead of results.db.")
@click.option("--cap", multiple=True, metavar="AGENT=N", help="Games at once of one agent; may be repeated.")
@click.option("--endpoint", multiple=True, metavar="HOST:PORT=N", help="Games at once that ask one server, whichever "
              "agents do; may be repeated.")  # fmt: skip
@click.option("--stalled", type=float, metavar="SECONDS", help="Give up, and say what hangs, once no answer and no "
              "step of the run has come for so long.  [default: wait]")  # fmt: skip
@click.option("--lease", type=click.FloatRange(1), default=60.0, show_default=True, metavar="SECONDS",
              help="Other processes take over games of one that has not been heard of for so long.")  # fmt: skip
@click.option("--redo-void", is_flag=True, help="Play games again that stayed void in earlier runs.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Say how many games would be played and what models would cost at most, and play none.",
)
@click.option("--seconds-per-reply", type=click.FloatRange(0, min_open=True), default=2.0, show_default=True,
              metavar="SECONDS", help="For the time a dry run expects; `arena models probe` measures it.")  # fmt: skip
def run_command(
    config: str | None,
    games: tuple[str, ...],
    agents: tuple[str, ...],
    out: str | None,
    redo_void: bool,
    dry_run: bool,
    seconds_per_reply: float,
    lease: float,
    **options: Any,
) -> None:
    """Play what CONFIG.toml or the options describe. The same command goes on where it was stopped or killed.

    Started twice (in two terminals on one folder, or anywhere on one database), both share the games and end together.
    Ctrl-C lets running games finish; a second one ends at once.

    \b
    arena tournament run --game ConnectFour --agent random --agent 'mcts?simulations=50' --blocks 10 --out runs/c4
    arena tournament run --game 'LiarsDice?players=4' --agent random --agent first --dry-run
    arena tournament run config.toml --out runs/first

    \b
    Until every 95 % interval is at most 120 Elo wide, at most 5,000 games:
      arena tournament run cup.toml --schedule adaptive --stop interval=120 --stop games=5000
    Is the second network better than the first, by 30 Elo rather than by none?
      arena tournament run --game Chess --agent A --agent B --blocks 5000 --stop sprt=0:30
    One more agent in a finished tournament; old games are kept, and it is placed:
      (add it to the agents in runs/first/tournament.toml)
      arena tournament run runs/first/tournament.toml --out runs/first --schedule adaptive
    Two agents on one server that takes 64 games at once, one of them in 8 at most:
      arena tournament run cup.toml --endpoint 127.0.0.1:30000=64 --cap qwen=8 --stalled 600

    Exit codes: 0 all games are finished; 1 some stayed void or were not played; 2 refused; 130 stopped by Ctrl-C.
    """
    with refusing():
        asked = asked_for(config, games, agents, options)
        folder = Path(out) if out else Path("runs") / (Path(config).stem if config else _called(asked))
        if dry_run:
            tell_games(asked, folder)
            tell_spending(asked, seconds_per_reply)
            return
        tally = play_all(asked, folder, Console(stderr=True), redo_void, lease)
    _end(tally, folder)


def _called(asked: Tournament) -> str:
    """A name for what was asked with options, the same for more blocks of it: `tictactoe-random-first-1f0c9a`."""
    terms = [[entry.id, entry.terms] for entry in asked.games]
    players = sorted(zip(asked.identities(), [entry.name for entry in asked.agents], strict=True))
    key = json.dumps([terms, players, asked.seed, asked.truncated, asked.settings()], sort_keys=True)
    words = [entry.id.rpartition("-v")[0] for entry in asked.games]
    words += [AgentSpec.parse(entry.spec).name for entry in asked.agents]
    slug = re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower())[:_SLUG].strip("-")
    return f"{slug}-{blake2b(key.encode(), digest_size=3).hexdigest()}"


def play_all(asked: Tournament, folder: Path, console: Console, redo_void: bool = False, lease: float = 60.0) -> Tally:
    """Play into a run folder; `tournament.toml` and `leaderboard.html` are left beside the store."""
    database = database_of(folder / "results.db", asked.store)

    def begin() -> Store:
        store = Store.resume(folder / "results.db", asked)
        folder.mkdir(parents=True, exist_ok=True)
        with naming(written := folder / "tournament.toml"):
            written.write_text(dump(asked), encoding="utf-8")
        return store

    try:
        with following(console, bar=not asked.people) as report, ExitStack() as opened:
            store = opened.enter_context(begin()) if database.exists() else begin
            tally = _run(lambda: run(asked, store, report, redo_void=redo_void, lease=lease), database.name)
    except Failure:
        with suppress(OSError, StoreError):  # why the run has ended is what must be told
            write_page(folder)
        raise
    write_page(folder)
    return tally


def _run(play: Callable[[], Tally], place: str) -> Tally:
    try:
        return play()
    except Aborted as error:
        on = f"what was finished is kept in {place}, and the same command goes on"
        on += "" if isinstance(error, Stalled) else " (with --redo-void: all of it)"
        raise Failure(f"given up: {error}; {on}") from error
    except StoreError as error:
        raise Failure(str(error)) from error


def write_page(folder: Path) -> None:
    """The leaderboard of a run folder as it stands, where anything was begun."""
    if (folder / "tournament.toml").exists():
        with Store.open(folder) as store, naming(page := folder / "leaderboard.html"):
            write_html(board(store), page)


def _end(tally: Tally, folder: Path) -> None:
    """What came of it, and what to do next."""
    most = "at most " if tally.open_ended and (tally.ended or tally.left) else ""
    facts = [f"{tally.done} of {most}{tally.total} games finished"]
    facts += [f"{tally.there} of them earlier"] if tally.there else []
    facts += [f"{tally.forfeits} by forfeit"] if tally.forfeits else []
    facts += [f"{tally.truncated} truncated"] if tally.truncated else []
    facts += [f"{tally.voids} void attempts"] if tally.voids else []
    click.echo(", ".join(facts))
    if tally.ended:
        click.echo(f"ended: {plain(tally.ended)}")
    if tally.done:
        with Store.open(folder) as store:
            print_board(board(store), stdout(), heading=False)
        click.echo()
    code = tell_unfinished(tally, folder)
    if code != STOPPED:
        click.echo(f"{program()} leaderboard {shlex.quote(str(folder))}   or open {folder / 'leaderboard.html'}")
    if code:
        sys.exit(code)


def tell_unfinished(tally: Tally, folder: Path) -> int:
    """Say what was not played and how to go on; the exit code that fits: 0, 1, or `STOPPED`."""
    shown = shlex.quote(str(folder))
    again = f"{program()} tournament run {shlex.quote(str(folder / 'tournament.toml'))} --out {shown}"
    if tally.given_up:
        why = f" ({plain(tally.reasons.most_common(1)[0][0][:200])})" if tally.reasons else ""
        click.echo(f"{tally.given_up} games stayed void{why}; to play them again: {again} --redo-void")
    if tally.left:
        said = f"stopped with {tally.left} games to go" if tally.stopped else f"{tally.left} games were not played"
        begun = (folder / "tournament.toml").exists()
        click.echo(f"{said}; the same command goes on{f': {again}' if begun else ''}")
    return STOPPED if tally.stopped and tally.left else int(tally.left + tally.given_up > 0)
