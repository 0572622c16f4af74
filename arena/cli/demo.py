"""`arena demo`: a rated tournament between built-in agents on four games, in about a minute."""

import shlex
import sys
from pathlib import Path

import click
from rich.console import Console

from arena.cli.errors import naming, refusing
from arena.cli.leaderboard import print_board
from arena.cli.output import program, stdout
from arena.cli.tournament import play_all, tell_unfinished
from arena.episode import write
from arena.tournaments.config import parse
from arena.tournaments.report import board
from arena.tournaments.store import Store

__all__ = ["DEMO", "demo"]

DEMO = {
    "name": "Arena demo",
    "games": ["TicTacToe-v0", "ConnectFour-v0", "KuhnPoker-v0", "LeducPoker-v0"],
    "agents": ["random", "first", "mcts?simulations=20", "mcts?simulations=100"],
    "blocks": 30,
}


@click.command()
@click.option("--out", type=click.Path(file_okay=False), default="runs/demo", show_default=True, help="The run folder.")
@click.option(
    "--blocks", type=int, default=DEMO["blocks"], show_default=True, help="Seed blocks; more, and it is surer."
)
def demo(out: str, blocks: int) -> None:
    """Play a rated tournament of built-in agents on four games; no key, no server, no network.

    It leaves a run folder: results.db, tournament.toml, leaderboard.html and episodes.jsonl.zst.
    """
    folder = Path(out)
    with refusing():
        asked = parse({**DEMO, "blocks": blocks})
        tally = play_all(asked, folder, Console(stderr=True))
        written = _show(folder) if tally.done else 0
    shown, arena = shlex.quote(out), program()
    if code := tell_unfinished(tally, folder):
        sys.exit(code)
    click.echo(
        f"\nIn {out}: leaderboard.html (open it in a browser), results.db, tournament.toml,"
        f" episodes.jsonl.zst ({written} episodes)\n"
        f"Next:  {arena} leaderboard {shown} --game ConnectFour-v0\n"
        f"       {arena} play ConnectFour --against mcts\n"
        f"       {arena} tournament run --game Chess --agent random --agent 'minimax?depth=1' --blocks 5"
    )


def _show(folder: Path) -> int:
    """Print the tables and write the episodes; how many."""
    path = folder / "episodes.jsonl.zst"
    path.unlink(missing_ok=True)
    with Store.open(folder) as store, naming(path):
        print_board(board(store), stdout())
        return write(path, store.episodes())
