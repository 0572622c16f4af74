"""What the columns of a table of results mean, and the results in them.

Tables are known by their columns: a row is a game of two (`first`, `second`, `outcome`), one seat of a game of any
number (`match`, `agent`, `rank` or `score`; with `team`, of teams), or one answer (`agent`, `item`, `score`).
"""

import difflib
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Literal, NamedTuple, NoReturn, get_args

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.ratings.pairs import Results
from arena.tournaments.ratings.ranked import RankedResults
from arena.tournaments.ratings.sandwich import renumbered
from arena.tournaments.ratings.table import Column, Table
from arena.tournaments.ratings.tasks import TaskResults
from arena.tournaments.ratings.teams import TeamResults

__all__ = ["KINDS", "NAMES", "Given", "Kind", "give", "kind_of", "meant"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Kind = Literal["pairs", "ranked", "teams", "tasks"]
KINDS: tuple[Kind, ...] = get_args(Kind)

NAMES = {
    "first": ("white", "model_a", "player_a", "agent_a", "player_1", "player1", "agent_1", "home", "a"),
    "second": ("black", "model_b", "player_b", "agent_b", "player_2", "player2", "agent_2", "away", "b"),
    "outcome": ("result", "winner"),
    "match": ("match_id", "episode", "episode_id", "game_id"),
    "agent": ("player", "model", "name"),
    "item": ("task", "task_id", "item_id", "question", "question_id", "problem", "instance"),
    "rank": ("place", "placing"),
    "score": ("return", "reward", "points", "correct", "solved", "passed"),
    "seat": ("position",),
    "team": ("side",),
    "game": ("env", "env_id", "environment"),
    "cluster": ("block",),
    "seed": ("opening",),
}
"""The columns that are known, each with the other names that it may have."""
_NEEDED: dict[Kind, tuple[tuple[str, ...], ...]] = {
    "pairs": (("first",), ("second",), ("outcome",)),
    "ranked": (("match",), ("agent",), ("rank", "score")),
    "teams": (("match",), ("agent",), ("team",), ("rank", "score")),
    "tasks": (("agent",), ("item",), ("score",)),
}
_LABELS = {
    "first": (0, "1-0", "model_a", "player_a", "agent_a", "player_1", "white", "home", "a"),
    "draw": (1, "1/2-1/2", "½-½", "0.5-0.5", "tie", "tie (bothbad)", "bothbad", "both_bad", "drawn"),
    "second": (2, "0-1", "model_b", "player_b", "agent_b", "player_2", "black", "away", "b"),
}
_POINTS = {"1": 0, "1.0": 0, "0.5": 1, "0": 2, "0.0": 2}  # of the first; not in a column that says who won
_CODES = {str(name): codes[0] for label, codes in _LABELS.items() for name in (label, *codes[1:])}
_WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "pass": 1.0, "fail": 0.0}
_NAME = 200  # characters of a name
_PLAYERS = 1000


AnyResults = Results | RankedResults | TeamResults | TaskResults


class Given(NamedTuple):
    """What a table gives."""

    kind: Kind
    results: AnyResults
    seated: bool
    """Whether the table says who had which seat; if not, the seats' worth means nothing."""
    clustered: str
    """The column that says which rows depend on each other; "": none."""
    used: dict[str, str]
    """The columns that were read: what each is, and what it is called in the file."""


def meant(table: Table, mapped: Mapping[str, str]) -> dict[str, str]:
    """What the columns are: known name to the table's. `mapped`: the table's column to a known name, by the user.

    Raises ValueError where a column is not there, a name is not known, or two columns claim one.
    """
    found: dict[str, str] = {}
    for column, name in mapped.items():
        if column not in table.columns:
            raise ValueError(f"no column {column[:80]!r}. {_hint(column, table.columns)}")
        if name not in NAMES:
            raise ValueError(f"a column cannot be {name[:80]!r}. {_hint(name, NAMES)}")
        if name in found:
            raise ValueError(f"two columns are mapped to {name}: {found[name]!r} and {column!r}")
        found[name] = column
    folded = {column: "_".join(column.casefold().replace("-", " ").split()) for column in table.columns}
    for name, others in NAMES.items():
        if name in found:
            continue
        exact = [column for column, plain in folded.items() if plain == name and column not in mapped]
        same = exact or [column for column, plain in folded.items() if plain in others and column not in mapped]
        if len(same) > 1:
            raise ValueError(
                f"columns {', '.join(map(repr, same))} may each be {name}: say which with --map COLUMN={name}"
            )
        if same:
            found[name] = same[0]
    return found


def kind_of(found: Mapping[str, str], table: Table) -> Kind:
    """The kind of table that has these columns. Raises ValueError where it is none, or more than one."""
    fits = [kind for kind in KINDS if not _missing(kind, found)]
    if "teams" in fits:
        fits.remove("ranked")
    if len(fits) == 1:
        return fits[0]
    if fits:
        raise ValueError(f"the columns may be {' or '.join(fits)}: say which with --kind")
    near = min(KINDS, key=lambda kind: len(_missing(kind, found)))
    return _incomplete(near, found, table)


