"""A person at the terminal."""

from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.markup import escape

from arena.agent import Agent, AgentError, Reply, View
from arena.text import show

__all__ = ["LEFT", "HumanAgent"]

LEFT = "the player left the table"
"""How the reason of an episode begins that is void because the person went away."""
_MANY = 20  # legal actions that are listed at once
_WORDS = {"?": "/?", "help": "/help", "rules": "/rules", "history": "/history", "quit": "/quit", "exit": "/quit"}
"""Commands that need no slash where they cannot be an action."""
_HELP = "Write an action, or /? (legal actions), /rules, /history, /help, /quit"
_MORE = """/? TEXT lists the legal actions in which TEXT occurs.
A text that begins with a slash is said by doubling the slash: //like this.
Where they can be no action, ? rules history help quit do without the slash."""


class HumanAgent(Agent):
    """A person at the terminal: shows what there is to see and reads a line; commands begin with a slash."""

    name = "human"

    def __init__(self) -> None:
        self._console: Console | None = None
        self._told = ""
        self.moves: list[str] = []
        """The moves of the match that everybody may know, kept by whoever runs it; `/history` of a game without one."""

    @property
    def console(self) -> Console:
        """Made when first used: an agent that only travels needs no terminal."""
        if self._console is None:
            self._console = Console(highlight=False)
        return self._console

    def welcome(self, rules: str) -> None:
        """Show the rules and the commands, before the first move of anybody; once for the same rules."""
        if rules != self._told:
            self._told = rules
            self._say(rules)
            self._say(_HELP + "\n", "dim")

    def act(self, view: View) -> Reply:
        """See `Agent.act`. Leaving the table (/quit, end of input) raises AgentError."""
        if view.note:  # after a slip the position still stands above
            self._correct(view)
        else:
            self._present(view)
        while True:
            line = self._line(view)
            command, _, rest = _command(line, view).partition(" ")
            if command in _COMMANDS:
                _COMMANDS[command](self, view, rest.strip())
            elif command:
                self._say(f"there is no command {command}. {_HELP}", "yellow")
            elif line:
                return Reply(line.removeprefix("/") if line.startswith("//") else line)

    def _present(self, view: View) -> None:
        seen = view.memory.get("seen", 0)
        events = view.events
        view.memory["seen"] = len(events)
        self.welcome(view.rules)
        for event in events[seen:]:
            self._say(show(event), "cyan")
        self._say(view.observation)
        self._list(view)

    def _correct(self, view: View) -> None:
        """The referee's word, with a list of our own in place of its long one."""
        told = view.note.partition(" Legal: ")[0].removesuffix(" Try again.]").removeprefix("[")
        self._say(told, "yellow")
        self._list(view)

    def _list(self, view: View, *, every: bool = False, text: str = "") -> None:
        legal = [action for action in view.legal_actions or () if text in action]
        listed = ", ".join(legal[:_MANY])
        if len(legal) <= _MANY:
            if listed:
                self._say(f"legal: {listed}", "dim")
            elif every:
                self._say(self._none(view, text), "dim")
        elif every:
            self._say(f"legal: {listed} and {len(legal) - _MANY} more, {len(legal)} in all (/? TEXT searches)", "dim")
        else:
            self._say(f"legal: {len(legal)} actions, /? lists them", "dim")

    @staticmethod
    def _none(view: View, text: str) -> str:
        if view.open_text:
            return "there is no list here: /rules say what you may write"
        return f"no legal action has {text!r} in it" if text else "the list of legal actions is not shown in this match"

    def _line(self, view: View) -> str:
        try:
            return self.console.input(f"[bold]player {view.player}>[/bold] ").strip()
        except EOFError as error:
            raise AgentError(f"{LEFT} (end of input)") from error

    def _say(self, text: str, style: str = "") -> None:
        self.console.print(escape(text), style=style or None)

    def __reduce__(self) -> tuple[Any, ...]:
        return (HumanAgent, ())

    def _on_list(self, view: View, text: str) -> None:
        self._list(view, every=True, text=text)

    def _on_help(self, view: View, text: str) -> None:
        self._list(view, every=True)
        self._say(f"{_HELP}\n{_MORE}", "dim")

    def _on_rules(self, view: View, text: str) -> None:
        self._say(view.rules)

    def _on_history(self, view: View, text: str) -> None:
        lines = [show(event) for event in view.events] or self.moves
        nothing = "there is nothing to tell beyond the position" if view.ply else "nothing has happened yet"
        self._say("\n".join(lines) or nothing)

    def _on_quit(self, view: View, text: str) -> None:
        raise AgentError(LEFT)


_COMMANDS: dict[str, Callable[[HumanAgent, View, str], None]] = {
    "/?": HumanAgent._on_list,
    "/help": HumanAgent._on_help,
    "/rules": HumanAgent._on_rules,
    "/history": HumanAgent._on_history,
    "/quit": HumanAgent._on_quit,
    "/exit": HumanAgent._on_quit,
}


def _command(line: str, view: View) -> str:
    """The command that a line is, or "": it is an action. Without a slash, only what can be no action is a command."""
    if line.startswith("/") and not line.startswith("//"):
        return line
    if line not in _WORDS or view.open_text:
        return ""
    legal = view.game.legal_actions(view.player) or ()
    return "" if line in legal or view.game.normalize(line, view.player) in legal else _WORDS[line]
