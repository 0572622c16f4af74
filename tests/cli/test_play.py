"""`arena play`, typed at through standard input."""

import io
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from arena.agent import Agent, AgentInfo, Reply, View
from arena.cli.main import cli
from arena.cli.options import games_named, parse_options
from arena.cli.play import _Announced
from arena.episode import read
from arena.referee import Reading, Referee
from arena.registry import AGENTS, make_agent, make_game
from arena.replaying import replay
from tests.cli.test_people import read_until
from tests.fakes.engine import plain
from tests.fakes.server import FakeSGLang


def played(*args: str, typed: str = "") -> Result:
    return CliRunner().invoke(cli, ["play", *args], input=typed)


def test_a_game_is_won_and_recorded(tmp_path: Path) -> None:
    record = tmp_path / "games.jsonl.zst"
    args = ("TicTacToe", "--against", "first", "--record", str(record))
    done = played(*args, typed="9\n3\n6\n")
    assert done.exit_code == 0, done.output
    assert "player 1 (first) plays 1" in done.output
    assert "You win.\nplayer 0, human (you): +1\nplayer 1, first: -1\n" in done.output
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


@pytest.mark.parametrize("typed", ["quit\n", "/quit\n", ""])
def test_leaving_is_no_result(typed: str) -> None:
    done = played("Chess", typed=typed)
    assert done.exit_code == 0
    assert done.output.endswith("You left the table; no result.\n")
    assert "Error" not in done.output


class Breaks(Agent):
    """Fails at its second move."""

    def act(self, view: View) -> Reply:
        if view.ply > 1:
            raise KeyError("lost")
        return Reply((view.legal_actions or ("",))[0])


def test_a_game_that_breaks_off_is_a_failure_and_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AGENTS, "breaks", f"{__name__}:Breaks")
    done = played("TicTacToe", "--against", "breaks", "--record", str(tmp_path / "x.jsonl"), typed="9\n8\n")
    assert done.exit_code == 1
    assert done.stderr == "arena: no result: KeyError: 'lost'\n"
    assert next(read(tmp_path / "x.jsonl")).outcome == "void"


@pytest.mark.parametrize("watch", [False, True])
def test_an_agent_that_cannot_play_is_refused_before_the_game(watch: bool) -> None:
    done = played("LiarsDice", "--against", "minimax", *["--watch"] * watch)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith(
        "arena: minimax cannot play LiarsDice-v0 here: minimax cannot play LiarsDice: it needs"
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("games.txt", "allowed are names that end in .jsonl or .jsonl.zst"),
        ("file/games.jsonl", "cannot be written"),
        ("folder.jsonl", "cannot be written: Is a directory"),
    ],
)
def test_a_record_that_cannot_be_written_is_refused_before_the_game(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder.jsonl").mkdir()
    done = played("TicTacToe", "--record", str(tmp_path / name), typed="9\n")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


def test_a_seed_is_drawn_and_told() -> None:
    first = played("LiarsDice", typed="/quit\n").output
    found = re.match(r"seed (\d{1,5}): --seed \1 plays it again\n", first)
    assert found
    again = played("LiarsDice", "--seed", found[1], typed="/quit\n").output
    assert first.endswith(again)
    seeds = {played("LiarsDice", typed="/quit\n").output.split(":")[0] for _ in range(5)}
    assert len(seeds) > 1


def test_rules_come_before_the_first_move_of_anybody() -> None:
    done = played("TicTacToe", "--seat", "1", "--against", "first", typed="5\n/quit\n").output
    assert done.index("On your turn write") < done.index("player 0 (first) plays 1")
    assert done.count("On your turn write") == 1


def test_a_move_that_the_game_tells_is_not_told_twice() -> None:
    done = played("Chess", "--seat", "1", "--against", "scripted:e2e4", typed="/quit\n").output
    assert done.count("e2e4") == 2  # the example of the rules, and the event
    watched = played("Chess", "--watch", "--against", "scripted:f2f3|g2g4", "--against", "scripted:e7e5|d8h4").output
    assert "player 1 (scripted:e7e5|d8h4) plays d8h4" in watched
    assert "Player 1 wins." in watched


def test_the_moves_are_the_history_where_a_game_keeps_none() -> None:
    done = played("TicTacToe", "--against", "first", typed="9\n/history\n/quit\n").output
    assert "player 0 (human) plays 9\nplayer 1 (first) plays 1\n" in done.split("/quit")[-1]


class Clerk(Agent):
    """Asks for what the record says of it."""

    def act(self, view: View) -> Reply:
        return Reply((view.legal_actions or ("",))[0])

    def info(self) -> AgentInfo:
        return AgentInfo(model="clerk-1")


def test_a_record_keeps_what_an_agent_says_of_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AGENTS, "clerk", f"{__name__}:Clerk")
    played("TicTacToe", "--watch", "--against", "clerk", "--record", str(tmp_path / "x.jsonl"))
    assert [seat.policy.model for seat in next(read(tmp_path / "x.jsonl")).seats] == ["clerk-1"] * 2


