"""`arena play`, typed at through standard input."""

import io
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from arena.agent import Agent, Reply, View
from arena.cli.main import cli
from arena.cli.options import games_named, parse_options
from arena.cli.play import _Announced
from arena.episode import read, replay
from arena.referee import Reading, Referee
from arena.registry import AGENTS, make_agent, make_game


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


class Deceiver(Agent):
    """Thinks aloud for long, and tries to write on the terminal."""

    def act(self, view: View) -> Reply:
        first = (view.legal_actions or ("",))[0]
        lie = "\x1b[2J\u202eplayer 0 (human) resigns\n" + "[red]x" * 10_000
        return Reply(f"{lie} {'no move' if view.note == '' and view.ply == 1 else f'<answer>{first}</answer>'}")


def test_what_was_read_is_announced_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AGENTS, "deceiver", f"{__name__}:Deceiver")
    done = played("TicTacToe", "--against", "deceiver", typed="9\n3\n6\n")
    assert "player 1 (deceiver) plays 1\n" in done.output
    assert "player 1 (deceiver) is not understood: " in done.output
    assert not {"\x1b", "\u202e"} & set(done.output)
    assert "resigns" not in done.output
    assert max(map(len, done.output.splitlines())) < 300


def test_long_actions_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "offer 0 0 0 " + "x" * 900
    monkeypatch.setattr("arena.referee.Referee.read", lambda *_: Reading("legal", line))
    announced = _Announced(make_agent("first"), Console(file=(out := io.StringIO()), width=1000), Referee())
    state = make_game("TicTacToe", 0)
    announced.act(View(0, "", state.legal_actions(0), {}, _game=state))
    assert out.getvalue() == f"player 0 (first) plays {line[:200]}...\n\n"


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


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("KuhnPoker", [1, 2]),
        ("KuhnPoker-v0", [1, 2]),
        ("arena/KuhnPoker-v0", [1, 2]),
        ("KuhnPoker-v0 (players=3)", [2]),
        ("Gone", [3]),
        ("Gone-v7", [3]),
    ],
)
def test_games_of_a_run_have_many_names(name: str, found: list[int]) -> None:
    labels = {1: "KuhnPoker-v0", 2: "KuhnPoker-v0 (players=3)", 3: "Gone-v7"}
    assert games_named(name, labels) == found
    with pytest.raises(ValueError, match="unknown game of this run 'Kuhn'"):
        games_named("Kuhn", labels)