def _missing(kind: Kind, found: Mapping[str, str]) -> list[str]:
    return [" or ".join(names) for names in _NEEDED[kind] if not any(name in found for name in names)]


def _incomplete(kind: Kind, found: Mapping[str, str], table: Table) -> NoReturn:
    missing = _missing(kind, found)
    asked = "; ".join(f"{name}: {', '.join(' or '.join(names) for names in _NEEDED[name])}" for name in KINDS)
    shown = ", ".join([column[:40] for column in list(table.columns)[:20]])
    raise ValueError(
        f"no column {' and no column '.join(missing)} among {shown}. Kinds of tables: {asked}. "
        "Other names: --map COLUMN=NAME"
    )


def _hint(name: str, allowed: Sequence[str] | Mapping[str, object]) -> str:
    near = difflib.get_close_matches(name[:80], [choice[:80] for choice in allowed], 1, 0.5)
    shown = ", ".join([choice[:40] for choice in list(allowed)[:30]])
    return (f"Did you mean {near[0]!r}? " if near else "") + f"Allowed: {shown}"


def give(table: Table, found: Mapping[str, str], kind: Kind) -> Given:
    """The results in a table of this kind. Raises ValueError for what cannot be understood, with its line."""
    if _missing(kind, found):
        _incomplete(kind, found, table)
    clustered = next((name for name in ("cluster", "seed") if name in found and kind != "tasks"), "")
    known = {*sum(_NEEDED[kind], ()), "game", *([clustered] * bool(clustered)), *(["seat"] * (kind == "ranked"))}
    used = {name: column for name, column in found.items() if name in known}
    named = {name: table.columns[column] for name, column in used.items()}
    for name in named.keys() - {"outcome", "rank", "score"}:
        _filled(table, name, named[name])
    results = _READERS[kind](table, named)
    if len(results.players) > _PLAYERS:
        raise ValueError(
            f"{len(results.players):,} different players: allowed are {_PLAYERS:,}. Is it the right column?"
        )
    return Given(kind, results, kind != "ranked" or "seat" in used, clustered, used)


def _filled(table: Table, name: str, column: Column) -> None:
    """No cell is empty, a page, or half of a character (as JSON can write)."""
    for code, value in enumerate(column.values):
        if value.strip() and len(value) <= _NAME and value.encode("utf-8", "ignore").decode() == value:
            continue
        row = int(np.argmax(column.codes == code))
        if len(value) > _NAME:
            table.wrong(row, f"a {name} of {len(value):,} characters: allowed are {_NAME}")
        table.wrong(row, f"{name} {value!r} is no Unicode text" if value.strip() else f"no {name}")


def _game(table: Table, named: Mapping[str, Column]) -> Column:
    return named.get("game", Column(("all",), np.zeros(len(table.lines), dtype=np.int64)))


def _cluster(table: Table, named: Mapping[str, Column], match: Ints | None = None) -> Ints:
    """Rows of one game that share a seed or cluster have one number; without such a column each match has its own."""
    column = named.get("cluster", named.get("seed"))
    if column is None:
        return np.arange(len(table.lines)) if match is None else match
    return renumbered(_game(table, named).codes * len(column.values) + column.codes)


def _pairs(table: Table, named: Mapping[str, Column]) -> Results:
    one, other = named["first"], named["second"]
    players = tuple(dict.fromkeys([*one.values, *other.values]))
    number = {name: k for k, name in enumerate(players)}
    first = np.array([number[name] for name in one.values])[one.codes]
    second = np.array([number[name] for name in other.values])[other.codes]
    if (same := first == second).any():
        row = int(np.argmax(same))
        table.wrong(row, f"{players[first[row]]!r} cannot play against itself")
    game = _game(table, named)
    outcome = _outcomes(table, named["outcome"], first, second, number)
    return Results(players, game.values, game.codes, first, second, outcome, _cluster(table, named))


def _outcomes(table: Table, column: Column, first: Ints, second: Ints, number: Mapping[str, int]) -> Ints:
    """0, 1, 2 as `OUTCOMES`: by a label, or by the name of the player who won."""
    who_won = next((name for name, held in table.columns.items() if held is column), "").casefold() == "winner"
    codes = {**({} if who_won else _POINTS), **_CODES}
    labels = np.array([codes.get(" ".join(value.casefold().split()), -1) for value in column.values])
    named = np.array([number.get(value, -1) for value in column.values])
    outcome, winner = labels[column.codes], named[column.codes]
    by_name = np.where(winner < 0, -1, np.where(winner == first, 0, np.where(winner == second, 2, -1)))
    if (torn := (outcome >= 0) & (by_name >= 0) & (outcome != by_name)).any():
        row = int(np.argmax(torn))
        value = column.values[column.codes[row]]
        table.wrong(row, f"{value!r} is a label of outcomes and a player's name: name the player otherwise")
    outcome = np.where(outcome < 0, by_name, outcome)
    if (lost := outcome < 0).any():
        row = int(np.argmax(lost))
        _no_outcome(table, row, column.values[column.codes[row]], named[column.codes[row]] >= 0, codes)
    return np.asarray(outcome, dtype=np.int64)


