"""The person at the terminal, typed at through a pipe and read from a recorded console."""

import io
import pickle
from collections.abc import Iterator

import pytest
from rich.console import Console

from arena.agents.human import HumanAgent
from arena.match import play_sync
from arena.referee import Referee


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


def played(*lines: str, game: str = "TicTacToe-v0", other: str = "first") -> tuple[Typed, str]:
    person = Typed(*lines)
    episode = play_sync(game, [person, other], 1, referee=Referee(retries=20))
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


def test_commands_are_answered_without_a_move() -> None:
    person, result = played("?", "rules", "history", "help", "", "3", "5", "7")
    assert result.startswith("terminated (1.0, -1.0)")
    shown = person.out.getvalue()
    assert shown.count("3 x 3") == 2
    assert "nothing has happened yet" in shown


def test_history_shows_what_happened() -> None:
    person, _ = played("1 x 2", "history", "quit", game="LiarsDice-v0", other="scripted:liar")
    assert "liar" in person.out.getvalue()


@pytest.mark.parametrize("leave", [("quit",), ("3", "exit"), ()])
def test_leaving_is_void_not_lost(leave: tuple[str, ...]) -> None:
    _, result = played(*leave)
    assert result.startswith("void None AgentError: the player left the table")


def test_long_lists_are_shown_only_when_asked() -> None:
    person, _ = played("?", "quit", game="LiarsDice-v0")
    shown = person.out.getvalue()
    assert "actions, ? lists them" in shown
    assert "10 x 6" in shown


def test_text_of_others_is_not_markup() -> None:
    person, loud = Typed("hello", "cooperate", "quit"), "scripted:[red]hi[/red] [/]"
    play_sync("IteratedPrisonersDilemma-v0", [loud, person], 0, {"talk": 1}, Referee(illegal="fallback"))
    assert 'Player 0: "[red]hi[/red] [/]"' in person.out.getvalue()


def test_a_person_travels_without_the_terminal() -> None:
    again = pickle.loads(pickle.dumps(HumanAgent()))
    assert isinstance(again.console, Console)
