"""What SGLang over HTTP and in process have in common: how a request is asked, and how given answers are scored."""

import itertools
import os
import time
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import msgspec

from arena.adapters.models.extra import PLAIN, Extra
from arena.adapters.models.prices import Price
from arena.adapters.models.sglang_wire import Answer, Generate, completion, generate, scores, scoring
from arena.model import Completion, Feature, Message, Model, Request, Scores
from arena.text import clean

__all__ = ["FEATURES", "SCORED_AT_ONCE", "Native", "rids_of", "template_message"]

FEATURES: frozenset[Feature] = frozenset({"tokens", "logprobs", "score", "regex", "json_schema", "ebnf", "n"})
SCORED_AT_ONCE = 32
"""Answers scored in one request: a batch is refused as a whole where the server's queue is full."""
_READ_ONCE: dict[str, float] = {"prompt_tokens": 0, "cached_tokens": 0}
"""The usage of further answers to one prompt: it counts for the first of them."""


def template_message(message: Message) -> dict[str, Any]:
    """A message as the chat template is given it."""
    made: dict[str, Any] = {"role": message.role, "content": clean(message.content)}
    if message.tool_calls:
        made["tool_calls"] = list(message.tool_calls)
    if message.tool_call_id:
        made["tool_call_id"] = message.tool_call_id
    if message.reasoning:
        made["reasoning_content"] = clean(message.reasoning)
    return made


class Native(Model):
    """A model that takes the requests of SGLang's /generate."""

    logprobs: bool = True
    """Ask for log-probabilities."""
    prompt_ids: bool = False
    """Have the server tell the prompt it read."""
    lora_path: str = ""
    session_id: str = ""
    extra: Extra = PLAIN
    streams: bool = False
    price: Price | None = None

    def __init__(self) -> None:
        # All of one length: /abort_request ends every request whose id begins with the one it is given.
        self._ids = map("{}{:010x}".format, itertools.repeat(os.urandom(8).hex()), itertools.count())

    @abstractmethod
    async def _ask(self, body: Generate, affinity: str, tokens: int) -> list[Answer]:
        """The answers, in order. `tokens`: how many the request may use. Raises ModelError."""

    async def complete(self, request: Request) -> tuple[Completion, ...]:
        """The answers. Raises ModelError; ContextOverflow where they do not fit; ValueError for half a request."""
        if bool(request.messages) is bool(request.prompt_ids):
            raise ValueError("a request has either messages or prompt_ids")
        prompt = request.prompt_ids or await self.render(request.messages, request.tools)
        body = generate(
            request,
            prompt,
            request.id or next(self._ids),
            logprobs=self.logprobs,
            prompt_ids=self.prompt_ids,
            lora_path=self.lora_path,
            session_id=self.session_id,
            stream=self.streams,
            extra=self.extra,
        )
        began = time.perf_counter()
        answers = await self._ask(body, request.affinity, len(prompt) + request.n * request.sampling.max_tokens)
        seconds = time.perf_counter() - began
        told = {"logprobs": self.logprobs, "penalised": bool(self.extra.drawn)}
        made = [completion(a, request, prompt, seconds=seconds, **told) for a in answers]
        for answer in made[1:]:
            answer.usage.update(_READ_ONCE)
        for answer in made if self.price is not None else ():
            self._priced(answer.usage)
        return tuple(self._with_gaps(made, request))

    def policy(self) -> dict[str, Any]:
        """See `Model.policy`."""
        own: dict[str, Any] = {"extra": extra} if (extra := msgspec.to_builtins(self.extra)) else {}
        return own | ({"lora_path": self.lora_path} if self.lora_path else {})

    def _priced(self, usage: dict[str, float]) -> None:
        if self.price is not None:
            usage["cost"] = self.price.cost(usage)

    def _with_gaps(self, made: list[Completion], request: Request) -> list[Completion]:
        """What only the client can see to be missing."""
        gaps = []
        if len(made) != request.n:
            gaps.append(f"n: {request.n} answers were asked for, {len(made)} came")
        if self.prompt_ids and not all(answer.prompt_ids for answer in made):
            gaps.append("prompt_ids: the server did not tell the prompt it read")
        return [msgspec.structs.replace(a, gaps=(*a.gaps, *gaps)) for a in made] if gaps else made

    async def score(
        self,
        prompt_ids: Sequence[int],
        answers: Sequence[Sequence[int]],
        affinity: str = "",
        priority: int | None = None,
    ) -> Scores:
        """The raw log-probability of every token of each answer, whatever order and however often they stand there.

        One answer goes first, and leaves the prompt in the server's prefix cache for the others (measured on a CPU:
        9 answers after 1,890 new tokens take 21 s so, and 45 s at once, where three of them compute the prompt).
        """
        if not prompt_ids:
            raise ValueError("answers are scored after a prompt of at least one token")
        prompt, wanted = tuple(prompt_ids), [tuple(answer) for answer in answers]
        left = [answer for answer in dict.fromkeys(wanted) if answer]
        batches = [left[:1], *[left[i : i + SCORED_AT_ONCE] for i in range(1, len(left), SCORED_AT_ONCE)]]
        known: dict[tuple[int, ...], tuple[float, ...]] = {(): ()}
        began, read, cached = time.perf_counter(), 0, 0
        for batch in batches if left else ():
            body = self._named(scoring(prompt, batch, next(self._ids), priority))
            told = await self._ask(body, affinity, sum(map(len, batch)) + len(batch) * len(prompt))
            known |= zip(batch, scores(told, batch, self.name), strict=True)
            read += sum([each.meta_info.prompt_tokens for each in told])
            cached += sum([each.meta_info.cached_tokens for each in told])
        usage: dict[str, float] = {"prompt_tokens": read, "cached_tokens": cached, "scored_tokens": sum(map(len, left))}
        usage["seconds"] = time.perf_counter() - began
        self._priced(usage)
        return Scores(tuple([known[answer] for answer in wanted]), usage)

    def _named(self, body: Generate) -> Generate:
        if not self.lora_path and not self.extra.cache_salt:
            return body
        return msgspec.structs.replace(body, lora_path=self.lora_path, cache_salt=self.extra.cache_salt)


def rids_of(body: Generate) -> list[str]:
    """The ids a request runs under. Several answers to one prompt run under others, which nobody is told."""
    if isinstance(body.rid, list):
        return body.rid
    return [body.rid] if body.sampling_params.n == 1 else []