def test_secret_moves_are_not_announced() -> None:
    for seat in "01":
        done = played("RockPaperScissors", "--seat", seat, "--against", "scripted:rock", typed="paper\n")
        assert "plays rock" not in done.output
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


@pytest.mark.parametrize("kind", ["sglang", "openai"])
def test_a_served_model_sits_down(kind: str, tmp_path: Path) -> None:
    with FakeSGLang() as fake:
        spec = f"{kind}:{fake.url}?decode=constrained"
        done = played("TicTacToe", "--against", spec, "--record", str(tmp_path / "x.jsonl"), typed="9\n8\n7\n" * 6)
        watched = played("RockPaperScissors", "--watch", "--against", spec)
    assert done.exit_code == watched.exit_code == 0, done.output + watched.output
    (episode,) = read(tmp_path / "x.jsonl")
    theirs = [turn for turn in episode.turns if turn.seat == 1]
    assert f"player 1 ({spec}) plays {theirs[0].action}\n" in done.output
    assert theirs[0].attempts[0].calls[0].usage["completion_tokens"] > 0
    assert "plays rock" in watched.output or "plays paper" in watched.output or "plays scissors" in watched.output


def test_a_model_that_cannot_play_the_game_is_refused_before_it() -> None:
    with FakeSGLang() as fake:
        done = played("Arithmetic", "--watch", "--against", f"sglang:{fake.url}?decode=constrained")
    assert done.exit_code == 2
    assert "decode=constrained cannot play Arithmetic" in done.stderr
    assert "use decode=free" in done.stderr


def test_a_game_that_was_cut_short_is_no_draw() -> None:
    with FakeSGLang(plain, context_length=400) as fake:
        spec = f"sglang:{fake.url}?max_tokens=16&overflow=truncate"
        done = played("TicTacToe", "--against", spec, typed="9\n")
    assert done.exit_code == 0, done.output
    assert "The game was cut short: " in done.output
    assert "Draw." not in done.output


def test_onlookers_need_not_wait_for_a_model_that_understands_nothing() -> None:
    with FakeSGLang(lambda prompt, asked: "what?") as fake:
        done = played("TicTacToe", "--watch", "--against", f"sglang:{fake.url}", "--against", "first")
    assert done.output.count("is not understood") == 3
    assert "Player 1 wins." in done.output
    assert "by forfeit" in done.output


def test_beside_a_person_a_model_is_not_asked_for_ever() -> None:
    with FakeSGLang(lambda prompt, asked: "what?") as fake:
        done = played("TicTacToe", "--against", f"sglang:{fake.url}", typed="5\n")
    assert done.output.count("is not understood") == 10
    assert "by forfeit" in done.output


def test_ctrl_c_is_heard_at_the_prompt_while_a_model_sits_there() -> None:
    with FakeSGLang() as fake:
        leader, follower = pty.openpty()
        command = [sys.executable, "-m", "arena", "play", "TicTacToe", "--against", f"sglang:{fake.url}"]
        process = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower)
        try:
            os.close(follower)
            assert b"player 0>" in read_until(leader, b"player 0>")
            read_until(leader, b"never", 0.5)  # one that comes between prompt and read would wait for the next key
            process.send_signal(signal.SIGINT)
            end = read_until(leader, b"stopped", 20)
            assert process.wait(30) == 130
        finally:
            process.kill()
            process.wait()
            os.close(leader)
    assert b"stopped" in end
    assert b"Traceback" not in end


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
        (["Chess", "--against", "random", "--against", "first"], "2 agents were given with --against; give 1\n"),
        (["LiarsDice", "-o", "players=4", "--against", "first", "--against", "first"], "give 1 or 3\n"),
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
