"""The referee: what is read, what is refused, what it costs; hostile text never raises."""

import time
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.game import Action, Game, IllegalAction, Player, TurnGame
from arena.games.board.tictactoe import TicTacToe
from arena.games.economy.rockpaperscissors import RockPaperScissors
from arena.referee import MARKS, Reading, Referee

START = TicTacToe()


class Diary(TurnGame):
    """One player writes one entry of at most 20 characters without the letter x."""

    players = 1
    entry: str | None = None

    @classmethod
    def initial(cls, rng: Random) -> "Diary":
        return cls()

    def to_act(self) -> tuple[Player, ...]:
        return () if self.entry is not None else (0,)

    def rules(self, player: Player) -> str:
        return "Write."

    def observation(self, player: Player) -> str:
        return "Dear diary"

    def legal_actions(self, player: Player) -> tuple[Action, ...] | None:
        return None if self.entry is None else ()

    def check(self, player: Player, action: Action) -> None:
        if "x" in action:
            raise IllegalAction("no x, please", player)

    def normalize(self, text: str, player: Player) -> Action:
        return text.replace("ks", "x") if text.startswith("!") else text.lower()

    def max_action(self) -> int:
        return 20

    def play(self, action: Action) -> "Diary":
        self.check(0, action)
        return Diary(action)

    def returns(self) -> tuple[float, ...]:
        return (0.0,)


def read(text: str, game: Game = START, **settings: Any) -> Reading:
    return Referee(**settings).read(game, 0, text)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("5", "5"),
        (" 5\n", "5"),
        ("<answer>5</answer>", "5"),
        ("I could take <answer>1</answer> but no: <answer> 5 </answer> it is", "5"),
        (r"so \boxed{5}", "5"),
        (r"first \boxed{1}, then \boxed{5}", "5"),
        ("Final answer: 5", "5"),
        ("Final answer: 1\nNo!\nfinal answer is **5**.", "5"),
        ("If I play [1] I lose, so my answer is [5]", "5"),
        ("<think>maybe [1]</think> [5]", "5"),
        ("<think>[1]<think>[2]</think></think>5", "5"),
        ("<ThInK>[1]</THINKING><Answer>5</ANSWER>", "5"),
        ("<answer>1 <answer>5</answer>", "5"),
        ("x" * 300_000 + "</think> [5]", "5"),
        ("the template opened the thought: [1] </think>5", "5"),
        ("٥", "5"),  # an Arabic-Indic digit
        ("[５]", "5"),  # a full-width one
    ],
)
def test_an_action_is_found(text: str, action: str) -> None:
    assert read(text) == Reading("legal", action)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("", "unreadable"),
        ("[]", "unreadable"),
        ("[5] was my first thought, but <answer>0</answer>", "illegal"),
        (r"\boxed{5}, no: <answer>0</answer>", "illegal"),
        ("[5] or rather, final answer: 0", "illegal"),
        ("0", "illegal"),
        ("[0]", "illegal"),
        ("<think>5", "unreadable"),
        ("<think>[5]</think>", "illegal"),
        ("I will\nthink about it", "unreadable"),
        ("5 " * 300, "unreadable"),
        (r"\boxed{5", "illegal"),
    ],
)
def test_what_is_no_legal_action_is_refused(text: str, verdict: str) -> None:
    reading = read(text)
    assert reading.action is None
    assert reading.reason
    if text.startswith("<think>"):
        assert reading.verdict in ("illegal", "unreadable")
    else:
        assert reading.verdict == verdict


def test_the_reason_is_the_games_own_where_one_seat_moves() -> None:
    position = START.play("5")
    assert Referee().read(position, 1, "[5]") == Reading("illegal", None, "square 5 is taken")
    assert "not a legal action" in Referee().read(RockPaperScissors.initial(Random(0)), 0, "dynamite").reason


def test_marks_have_an_order_and_can_be_left_out() -> None:
    assert read("[5]", marks=("boxed",)).verdict == "illegal"
    both = TicTacToe()
    assert Referee(marks=("bracket", "answer")).read(both, 0, "<answer>1</answer> [2]").action == "2"
    assert Referee(marks=()).read(both, 0, "5").action == "5"


