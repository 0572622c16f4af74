"""`arena play`, typed at through standard input."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from arena.cli.main import cli
from arena.cli.options import parse_options
from arena.episode import read, replay


def played(*args: str, typed: str = "") -> Result:
    return CliRunner().invoke(cli, ["play", *args], input=typed)


def test_a_game_is_won_and_recorded(tmp_path: Path) -> None:
    record = tmp_path / "games.jsonl.zst"
    args = ("TicTacToe", "--against", "first", "--record", str(record))
    done = played(*args, typed="9\n3\n6\n")
    assert done.exit_code == 0, done.output
    assert "player 1 (first) plays 1" in done.output
    assert "player 0, human (you): +1" in done.output
    assert "player 1, first: -1" in done.output
    (episode,) = read(record)
    assert replay(episode).returns() == (1.0, -1.0)
    played(*args, typed="9\n3\n6\n")
    assert len(list(read(record))) == 2


def test_any_seat_can_be_taken() -> None:
    done = played("TicTacToe-v0", "--seat", "1", "--against", "scripted:1|2|9|8|7", typed="3\n5\n7\n")
    assert "player 0 (scripted:1|2|9|8|7) plays 1" in done.output
    assert "player 1, human (you): +1" in done.output


def test_a_wrong_word_is_told_and_forgiven() -> None:
    done = played("TicTacToe", "--against", "first", typed="banana\n9\n9\n3\n6\n")
    assert "Not accepted: write the number of a free square" in done.output
    assert "square 9 is taken" in done.output
    assert "human (you): +1" in done.output


def test_leaving_is_no_result() -> None:
    done = played("Chess", typed="quit\n")
    assert done.exit_code == 0
    assert "no result: AgentError: the player left the table" in done.output


def test_secret_moves_are_not_announced() -> None:
    done = played("RockPaperScissors", "--against", "scripted:rock", typed="paper\n")
    assert "plays rock" not in done.output.split("player 0>")[0]
    assert "human (you): +1" in done.output


def test_options_and_several_opponents() -> None:
    done = played(
        "LiarsDice",
        "-o",
        "players=3",
        "-o",
        "dice=1",
        "--against",
        "first",
        "--against",
        "scripted:liar",
        typed="quit\n",
    )
    assert "Liar's dice with 3 players" in done.output


def test_nobody_need_sit_down() -> None:
    done = played("TicTacToe", "--watch", "--against", "minimax", "--against", "random", "--seed", "4")
    assert done.exit_code == 0
    assert "player 0 (minimax) plays" in done.output
    assert "player 0, minimax: +1" in done.output
    assert "(you)" not in done.output


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["Ches"], "Did you mean 'Chess-v0'?"),
        (["Chess", "--seat", "2"], "Chess has seats 0 to 1"),
        (["Chess", "--against", "mtcs"], "Did you mean 'mcts'?"),
        (["Chess", "--against", "random", "--against", "first"], "give one"),
        (["Chess", "-o", "fen"], "write key=value"),
        (["Chess", "-o", "fem=x"], "Did you mean 'fen'?"),
        (["Chess", "--seed", "-1"], "allowed are 0"),
        (["LiarsDice", "-o", "players=40"], "2 to 6"),
    ],
)
def test_mistakes_are_one_line(args: list[str], said: str) -> None:
    done = played(*args)
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_options_are_json_where_they_can_be() -> None:
    assert parse_options(["a=1", "b=x=y", "c=[1, 2]", "d=", "e=null"]) == {
        "a": 1, "b": "x=y", "c": [1, 2], "d": "", "e": None,
    }  # fmt: skip
    with pytest.raises(ValueError, match="write key=value"):
        parse_options(["=1"])
