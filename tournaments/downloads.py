"""Downloads of a run: ratings and pairs as CSV and JSON, games as CSV, parquet and PGN; games are streamed.

Texts in CSV files are guarded: one that begins with `=`, `+`, `-`, `@`, a tab, a line break or `'` gets a `'` before
it, so that no spreadsheet takes a name for a formula; who reads them takes one leading `'` away. Numbers are left as
they are, and a cell is empty where there is nothing to tell. Times are seconds since the epoch.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np

from arena.tournaments.board import Board, Row, Section
from arena.tournaments.listing import Listed, SeatListed, listed, most_seats
from arena.tournaments.pgn import games_pgn, has_pgn
from arena.tournaments.store import Store

__all__ = [
    "FILES",
    "available",
    "games_csv",
    "pairs_csv",
    "ratings_csv",
    "ratings_json",
    "save",
    "write",
    "write_parquet",
]

JSON_SCHEMA = 1
"""Of `ratings.json`."""

_DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "\n", "'")
_GROUP = 10_000  # games of a row group of a parquet file
_GAME = (
    "id", "game", "block", "seed", "rotation", "repetition", "outcome", "reason", "result", "plies", "digest",
    "started", "ended",
)  # fmt: skip
_SEAT: dict[str, Callable[[SeatListed], Any]] = {
    "agent": lambda seat: seat.agent,
    "return": lambda seat: seat.earned,
    "forfeit": lambda seat: int(seat.forfeit),
    "turns": lambda seat: seat.conduct.turns,
    "replies": lambda seat: seat.conduct.replies,
    "wrong": lambda seat: seat.conduct.wrong,
    "calls": lambda seat: seat.conduct.calls,
    "prompt_tokens": lambda seat: seat.conduct.prompt_tokens,
    "completion_tokens": lambda seat: seat.conduct.completion_tokens,
    "seconds": lambda seat: seat.conduct.seconds,
    "cost": lambda seat: seat.conduct.cost,
}
_ROW: dict[str, Callable[[Section, Row], Any]] = {
    "game": lambda section, row: section.label,
    "kind": lambda section, row: section.kind,
    "rank": lambda section, row: row.rank,
    "rank_low": lambda section, row: row.low or None,
    "rank_high": lambda section, row: row.high or None,
    "agent": lambda section, row: row.name,
    "elo": lambda section, row: row.value if section.rated else None,
    "mean_return": lambda section, row: None if section.rated else row.value,
    "half": lambda section, row: row.half,
    "p_best": lambda section, row: row.best,
    "letters": lambda section, row: row.letters,
    "group": lambda section, row: row.group,
    "score": lambda section, row: row.score,
    "score_half": lambda section, row: row.score_half,
    "mean_rank": lambda section, row: row.mean_rank,
    "win_rate": lambda section, row: row.win_rate,
    "games": lambda section, row: row.games,
    "won": lambda section, row: row.won,
    "drawn": lambda section, row: row.drawn,
    "lost": lambda section, row: row.lost,
    "forfeits": lambda section, row: row.forfeits,
    "truncated": lambda section, row: row.truncated,
    "voids": lambda section, row: row.voids,
    "illegal": lambda section, row: row.illegal,
    "tokens_per_move": lambda section, row: row.tokens,
    "cost": lambda section, row: row.cost,
    "p50": lambda section, row: row.p50,
    "p95": lambda section, row: row.p95,
    "flags": lambda section, row: "; ".join(row.flags),
}


def ratings_csv(board: Board) -> Iterator[str]:
    """A line an agent and table, the table over all games first (its `game` is its heading)."""
    yield _line(_ROW)
    for section in _tables(board):
        for row in section.rows:
            yield _line([value(section, row) for value in _ROW.values()])


def pairs_csv(board: Board) -> Iterator[str]:
    """A line two agents and table: `score` is what the first earned of their games, `p_better` what its rating says."""
    yield _line(("game", "first", "second", "games", "score", "p_better"))
    for section in _tables(board):
        for row, pairs in zip(section.rows, section.pairs, strict=False):
            for other, pair in zip(section.rows, pairs, strict=True):
                if pair is not None:
                    cells = [section.label, row.name, other.name, pair.games, pair.score, _better(section, row, other)]
                    yield _line(cells)


def games_csv(store: Store) -> Iterator[str]:
    """A line a finished game, by id; columns of seats end in the seat's number among those that agents take."""
    seats = most_seats(store)
    yield _line([*_GAME, *[f"{name}_{seat}" for seat in range(seats) for name in _SEAT]])
    for game in listed(store):
        cells = [getattr(game, name) for name in _GAME]
        for seat in game.seats:
            cells += [value(seat) for value in _SEAT.values()]
        yield _line([*cells, *[None] * (len(_SEAT) * (seats - len(game.seats)))])


