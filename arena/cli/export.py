"""`arena export`: the episodes of a run as what trainers read."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec
from rich.console import Console

from arena.adapters.datasets.credit import Credit
from arena.adapters.datasets.exporting import export as export_dataset
from arena.adapters.datasets.filters import OUTCOMES, Filters, Ratings, Sieve
from arena.adapters.datasets.placing import placed
from arena.adapters.datasets.source import SUFFIXES, Files, is_file
from arena.adapters.datasets.splits import Split
from arena.adapters.datasets.trajectory import Trajectory
from arena.cli.errors import naming, refusing
from arena.cli.exporting import StoreSource, following, list_formats, ratings_of, tell
from arena.episode import Episode, write
from arena.tournaments.store import Store, results_file

__all__ = ["export"]

_WHOLE = "jsonl"
_OF_ROWS = ("kind", "advantage", "validation", "split_seed", "shard_rows", "dedup", "skip_lacking")
_OF_CREDIT = {"scale": "group", "decay": "rae"}


def _list(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        list_formats()
        context.exit()


_OPTIONS = [
    click.option("--format", "spec", default=_WHOLE, show_default=True, metavar="FORMAT[?KEY=VALUE&...]",
                 help="What is written: whole episodes (jsonl), or rows for a trainer; --list tells them all."),
    click.option("--list", "--formats", is_flag=True, is_eager=True, expose_value=False, callback=_list,
                 help="List the formats: for whom, of what, as which files, how checked, with which options."),
    click.option("--out", type=click.Path(), metavar="PATH",
                 help="A new folder; of whole episodes a new .jsonl or .jsonl.zst file (without it, standard output)."),
    click.option("--as", "kind", metavar="KIND", help="Kind of files: parquet (zstd), jsonl, jsonl.zst, ..."),
    click.option("--game", "games", multiple=True, help="Only this game (Chess, TicTacToe-v0); may be repeated."),
    click.option("--agent", "agents", multiple=True, help="Only seats of this agent; may be repeated."),
    click.option("--seat", "seats", type=click.IntRange(min=0), multiple=True, help="Only this seat; may be repeated."),
    click.option("--role", "roles", multiple=True, help="Only this role; may be repeated."),
    click.option("--trainable", is_flag=True, help="Only models that the record calls trainable."),
    click.option("--min-rating", type=float, metavar="ELO", help="Only against opponents of at least this Elo."),
    click.option("--max-rating", type=float, metavar="ELO", help="Only against opponents of at most this Elo."),
    click.option("--winners", is_flag=True, help="Only seats that won: --outcome win."),
    click.option("--outcome", "outcomes", type=click.Choice(OUTCOMES), multiple=True,
                 help="Only seats that came to this; may be repeated."),
    click.option("--legal", is_flag=True, help="Only seats all of whose replies were legal."),
    click.option("--truncated/--no-truncated", default=None, help="Only episodes that were cut, or were not."),
    click.option("--min-reward", type=float, metavar="R", help="Only seats that earned at least this."),
    click.option("--max-rows", type=click.IntRange(min=1), metavar="N", help="End after so many rows (or episodes)."),
    click.option("--advantage", type=click.Choice(["none", "rae", "group"]), default="none", show_default=True,
                 help="rae: beside a running mean of the role in the game; group: beside the same seed and role."),
    click.option("--decay", type=float, default=0.95, show_default=True, help="Of rae."),
    click.option("--scale", is_flag=True, help="Of group: over its standard deviation."),
    click.option("--validation", type=float, default=0.0, metavar="SHARE", help="Hold out this share of the seeds."),
    click.option("--split-seed", type=int, default=0, help="Which ones."),
    click.option("--shard-rows", type=click.IntRange(min=1), metavar="N", help="At most so many rows a file."),
    click.option("--dedup", is_flag=True, help="Of rows that teach the same, keep the first."),
    click.option("--skip-lacking", is_flag=True, help="Leave out seats whose record lacks what the format needs."),
]  # fmt: skip


def _options(command: Callable[..., None]) -> Callable[..., None]:
    return reduce(lambda made, option: option(made), reversed(_OPTIONS), command)


class _Source(NamedTuple):
    episodes: Iterable[Episode]
    ratings: Ratings | None


@click.command()
@click.argument("run", type=click.Path())
@_options
def export(run: str, spec: str, out: str | None, **asked: Any) -> None:
    """Write the episodes of RUN (a run folder, a store, .jsonl[.zst] files or a folder of them) for a trainer.

    \b
    arena export --list                                      formats, with their options
    arena export runs/demo --out episodes.jsonl.zst          whole episodes; arena.episode.read reads them
    arena export runs/demo --format sft --winners --legal --dedup --out data
    arena export runs/demo --format sft --agent smol --min-rating 1100 --validation 0.1 --out data
    arena export rollouts.jsonl --format grpo --trainable --advantage group --out data

    Filters are all to hold; a seat of an episode is one sample. Void episodes are never exported. The folder holds
    data/train-*.parquet, data/validation-*, README.md (datasets.load_dataset reads the folder as it is) and
    export.json, which says what was asked, left out and why. It is there when it is whole, or not at all.
    """
    with refusing(), ExitStack() as stack:
        filters = _filters(asked)
        for name, kind in _OF_CREDIT.items():
            if asked[name] != getattr(Credit(), name) and asked["advantage"] != kind:
                raise ValueError(f"--{name} is of --advantage {kind}")
        if spec == _WHOLE:
            _check_whole(asked, out)
        elif out is None:
            raise ValueError(f"format {spec} is a folder: name a new one with --out")
        source = _source(run, filters, stack)
        if spec == _WHOLE:
            _write_whole(source, filters, out)
            return
        report = stack.enter_context(following(Console(stderr=True, highlight=False)))
        with naming(str(out)):
            told = export_dataset(
                source.episodes,
                spec,
                str(out),
                kind=asked["kind"] or "",
                filters=filters,
                ratings=source.ratings,
                split=Split(asked["validation"], asked["split_seed"]),
                credit=Credit(asked["advantage"], asked["decay"], asked["scale"]),
                shard_rows=asked["shard_rows"],
                dedup=asked["dedup"],
                skip_lacking=asked["skip_lacking"],
                progress=report,
            )
        stack.close()
        tell(told, str(out))


def _filters(asked: dict[str, Any]) -> Filters:
    """The filters among the options."""
    winners = ("win",) if asked.pop("winners") else ()
    asked["outcomes"] = tuple(dict.fromkeys((*asked["outcomes"], *winners)))
    return Filters(**{name: asked[name] for name in Filters.__struct_fields__})


def _source(run: str, filters: Filters, stack: ExitStack) -> _Source:
    """Where the episodes come from: a store, or files."""
    folder = Path(run)
    if "://" not in run and (not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))):
        what = "is empty" if folder.exists() else "does not exist"
        raise ValueError(
            f"{run} {what}; name a run, a .jsonl or .jsonl.zst file of episodes, or a folder of such files"
        )
    if is_file(run) or (folder.is_dir() and not _is_run(folder) and any(map(is_file, folder.iterdir()))):
        if filters.rated:
            raise ValueError(f"{run} has no ratings: a filter by rating needs a run of `arena tournament`")
        return _Source(Files(run), None)
    store = stack.enter_context(Store.open(run))
    ratings = ratings_of(store) if filters.rated else None
    return _Source(StoreSource(store, filters.games, filters.agents), ratings)


def _is_run(folder: Path) -> bool:
    return results_file(folder).exists() or (folder / "tournament.toml").exists()


def _check_whole(asked: dict[str, Any], out: str | None) -> None:
    """Raise ValueError for what whole episodes cannot be asked for."""
    for name in _OF_ROWS:
        if asked[name] not in (None, False, 0.0, "none"):
            flag = "--as" if name == "kind" else f"--{name.replace('_', '-')}"
            raise ValueError(f"{flag} is for formats of rows; --format {_WHOLE} writes whole episodes")
    if out is not None and not out.endswith(SUFFIXES):
        raise ValueError(f"{out}: allowed are names that end in .jsonl or .jsonl.zst")
    if out is not None and Path(out).exists():
        raise ValueError(f"{out} exists; name a new file")


def _write_whole(source: _Source, filters: Filters, out: str | None) -> None:
    sieve = Sieve(filters, source.ratings)
    found = islice(_passing(source.episodes, sieve), filters.max_rows)
    if out is None:
        written = _print(found)
        if not written and sieve.active:
            raise sieve.nothing()
        click.echo(f"{written} episodes", err=True)
        return
    with naming(out), placed(Path(out)) as path:
        written = write(path, found)
        if not written and sieve.active:
            raise sieve.nothing()
    click.echo(f"wrote {written} episodes to {out}")


def _passing(episodes: Iterable[Episode], sieve: Sieve) -> Iterator[Episode]:
    """Finished episodes of which some seat passes."""
    for episode in episodes:
        if episode.returns is not None:
            seats = [Trajectory(episode, player) for player in range(len(episode.seats))]
            if [seat for seat in seats if sieve.belongs(seat) and sieve.chosen(seat)]:
                yield episode


def _print(found: Iterable[Episode]) -> int:
    encoder, out, written = msgspec.json.Encoder(), sys.stdout.buffer, 0
    for episode in found:
        out.write(encoder.encode(episode) + b"\n")
        written += 1
    out.flush()
    return written
