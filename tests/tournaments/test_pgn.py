import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import chess.pgn
import pytest

from arena.episode import Episode
from arena.match import play_sync
from arena.referee import Referee
from arena.tournaments.pgn import games_pgn, has_pgn, pgn
from arena.tournaments.store import Store
from tests.tournaments.played import played

MATE = ["scripted:e2e4|f1c4|d1h5|h5f7", "scripted:e7e5|b8c6|g8f6"]


def read(texts: Iterable[str | None]) -> list[chess.pgn.Game]:
    stream = io.StringIO("\n".join([text or "" for text in texts]))
    games = []
    while (game := chess.pgn.read_game(stream)) is not None:
        assert game.errors == []
        games.append(game)
    return games


def told(episode: Episode) -> tuple[str, str, list[str]]:
    (game,) = read([pgn(episode)])
    return game.headers["Result"], game.headers["Termination"], [move.uci() for move in game.mainline_moves()]


def chess_game(*agents: str, referee: Referee | None = None, **options: Any) -> Episode:
    return play_sync("Chess-v0", agents, 5, options, referee, max_turns=60)


def test_a_won_game() -> None:
    episode = chess_game(*MATE)
    (game,) = read([pgn(episode, {"Event": "Cup", "GameId": "ab12"})])
    facts = dict(game.headers)
    assert facts.pop("Date").startswith("20")
    assert facts == {
        "Event": "Cup",
        "Site": "Arena Chess-v0",
        "Round": "5",
        "White": MATE[0],
        "Black": MATE[1],
        "Result": "1-0",
        "GameId": "ab12",
        "Termination": "normal",
    }
    assert game.end().board().is_checkmate()
    assert [move.uci() for move in game.mainline_moves()] == [turn.action for turn in episode.turns]


def test_forfeits_are_told() -> None:
    assert told(chess_game("scripted:e2e4|nonsense", "scripted:e7e5"))[:2] == ("0-1", "rules infraction")
    result, how, moves = told(chess_game("scripted:e2e4|f1c4", "scripted:e7e5|e1e8"))
    assert (result, how, moves) == ("1-0", "rules infraction", ["e2e4", "e7e5", "f1c4"])


def test_an_answer_that_came_too_late() -> None:
    episode = play_sync("Chess-v0", ["scripted:e2e4", "slow?seconds=5"], 0, turn_seconds=0.05)
    assert told(episode) == ("1-0", "time forfeit", ["e2e4"])


def test_a_truncated_game_has_no_result() -> None:
    assert told(chess_game("random", "random", fen="8/8/8/8/4k3/8/4P3/4K3 w - - 0 1"))[:2] == ("*", "unterminated")


def test_what_was_substituted_is_what_was_played() -> None:
    episode = chess_game("scripted:e2e4|nonsense", "first", referee=Referee(illegal="random"))
    assert told(episode)[2] == [turn.action for turn in episode.turns]


def test_games_without_a_notation() -> None:
    assert (has_pgn("Chess-v0"), has_pgn("TicTacToe-v0")) == (True, False)
    assert pgn(play_sync("TicTacToe-v0", ["first", "first"])) is None
    with pytest.raises(ValueError, match="unknown game"):
        has_pgn("Chezz-v0")


def test_all_games_of_a_run(tmp_path: Path) -> None:
    name = 'x"]\n\n1. e4 *\n\n[Event "forged'
    games: list[Any] = ["Chess", {"id": "Chess", "options": {"chess960": True}}, "TicTacToe"]
    played(tmp_path, games=games, agents=["random", {"spec": "random", "name": name}], blocks=3, max_turns=40)
    with Store.open(tmp_path) as store:
        found, rows = read(games_pgn(store, "Cup")), store.games()
        chess_ids = {row.id for row in rows if store.entries()[row.entry].id == "Chess-v0"}
    assert [game.headers["GameId"] for game in found] == sorted(chess_ids)
    assert len(found) == 12
    assert [game.headers.get("Variant") for game in found].count("Chess960") == 6
    assert {game.headers["Event"] for game in found} == {"Cup"}
    seated = {frozenset((game.headers["White"], game.headers["Black"])) for game in found}
    assert seated == {frozenset(("random", name.replace("\n", " ").replace('"', '\\"')))}


def test_a_run_without_such_games(tmp_path: Path) -> None:
    played(tmp_path, games=["TicTacToe"], agents=["first", "random"], blocks=1)
    with Store.open(tmp_path) as store:
        assert list(games_pgn(store)) == []