def ratings_json(board: Board) -> bytes:
    """The whole board: what its classes in `arena.tournaments.board` call it, by the names of their fields.

    `schema` is the number of this form. Added are `win_rate`, `illegal` (a share), `tokens` (a move) of the rows;
    matrices are lists of rows; what cannot be told is null.
    """
    return msgspec.json.format(msgspec.json.encode(_built(board)), indent=1) + b"\n"


def write_parquet(store: Store, out: BinaryIO) -> None:
    """Finished games as a parquet file (zstd), by id; what seats have is in lists. Needs the extra `parquet`."""
    pa, pq = _pyarrow()
    schema = pa.schema(
        [(name, getattr(pa, kind)()) for name, kind in zip(_GAME, _GAME_TYPES, strict=True)]
        + [(name, pa.list_(getattr(pa, kind)())) for name, kind in zip(_SEAT, _SEAT_TYPES, strict=True)]
    )
    games = listed(store)
    with pq.ParquetWriter(out, schema, compression="zstd") as writer:
        while group := list(islice(games, _GROUP)):
            writer.write_batch(pa.record_batch(_columns(group), schema=schema))


_GAME_TYPES = (
    "string", "string", "string", "int64", "int64", "int64", "string", "string", "string", "int64", "string", "float64",
    "float64",
)  # fmt: skip
_SEAT_TYPES = (
    "string", "float64", "bool_", "int64", "int64", "int64", "int64", "int64", "int64", "float64", "float64",
)  # fmt: skip


def _columns(games: list[Listed]) -> list[Any]:
    columns: list[Any] = [[getattr(game, name) for game in games] for name in _GAME]
    for name, value in _SEAT.items():
        column = [[value(seat) for seat in game.seats] for game in games]
        columns.append([[bool(x) for x in row] for row in column] if name == "forfeit" else column)
    return columns


def _pyarrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise ValueError("games.parquet needs pyarrow: pip install 'gymnasium-arena[parquet]'") from error


FILES: dict[str, Callable[[Store, Board, BinaryIO], None]] = {
    "ratings.csv": lambda store, board, out: _text(out, ratings_csv(board)),
    "ratings.json": lambda store, board, out: _bytes(out, ratings_json(board)),
    "pairs.csv": lambda store, board, out: _text(out, pairs_csv(board)),
    "games.csv": lambda store, board, out: _text(out, games_csv(store)),
    "games.parquet": lambda store, board, out: write_parquet(store, out),
    "games.pgn": lambda store, board, out: _text(out, _spaced(games_pgn(store, board.title))),
}
"""What writes each file."""


def available(store: Store) -> tuple[str, ...]:
    """The names of FILES that can be written of this store here."""
    missing = set()
    if find_spec("pyarrow") is None:
        missing.add("games.parquet")
    if not any(has_pgn(entry.id) for entry in store.entries().values()):
        missing.add("games.pgn")
    return tuple([name for name in FILES if name not in missing])


def save(name: str, store: Store, board: Board, out: BinaryIO) -> None:
    """Write one of FILES."""
    FILES[name](store, board, out)


def write(store: Store, board: Board, folder: str | Path) -> list[Path]:
    """Write all that is available into a folder, over what was there; their paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in available(store):
        paths.append(folder / name)
        with paths[-1].open("wb") as out:
            save(name, store, board, out)
    return paths


def _tables(board: Board) -> list[Section]:
    return [*([board.overall] if board.overall is not None else []), *board.sections]


def _better(section: Section, row: Row, other: Row) -> float | None:
    rated = section.ratings
    return None if rated is None or row.group != other.group else float(rated.standing.beats[row.agent, other.agent])


def _line(cells: Iterable[Any]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow([_cell(cell) for cell in cells])
    return out.getvalue()


def _cell(value: Any) -> Any:
    """Text that no spreadsheet takes for a formula.

    >>> [_cell(value) for value in ("=1+1", "'", "ann", -1.5, None)]
    ["'=1+1", "''", 'ann', -1.5, None]
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_DANGEROUS) else value


def _spaced(games: Iterable[str]) -> Iterator[str]:
    for game in games:
        yield game
        yield "\n"


def _text(out: BinaryIO, pieces: Iterable[str]) -> None:
    for piece in pieces:
        out.write(piece.encode("utf-8", "backslashreplace"))


def _bytes(out: BinaryIO, data: bytes) -> None:
    out.write(data)


def _built(board: Board) -> dict[str, Any]:
    """The board as plain data, with what its rows work out."""
    built: dict[str, Any] = _plain(board)
    sections = [*([built["overall"]] if board.overall is not None else []), *built["sections"]]
    for section, plain in zip(_tables(board), sections, strict=True):
        for row, told in zip(section.rows, plain["rows"], strict=True):
            told |= {"win_rate": row.win_rate, "illegal": row.illegal, "tokens": row.tokens}
    return {"schema": JSON_SCHEMA, "title": board.title, **built}


def _plain(value: Any) -> Any:
    """What JSON holds: fields by name, arrays as lists, keys as texts."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value, str_keys=True)
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    raise NotImplementedError(f"{type(value).__name__} in a board")
