"""A person at the terminal."""

from typing import Any

from rich.console import Console
from rich.markup import escape

from arena.agent import Agent, AgentError, Reply, View
from arena.text import show

__all__ = ["HumanAgent"]

_MANY = 40  # legal actions that are listed unasked
_HELP = "Write an action, or: ? (legal actions), rules, history, quit"


class HumanAgent(Agent):
    """Shows the view and reads a line; `?`, `rules`, `history` and `quit` are answered here."""

    name = "human"

    def __init__(self) -> None:
        self._console: Console | None = None

    @property
    def console(self) -> Console:
        """Made when first used: an agent that only travels needs no terminal."""
        if self._console is None:
            self._console = Console(highlight=False)
        return self._console

    def act(self, view: View) -> Reply:
        """See `Agent.act`. Leaving the table (quit, end of input) raises AgentError."""
        if not view.note:  # after a slip the position still stands above
            self._present(view)
        while True:
            line = self._line(view)
            if line in ("?", "help"):
                self._list(view, every=True)
                self._say(_HELP, "dim")
            elif line == "rules":
                self._say(view.rules)
            elif line == "history":
                self._say("\n".join(map(show, view.events)) or "nothing has happened yet")
            elif line in ("quit", "exit"):
                raise AgentError("the player left the table")
            elif line:
                return Reply(line)

    def _present(self, view: View) -> None:
        seen = view.memory.get("seen", 0)
        events = view.events
        view.memory["seen"] = len(events)
        if not view.memory.get("told"):
            view.memory["told"] = True
            self._say(view.rules)
            self._say(_HELP + "\n", "dim")
        for event in events[seen:]:
            self._say(show(event), "cyan")
        self._say(view.observation)
        self._list(view, every=False)

    def _list(self, view: View, *, every: bool) -> None:
        legal = view.legal_actions
        if legal and (every or len(legal) <= _MANY):
            self._say("legal: " + ", ".join(legal), "dim")
        elif legal:
            self._say(f"legal: {len(legal)} actions, ? lists them", "dim")

    def _line(self, view: View) -> str:
        if view.note:
            self._say(view.note, "yellow")
            view.note = ""
        try:
            return self.console.input(f"[bold]player {view.player}>[/bold] ").strip()
        except EOFError as error:
            raise AgentError("the player left the table (end of input)") from error

    def _say(self, text: str, style: str = "") -> None:
        self.console.print(escape(text), style=style or None)

    def __reduce__(self) -> tuple[Any, ...]:
        return (HumanAgent, ())
