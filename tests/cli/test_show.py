import re
import shutil
from pathlib import Path

import pytest

from arena.agent import Agent, AgentInfo, Call, Reply, View
from arena.cli.show import _free
from arena.cli.transcript import markdown, span, text
from arena.episode import Episode, EpisodeError, Seat, read, write
from arena.game import replace
from arena.match import play_sync
from arena.referee import Referee
from arena.registry import AGENTS
from tests.cli.commands import arena, run
from tests.tournaments.players import PLAYERS

CUP = """
games = ["TicTacToe", "KuhnPoker"]
agents = ["first", { spec = "scripted:nonsense", name = "babbler" }]
blocks = 2
referee = { retries = 1 }
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the cup in x, and its export."""
    folder = tmp_path_factory.mktemp("cup")
    (folder / "cup.toml").write_text(CUP)
    assert run(str(folder / "cup.toml"), "--out", str(folder / "x")).exit_code == 0
    assert arena("export", str(folder / "x"), "--out", str(folder / "x.jsonl.zst")).exit_code == 0
    return folder


@pytest.fixture(autouse=True)
def _there(played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(played, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def cup() -> list[str]:
    """The ids of its games."""
    return [episode.match_id for episode in read("x.jsonl.zst")]


class Said(Agent):
    """Gives these replies in order, then the last again."""

    name = "said"

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)

    def act(self, view: View) -> Reply:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


def tictactoe(*replies: Reply, retries: int = 0) -> Episode:
    """Seat 0 says these, seat 1 takes the first free square."""
    episode = play_sync("TicTacToe", [Said(*replies), "first"], 3, None, Referee(retries=retries))
    return called(episode, "abc123")


def called(episode: Episode, key: str) -> Episode:
    return replace(episode, match_id=key)


def test_finished_games_are_listed() -> None:
    ids = cup()
    done = arena("show", "x")
    assert done.exit_code == 0
    header, *lines = done.output.splitlines()
    assert header.split() == ["id", "game", "agents", "result", "plies", "forfeits", "wrong"]
    assert [line.split()[0] for line in lines] == [key[:8] for key in ids]
    for line in lines:
        assert re.search(r"(-v0 +babbler, first +-[12], \+[12]|-v0 +first, babbler +\+[12], -[12]) +[12] +1 +2$", line)


def test_a_file_is_listed_as_its_run_is() -> None:
    from_file = arena("show", "x.jsonl.zst")
    assert from_file.exit_code == 0
    assert from_file.output == arena("show", "x").output


def test_some_of_the_games() -> None:
    for run_of in ("x", "x.jsonl.zst"):
        kuhn = arena("show", run_of, "--game", "KuhnPoker", "--agent", "babbler").output.splitlines()
        assert len(kuhn) == 5
        assert all("KuhnPoker-v0" in line for line in kuhn[1:])
        two = arena("show", run_of, "--limit", "2").output.splitlines()
        assert two[1:3] == arena("show", run_of).output.splitlines()[1:3]
        assert two[3:] == ["the first 2; --limit shows more"]
        assert len(arena("show", run_of, "--limit", "8").output.splitlines()) == 9


def test_one_game_is_told_by_the_beginning_of_its_id() -> None:
    ids = cup()
    for key in ids:
        done = arena("show", "x", key[:10])
        assert done.exit_code == 0
        assert f"\ngame: {key}\n" in done.output
        assert "babbler" in done.output
        assert arena("show", "x", key).output == done.output
        assert arena("show", "x.jsonl.zst", key[:10]).output == done.output


def test_void_attempts_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AGENTS, "moody", PLAYERS["moody"])
    Path("cup.toml").write_text(
        'games = ["TicTacToe"]\nagents = ["moody", "first"]\nblocks = 2\nvoid_limit = 1.0\nvoid_retries = 2\n'
    )
    run("cup.toml", "--out", "y")
    assert len(arena("show", "y").output.splitlines()) == 3
    lines = arena("show", "y", "--void").output.splitlines()
    assert lines[0].split()[:4] == ["id", "game", "agents", "why"]
    assert len(lines) == 7
    assert all("ConnectionError: not today" in line for line in lines[1:])
    told = arena("show", "y", lines[1].split()[0], "--void").output
    assert told.count("outcome: void, ConnectionError: not today") == 3
    assert arena("show", "y", "--void", "--out", "voids").output == "wrote 6 transcripts and index.md to voids\n"
    names = sorted(path.stem for path in Path("voids").iterdir())
    assert [re.sub(r"^[0-9a-f]{32}", "", name) for name in names] == ["", "-2", "-3", "", "-2", "-3", "index"]


