"""Conversation: what one seat and its model have said, as messages and, where the model tells tokens, token by token.

A prompt extends the prompt and the answer before it by what the model's own chat template writes between the two
(`Bridges`); nothing that was sampled is ever tokenized again. Where that is not possible the whole conversation is
rendered anew, which is a break: `Conversation.gaps` says why, and the calls on record how much was shared.
"""

import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from arena.agent import Call
from arena.model import Completion, Message, Model, ModelError

__all__ = ["Bridges", "Conversation", "shared"]

Ids = tuple[int, ...]
_CACHED = 2048  # bridges kept; each is as long as one message
_FULL = 0.75  # part of the room that is left filled when exchanges are dropped, so that it is not done every turn
_REFUSALS = (0, 400)  # HTTP statuses of a template's refusal; 0: there is no HTTP between
_BROKEN = "a prompt does not extend the one before: "
REWRITTEN = _BROKEN + "chat template or tokenizer write earlier turns anew"
CHANGED = _BROKEN + "the server's tokens were not those that were sent"
OTHERS = _BROKEN + "what was played before was not told or tokenized as it is now"
DROPPED = _BROKEN + "the context was full, the oldest exchanges were left out"


def shared(a: Sequence[int], b: Sequence[int]) -> int:
    """The length of the common prefix of two tuples.

    >>> shared((1, 2, 3), (1, 2, 4, 5)), shared((1, 2), (1, 2, 3))
    (2, 2)
    """
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


class Bridges:
    """What a model's chat template writes between an answer and the next, learned from a small conversation.

    `system`: whether the template takes a system's message. `end`: the token that ends an assistant's turn, or None.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._base: tuple[Message, ...] = ()
        self._head: Ids = ()
        self._cache: OrderedDict[tuple[Message, ...], Ids | None] = OrderedDict()
        self.system, self.end = True, None  # type: bool, int | None

    async def learn(self) -> None:
        """Ask the model's template. Raises ModelError where the model cannot be asked.

        Some templates refuse a system's message. Whether it was that, and no trouble on the way, shows the second time.
        """
        system, user = Message("system", "s"), Message("user", "u")
        try:
            await self._learn((system, user))
        except ModelError as error:
            if error.status not in _REFUSALS:
                raise
            await self._learn((user,))
            self.system = await self._takes((system, user))

    async def _takes(self, base: tuple[Message, ...]) -> bool:
        """Whether the template takes such messages, if it may be asked again; it is learned with them if so."""
        try:
            await self._learn(base)
        except ModelError as error:
            if error.status not in _REFUSALS:
                raise
            return False
        return True

    async def _learn(self, base: tuple[Message, ...]) -> None:
        """Two answers that differ show where an answer ends: what follows is the same."""
        one, two = [
            await self._model.render([*base, Message("assistant", text), Message("user", "w")]) for text in ("x", "7")
        ]
        start, after = shared(one, two), shared(one[::-1], two[::-1])
        if start + after < min(len(one), len(two)) and after:
            self.end, self._head = one[-after], one[:-after]
        self._base = (*base, Message("assistant", "x"))

    def merged(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The messages as the template takes them: without a system's message, it opens the first of the user's."""
        if self.system:
            return tuple(messages)
        system, first, *rest = messages
        return (Message("user", f"{system.content}\n\n{first.content}"), *rest)

    async def between(self, messages: tuple[Message, ...]) -> Ids | None:
        """From the end of an answer, its end-of-turn token included, to the opening of the answer to `messages`.

        None: the template writes what was before in another way once these follow.
        """
        if messages in self._cache:
            self._cache.move_to_end(messages)
            return self._cache[messages]
        head, found = self._head, None
        if head:
            ids = await self._model.render([*self._base, *messages])
            found = ids[len(head) :] if ids[: len(head)] == head else None
        self._cache[messages] = found
        if len(self._cache) > _CACHED:
            self._cache.popitem(last=False)
        return found


