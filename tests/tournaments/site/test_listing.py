from collections import Counter
from pathlib import Path

import pytest

from arena.tournaments.report import board
from arena.tournaments.site.listing import chosen, episodes, listed
from arena.tournaments.store import Store, StoreError
from tests.tournaments.played import played

THREE = ["random", "first", "scripted:5"]


def test_lists_hold_the_newest_of_every_seating_first(tmp_path: Path) -> None:
    played(tmp_path, games=["TicTacToe", "KuhnPoker"], agents=THREE, blocks=4)
    with Store.open(tmp_path) as store:
        shown = board(store)
        every = listed(store, shown)
        short = listed(store, shown, 8)
    assert [len(games) for games in every] == [24, 24]
    for games in every:
        assert [game.ended for game in games] == sorted([game.ended for game in games], reverse=True)
        assert Counter(game.round for game in games) == {1: 6, 2: 6, 3: 6, 4: 6}
        assert {game.seed for game in games if game.round == 1} == {3}, "the last block"
    assert [Counter(game.round for game in games) for games in short] == [{1: 6, 2: 2}] * 2


def test_a_list_says_what_happened(tmp_path: Path) -> None:
    played(tmp_path, games=["TicTacToe"], agents=["first", "scripted:1"], blocks=1, max_turns=3)
    with Store.open(tmp_path) as store:
        (games,) = listed(store, board(store))
    by_seats = {game.agents: game for game in games}
    assert by_seats[0, 1].returns == (1.0, -1.0)
    assert by_seats[0, 1].forfeits == (1,)
    assert by_seats[0, 1].plies == 2
    assert not by_seats[0, 1].truncated


def test_replays_are_chosen_round_by_round(tmp_path: Path) -> None:
    played(tmp_path, games=["TicTacToe", "KuhnPoker"], agents=THREE, blocks=2)
    with Store.open(tmp_path) as store:
        every = listed(store, board(store))
        ids = chosen(every, 14)
        found = list(episodes(store, ids))
    game = {one.id: one for games in every for one in games}
    assert [game[key].round for key in ids] == [1] * 12 + [2] * 2
    assert len({(game[key].agents, game[key].id in {g.id for g in every[0]}) for key in ids[:12]}) == 12
    assert [kept.id for kept in found] == ids
    assert len(chosen(every, None)) == 24
    assert chosen(every, 0) == []


def test_many_replays_come_in_batches(tmp_path: Path) -> None:
    played(tmp_path, games=["KuhnPoker"], agents=THREE, blocks=20)
    with Store.open(tmp_path) as store:
        ids = chosen(listed(store, board(store)), None)
        assert [kept.id for kept in episodes(store, ids)] == ids
        assert len(ids) == 120
        assert list(episodes(store, ["nothing"])) == []


def test_a_damaged_episode_is_an_error_of_the_store(tmp_path: Path) -> None:
    import sqlite3

    played(tmp_path, games=["TicTacToe"], agents=THREE, blocks=1)
    with sqlite3.connect(tmp_path / "results.db") as raw:
        raw.execute("UPDATE episodes SET data = x'00'")
    with Store.open(tmp_path) as store:
        ids = chosen(listed(store, board(store)))
        with pytest.raises(StoreError, match="cannot be read"):
            list(episodes(store, ids))