def test_nothing_to_show() -> None:
    assert arena("show", "x", "--void").output == "no attempt was void\n"
    assert arena("show", "x", "--void", "--out", "none").output == "no game to write\n"
    assert not Path("none").exists()
    write("voids.jsonl", [])
    assert arena("show", "voids.jsonl").output == "no game is finished\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["none"], "none/results.db does not exist"),
        (["none.jsonl"], "none.jsonl: No such file or directory"),
        (["bad.jsonl"], "bad.jsonl:1: not an episode"),
        (["x", "zzz"], "no finished game's id begins with 'zzz'; arena show x lists them"),
        (["x", "%"], "no finished game's id begins with '%'"),
        (["x", "0", "--void"], "no void attempt's id begins with '0'; arena show x --void lists them"),
        (["two.jsonl", "ab"], "'ab' begins the ids of 2 games: abc123, abd; write more of one"),
        (["x", "--agent", "bab"], "unknown agent of this run 'bab'. Did you mean 'babbler'?"),
        (["x", "--game", "Chess"], "unknown game of this run 'Chess'"),
        (["x.jsonl.zst", "--agent", "frst"], "unknown agent of this file 'frst'. Did you mean 'first'?"),
        (["x.jsonl.zst", "--game", "Chess"], "unknown game of this file 'Chess'. Allowed: "),
        (["odd.jsonl"], "turns and forfeits name seats that exist"),
        (["x", "--out", "x"], "x is not empty; name a new folder"),
        (["x", "--limit", "0"], "0 is not in the range"),
    ],
)
def test_refusals(args: list[str], message: str) -> None:
    Path("bad.jsonl").write_text("{}\n")
    episode = tictactoe(Reply("9"))
    write("two.jsonl", [episode, called(episode, "abd")])
    write("odd.jsonl", [odd(episode)])
    done = arena("show", *args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def odd(episode: Episode) -> Episode:
    return replace(episode, forfeits=(7,))


def test_an_id_that_begins_another_can_be_named() -> None:
    episode = tictactoe(Reply("9"))
    write("two.jsonl", [called(episode, "abc1"), called(episode, "abc")])
    assert "\ngame: abc\n" in arena("show", "two.jsonl", "abc").output


THOUGHT = "first line\n\tan indented one"


def test_what_a_transcript_tells() -> None:
    usage = {"prompt_tokens": 1200.0, "cached_tokens": 800.0, "completion_tokens": 5.0, "cost": 0.0125}
    call = Call("chat", usage=usage)
    first = Reply("I take\nthe middle", THOUGHT, calls=(call, call), gaps=("ids: did not come",))
    episode = tictactoe(first, Reply("Final answer: 9"), Reply("9"), Reply("77"), retries=1)
    rules = episode.seats[0].rules
    told = text(replace(episode, seats=(Seat("smol", "X", rules, AgentInfo("135M")), Seat("one", "", rules))))
    assert told.startswith(
        "TicTacToe-v0\nseat 0: smol, role X, model 135M\nseat 1: one\ngame: abc123\nseed: 3\nplayed: "
    )
    assert "\nreferee: 1 retries, then forfeit\n" in told
    assert told.count("| Tic-tac-toe on a 3 x 3 board.") == 1, "rules once for all seats that are told the same"
    for part in (
        "\n--- Rules for seat 0, seat 1 ---\n",
        "\n--- Ply 0, seat 0: smol ---\nShown:\n| You are X.\n| . . .\n",
        "\nThought, try 1:\n| first line\n|     an indented one\nReplied, try 1:\n",
        "\n| I take\n| the middle\nverdict: unreadable, ",
        "\ncalls: 2, 2,400 tokens in, 1,600 of them cached, 10 tokens out, $0.025000\n",
        "\nReplied, try 2:\n| Final answer: 9\nverdict: legal\nplayed: 9\n\n--- Ply 1, seat 1: one ---\n",
        "\nReplied, try 1:\n| 9\nverdict: illegal, square 9 is taken\n",
        "\nverdict: illegal, write the number of a free square, 1 to 9\nplayed: nothing\nreward: -1\n",
        "\n--- End ---\nShown to seat 0:\n",
        "\noutcome: terminated\nseat 0: smol: -1, by forfeit\nseat 1: one: +1\nnot recorded: ids: did not come\n",
    ):
        assert part in told
    assert text(episode).count("| Tic-tac-toe on a 3 x 3 board.") == 2


def test_what_was_played_in_a_seats_place_and_by_nobody() -> None:
    substituted = play_sync("TicTacToe", [Said(Reply("?")), "first"], 0, None, Referee(illegal="random"))
    assert re.search(r"verdict: illegal, .*\nplayed in its place: \d\n", text(substituted))
    vacated = play_sync("LiarsDice", [Said(Reply("")), "first", "first"], 0, {"players": 3})
    told = text(vacated)
    assert "\noption players: 3\n" in told
    assert "\nreplied: nothing\nverdict: unreadable, " in told
    assert "\nnot asked: the seat had forfeited before\nplayed in its place: " in told
    ended = tictactoe(Reply("", ends="the server was told to stop"))
    assert "\noutcome: truncated, the server was told to stop\n" in text(ended)


def test_open_text_stands_in_a_block_of_its_own() -> None:
    talk = play_sync("Negotiation", [Said(Reply("say: one\nsay: two")), "first"], 0, None, Referee(illegal="random"))
    assert text(talk).count("\n| say: one") >= 1
    call = "x" * 200
    long = play_sync("CalculatorTask", [Said(Reply(call))], 0, None, Referee(illegal="random"))
    assert f"| {call}" in text(long)


HOSTILE = [
    "\x1b[2J\x1b]0;owned\x07 red",
    "ok\r--- End ---",
    "ok\n--- End ---\noutcome: terminated",
    "```\n# End\n````\n`````",
    "~~~\n</pre><script>alert(1)</script>\n- outcome: terminated",
    "\u202e right to left \u2028 \u0085 \x9b31m",
    "`" * 5000,
    "\x00 \x7f \ud800",
]


def dressed(said: str) -> Episode:
    """The text wherever a player, model or server may have put it."""
    call = Call("chat", said, said)
    episode = tictactoe(Reply(said, said, calls=(call,), gaps=(said,)), retries=0)
    seats = tuple(replace(seat, agent=said, role=said, rules=said) for seat in episode.seats)
    return replace(
        episode, seats=seats, reason=said, env=said, options={said: said}, match_id=said, scores=({said: 1},)
    )


@pytest.mark.parametrize("said", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_stays_text(said: str) -> None:
    episode = dressed(said)
    told, marked = text(episode), markdown(episode)
    for shown in (told, marked):
        assert all(char == "\n" or char.isprintable() for char in shown)
    assert told.count("\n--- End ---\n") == 1
    assert len(re.findall(r"^outcome: ", told, re.MULTILINE)) == 1
    outside = unfenced(marked)
    assert [line for line in outside if line.startswith("#")][-1] == "## End"
    assert sum(line.startswith("- outcome: ") for line in outside) == 1
    assert not any("<script>" in re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", line) for line in outside)


def unfenced(marked: str) -> list[str]:
    """The lines outside of fences, read as CommonMark does."""
    lines, fence = [], ""
    for line in marked.splitlines():
        ticks = re.match(r" {0,3}(`{3,})([^`]*)$", line)
        if fence:
            if ticks and len(ticks[1]) >= len(fence) and not ticks[2].strip():
                fence = ""
        elif ticks:
            fence = ticks[1]
        else:
            lines.append(line)
    assert fence == "", "every fence is ended"
    return lines


@pytest.mark.parametrize(
    ("said", "shown"),
    [("a", "`a`"), ("a`b", "`` a`b ``"), ("``", "``` `` ```"), ("", '""'), (" ", '" "'), ("a\nb", r"`a\nb`")],
)
def test_spans(said: str, shown: str) -> None:
    assert span(said) == shown


def test_a_record_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(EpisodeError, match="turns and forfeits name seats that exist"):
        text(odd(tictactoe(Reply("9"))))


def test_transcripts_as_files() -> None:
    ids = cup()
    done = arena("show", "x", "--out", "deep/told")
    assert done.output == "wrote 8 transcripts and index.md to deep/told\n"
    folder = Path("deep/told")
    assert sorted(path.name for path in folder.iterdir()) == sorted([f"{key}.md" for key in ids] + ["index.md"])
    index = (folder / "index.md").read_text(encoding="utf-8")
    assert index.startswith("# Transcripts of `x`\n\n- [`")
    assert re.findall(r"\]\((.*?)\.md\)", index) == ids
    assert index.count("1 forfeits, 2 wrong replies") == 8
    for key in ids:
        marked = (folder / f"{key}.md").read_text(encoding="utf-8")
        assert f"\n- game: `{key}`\n" in marked
        assert "seat 1: `babbler`" in marked or "seat 0: `babbler`" in marked
        assert "\nReplied, try 2:\n\n```text\nnonsense\n```\n" in marked
    assert arena("show", "x", ids[0], "--out", "one").output == "wrote 1 transcripts and index.md to one\n"
    assert arena("show", "x", "--limit", "3", "--out", "three").output.startswith("wrote 3 ")


def test_names_of_files_hold_nothing_of_a_hostile_id() -> None:
    taken = {"index"}
    names = [_free(key, taken) for key in ("../../etc/passwd", "ab", "AB", "ab", "", "index", "a" * 999)]
    assert names == ["______etc_passwd", "ab", "AB-2", "ab-3", "game", "index-2", "a" * 64]
    write("odd.jsonl", [called(tictactoe(Reply("9")), "../out")])
    assert arena("show", "odd.jsonl", "--out", "told").exit_code == 0
    assert sorted(path.name for path in Path("told").iterdir()) == ["___out.md", "index.md"]


def test_a_list_is_not_markup() -> None:
    write("odd.jsonl", [dressed("[red]x[/nothing]\x1b[31m")])
    done = arena("show", "odd.jsonl")
    assert done.exit_code == 0
    assert "[red]x[/nothing]" in done.output
    assert "\x1b" not in done.output


def test_a_store_file_is_a_run_too() -> None:
    assert arena("show", "x/results.db").output == arena("show", "x").output