class Conversation:
    """One seat's conversation in one episode. With `bridges` it is kept in tokens, without in messages only."""

    __slots__ = (
        "affinity", "before", "bridges", "calls", "counted", "exact", "extended", "gaps", "matched", "messages", "new",
        "open", "ply", "recorded", "starts", "system_open",
    )  # fmt: skip

    def __init__(self, bridges: Bridges | None) -> None:
        self.bridges = bridges
        self.messages: list[Message] = []
        self.starts: list[int] = []
        """Where each exchange (a turn's messages and the answers to them) begins."""
        self.new: list[Message] = []
        """What was added since the last answer."""
        self.before: Ids = ()
        """Prompt and answer of the last call."""
        self.extended: Ids | None = None
        """The last prompt that was made of them and a bridge: that it extends them need not be looked for."""
        self.recorded: Ids | None = None
        """Prompt and answer of the last call on record, where an answer that was given is in `before` too."""
        self.exact = False
        """Whether the next prompt extends `before`, as long as nothing is left out."""
        self.matched = True
        """Whether the server was asked what was sent, by its own account."""
        self.gaps: list[str] = []
        self.affinity = os.urandom(8).hex()
        self.ply = -1
        self.open = self.system_open = False
        """Whether the model was last told (by its system's message) that its whole reply is the action."""
        self.calls: tuple[str, ...] = ()
        """Ids of the tool calls in the last answer, which wait for results."""
        self.counted = 0
        """Tool calls so far: they number the ids."""

    def begin(self, messages: Sequence[Message], keep: int | None = None) -> None:
        """A new turn begins with these messages; `keep`: the exchanges before it that stay (None: all)."""
        if keep is not None and len(self.starts) > keep:
            self._drop(len(self.starts) - keep)
        self.starts.append(len(self.messages))
        self.say(messages)

    def say(self, messages: Sequence[Message]) -> None:
        """Something more is told."""
        self.messages += messages
        self.new += messages

    def restart(self, system: str) -> None:
        """Forget all that was said; the system's message comes first."""
        self.messages, self.starts, self.new, self.exact = [], [], [], False
        self.say([Message("system", system)])

    def all(self) -> tuple[Message, ...]:
        """The whole conversation as messages."""
        return tuple(self.messages) if self.bridges is None else self.bridges.merged(self.messages)

    async def prompt(self, model: Model, tools: Sequence[Mapping[str, Any]]) -> Ids:
        """The tokens of the next prompt; none where only messages are kept."""
        if self.bridges is None:
            return ()
        if self.exact:
            bridge = await self.bridges.between(tuple(self.new))
            if bridge is not None:
                ended = self.before[-1] == bridge[0]
                self.extended = self.before + (bridge[1:] if ended else bridge)
                return self.extended
            self.break_off(REWRITTEN)
        return await model.render(self.all(), tools)

    def account(self, prompt: Ids, answer: Completion, *, first: bool) -> tuple[int, Ids]:
        """`take` for an answer, the `first` to this prompt or not, by the server's own account of the prompt."""
        told = answer.prompt_ids
        self.matched = not told or not prompt or told == prompt
        if not self.matched:
            self.break_off(CHANGED)
        elif not prompt and first and self.exact and shared(self.before, told) < len(self.before):
            self.break_off(REWRITTEN)
        return self.take(told or prompt, answer.ids)

    def take(self, prompt: Ids, answer: Ids) -> tuple[int, Ids]:
        """Keep account of a call: how much of its prompt was there before, and the rest of the prompt."""
        known = self.before if self.recorded is None else self.recorded
        extends = len(known) if prompt is self.extended else shared(known, prompt)
        self.before, self.extended, self.recorded = prompt + answer, None, None
        return extends, prompt[extends:]

    def recall(self, call: Call) -> Ids:
        """Keep account of a call on record: its whole prompt."""
        known = self.before if self.recorded is None else self.recorded
        prompt = known[: call.extends] + call.prompt_ids
        self.take(prompt, call.completion_ids)
        return prompt

    def give(self, ids: Ids) -> bool:
        """The last prompt and an answer to it that no model gave, in tokens: the next prompt extends them."""
        if self.recorded is None:
            self.recorded = self.before
        self.before, self.extended = ids, None
        return True

    def answered(self, message: Message, *, exact: bool) -> None:
        """The answer that stays in the history. `exact`: it is there as it was sampled, so that the next extends it."""
        self.messages.append(message)
        self.new = []
        self.exact = exact and self.matched

    def make_room(self, part: float) -> bool:
        """Leave out the oldest exchanges so that about `part` of the text stays; False: only this turn's is left."""
        sizes = [sum(len(m.content) + len(m.reasoning) + 16 for m in self.messages[a:b]) for a, b in self._spans()]
        keep, left = part * _FULL * (sum(sizes) + len(self.messages[0].content)), sum(sizes)
        left += len(self.messages[0].content)
        count = 0
        while count < len(sizes) - 1 and (left > keep or not count):
            left -= sizes[count]
            count += 1
        if count:
            self._drop(count)
            self.break_off(DROPPED)
        return count > 0

    def _spans(self) -> list[tuple[int, int]]:
        return list(zip(self.starts, [*self.starts[1:], len(self.messages)], strict=True))

    def _drop(self, count: int) -> None:
        """Leave out the oldest exchanges; results whose calls are gone become plain messages."""
        start = self.starts[count] if count < len(self.starts) else len(self.messages)
        kept = self.messages[start:]
        for at, message in enumerate(kept):
            if message.role != "tool":
                break
            kept[at] = Message("user", message.content)
        head = self.messages[: self.starts[0]]
        self.messages = head + kept
        self.starts = [at - start + len(head) for at in self.starts[count:]]
        self.exact = False

    def break_off(self, why: str) -> None:
        """The next prompt cannot extend the one before."""
        self.exact = False
        if why not in self.gaps:
            self.gaps.append(why)
