import csv
import io
import json
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import chess.pgn
import numpy as np
import pytest

from arena.episode import Episode
from arena.tournaments import downloads
from arena.tournaments.board import Board
from arena.tournaments.downloads import (
    FILES,
    available,
    games_csv,
    pairs_csv,
    ratings_csv,
    ratings_json,
    save,
    write,
    write_parquet,
)
from arena.tournaments.ratings import Results, rate
from arena.tournaments.report import board
from arena.tournaments.store import GameRow, Store
from tests.tournaments.played import played
from tests.tournaments.postgres import fresh, postgres

__all__ = ["fresh", "postgres"]

pa, pq = import_module("pyarrow"), import_module("pyarrow.parquet")  # they have no type stubs

HOSTILE = ["=1+1", "+cmd|' /C calc'!A0", "-2", "@SUM(A1)", "\ttab", "'quoted", 'a "b", c\nd', "<script>", "plain"]
SMALL: dict[str, Any] = {
    "games": ["TicTacToe", "KuhnPoker", "Arithmetic", "LiarsDice?players=3"],
    "agents": ["random", "first", "scripted:nonsense"],
    "blocks": 3,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    played(folder, **SMALL)
    return folder


def rows(pieces: Iterable[str]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO("".join(pieces), newline="")))


def seen(folder: Path) -> tuple[Board, list[GameRow], dict[int, str]]:
    with Store.open(folder) as store:
        return board(store), store.games(), store.agents()


def bare(cell: str) -> str:
    return cell.removeprefix("'")


def test_ratings(run: Path) -> None:
    shown, _, _ = seen(run)
    table = rows(ratings_csv(shown))
    tables = [*([shown.overall] if shown.overall else []), *shown.sections]
    expected = [(section, row) for section in tables for row in section.rows]
    assert len(table) == len(expected)
    for told, (section, row) in zip(table, expected, strict=True):
        assert (told["game"], told["agent"], told["kind"]) == (section.label, row.name, section.kind)
        assert float(told["elo"] if section.rated else told["mean_return"]) == row.value
        assert told["mean_return" if section.rated else "elo"] == ""
        assert (int(told["rank"]), int(told["games"]), int(told["won"])) == (row.rank, row.games, row.won)
        assert told["flags"] == "; ".join(row.flags)
        assert told["p95"] == ("" if row.p95 is None else str(row.p95))
    assert {told["forfeits"] for told in table if told["agent"] == "scripted:nonsense"} != {"0"}


def test_pairs(run: Path) -> None:
    shown, _, _ = seen(run)
    table = rows(pairs_csv(shown))
    nim = {(told["first"], told["second"]): told for told in table if told["game"] == "TicTacToe-v0"}
    assert len(nim) == 6
    for (first, second), told in nim.items():
        back = nim[second, first]
        assert float(told["score"]) + float(back["score"]) == pytest.approx(1)
        assert float(told["p_better"]) + float(back["p_better"]) == pytest.approx(1)
        assert told["games"] == back["games"] == "6"


def test_games(run: Path) -> None:
    _, kept, names = seen(run)
    with Store.open(run) as store:
        table = rows(games_csv(store))
    assert [told["id"] for told in table] == [row.id for row in kept] == sorted(row.id for row in kept)
    for told, row in zip(table, kept, strict=True):
        seats = len(row.agents)
        assert [told[f"agent_{k}"] for k in range(seats)] == [names[agent] for agent in row.agents]
        assert [float(told[f"return_{k}"]) for k in range(seats)] == list(row.returns)
        assert [k for k in range(seats) if told[f"forfeit_{k}"] == "1"] == list(row.forfeits)
        assert told[f"agent_{seats}"] == "" if seats < 3 else "agent_3" not in told
        assert told["digest"] == row.digest
        assert told["result"] in (("first", "draw", "second") if seats == 2 else ("",))


