"""`arena show`: the finished games of a run or of exported episodes, and their transcripts."""

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path

import click
from rich.markup import escape
from rich.table import Table

from arena.cli.errors import naming, plain, refusing
from arena.cli.exporting import wanted
from arena.cli.options import is_named
from arena.cli.output import stdout
from arena.cli.transcript import markdown, signed, span, text
from arena.episode import read, validate
from arena.registry import unknown
from arena.tournaments.conduct import conduct_of
from arena.tournaments.config import GameEntry
from arena.tournaments.store import Kept, Store

__all__ = ["show", "write_transcripts"]

_LISTED = 50  # games, where nobody says how many
_ID = 8  # characters of an id that are shown
_TOLD = 5  # ids that an error lists
_UNNAMED = re.compile(r"[^A-Za-z0-9_-]")
_FILES = (".jsonl", ".jsonl.zst")


@click.command()
@click.argument("run", type=click.Path())
@click.argument("beginning", metavar="[GAME-ID]", required=False, default="")
@click.option("--agent", help="Only games with this agent.")
@click.option("--game", "games", multiple=True, help="Only this game (Chess, TicTacToe-v0); may be repeated.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N",
              help=f"At most so many; without it {_LISTED} are listed, all are written.")  # fmt: skip
@click.option("--out", type=click.Path(file_okay=False), metavar="DIR",
              help="A new folder: one Markdown file a game, and index.md.")  # fmt: skip
@click.option("--void", is_flag=True, help="The attempts that were void, instead of the finished games.")
def show(
    run: str, beginning: str, agent: str | None, games: tuple[str, ...], limit: int | None, out: str | None, void: bool
) -> None:
    """List the games of RUN (a run folder, a store file or exported .jsonl[.zst]), or tell one move by move.

    \b
    arena show runs/demo                            the games, with their ids
    arena show runs/demo 3fa9                       the game whose id begins so
    arena show runs/demo --agent random --game TicTacToe --out transcripts
    arena show runs/demo --void                     attempts that came to nothing, and why
    """
    with refusing(), ExitStack() as stack:
        if run.endswith(_FILES):
            found = _of_file(run, beginning, games, agent, void)
        else:
            found = _of_store(stack.enter_context(Store.open(run)), beginning, games, agent, void)
        if beginning:
            found = iter(_one(found, beginning, run, void))
        if out is not None:
            write_transcripts(islice(found, limit), Path(out), run)
        elif beginning:
            click.echo("\n\n".join([text(kept.episode) for kept in found]), nl=False)
        else:
            _list(found, limit or _LISTED, void)


def _of_store(store: Store, beginning: str, games: Iterable[str], agent: str | None, void: bool) -> Iterator[Kept]:
    return store.kept(beginning, *wanted(store, games, agent), void=void)


def _of_file(path: str, beginning: str, games: tuple[str, ...], agent: str | None, void: bool) -> Iterator[Kept]:
    """As `_of_store`, of exported episodes. Raises ValueError for names that are not there."""
    labels: dict[str, None] = {}
    agents: dict[str, None] = {}
    for episode in read(path):
        label, names = GameEntry(episode.env, episode.options).label, [seat.agent for seat in episode.seats]
        labels[label] = None
        agents.update(dict.fromkeys(names))
        key = episode.match_id or episode.id
        asked = (not games or any(is_named(game, label) for game in games)) and agent in (None, *names)
        if asked and key.startswith(beginning) and (episode.outcome == "void") is void:
            validate(episode)
            yield Kept(key, episode)
    for game in games:
        if not any(is_named(game, label) for label in labels):
            raise unknown("game of this file", game, labels)
    if agent is not None and agent not in agents:
        raise unknown("agent of this file", agent, agents)


def _one(found: Iterable[Kept], beginning: str, run: str, void: bool) -> list[Kept]:
    """The game that is meant; several attempts at it where they were void. Raises ValueError."""
    ids: dict[str, None] = {}
    meant: list[Kept] = []
    for kept in found:
        ids[kept.id] = None
        if kept.id == beginning or kept.id == next(iter(ids)):
            meant.append(kept)
    if beginning in ids:
        return [kept for kept in meant if kept.id == beginning]
    if not ids:
        kind, option = ("void attempt's", " --void") if void else ("finished game's", "")
        raise ValueError(f"no {kind} id begins with {beginning[:80]!r}; arena show {run}{option} lists them")
    if len(ids) > 1:
        some = ", ".join(islice(ids, _TOLD)) + (", ..." if len(ids) > _TOLD else "")
        raise ValueError(f"{beginning[:80]!r} begins the ids of {len(ids)} games: {some}; write more of one")
    return meant


def _list(found: Iterator[Kept], limit: int, void: bool) -> None:
    shown = list(islice(found, limit))
    if not shown:
        click.echo("no attempt was void" if void else "no game is finished")
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("id", "game", "agents", "why" if void else "result", "plies", "forfeits", "wrong"):
        count = column in ("plies", "forfeits", "wrong")
        table.add_column(column, justify="right" if count else "left", no_wrap=count or column == "id", overflow="fold")
    for kept in shown:
        table.add_row(*[escape(plain(cell)) for cell in _cells(kept)])
    console = stdout()
    console.print(table)
    if next(found, None) is not None:
        console.print(f"the first {len(shown)}; --limit shows more")


def _cells(kept: Kept) -> list[str]:
    episode = kept.episode
    result = ", ".join(map(signed, episode.returns)) if episode.returns is not None else episode.reason
    wrong = sum(conduct_of(episode, seat).wrong for seat in range(len(episode.seats)))
    return [
        kept.id[:_ID],
        GameEntry(episode.env, episode.options).label,
        ", ".join([seat.agent for seat in episode.seats]),
        f"{result} (truncated)" if episode.outcome == "truncated" else result[:200],
        str(episode.turns[-1].ply + 1 if episode.turns else 0),
        str(len(episode.forfeits)),
        str(wrong),
    ]


def write_transcripts(found: Iterator[Kept], folder: Path, run: str) -> None:
    """A file a game and the index, in a folder that is new or empty."""
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty; name a new folder")
    first = next(found, None)
    if first is None:
        click.echo("no game to write")
        return
    lines = [f"# Transcripts of {span(Path(run).absolute().name)}", ""]
    with naming(folder):
        folder.mkdir(parents=True, exist_ok=True)
        taken = {"index"}
        for kept in chain([first], found):
            name = _free(kept.id, taken)
            (folder / f"{name}.md").write_text(markdown(kept.episode), encoding="utf-8")
            lines.append(_line(kept, name))
        (folder / "index.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    click.echo(f"wrote {len(lines) - 2} transcripts and index.md to {folder}")


def _free(key: str, taken: set[str]) -> str:
    """A file's name for a game: ids of a file may hold anything, and come twice."""
    name = stem = _UNNAMED.sub("_", key[:64]) or "game"
    number = 1
    while name.lower() in taken:
        number += 1
        name = f"{stem}-{number}"
    taken.add(name.lower())
    return name


def _line(kept: Kept, name: str) -> str:
    key, game, agents, result, plies, forfeits, wrong = _cells(kept)
    told = f"{plies} plies, {forfeits} forfeits, {wrong} wrong replies"
    return f"- [{span(key)}]({name}.md) {span(game)}, {span(agents)}: {span(result)} ({told})"
