"""`arena rate`: ratings of any table of results."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from arena.cli.errors import plain, refusing
from arena.cli.output import stdout

if TYPE_CHECKING:  # numpy and scipy are imported when there is something to rate
    from arena.tournaments.ratings.columns import Given
    from arena.tournaments.ratings.table import Table

__all__ = ["rate"]

_KINDS = ("pairs", "ranked", "teams", "tasks")
_METHODS = ("auto", "fisher", "clustered", "bootstrap")


@click.command()
@click.argument("results", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--kind", type=click.Choice(_KINDS), help="What a row is; without it the columns tell.")
@click.option("--map", "mapped", multiple=True, metavar="COLUMN=NAME", help="A column of yours is one of those below.")
@click.option("--anchor", "anchors", multiple=True, metavar="NAME=ELO", help="A known rating; softly: NAME=ELO±SD.")
@click.option("--method", type=click.Choice(_METHODS), default="auto", help="How intervals are made.")
@click.option("--game", help="Only the rows of this game.")
@click.option("--each", is_flag=True, help="A table for each game too, from its rows alone.")
@click.option("--unique", is_flag=True, help="Rows that are equal in every column count once.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON, with all that is known.")
@click.option("--csv", "as_csv", is_flag=True, help="Write the table as CSV.")
def rate(
    results: Path,
    kind: str | None,
    mapped: Sequence[str],
    anchors: Sequence[str],
    method: str,
    game: str | None,
    each: bool,
    unique: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Rate the players of RESULTS: a .csv, .tsv, .json, .jsonl or .parquet table of any origin, or - for a pipe.

    \b
    arena rate battles.csv
    arena rate games.csv --map 'White Elo name=first' --anchor stockfish=3600
    arena rate matches.jsonl --each --json > ratings.json
    zcat votes.csv.gz | arena rate - --anchor 'gpt-4=1250±15'

    \b
    A row is              columns
    a game of two         first, second, outcome [game] [cluster or seed]
    a seat of a game      match, agent, rank or score [seat] [team] [game] [cluster or seed]
    an answer             agent, item, score from 0 to 1 [game]

    Other names that are known: white, black, result; model_a, model_b, winner; player; model; task; place; and so on.
    An outcome is first, draw or second; 1-0, 1/2-1/2 or 0-1; model_a, tie or model_b; or the winner's name. Rows of
    one seed or cluster depend on each other, which makes intervals honest. What was read is said on standard error.
    """
    from arena.cli.rated import Shown, as_rows, as_text, print_ratings
    from arena.tournaments.ratings.rating import rate_table

    if as_json and as_csv:
        raise click.UsageError("--json and --csv: choose one")
    with refusing():
        table = _table(results)
        given, own, told = _given(table, kind, mapped, game, unique, each)
        click.echo(plain(f"read {_source(results)}: {told}"), err=True)
        rated = rate_table(given, _anchors(anchors), method, own)
    if as_json:
        click.echo(as_text(rated, given))
    elif as_csv:
        rows = as_rows(rated)
        click.echo("\n".join(map(plain, rows.split("\n"))) if sys.stdout.isatty() else rows, nl=False, color=True)
    else:
        print_ratings(Shown(rated, given), stdout())


def _source(results: Path) -> str:
    return "standard input" if str(results) == "-" else str(results)


def _table(results: Path) -> "Table":
    from arena.tournaments.ratings.table import read, read_bytes

    return read_bytes(sys.stdin.buffer.read()) if str(results) == "-" else read(results)


def _given(
    table: "Table", kind: str | None, mapped: Sequence[str], game: str | None, unique: bool, each: bool
) -> tuple["Given", dict[str, "Given"], str]:
    """The results, those of each game where asked for, and what was read, in words."""
    from arena.tournaments.ratings.columns import KINDS, give, kind_of, meant

    found = meant(table, dict(_split(pair, "COLUMN=NAME") for pair in mapped))
    named = next((known for known in KINDS if known == kind), None) or kind_of(found, table)
    repeated = table.repeated()
    if unique:
        table = table.keep(~repeated)
    if game is not None:
        table = _of_game(table, found, game)
    given = give(table, found, named)
    games = given.results.games if each and len(given.results.games) > 1 else ()
    own = {name: give(_of_game(table, found, name), found, named) for name in games}
    return given, own, _said(table, given, int(repeated.sum()), unique)


def _of_game(table: "Table", found: dict[str, str], game: str) -> "Table":
    from arena.registry import unknown

    column = table.columns.get(found.get("game", ""))
    if column is None:
        raise ValueError("--game: the table has no column of games")
    if game not in column.values:
        raise unknown("game of this table", game, column.values[:100])
    return table.keep(column.codes == column.values.index(game))


def _said(table: "Table", given: "Given", repeated: int, unique: bool) -> str:
    words = {
        "pairs": "games of two",
        "ranked": "seats of games",
        "teams": "seats of games of teams",
        "tasks": "answers",
    }
    columns = ", ".join([name if name == column else f"{column[:40]} as {name}" for name, column in given.used.items()])
    left = [column[:40] for column in table.columns if column not in given.used.values()]
    said = [
        f"{len(table.lines):,} rows of {words[given.kind]} (columns {columns}"
        + (f"; not used: {', '.join(left[:20])})" if left else ")"),
        f"{len(given.results.players):,} players",
        f"{len(given.results.games):,} game{'s' * (len(given.results.games) != 1)}",
    ]
    if given.kind != "tasks":
        said.append(
            f"rows of one {given.clustered} depend on each other" if given.clustered else "no column of clusters"
        )
    if not given.seated:
        said.append("no column of seats: what a seat is worth is not told")
    if repeated:
        said.append(f"{repeated:,} rows equal an earlier one, and {'are left out' if unique else 'count'}")
    return "; ".join(said)


def _split(pair: str, form: str) -> tuple[str, str]:
    name, equals, value = pair.rpartition("=")
    if not equals or not name or not value:
        raise ValueError(f"{pair[:80]!r}: write {form}")
    return name, value


def _anchors(pairs: Sequence[str]) -> dict[str, float | tuple[float, float]]:
    """What is known of players.

    >>> _anchors(["ann=1500", "bob=1200±30", "cat=900+-20"])
    {'ann': 1500.0, 'bob': (1200.0, 30.0), 'cat': (900.0, 20.0)}
    """
    anchors: dict[str, float | tuple[float, float]] = {}
    for pair in pairs:
        name, value = _split(pair, "NAME=ELO or NAME=ELO±SD")
        elo, soft, sd = value.replace("+-", "±").partition("±")
        try:
            anchors[name] = (float(elo), float(sd)) if soft else float(elo)
        except ValueError:
            raise ValueError(f"{pair[:80]!r}: write NAME=ELO or NAME=ELO±SD") from None
    return anchors
