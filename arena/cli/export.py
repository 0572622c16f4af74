"""`arena export`: the episodes of a run, one JSON line each."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import msgspec

from arena.cli.errors import naming, refusing
from arena.cli.options import games_named
from arena.episode import Episode, write
from arena.registry import unknown
from arena.tournaments.store import Store

__all__ = ["episodes", "export", "wanted"]


@click.command()
@click.argument("run", type=click.Path())
@click.option("--format", "kind", type=click.Choice(["jsonl"]), default="jsonl", show_default=True)
@click.option("--out", type=click.Path(dir_okay=False), metavar="FILE",
              help="A new .jsonl or .jsonl.zst file; without it, standard output.")  # fmt: skip
@click.option("--game", "games", multiple=True, help="Only episodes of this game; may be repeated.")
@click.option("--agent", help="Only episodes with this agent.")
def export(run: str, kind: str, out: str | None, games: tuple[str, ...], agent: str | None) -> None:
    """Write the episodes of RUN; `arena.episode.read` reads them back.

    \b
    arena export runs/demo --out episodes.jsonl.zst
    arena export runs/demo --game KuhnPoker-v0 --agent random --out kuhn.jsonl
    arena export runs/demo | head -n 1
    """
    with refusing(), Store.open(run) as store:
        found = episodes(store, games, agent)
        if out is None:
            _print(found)
            return
        if not out.endswith((".jsonl", ".jsonl.zst")):
            raise ValueError(f"{out}: allowed are names that end in .jsonl or .jsonl.zst")
        if Path(out).exists():
            raise ValueError(f"{out} exists; name a new file")
        with naming(out):
            click.echo(f"wrote {write(out, found)} episodes to {out}")


def episodes(store: Store, games: Iterable[str] = (), agent: str | None = None) -> Iterator[Episode]:
    """The finished episodes of some games (all by default), with one agent. Raises ValueError for unknown names."""
    return store.episodes(*wanted(store, games, agent))


def wanted(store: Store, games: Iterable[str], agent: str | None) -> tuple[list[int] | None, int | None]:
    """Entries and agent as the store numbers them, None where all are meant. Raises ValueError for unknown names."""
    labels, names = {key: entry.label for key, entry in store.entries().items()}, store.agents()
    entries = [key for game in games for key in games_named(game, labels)]
    seated = [key for key, name in names.items() if name == agent]
    if agent is not None and not seated:
        raise unknown("agent of this run", agent, names.values())
    return entries or None, seated[0] if seated else None


def _print(found: Iterable[Episode]) -> None:
    encoder, out, written = msgspec.json.Encoder(), sys.stdout.buffer, 0
    for episode in found:
        out.write(encoder.encode(episode) + b"\n")
        written += 1
    out.flush()
    click.echo(f"{written} episodes", err=True)
