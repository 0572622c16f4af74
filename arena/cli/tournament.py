"""`arena tournament run`: play a tournament to its end, or go on with one."""

import json
import re
import shlex
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar

import click
import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from arena.cli.errors import Failure, naming, plain, refusing
from arena.cli.estimate import spending
from arena.cli.leaderboard import print_board
from arena.cli.main import LazyGroup
from arena.cli.output import program, stdout
from arena.cli.progress import following
from arena.registry import AgentSpec
from arena.tournaments.config import ConfigError, Tournament, dump, load, parse
from arena.tournaments.leaderboard import write_html
from arena.tournaments.report import board
from arena.tournaments.runner import Aborted, Tally, run
from arena.tournaments.schedule import count
from arena.tournaments.store import Store, StoreError, results_file

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
    **numbers: Any,
) -> None:
    """Play what CONFIG.toml or the options describe. The same command goes on where it was stopped or killed.

    \b
    arena tournament run --game ConnectFour --agent random --agent 'mcts?simulations=50' --blocks 10 --out runs/c4
    arena tournament run --game 'LiarsDice?players=4' --agent random --agent first --dry-run
    arena tournament run config.toml --out runs/first

    Exit codes: 0 all games are finished; 1 some stayed void or were not played; 2 refused; 130 stopped by Ctrl-C.
    """
    with refusing():
        asked = _asked(config, games, agents, numbers)
        folder = Path(out) if out else Path("runs") / (Path(config).stem if config else _called(asked))
        if dry_run:
            _tell(asked, results_file(folder))
            _tell_spending(asked, seconds_per_reply)
            return
        tally = play_all(asked, folder, Console(stderr=True), redo_void)
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


def _asked(config: str | None, games: tuple[str, ...], agents: tuple[str, ...], numbers: dict[str, Any]) -> Tournament:
    given: dict[str, Any] = {key: value for key, value in numbers.items() if value is not None}
    if config is None:
        if not games or not agents:
            raise ConfigError("name a CONFIG.toml, or games and agents: --game ID --agent SPEC --agent SPEC")
        return parse({"games": list(games), "agents": list(agents), **given})
    if games or agents:
        raise ConfigError("games and agents stand in CONFIG.toml; leave out --game and --agent, or the file")
    read = load(config)
    return parse({**msgspec.to_builtins(read), **given})


def _tell(asked: Tournament, path: Path) -> None:
    """The dry run."""
    counts = count(asked)
    width = max(len(entry.label) for entry in asked.games)
    for entry, games in zip(asked.games, counts, strict=True):
        blocks = asked.blocks_of(entry)
        click.echo(f"{entry.label:{width}}  {games} games in {blocks} seed block{'s' * (blocks != 1)}")
    click.echo(f"{'total':{width}}  {sum(counts)} games between {len(asked.agents)} agents")
    if path.exists():
        with Store.open(path) as store:
            click.echo(f"{path} holds {len(store.finished())} finished games")


def _tell_spending(asked: Tournament, seconds: float) -> None:
    """What models would read and write, from a few games played by stand-ins; nothing where no agent asks one."""
    found = list(spending(asked))
    if not found:
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for at, column in enumerate(("game", "agent", "replies", "tokens in", "cached", "tokens out, at most", "dollars")):
        table.add_column(column, justify="left" if at < 2 else "right", overflow="fold")
    for row in found:
        counts = [f"{value:,.0f}" for value in (row.replies, row.prompt, row.cached, row.wrote)]
        cost = "?" if row.cost is None else f"{row.cost:,.2f}"
        table.add_row(escape(plain(row.game)), escape(plain(row.agent)), *counts, cost)
    stdout().print(table)
    known = [row.cost for row in found if row.cost is not None]
    replies = sum(row.replies for row in found)
    time = timedelta(seconds=round(replies * seconds / asked.concurrency))
    facts = [f"{replies:,.0f} replies", f"about {time} at {seconds:g} s a reply and {asked.concurrency} games at once"]
    facts += [f"at most ${sum(known):,.2f}"] if known else []
    facts += ["? : no price is known; give input_price and output_price"] if len(known) < len(found) else []
    click.echo("; ".join(facts))


def play_all(asked: Tournament, folder: Path, console: Console, redo_void: bool = False) -> Tally:
    """Play into a run folder; `tournament.toml` and `leaderboard.html` are left beside the store."""
    path = folder / "results.db"

    def begin() -> Store:
        store = Store.resume(path, asked)
        with naming(written := folder / "tournament.toml"):
            written.write_text(dump(asked), encoding="utf-8")
        return store

    try:
        with following(console, bar=not asked.people) as report, ExitStack() as opened:
            store = opened.enter_context(begin()) if path.exists() else begin
            tally = _run(asked, store, report, redo_void, path)
    except Failure:
        with suppress(OSError, StoreError):  # why the run has ended is what must be told
            write_page(folder)
        raise
    write_page(folder)
    return tally


def _run(
    asked: Tournament, store: Store | Callable[[], Store], report: Callable[[Tally], None], redo_void: bool, path: Path
) -> Tally:
    try:
        return run(asked, store, report, redo_void=redo_void)
    except Aborted as error:
        on = f"what was finished is kept in {path}, and the same command goes on (with --redo-void: all of it)"
        raise Failure(f"given up: {error}; {on}") from error
    except StoreError as error:
        raise Failure(str(error)) from error


def write_page(folder: Path) -> None:
    """The leaderboard of a run folder as it stands, where anything was begun."""
    if (folder / "results.db").exists():
        with Store.open(folder / "results.db") as store, naming(page := folder / "leaderboard.html"):
            write_html(board(store), page)


def _end(tally: Tally, folder: Path) -> None:
    """What came of it, and what to do next."""
    facts = [f"{tally.done} of {tally.total} games finished"]
    facts += [f"{tally.there} of them earlier"] if tally.there else []
    facts += [f"{tally.forfeits} by forfeit"] if tally.forfeits else []
    facts += [f"{tally.truncated} truncated"] if tally.truncated else []
    facts += [f"{tally.voids} void attempts"] if tally.voids else []
    click.echo(", ".join(facts))
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
