import json
from typing import Any, ClassVar

import pytest

from arena.agent import Call
from arena.drawing import Drawing
from arena.episode import Attempt, Episode, EpisodeError
from arena.game import replace
from arena.games.board.tictactoe import TicTacToe
from arena.match import play_sync
from arena.referee import Referee
from arena.registry import GAMES
from arena.tournaments.site.look import embedded
from arena.tournaments.site.story import story


def boards(told: dict[str, Any]) -> list[list[str]]:
    """Rows of the board at every position, as text."""
    return [
        ["".join(cell or "." for cell in row) for row in told["boards"][s["board"]]["rows"]] for s in told["scenes"]
    ]


def test_every_position_of_a_game_with_a_board() -> None:
    episode = play_sync("TicTacToe-v0", ["first", "first"])
    told = json.loads(embedded(story(episode)))
    assert boards(told)[:3] == [["...", "...", "..."], ["X..", "...", "..."], ["XO.", "...", "..."]]
    assert boards(told)[-1] == ["XOX", "OXO", "X.."]
    assert len(told["scenes"]) == len(told["plies"]) + 1
    assert [scene["new"] for scene in told["scenes"][:3]] == [[], [[0, 0]], [[0, 1]]]
    assert told["boards"][told["scenes"][-1]["board"]]["marked"] == [[0, 2], [1, 1], [2, 0]]
    assert told["heads"] == [{"style": "squares", "down": [], "across": [], "owners": {"X": 0, "O": 1}}]
    assert told["broken"] == ""
    first = told["plies"][0][0]
    assert (first["seat"], first["action"], first["own"], first["legal"]) == (0, "1", True, 9)
    assert told["texts"][first["view"]].startswith("You are X.")
    assert told["texts"][told["rules"][1]].startswith("Tic-tac-toe on a 3 x 3 board. You are O")
    assert told["end"][:2] == [["Outcome", "terminated"], ["Seat 0, first", "+1"]]
    assert len(set(told["texts"])) == len(told["texts"])


def test_a_game_without_a_board_shows_its_table() -> None:
    told = story(play_sync("KuhnPoker-v0", ["first", "first"]))
    tables = [told["texts"][scene["table"]] for scene in told["scenes"]]
    assert all("[player 0]" in table and "[player 1]" in table for table in tables)
    assert len(tables) == len(told["plies"]) + 1


def test_moves_at_once_are_one_ply() -> None:
    told = story(play_sync("IteratedPrisonersDilemma-v0", ["first", "random"]))
    assert {len(turns) for turns in told["plies"]} == {2}
    assert [turn["seat"] for turn in told["plies"][0]] == [0, 1]


def test_what_was_said_and_read() -> None:
    usage = {"prompt_tokens": 1200.0, "completion_tokens": 30.0, "cost": 0.5}
    calls = (Call("generate", usage=usage, finish_reason="stop"), Call("tool"))
    episode = play_sync("TicTacToe-v0", ["first", "scripted:99"], referee=Referee(retries=1))
    turn = episode.turns[1]
    turn.attempts = (replace(turn.attempts[0], reasoning="hm", latency=1.5, calls=calls), *turn.attempts[1:])
    told = story(episode)
    (bad,) = told["plies"][1]
    assert [one["verdict"] for one in bad["tries"]] == ["illegal", "illegal"]
    first = bad["tries"][0]
    assert (told["texts"][first["raw"]], told["texts"][first["thought"]]) == ("99", "hm")
    assert "free square" in first["reason"]
    assert first["used"] == [
        "1.50 s", "1 × generate", "1 × tool", "1,200 tokens in", "30 tokens out", "$0.500000", "ended by stop",
    ]  # fmt: skip
    assert (bad["action"], bad["own"]) == (None, False)
    assert ["Seat 1, scripted:99", "−1, by forfeit"] in told["end"]
    assert len(told["scenes"]) == len(told["plies"]) + 1


def test_a_seat_that_has_forfeited_is_not_asked() -> None:
    told = story(play_sync("LiarsDice-v0", ["scripted:nonsense", "random", "random"], options={"players": 3}))
    later = [turn for turns in told["plies"] for turn in turns if turn["seat"] == 0][1:]
    assert all(not turn["tries"] and turn["action"] is not None for turn in later)
    assert told["broken"] == ""


def test_boards_end_where_the_game_at_hand_shows_something_else() -> None:
    episode = play_sync("TicTacToe-v0", ["first", "first"])
    episode.turns[3].observation = "another board"
    told = story(episode)
    assert len(told["scenes"]) == 4
    assert told["broken"] == "TicTacToe-v0 now shows seat 1 something else at ply 3"
    assert len(told["plies"]) == 7


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"env": "NoGame-v0"}, "unknown game"),
        ({"options": {"size": 5}}, "size"),
        ({"env": "LiarsDice-v0", "options": {"players": 5}}, "has 5 seats here, recorded are 2"),
    ],
)
def test_a_game_that_cannot_be_played_again_is_told(change: dict[str, Any], reason: str) -> None:
    episode = play_sync("TicTacToe-v0", ["first", "first"])
    for name, value in change.items():
        setattr(episode, name, value)
    told = story(episode)
    assert told["scenes"] == []
    assert reason in told["broken"]
    assert told["plies"]


class Crooked(TicTacToe):
    """Draws what is no board, or fails to."""

    wrong: ClassVar[str] = ""

    def drawing(self) -> Drawing:
        if self.wrong == "raises" and self.ply > 1:
            raise ZeroDivisionError
        return Drawing((("a",), ("b", "c"))) if self.wrong == "rows" else super().drawing()


@pytest.mark.parametrize(
    ("wrong", "scenes", "broken"),
    [
        ("rows", 0, "the board cannot be drawn: its rows must have one length, at least 1"),
        ("raises", 2, "ZeroDivisionError"),
    ],
)
def test_a_game_that_draws_badly_loses_its_boards_only(
    wrong: str, scenes: int, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(GAMES, "Crooked-v0", "tests.tournaments.site.test_story:Crooked")
    monkeypatch.setattr(Crooked, "wrong", wrong)
    told = story(play_sync("Crooked-v0", ["first", "first"]))
    assert (len(told["scenes"]), told["broken"]) == (scenes, broken)
    assert len(told["plies"]) == 7


def test_a_broken_record_is_refused() -> None:
    episode = play_sync("TicTacToe-v0", ["first", "first"])
    episode.turns[0].seat = 7
    with pytest.raises(EpisodeError, match="seats that exist"):
        story(episode)


def test_long_games_stay_small() -> None:
    told = embedded(story(play_sync("Chess-v0", ["random", "random"], seed=3, max_turns=200)))
    assert len(told) < 400_000, "a ply takes about the room of what was shown and a board"


def test_an_episode_without_a_turn() -> None:
    episode = play_sync("TicTacToe-v0", ["first", "first"])
    empty = Episode("x", "TicTacToe-v0", 0, "void", None, episode.seats, [], reason="server down")
    told = story(empty)
    assert (told["plies"], len(told["scenes"]), told["final"]) == ([], 1, [])
    assert told["end"] == [["Outcome", "void: server down"]]


def test_attempts_tell_nothing_that_was_not_recorded() -> None:
    episode = play_sync("TicTacToe-v0", ["first", "first"])
    episode.turns[0].attempts = (Attempt("1"),)
    assert story(episode)["plies"][0][0]["tries"][0]["used"] == []
