"""`arena demo`: a rated tournament between built-in agents on four games, or between them and a served model."""

import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from arena.cli.errors import naming, refusing
from arena.cli.leaderboard import print_board
from arena.cli.output import program, stdout
from arena.cli.show import write_transcripts
from arena.cli.tournament import play_all, tell_unfinished
from arena.episode import write
from arena.registry import AgentSpec
from arena.tournaments.config import Tournament, parse
from arena.tournaments.report import board
from arena.tournaments.site import write_site
from arena.tournaments.store import Store

__all__ = ["DEMO", "demo"]

DEMO: dict[str, Any] = {
    "name": "Arena demo",
    "games": ["TicTacToe-v0", "ConnectFour-v0", "KuhnPoker-v0", "LeducPoker-v0"],
    "agents": ["random", "first", "mcts?simulations=20", "mcts?simulations=100"],
    "blocks": 30,
}
DEMO_LLM: dict[str, Any] = {
    "name": "Arena demo: a language model at the table",
    "games": ["TicTacToe-v0", "KuhnPoker-v0", "RockPaperScissors-v0?rounds=3"],
    "agents": ["random", "mcts?simulations=20"],
    "blocks": 3,
    "concurrency": 16,
    "referee": {"retries": 1},
}
"""What a served model plays three times over: with free replies, held to the legal actions, and by likelihood."""
_WAYS: dict[str, dict[str, Any]] = {
    "free": {"decode": "free", "max_tokens": 24},
    "constrained": {"decode": "constrained", "max_tokens": 24},
    "score": {"decode": "score", "max_tokens": 24, "temperature": 0.5},
}


@click.command()
@click.option("--out", type=click.Path(file_okay=False), help="The run folder.  [default: runs/demo, runs/demo-llm]")
@click.option("--blocks", type=int, help="Seed blocks; more, and it is surer.  [default: 30; with --model 3]")
@click.option("--model", metavar="SPEC", help="A served model that plays too, such as sglang:http://127.0.0.1:30000")
def demo(out: str | None, blocks: int | None, model: str | None) -> None:
    """Play a rated tournament: without options of built-in agents on four games; no key, no server, no network.

    With --model, a served language model sits down beside them on three short games: with free replies, held to the
    legal actions, and by the likelihood of each.

    It leaves a run folder: site/index.html (the leaderboard, with games to see move by move), results.db,
    tournament.toml, leaderboard.html (the tables alone) and episodes.jsonl.zst, with --model transcripts too.
    """
    folder = Path(out or ("runs/demo-llm" if model else "runs/demo"))
    with refusing():
        asked = _asked(model, blocks)
        tally = play_all(asked, folder, Console(stderr=True))
        written = _show(folder) if tally.done else 0
        if model and tally.done:
            _transcribe(folder)
    shown, arena = shlex.quote(str(folder)), program()
    if code := tell_unfinished(tally, folder):
        sys.exit(code)
    left = "site/index.html (open it in a browser), results.db, tournament.toml, episodes.jsonl.zst"
    click.echo(f"\nIn {folder}: {left} ({written} episodes){', transcripts/' if model else ''}")
    for lead, line in zip(("Next: ", *["      "] * 2), _NEXT_LLM if model else _NEXT, strict=False):
        click.echo(f"{lead} {line.format(arena=arena, run=shown)}")


_REPLAYS = 100  # games that the demo's site shows move by move
_NEXT = (
    "{arena} serve {run}                      the same pages from a server, every game among them",
    "{arena} play ConnectFour --against mcts",
    "{arena} tournament run --game Chess --agent random --agent 'minimax?depth=1' --blocks 5",
)
_NEXT_LLM = (
    "{arena} show {run}                       the games; with the beginning of an id, one of them, move by move",
    "{arena} leaderboard {run} --game TicTacToe-v0",
)


def _transcribe(folder: Path) -> None:
    """Transcripts of all games; those of an earlier run of the demo go."""
    shutil.rmtree(folder / "transcripts", ignore_errors=True)
    with Store.open(folder) as store:
        write_transcripts(store.kept(""), folder / "transcripts", str(folder))


def _asked(model: str | None, blocks: int | None) -> Tournament:
    chosen = DEMO_LLM if model else DEMO
    agents: list[Any] = [*chosen["agents"]]
    if model:
        served = AgentSpec.parse(model)
        called = dict(served.options).get("model", "model")
        for name, way in _WAYS.items():
            spec = served._replace(options=tuple({**dict(served.options), **way}.items()))
            agents.append({"spec": str(spec), "name": f"{called} {name}"})
    return parse({**chosen, "agents": agents, "blocks": chosen["blocks"] if blocks is None else blocks})


def _show(folder: Path) -> int:
    """Print the tables, write the site and the episodes; how many."""
    path = folder / "episodes.jsonl.zst"
    path.unlink(missing_ok=True)
    with Store.open(folder) as store, naming(path):
        shown = board(store)
        print_board(shown, stdout())
        write_site(store, folder / "site", games=_REPLAYS, shown=shown)
        return write(path, store.episodes())