def test_a_fit_of_the_file_is_the_table(run: Path) -> None:
    shown, _, _ = seen(run)
    with Store.open(run) as store:
        table = [told for told in rows(games_csv(store)) if told["game"] == "TicTacToe-v0"]
    listed = [(t["game"], t["agent_0"], t["agent_1"], t["result"], t["block"]) for t in table]
    fitted = rate(Results.of(listed))
    section = shown.sections[0]
    elo = dict(zip(fitted.players, fitted.elo.tolist(), strict=True))
    assert elo == pytest.approx({row.name: row.value for row in section.rows})


def test_cells_are_no_formulas(tmp_path: Path) -> None:
    agents = [{"spec": "first", "name": name} for name in HOSTILE]
    named = [entry.name for entry in played(tmp_path, games=["TicTacToe"], agents=agents, blocks=1).agents]
    shown, _, _ = seen(tmp_path)
    with Store.open(tmp_path) as store:
        tables = [rows(ratings_csv(shown)), rows(pairs_csv(shown)), rows(games_csv(store))]
    for table in tables:
        cells = [told[column] for told in table for column in told if column in ("agent", "first", "agent_0")]
        assert {bare(cell) for cell in cells} == set(named)
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))]
    assert "-1.0" in {told["return_1"] for told in tables[2]}, "numbers are left as they are"
    loaded = json.loads(ratings_json(shown))
    assert {row["name"] for row in loaded["sections"][0]["rows"]} == set(named), "JSON needs no guard"


def test_json_has_the_whole_board(run: Path) -> None:
    shown, _, _ = seen(run)
    loaded = json.loads(ratings_json(shown))
    assert (loaded["schema"], loaded["finished"], loaded["planned"]) == (1, shown.finished, shown.planned)
    assert [agent["name"] for agent in loaded["agents"]] == [agent.name for agent in shown.agents]
    section, told = shown.sections[0], loaded["sections"][0]
    assert told["label"] == section.label
    for row, one in zip(section.rows, told["rows"], strict=True):
        assert (one["name"], one["value"], one["low"]) == (row.name, row.value, row.low)
        assert (one["win_rate"], one["illegal"], one["tokens"]) == (row.win_rate, row.illegal, None)
        assert set(one["conduct"]) <= set(row.conduct.__struct_fields__)
    assert section.ratings is not None
    np.testing.assert_array_equal(told["ratings"]["elo"], section.ratings.elo)
    np.testing.assert_array_equal(told["ratings"]["covariance"], section.ratings.covariance)
    assert told["beside"]["nash"].keys() == {str(row.agent) for row in section.rows}
    assert told["curve"]["games"][-1] == section.games
    assert loaded["tournament"]["agents"] == [{"spec": spec, "name": spec} for spec in SMALL["agents"]]


def test_json_refuses_what_it_does_not_know(run: Path) -> None:
    shown, _, _ = seen(run)
    shown.versions = {"x": object()}  # type: ignore[dict-item]  # what is wrong here is the point
    with pytest.raises(NotImplementedError, match="object in a board"):
        ratings_json(shown)