def test_open_text_is_passed_whole_and_normalised_only_if_need_be() -> None:
    assert read("A Day", Diary()).action == "A Day"
    assert read("[sunny] <answer>no</answer>"[:19], Diary()).action == "[sunny] <answer>no<"
    assert read("Hex", Diary()) == Reading("illegal", None, "no x, please")
    assert read("!ks", Diary()).action == "!ks"
    assert read("<think>x</think>  fine ", Diary()).action == "fine"
    assert read("<THINK>secret</THINK>hi", Diary()).action == "hi"
    assert read("<think>secret", Diary()).verdict == "unreadable"
    assert read("z" * 300_000 + "</think>hi", Diary()).action == "hi"
    assert read("z" * 300_000 + " " * 100_000 + "hi", Diary()).verdict == "unreadable"
    assert read("y" * 21, Diary()).verdict == "unreadable"
    assert read("\ud800", Diary()).action == "\ufffd"


@pytest.mark.parametrize(
    "hostile",
    [
        "[" * 1_000_000,
        "]" * 1_000_000,
        "<answer>" * 100_000,
        "\\boxed{" * 100_000,
        "<think>" * 100_000,
        "</think>" * 100_000,
        "final answer:" * 80_000,
        "final answer" + " " * 1_000_000 + "x",
        "\x00" * 1_000_000,
        "\ud800" * 1_000_000,
        "9" * 1_000_000,
        "😀" * 250_000,
    ],
)
def test_a_megabyte_of_anything_is_read_in_linear_time(hostile: str) -> None:
    start = time.process_time()
    for game in (START, Diary()):
        assert read(hostile, game).action is None
    assert time.process_time() - start < 5  # quadratic would take hours


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_is_read_without_an_exception(text: str) -> None:
    for game in (START, Diary()):
        reading = read(text, game)
        assert (reading.action is None) == (reading.verdict != "legal")
        reading.reason.encode()


@pytest.mark.parametrize("wrong", [None, 5, b"5", ["5"]])
def test_another_type_is_a_type_error(wrong: Any) -> None:
    with pytest.raises(TypeError, match="an action is a str"):
        Referee().read(START, 0, wrong)


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        ({"illegal": "skip"}, "forfeit, random, fallback"),
        ({"retries": -1}, "0 to 100"),
        ({"retries": 1.5}, "0 to 100"),
        ({"marks": ("tag",)}, ", ".join(MARKS)),
    ],
)
def test_bad_settings_name_what_is_allowed(settings: dict[str, Any], allowed: str) -> None:
    with pytest.raises(ValueError, match=allowed):
        Referee(**settings)


def test_the_note_lists_legal_actions_only_where_they_are_shown() -> None:
    reading = Reading("illegal", None, "square 5 is taken")
    assert "Legal: 1, 2, 3" in Referee().note(START, 0, reading)
    hidden = Referee(show_legal=False).note(START, 0, reading)
    assert hidden == "[Not accepted: square 5 is taken. Try again.]"


def test_substitutes_follow_the_policy() -> None:
    diary = Diary()
    with pytest.raises(ValueError, match="no list of actions"):
        Referee(illegal="random").substitute(diary, 0, Random(0))
    drawn = {Referee(illegal="random").substitute(START, 0, Random(n)) for n in range(50)}
    assert drawn == set(START.legal_actions(0))
    assert Referee(illegal="fallback").substitute(START, 0, Random(0)) in START.legal_actions(0)


def test_forfeits_are_settled_by_the_number_of_seats() -> None:
    assert Referee.ends(START)
    assert Referee.ends(Diary())
    assert Referee.settle(START, (0,)) == (-1.0, 1.0)
    assert Referee.settle(START, (0, 1)) == (-1.0, -1.0)
    assert Referee.settle(START, ()) == (0.0, 0.0)
    assert Referee.settle(Diary(), (0,)) == (-1.0,)
