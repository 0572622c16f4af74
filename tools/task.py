"""ToolTask: a task whose moves may be tool calls; what calls nothing is the answer.

class Roots(ToolTask):
    tools = (square_root,)

    @classmethod
    def sample(cls, rng: Random, high: int = 10**6) -> tuple[str, int]:
        n = rng.randint(2, high)
        return f"What is the whole part of the square root of {n}?", isqrt(n)
"""

import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, ClassVar, Self

from arena.game import Action, Event, IllegalAction, Player, replace
from arena.task import Task, final
from arena.text import quote
from arena.tools.codec import CODECS, MAX_CALLS, Call, Codec, Malformed, sample_call, told
from arena.tools.tool import MAX_RESULT, Result, Tool

__all__ = ["ToolTask"]

_LIMIT = 100
_MESSAGE = MAX_RESULT + 1_000  # characters of an event that says what a call gave
_NAMED = 40  # characters of an unknown tool's name that are repeated


class ToolTask(Task):
    """A task with `tools`: typed functions. Calls come back as events; the first answer ends it.

    Calls are counted one by one, malformed ones and unknown tools included; after `max_calls` of them a further
    one is illegal and only the answer is left. Tools here are pure functions of their arguments, so a task replays.
    An answer is a text that calls nothing and that `answers` takes for one.

    Options:
        max_calls: calls that may be made before the answer, 1 to 100
    """

    tags = ("question", "tools")

    tools: ClassVar[Sequence[Callable[..., Any] | Tool]] = ()
    codec: ClassVar[Codec] = CODECS["json"]
    """How calls are written."""
    toolbox: ClassVar[Mapping[str, Tool]] = {}
    """The tools by name, made from `tools`."""

    max_calls: int = 16
    calls: int = 0
    log: tuple[Event, ...] = ()

    def __init_subclass__(cls) -> None:
        """Make the toolbox."""
        super().__init_subclass__()
        tools = [tool if isinstance(tool, Tool) else Tool.of(tool) for tool in cls.tools]
        cls.toolbox = {tool.name: tool for tool in tools}

    @classmethod
    def initial(cls, rng: Random, item: int | None = None, max_calls: int = 16, **options: Any) -> Self:
        """The question, nothing called."""
        if type(max_calls) is not int or not 1 <= max_calls <= _LIMIT:
            raise ValueError(f"max_calls={max_calls!r}: allowed are 1 to {_LIMIT}")
        return replace(super().initial(rng, item, **options), max_calls=max_calls)

    def _how(self) -> tuple[str, ...]:
        return (
            self.codec.teach(tuple(self.toolbox.values())),
            f"The result comes back and you move again. You have {self.max_calls} calls; malformed ones count.",
            f"A message holds at most {MAX_CALLS} calls and {self.max_action()} characters.",
            f"Once you know the answer, give it: it ends the task. {self.form}",
            f"For example: {self.example}",
        )

    def answers(self, text: str) -> bool:
        """Whether a text that calls nothing is meant as the answer; another one comes back, and counts as a call.

        Here: any text, unless it writes a tool like a function, as in `add(2, 2)`, and marks no answer (see `final`).
        """
        return final(text) != text.strip() or not self._written().search(text)

    @classmethod
    def _written(cls) -> re.Pattern[str]:
        return re.compile(rf"\b(?:{'|'.join(map(re.escape, cls.toolbox))})[ \t]{{0,9}}\(")

    def _meant(self, text: str) -> tuple[Call, ...] | Malformed | None:
        """The calls of a text, why it is none, or None: it is the answer."""
        read = self.codec.read(text)
        return read if read is not None or self.answers(text) else self._neither()

    @classmethod
    def _neither(cls) -> Malformed:
        example = cls.codec.write([sample_call(next(iter(cls.toolbox.values())))]).replace("\n", "")
        return Malformed(f"it is no answer either. A call looks like this: {example}")

    def observation(self, player: Player) -> str:
        """The question and how many calls are left; once answered, the scores."""
        shown = super().observation(player)
        return shown if self.said is not None else f"{shown}\nCalls left: {self.max_calls - self.calls}."

    def events(self, player: Player) -> Sequence[Event]:
        """Every call with what it gave, and the answer."""
        return self.log if self.said is None else (*self.log, Event(self.said, 0))

    def check(self, player: Player, action: Action) -> None:
        """A call while there are calls left, or an answer."""
        super().check(player, action)
        if self.calls >= self.max_calls and self._meant(action) is not None:
            raise IllegalAction(f"no calls are left: write your answer, without a call. {self.form}")

    def play(self, action: Action) -> Self:
        """See `TurnGame.play`."""
        self.check(0, action)
        read = self._meant(action)
        if read is None:
            return self._answer(action)
        if isinstance(read, Malformed):
            new = [Event(action, 0), Event(f"Not a call, but counted as one: {read.reason}.")]
            return replace(self, log=(*self.log, *new), calls=self.calls + 1)
        log = (*self.log, *[Event(text) for text in self._run(read)])
        return replace(self, log=log, calls=min(self.calls + len(read), self.max_calls))

    def _run(self, calls: Sequence[Call]) -> list[str]:
        """What each call gave; those beyond the limit are not made."""
        left = self.max_calls - self.calls
        said = []
        for call in calls[:left]:
            result = self.use(call)
            said.append(f"You called {told(call)}{' -> ' if result.ok else '. Error: '}{result.text}")
        if len(calls) > left:
            said.append(f"No calls are left: {len(calls) - left} not made.")
        return said

    def use(self, call: Call) -> Result:
        """What one call gives; a message for a tool there is not."""
        tool = self.toolbox.get(call.tool)
        if tool is None:
            return Result(f"no tool {quote(call.tool[:_NAMED])}; there are {', '.join(self.toolbox)}", False)
        return tool.call(call.arguments)

    def sample_action(self, player: Player, rng: Random) -> Action:
        """A call with random arguments, or an answer."""
        if self.calls >= self.max_calls or rng.random() < 0.25:
            return super().sample_action(player, rng)
        tool = rng.choice(list(self.toolbox.values()))
        drawn = {key: _random(schema, rng) for key, schema in tool.parameters["properties"].items()}
        return self.codec.write([Call(tool.name, drawn)])

    def max_action(self) -> int:
        """See `Game.max_action`."""
        return 2_000

    def max_turns(self) -> int:
        """Every call alone, and the answer."""
        return self.max_calls + 1

    def max_length(self) -> int:
        """See `Game.max_length`."""
        return super().max_length() + self.max_calls * (10 * self.max_action() + _MESSAGE)


def _random(schema: Mapping[str, Any], rng: Random) -> Any:
    """A value of a parameter's type, as far as its schema names a simple one; another may come back as an error."""
    if "enum" in schema:
        return rng.choice(schema["enum"])
    kinds: Mapping[Any, Any] = {
        "integer": rng.randrange(100),
        "number": rng.randrange(100) / 4,
        "boolean": rng.random() < 0.5,
        "string": str(rng.randrange(100)),
        "array": [],
    }
    return kinds.get(schema.get("type"), {})