def test_parquet(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "_GROUP", 10)
    out = io.BytesIO()
    with Store.open(run) as store:
        write_parquet(store, out)
        plain = rows(games_csv(store))
        kept = store.games()
    file = pq.ParquetFile(io.BytesIO(out.getvalue()))
    assert file.metadata.num_row_groups == -(-len(kept) // 10)
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    table = file.read()
    assert table.schema.field("return").type == pa.list_(pa.float64())
    for told, row, line in zip(table.to_pylist(), kept, plain, strict=True):
        assert (told["id"], told["return"]) == (row.id, list(row.returns))
        assert told["forfeit"] == [k in row.forfeits for k in range(len(row.agents))]
        assert (str(told["started"]), told["game"], str(told["seed"])) == (line["started"], line["game"], line["seed"])
        assert told["turns"] == [int(line[f"turns_{k}"]) for k in range(len(row.agents))]


def test_parquet_without_pyarrow(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with Store.open(run) as store, pytest.raises(ValueError, match=r"pip install 'gymnasium-arena\[parquet\]'"):
        write_parquet(store, io.BytesIO())


def test_a_folder_of_all(tmp_path: Path) -> None:
    played(tmp_path / "run", games=["Chess", "TicTacToe"], agents=["random", "first"], blocks=2, max_turns=30)
    with Store.open(tmp_path / "run") as store:
        shown = board(store)
        assert available(store) == tuple(FILES)
        paths = write(store, shown, tmp_path / "new" / "files")
        again = write(store, shown, tmp_path / "new" / "files")
    assert paths == again
    assert [path.name for path in paths] == list(FILES)
    assert len(rows([(tmp_path / "new/files/games.csv").read_text()])) == 8
    assert pq.read_table(tmp_path / "new/files/games.parquet").num_rows == 8
    assert json.loads((tmp_path / "new/files/ratings.json").read_text())["title"] == shown.title
    with (tmp_path / "new/files/games.pgn").open() as stream:
        games = list(iter(lambda: chess.pgn.read_game(stream), None))
    assert [game.headers["Event"] for game in games] == ["Chess-v0, TicTacToe-v0"] * 4


def test_what_is_not_there_is_not_offered(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(run) as store:
        assert "games.pgn" not in available(store)
        monkeypatch.setattr(downloads, "find_spec", lambda _: None)
        assert available(store) == ("ratings.csv", "ratings.json", "pairs.csv", "games.csv")


def test_one_file(run: Path) -> None:
    with Store.open(run) as store:
        shown, out = board(store), io.BytesIO()
        save("games.csv", store, shown, out)
        assert out.getvalue().decode() == "".join(games_csv(store))
        with pytest.raises(KeyError):
            save("passwd", store, shown, out)


def test_truncated_games_and_their_reason(tmp_path: Path) -> None:
    def cut(number: int, episode: Episode) -> Episode:
        if number == 0:
            episode.reason = "=danger, line\nbreak"
        return episode

    played(tmp_path, cut, games=["TicTacToe"], agents=["random", "first"], blocks=2, max_turns=3)
    with Store.open(tmp_path) as store:
        table = rows(games_csv(store))
    assert {told["outcome"] for told in table} == {"truncated"}
    assert "'=danger, line\nbreak" in {told["reason"] for told in table}


def test_a_run_without_games(tmp_path: Path) -> None:
    asked = played(tmp_path / "x", games=["TicTacToe"], agents=["random", "first"], blocks=1)
    Store.resume(tmp_path / "none", asked).close()
    with Store.open(tmp_path / "none") as store:
        shown = board(store)
        paths = write(store, shown, tmp_path / "out")
    assert [len(rows([path.read_text()])) for path in paths if path.suffix == ".csv"] == [0, 0, 0]
    assert pq.read_table(tmp_path / "out/games.parquet").num_rows == 0


def untimed(table: list[dict[str, str]]) -> list[dict[str, str]]:
    """Without what differs from run to run."""
    return [{k: v for k, v in row.items() if k not in ("started", "ended", "p50", "p95")} for row in table]


@pytest.mark.postgres
def test_a_database_of_a_server(fresh: str, tmp_path: Path) -> None:
    played(fresh, **SMALL)
    played(tmp_path / "file", **SMALL)
    with Store.open(fresh) as store, Store.open(tmp_path / "file") as file:
        shown, plain = board(store), board(file)
        write(store, shown, tmp_path / "out")
        one, other = rows(games_csv(store)), rows(games_csv(file))
    assert untimed(one) == untimed(other)
    assert untimed(rows(ratings_csv(shown))) == untimed(rows(ratings_csv(plain)))
    assert shown.method is not None
    assert shown.method.command == "arena tournament run tournament.toml --out again"
    assert pq.read_table(tmp_path / "out/games.parquet").num_rows == len(one)
