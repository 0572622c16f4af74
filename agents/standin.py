"""StandIn: plays at random in a language model's place, and counts the tokens that it would have read and written.

What a dry run seats: prompts and conversation are the real agent's, tokens are guessed at four characters each.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from zlib import crc32

from arena.agent import Call, Reply, View
from arena.agents.conversation import shared
from arena.agents.llm import LLMAgent
from arena.agents.prompting import FORMS, Prompting
from arena.game import replace
from arena.model import Completion, Feature, Message, Model, ModelInfo, Request, Sampling, Scores

__all__ = ["StandIn"]

Price = Callable[[Mapping[str, float]], float]
_LETTERS = 4  # characters of English text that are one token, on the whole
_END = 0
_UNLIKELY = -1e6


class StandIn(LLMAgent):
    """The agent of these options with a random legal action for an answer.

    `tokens`: it keeps conversations in tokens. `price`: dollars of a usage. Calls on record hold prompt_tokens,
    cached_tokens, completion_tokens (of a free answer as many as it may have) and, with a price, cost.
    """

    name = "standin"

    def __init__(self, prompting: Prompting, sampling: Sampling, *, tokens: bool, price: Price | None = None) -> None:
        self._price = price
        self._guess = _Guess(sampling, tokens=tokens)
        super().__init__(self._guess, prompting, sampling)

    async def act(self, view: View) -> Reply:
        """See `Agent.act`."""
        action = view.sample_action()
        form = "{}" if view.open_text else FORMS[self.prompting.form]
        self._guess.says = form.format(action)
        self._guess.exact = self.prompting.decode in ("constrained", "score")
        reply = await super().act(view)
        return Reply(action, calls=tuple(map(self._priced, reply.calls)))

    def _priced(self, call: Call) -> Call:
        if self._price is None:
            return call
        return replace(call, usage=call.usage | {"cost": self._price(call.usage)})


class _Guess(Model):
    """Counts instead of thinking; a text's tokens are its pieces of four characters."""

    name = "guess"

    def __init__(self, sampling: Sampling, *, tokens: bool) -> None:
        told: tuple[Feature, ...] = ("tokens", "score") if tokens else ()
        self.features = frozenset[Feature](("regex", "n", "tools", *told))
        self.says, self.exact = "", False
        self._most = sampling.max_tokens
        self._before: dict[str, tuple[int, ...]] = {}

    async def info(self) -> ModelInfo:
        """Any context is large enough."""
        return ModelInfo("guess", features=tuple(sorted(self.features)))

    async def render(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), *, reply: bool = True
    ) -> tuple[int, ...]:
        """A role, the pieces of the text, and an end."""
        ids = _pieces(str(list(tools))) if tools else []
        for message in messages:
            ids += [_of(message.role), *_pieces(message.content), *_pieces(str(message.tool_calls or "")), _END]
        return (*ids, _of("assistant")) if reply else tuple(ids)

    async def encode(self, texts: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """Pieces."""
        return tuple([tuple(_pieces(text)) for text in texts])

    async def complete(self, request: Request) -> tuple[Completion, ...]:
        """What it was told to say, `n` times; the tokens are those of the longest answer unless the list decides."""
        prompt = request.prompt_ids or await self.render(request.messages, request.tools)
        said = (*_pieces(self.says), _END)
        wrote = len(said) if self.exact else max(self._most, len(said))
        usage = self._usage(prompt, request.affinity, said) | {"completion_tokens": float(wrote)}
        rest = usage | {"prompt_tokens": 0.0, "cached_tokens": 0.0}
        first = Completion(self.says, ids=said if request.prompt_ids else (), usage=usage)
        return (first, *[Completion(self.says, ids=first.ids, usage=rest) for _ in range(request.n - 1)])

    async def score(
        self,
        prompt_ids: Sequence[int],
        answers: Sequence[Sequence[int]],
        affinity: str = "",
        priority: int | None = None,
    ) -> Scores:
        """What it is about to play is the likeliest. The prompt is read with each answer, from the cache but once."""
        prompt, said = tuple(prompt_ids), (*_pieces(self.says), _END)
        usage = self._usage(prompt, affinity, said)
        wrote, again = sum(map(len, answers)), len(prompt) * (len(answers) - 1)
        usage["prompt_tokens"] += again + wrote
        usage["cached_tokens"] += again
        rows = [(0.0 if tuple(answer) == said else _UNLIKELY,) * len(answer) for answer in answers]
        return Scores(tuple(rows), usage | {"scored_tokens": float(wrote)})

    def _usage(self, prompt: tuple[int, ...], affinity: str, said: tuple[int, ...]) -> dict[str, float]:
        cached = shared(self._before.get(affinity, ()), prompt)
        self._before[affinity] = prompt + said
        return {"prompt_tokens": float(len(prompt)), "cached_tokens": float(cached)}


def _pieces(text: str) -> list[int]:
    return [_of(text[at : at + _LETTERS]) for at in range(0, len(text), _LETTERS)]


def _of(piece: str) -> int:
    """A number above 0 for a piece: the same in every process."""
    return 1 + crc32(piece.encode("utf-8", "replace"))
