"""The person at the terminal, typed at through a pipe and read from a recorded console."""

import io
import pickle
from collections.abc import Iterator

import pytest
from rich.console import Console

from arena.agent import Agent
from arena.agents.human import HumanAgent
from arena.match import play_sync
from arena.referee import Referee
from arena.registry import make_game


class Typed(HumanAgent):
    """Lines come from a script instead of a keyboard."""

    def __init__(self, *lines: str) -> None:
        super().__init__()
        self.lines: Iterator[str] = iter(lines)
        self.out = io.StringIO()
        self._console = Console(file=self.out, width=200, highlight=False)
        setattr(self._console, "input", self.type)  # noqa: B010 - the keyboard: mypy forbids the plain form

    def type(self, prompt: str) -> str:
        self.out.write(prompt)
        line = next(self.lines, None)
        if line is None:
            raise EOFError
        return line


def played(
    *lines: str, game: str = "TicTacToe-v0", other: str = "first", options: dict[str, object] | None = None
) -> tuple[Typed, str]:
    person = Typed(*lines)
    seated: list[str | Agent] = [person, other]
    episode = play_sync(game, seated[: make_game(game, 1, options).players], 1, options, Referee(retries=20))
    return person, f"{episode.outcome} {episode.returns} {episode.reason}"


def test_a_game_is_played_and_won() -> None:
    person, result = played("3", "5", "7")
    assert result.startswith("terminated (1.0, -1.0)")
    shown = person.out.getvalue()
    assert "3 x 3" in shown  # the rules, once
    assert shown.count("3 x 3") == 1
    assert "legal: 1, 2, 3" in shown


def test_a_slip_is_told_and_costs_nothing() -> None:
    person, result = played("banana", "3", "3", "5", "7")
    assert result.startswith("terminated (1.0, -1.0)")
    shown = person.out.getvalue()
    assert "Not accepted: write the number of a free square" in shown
    assert "square 3 is taken" in shown
    assert "Try again" not in shown


@pytest.mark.parametrize("slash", ["", "/"])
def test_commands_are_answered_without_a_move(slash: str) -> None:
    commands = [slash + word for word in ("?", "rules", "history", "help")]
    person, result = played(*commands, "", "3", "5", "/history", "7")
    assert result.startswith("terminated (1.0, -1.0)")
    shown = person.out.getvalue()
    assert shown.count("3 x 3") == 2
    assert shown.count("nothing has happened yet") == 1
    assert "there is nothing to tell beyond the position" in shown
    assert "/quit" in shown


def test_a_mistyped_command_is_no_action() -> None:
    person, result = played("/quti", "/", "42", game="Arithmetic-v0")
    assert result.startswith("terminated (0.0,)")
    assert "there is no command /quti. Write an action, or /? (legal actions), /rules" in person.out.getvalue()


def test_history_shows_what_happened() -> None:
    person, _ = played("1 x 2", "history", "quit", game="LiarsDice-v0", other="scripted:liar")
    assert "liar" in person.out.getvalue()


def test_in_open_text_only_the_slash_makes_a_command() -> None:
    """A negotiation ends by its own action `quit`, and everything may be said."""
    _, result = played("quit", game="Negotiation-v0")
    assert result.startswith("terminated (0.0, 0.0)")
    _, result = played("/quit", game="Negotiation-v0")
    assert result.startswith("void")
    person, result = played("rules", "?", "history", "//quit", "cooperate", "/quit", game="IteratedPrisonersDilemma-v0",
                            options={"talk": 4, "rounds": 2})  # fmt: skip
    said = [line.partition("Player 0: ")[2] for line in person.out.getvalue().splitlines() if "Player 0: " in line]
    assert said == ['"rules"', '"?"', '"history"', '"/quit"']
    assert result.startswith("void")


def test_an_action_goes_before_a_command_without_a_slash() -> None:
    _, result = played("quit", game="Negotiation-v0", options={"talk": False})
    assert result.startswith("terminated (0.0, 0.0)")
    person, _ = played("help", "/quit", game="Wordle-v0", options={"length": 4})
    assert "Guess 1: help" in person.out.getvalue()
    person, _ = played("/?", "/quit", game="Negotiation-v0")
    assert "there is no list here" in person.out.getvalue()


@pytest.mark.parametrize("leave", [("quit",), ("3", "exit"), ("/quit",), ()])
def test_leaving_is_void_not_lost(leave: tuple[str, ...]) -> None:
    _, result = played(*leave)
    assert result.startswith("void None AgentError: the player left the table")


def test_of_long_lists_a_part_is_shown_when_asked() -> None:
    person, _ = played("?", "/? 9 x", "/? zz", "nonsense", "quit", game="LiarsDice-v0")
    shown = person.out.getvalue()
    assert shown.count("legal: 60 actions, /? lists them") == 2  # at first, and after a slip
    assert "4 x 2 and 40 more, 60 in all (/? TEXT searches)" in shown
    assert "legal: 9 x 1, 9 x 2, 9 x 3, 9 x 4, 9 x 5, 9 x 6\n" in shown
    assert "no legal action has 'zz' in it" in shown
    assert "10 x 6" not in shown


def test_thousands_of_words_are_never_listed() -> None:
    person, _ = played("?", "xxxxx", "/quit", game="Wordle-v0")
    assert "Not accepted: write one English word of 5 letters" in person.out.getvalue()
    assert len(person.out.getvalue()) < 3_000


def test_rules_are_told_once_even_if_before_the_first_move() -> None:
    person = Typed("3", "5", "7")
    person.welcome(make_game("TicTacToe-v0", 0).rules(0))
    play_sync("TicTacToe-v0", [person, "first"], 1)
    assert person.out.getvalue().count("3 x 3") == 1


def test_text_of_others_is_not_markup() -> None:
    person, loud = Typed("hello", "cooperate", "quit"), "scripted:[red]hi[/red] [/]"
    play_sync("IteratedPrisonersDilemma-v0", [loud, person], 0, {"talk": 1}, Referee(illegal="fallback"))
    assert 'Player 0: "[red]hi[/red] [/]"' in person.out.getvalue()


def test_a_person_travels_without_the_terminal() -> None:
    again = pickle.loads(pickle.dumps(HumanAgent()))
    assert isinstance(again.console, Console)