def _no_outcome(table: Table, row: int, value: str, player: bool, codes: Mapping[str, int]) -> NoReturn:
    if player:
        table.wrong(row, f"outcome {value!r} is a player who was not in this game")
    near = difflib.get_close_matches(value[:80].casefold(), codes, 1, 0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    allowed = "first, draw, second; 1-0, 1/2-1/2, 0-1; model_a, tie, model_b; white, black; the winner's name"
    table.wrong(row, f"outcome {value[:80]!r} is not known.{hint} Allowed: {allowed}")


def _numbers(table: Table, name: str, column: Column) -> Floats:
    """Of every row."""
    numbers = np.array([_number(value) for value in column.values])
    if (bad := ~np.isfinite(numbers)).any():
        code = int(np.argmax(bad))
        value = column.values[code][:80]
        table.wrong(int(np.argmax(column.codes == code)), f"{name} {value!r}: allowed are numbers, true and false")
    return np.asarray(numbers[column.codes], dtype=np.float64)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return _WORDS.get(text.strip().casefold(), np.nan)


def _tasks(table: Table, named: Mapping[str, Column]) -> TaskResults:
    score = _numbers(table, "score", named["score"])
    if (outside := (score < 0) | (score > 1)).any():
        row = int(np.argmax(outside))
        table.wrong(
            row, f"score {score[row]:g}: allowed are 0 to 1. Scores without such bounds: as ranks, --kind ranked"
        )
    agent, item, game = named["agent"], named["item"], _game(table, named)
    key, first, task = np.unique(game.codes * len(item.values) + item.codes, return_index=True, return_inverse=True)
    tasks = tuple([item.values[code] for code in (key % len(item.values)).tolist()])
    return TaskResults(agent.values, game.values, tasks, game.codes[first], agent.codes, task.astype(np.int64), score)


class _Seat(NamedTuple):
    """One row of a game of many."""

    row: int
    agent: str
    points: float
    order: float


def _matches(table: Table, named: Mapping[str, Column]) -> list[list[_Seat]]:
    """The rows of every match, by seat; without seats, in an order that has nothing to do with how the game ended."""
    name = "rank" if "rank" in named else "score"
    points = _numbers(table, name, named[name]) * (-1 if name == "rank" else 1)
    game, match, agent = _game(table, named), named["match"], named["agent"]
    seat = _numbers(table, "seat", named["seat"]) if "seat" in named else np.random.default_rng(0).random(len(points))
    key = game.codes * len(match.values) + match.codes
    order = np.lexsort([seat, key])
    seats = [
        (k, _Seat(row, agent.values[code], value, place))
        for k, row, code, value, place in zip(
            key[order].tolist(),
            order.tolist(),
            agent.codes[order].tolist(),
            points[order].tolist(),
            seat[order].tolist(),
            strict=True,
        )
    ]
    matches = [[seat for _, seat in rows] for _, rows in groupby(seats, key=lambda pair: pair[0])]
    for rows in matches:
        _whole(table, match, rows)
    return matches


def _whole(table: Table, match: Column, rows: Sequence[_Seat]) -> None:
    """A match has two rows at least, and each seat once."""
    if len(rows) < 2:
        table.wrong(rows[0].row, f"match {match.values[match.codes[rows[0].row]][:80]!r} has one row: a game needs two")
    for one, other in pairwise(rows):
        if one.order == other.order:
            said = f"match {match.values[match.codes[other.row]][:80]!r} has seat {other.order:g} twice"
            table.wrong(max(one.row, other.row), said)


def _ranked(table: Table, named: Mapping[str, Column]) -> RankedResults:
    game, cluster = _game(table, named), _cluster(table, named, named["match"].codes)
    rows = []
    for match in _matches(table, named):
        row = min(seat.row for seat in match)
        if len({seat.agent for seat in match}) == 1:
            table.wrong(row, f"{match[0].agent!r} cannot play against itself")
        game_name = game.values[game.codes[row]]
        rows.append((game_name, [s.agent for s in match], [s.points for s in match], int(cluster[row])))
    return RankedResults.of(rows)


def _teams(table: Table, named: Mapping[str, Column]) -> TeamResults:
    game, team, cluster = _game(table, named), named["team"], _cluster(table, named, named["match"].codes)
    rows = []
    for match in _matches(table, named):
        row = min(seat.row for seat in match)
        members: dict[str, list[str]] = {}
        points: dict[str, float] = {}
        for seat in match:
            name = team.values[team.codes[seat.row]]
            if points.setdefault(name, seat.points) != seat.points:
                table.wrong(seat.row, f"team {name[:80]!r} has two results in one match: its members share one")
            members.setdefault(name, []).append(seat.agent)
        if len(members) < 2:
            table.wrong(row, "a match of one team: a game needs two")
        rows.append((game.values[game.codes[row]], members, list(points.values()), int(cluster[row])))
    return TeamResults.of(rows)


_READERS: dict[Kind, Callable[[Table, Mapping[str, Column]], AnyResults]] = {
    "pairs": _pairs,
    "ranked": _ranked,
    "teams": _teams,
    "tasks": _tasks,
}
