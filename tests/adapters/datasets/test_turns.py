"""Plain rows of turns and of episodes."""

import json
from typing import Any

import msgspec
import pytest

from arena.adapters.datasets.format import Format, Row
from arena.adapters.datasets.tokens import Lacking
from arena.adapters.datasets.trajectory import Trajectory
from arena.adapters.datasets.turns import Episodes, Turns
from arena.episode import Episode
from arena.match import play_sync
from arena.referee import Referee
from arena.registry import GAMES, make_game
from tests.adapters.datasets.talks import chat, llm, played
from tests.players import Says

GAME = "TicTacToe-v0"


def rows(episode: Episode, player: int = 0, **options: Any) -> list[Row]:
    return list(Turns(**options).rows([Trajectory(episode, player)]))


def test_rows_play_the_match_again() -> None:
    episode = play_sync("LeducPoker-v0", ["random", "random"], 7)
    both = sorted([*rows(episode, 0), *rows(episode, 1)], key=lambda row: row["ply"])
    state = make_game(both[0]["env"], both[0]["seed"], json.loads(both[0]["options"]))
    for row in both:
        assert list(state.legal_actions(row["seat"]) or ()) == row["legal"]
        assert state.observation(row["seat"]) == row["observation"]
        state = state.apply({row["seat"]: row["action"]})
    assert state.returns() == episode.returns == (rows(episode)[0]["return"], rows(episode, 1)[0]["return"])
    assert [row["turn"] for row in rows(episode)] == list(range(len(rows(episode))))
    assert sum(row["reward"] for row in rows(episode)) == rows(episode)[0]["return"]


def test_what_was_said_and_what_was_made_of_it() -> None:
    model = chat("<think>hm</think>I take 77", "<answer>5</answer>", "<answer>7</answer>", "<answer>9</answer>")
    episode = played([llm(model), "first"])
    first = rows(episode)[0]
    assert (first["attempts"], first["verdict"], first["raw"], first["action"]) == (
        2,
        "legal",
        "<answer>5</answer>",
        "5",
    )
    gone = rows(play_sync(GAME, [Says("mist"), "first"]))[0]
    assert (gone["action"], gone["verdict"], gone["raw"]) == (None, "unreadable", "mist") or gone[
        "verdict"
    ] == "illegal"
    assert gone["reason"]


def test_seats_that_are_not_asked_and_open_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GAMES, "Bazaar-v0", "tests.toy_games:Bazaar")
    episode = play_sync("Bazaar-v0", [Says("shout"), "random", "random"], options={"rounds": 3})
    found = rows(episode)
    assert [(row["verdict"], row["attempts"]) for row in found] == [("illegal", 1), ("", 0), ("", 0)]
    assert [row["action"] for row in found] == ["say "] * 3
    assert [row["legal"] for row in found] == [None] * 3
    assert json.loads(found[0]["options"]) == {"rounds": 3}


def test_without_the_replay_a_broken_record_is_still_shown() -> None:
    episode = play_sync(GAME, ["first", "first"])
    listed = rows(episode)
    assert [{**row, "legal": None} for row in listed] == rows(episode, legal=False)
    episode.turns[1].hash = "0" * 32
    with pytest.raises(Lacking, match="legal=false"):
        rows(episode)
    assert len(rows(episode, legal=False)) == len(listed)
    episode.outcome, episode.returns, episode.reason, episode.final = "void", None, "down", ()
    assert rows(episode, legal=False)[0]["return"] is None


def test_episodes_once_each_and_whole() -> None:
    one = play_sync("SecretMafia-v0", ["random"] * 7, 3, referee=Referee(illegal="fallback"))
    unit = [Trajectory(one, player) for player in range(len(one.seats))]
    (row,) = Episodes(record=True).rows(unit)
    assert msgspec.json.decode(row["record"], type=Episode) == one
    assert (row["agents"], row["returns"]) == ([seat.agent for seat in one.seats], list(one.returns or ()))
    assert list(zip(row["seats"], row["actions"], strict=True)) == [(t.seat, t.action) for t in one.turns]
    (short,) = Episodes().rows(unit[:1])
    assert short == {key: value for key, value in row.items() if key != "record"}


@pytest.mark.parametrize("made", [Turns(), Episodes(), Episodes(record=True)], ids=["turns", "episodes", "record"])
def test_columns_hold_the_rows(made: Format) -> None:
    pytest.importorskip("pyarrow")
    from arena.adapters.datasets.tables import table

    for episode in (
        play_sync("KuhnPoker-v0", ["random", "random"], 2**64 - 1),
        play_sync(GAME, [Says("mist"), "first"]),
        play_sync("Wordle-v0", ["random"]),
    ):
        unit = [Trajectory(episode, player) for player in range(len(episode.seats))]
        found = list(made.rows(unit))
        schema = made.schema()
        assert schema is not None
        held = table(found, schema)
        assert held.to_pylist() == [{name: row[name] for name in schema.names} for row in found]
        assert set(schema.names) == set(found[0])
