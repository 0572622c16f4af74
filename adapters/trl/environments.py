"""Environments: a game as the class that a GRPOTrainer's `environment_factory` wants, its moves as tool calls.

The trainer makes one object for each place of a batch and uses it again and again (`reset`), shows the model every
public method as a tool, and asks `get_reward` once the model calls no more tools. Opponents move inside of a call.
A tool that says to the model what others said makes it harmless first (`arena.agents.prompting.harmless`).
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from arena.agents.prompting import harmless
from arena.game import Game, Player
from arena.registry import make_agent
from arena.solo import Opponents, Solo
from arena.table import OVER, Setup
from arena.text import clean
from arena.tools.codec import Call
from arena.tools.task import ToolTask
from arena.tools.tool import Tool

__all__ = ["GameEnvironment", "environment_factory"]

_OVER = "The game is over."


def environment_factory(
    game: str | type[Game],
    opponents: Opponents = "random",
    *,
    seat: Player | None = None,
    options: Mapping[str, Any] | None = None,
    illegal: str = "forfeit",
    retries: int = 0,
    show_legal: bool = True,
    unfinished: float | None = None,
) -> type["GameEnvironment"]:
    """A class for `GRPOTrainer(environment_factory=...)`, whose data set is `dataset(game, seeds, chat=True)`.

    Its tools are `move(action)`, or for a tool task the task's own tools and `answer(text)`. `opponents`: as of
    `arena.env.GameEnv`; objects are shared by all games. `seat`: of rows that name none. `illegal`, `retries`,
    `show_legal`: see `arena.referee.Referee`. `unfinished`: the reward where the model stops before the game is over;
    None: as if it had forfeited. Raises ValueError.
    """
    chosen = {"illegal": illegal, "retries": retries, "show_legal": show_legal}
    setup = Setup(game, dict(options or {}), (), **chosen, history="new", render_mode=None, numeric=False)
    alone = isinstance(opponents, str)
    made: Opponents = make_agent(opponents) if alone else opponents  # type: ignore[arg-type]  # it is a str
    if not isinstance(made, list | tuple):
        held = made
    else:
        held = [make_agent(each) for each in made]
    for player in range(setup.players):
        if player not in setup.template.house:
            Solo(setup, player, held)  # says what is wrong before a model is loaded
    name = setup.id.partition("-v")[0]
    methods = _tools(setup.game) if issubclass(setup.game, ToolTask) else {"move": GameEnvironment._move}
    told = {"_setup": setup, "_opponents": held, "_seat": seat, "_unfinished": unfinished, **methods}
    return type(name, (GameEnvironment,), {"__doc__": f"{setup.id} as tools.", **told})


class GameEnvironment:
    """One game after another, from one seat. Made by `environment_factory`."""

    _setup: Setup
    _opponents: Opponents
    _seat: Player | None
    _unfinished: float | None

    def __init__(self) -> None:
        self._solos: dict[Player, Solo] = {}
        self._solo: Solo | None = None
        self._earned = 0.0

    def reset(self, seed: int | None = None, seat: int | None = None, **_: Any) -> str:
        """Deal; what the seat is told first. Raises ValueError for a row without a seed: groups share their deal."""
        if seed is None:
            raise ValueError("rows must name a seed: use arena.adapters.trl.dataset(game, seeds, chat=True)")
        at = seat if seat is not None else self._seat or 0
        solo = self._solos.get(at)
        if solo is None:
            solo = self._solos[at] = Solo(self._setup, at, self._opponents)
        solo.deal(seed)
        self._solo, self._earned = solo, 0.0
        rules = self._setup.rules[at]
        if issubclass(self._setup.game, ToolTask):
            rules = rules.replace(f"{self._setup.game.codec.teach(tuple(self._setup.game.toolbox.values()))}\n", "")
        return f"{harmless(clean(rules), rules=True)}\n\n{self._told(solo)}"

    def get_reward(self) -> float:
        """What the seat has earned; where it stopped too early, what that costs."""
        solo = self._playing()
        if not solo.over and solo.table.asked == OVER:  # it ended before the seat was asked
            self._earned += solo.pay()[0]
        if solo.over:
            return self._earned
        if self._unfinished is not None:
            return self._unfinished
        return self._setup.referee.settle(solo.table.state, [solo.seat])[solo.seat]

    def _playing(self) -> Solo:
        if self._solo is None:
            raise ValueError("no game was begun: call reset")
        return self._solo

    def _say(self, action: str) -> str:
        """The action, and what came of it."""
        solo = self._playing()
        if solo.over or solo.table.asked == OVER:
            return _OVER
        self._earned += solo.act(action)[0]
        return self._told(solo)

    def _told(self, solo: Solo) -> str:
        """What the seat sees, and what it may do."""
        table, seat = solo.table, solo.seat
        said = harmless(clean(table.text(seat)))
        if seat in table.forfeits:
            return f"{said}\nYou have forfeited: {harmless(clean(table.reasons[seat]))}\n{_OVER}"
        if solo.over or table.asked == OVER:
            return f"{said}\n{_OVER}"
        legal = () if table.note else table.info(seat)["legal_actions"]  # the note lists them
        return f"{said}\nLegal actions: {harmless(', '.join(legal))}" if legal else said

    def _move(self, action: str) -> str:
        """
        Make your move.

        Args:
            action: Your action, written as the rules say.

        Returns:
            What happened since, and the position at your next turn.
        """
        return self._say(action)

    _move.__name__ = "move"


def _tools(task: type[ToolTask]) -> dict[str, Callable[..., str]]:
    """The methods of a tool task: its tools, and the answer."""
    taken = {"answer", "reset", "get_reward"} & task.toolbox.keys()
    if taken:
        raise ValueError(f"{task.__name__} has a tool named {min(taken)}: environments have that name already")
    return {name: _method(task, tool) for name, tool in task.toolbox.items()} | {"answer": _answer}


def _method(task: type[ToolTask], tool: Tool) -> Callable[..., str]:
    """A tool as a method, with the signature and the description that the trainer reads."""

    def method(self: GameEnvironment, **arguments: Any) -> str:
        return self._say(task.codec.write([Call(tool.name, arguments)]))

    described = {key: schema.get("description", key) for key, schema in tool.parameters.get("properties", {}).items()}
    arguments = "".join(f"\n    {key}: {' '.join(text.split())}" for key, text in described.items())
    own = inspect.signature(tool.function)
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    method.__name__ = method.__qualname__ = tool.name
    method.__doc__ = tool.description + (f"\n\nArgs:{arguments}" if arguments else "")
    method.__annotations__ = {**inspect.get_annotations(tool.function, eval_str=True), "return": str}
    method.__signature__ = own.replace(parameters=[first, *own.parameters.values()], return_annotation=str)  # type: ignore[attr-defined]  # functions may have one
    return method


def _answer(self: GameEnvironment, text: str) -> str:
    """
    Give your answer, which ends the task.

    Args:
        text: The answer, written as the task says.

    Returns:
        What came of it.
    """
    return self._say(text)


_answer.__name__ = "answer"
