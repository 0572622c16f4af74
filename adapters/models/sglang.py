"""SGLang by its native HTTP interface: tokens in, tokens out, with their log-probabilities.

What it does about the server's ways (measured on SGLang 0.5.23):

- An abort is HTTP 200 with partial tokens: it comes back as finish "abort"; one that says "later" is asked again.
- Decoding a model's text and encoding it again gives other tokens (4 of 16 samples): prompts go as ids, the chat
  template is applied by the server (/tokenize), and `prompt_tokens` is compared with what was sent.
- Log-probabilities are of the distribution after temperature and constraint: `Completion.logprob_kind`.
- `logprob_start_len=0` turns the prefix cache off: it is never sent.
- Any model name is accepted: `info` compares it with what is served.
- A router drops fields it does not know and lacks /tokenize and /abort_request: its workers are asked directly, and
  what does not come is in `Completion.gaps`.
- An abort ends every request whose id begins with the one it names: ids made here are of one length.
- Answers to a request of n > 1 run under ids the server makes up: they are aborted by hanging up, not by id.
- A token id outside the vocabulary ends the whole server (0.5.23 on a CPU): ids must come from this model's servers.
- A request sent again after a broken connection may still be running: it is aborted and gets another id.
"""

import asyncio
import itertools
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from random import Random
from typing import Any, TypeVar

import msgspec

from arena.adapters.models.cache import Cache, Held, question_key
from arena.adapters.models.extra import Extra
from arena.adapters.models.failures import one_line
from arena.adapters.models.native import FEATURES, Native, rids_of, template_message
from arena.adapters.models.once import Once
from arena.adapters.models.openai_dialects import cleaned
from arena.adapters.models.prices import price_of
from arena.adapters.models.sglang_info import (
    CANARIES,
    PROBE_TALK,
    PROBE_TEXT,
    Facts,
    facts_of,
    info_of,
    without_grammar,
)
from arena.adapters.models.sglang_wire import (
    Answer,
    Failure,
    Generate,
    answers_of,
    batch_ids,
    failure,
    retryable,
    streamed,
)
from arena.adapters.models.transport import DEFAULTS, Cancelled, Settings, Transport
from arena.adapters.models.weights import Fleet, Weights, post_json
from arena.model import Completion, Feature, Message, ModelError, ModelInfo, Request, Sampling
from arena.text import clean

__all__ = ["SGLang"]

LONGEST_WAIT = 8.0


Told = TypeVar("Told")


class _Tokens(msgspec.Struct, frozen=True):
    tokens: list[int]


class _TokenLists(msgspec.Struct, frozen=True):
    tokens: list[list[int]]


class _Line(msgspec.Struct, frozen=True):
    index: int = 0


_line = msgspec.json.Decoder(_Line)


class SGLang(Weights, Native):
    """A model served by SGLang, at one or more endpoints."""

    def __init__(
        self,
        urls: str | Sequence[str],
        *,
        model: str = "",
        settings: Settings = DEFAULTS,
        logprobs: bool = True,
        prompt_ids: bool = False,
        lora_path: str = "",
        session_id: str = "",
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """`urls`: base URLs, as a list or with commas between. Raises ValueError.

        `model`: the name it must be served under ("": any). `logprobs`: ask for them. `prompt_ids`: have the server
        tell the prompt it read, token by token; makes answers long. `lora_path`: name of a loaded adapter.
        `session_id`: of `open_session`, for servers with --enable-session-radix-cache; every request is part of it, so
        that it is for one conversation. `extra`: further fields, see `arena.adapters.models.extra`.
        """
        super().__init__()
        further = Extra.of(extra)
        if settings.prices and not model:
            raise ValueError("prices: name the model in model=, so that its price can be found")
        self.transport = Transport.shared(urls.split(",") if isinstance(urls, str) else urls, settings)
        self.fleet = Fleet(self.transport, settings)
        self.settings = settings
        self.price = price_of(settings, model)
        self.cache = Cache.at(settings.cache) if settings.cache else None
        self.model = model
        self.name = model or self.transport.urls[0]
        self.features = FEATURES if logprobs else FEATURES - {"logprobs"}
        self.logprobs, self.prompt_ids = logprobs, prompt_ids
        self.lora_path, self.session_id, self.extra = lora_path, session_id, further
        self.streams = settings.first_token_seconds is not None
        self._chance = Random()
        self._updates: tuple[str, ...] = ()
        self._held: Held | None = None
        self._asking = Once[Held]()

    async def complete(self, request: Request) -> tuple[Completion, ...]:
        """The answers. Raises ModelError; ContextOverflow where they do not fit; ValueError for half a request.

        An abort ends every request whose id begins with its own: ids given here should be of one length.
        """
        if self.cache is None:
            return await super().complete(request)
        request = cleaned(request)
        if request.sampling.temperature != 0:
            return await super().complete(request)
        held = self._held or await self._asking.result(self._look)
        key = question_key(self._identity(held), request)
        known = self.cache.get(key) if key is not None else None
        if known is None:
            known = await super().complete(request)
            if key is not None and self._held is held and held.gave(known):
                self.cache.put(key, known)
            elif self._held is held:
                self._held = None  # somebody has updated the weights
        return known

    async def _look(self) -> Held:
        self._held = _held(await self._facts())
        return self._held

    def _identity(self, held: Held) -> str:
        """What an answer at temperature 0 depends on beside the question."""
        asked = (self.logprobs, self.prompt_ids, self.lora_path, self.extra, self._updates)
        return msgspec.json.encode(("sglang", self.transport.urls, self.model, held, *asked)).decode()

    async def update_weights(self, path: str, version: str, **how: Any) -> None:
        """See `Weights.update_weights`, whose options these are."""
        self._updates, self._held = (path, version), None
        try:
            await super().update_weights(path, version, **how)
        finally:
            self._held = None

    async def _ask(self, body: Generate, affinity: str, tokens: int) -> list[Answer]:
        """The answers to a request, asked again while the server says "later"."""
        for attempt in itertools.count():
            last = attempt >= self.settings.retries
            try:
                answers = await self._once(body, affinity, tokens)
            except ModelError as error:
                if last or "Duplicate request ID" not in str(error):
                    raise
                body = await self._renamed(body)
                continue
            again = retryable(answers)
            if not again:
                break
            if last:
                raise ModelError(f"{self.name}: {one_line(again)} (asked {attempt + 1} times)")
            await asyncio.sleep(self._chance.uniform(0, min(2.0**attempt / 2, LONGEST_WAIT)))
        error_there = failure(answers, self.name)
        if error_there is not None:
            raise error_there
        return answers

    async def _once(self, body: Generate, affinity: str, tokens: int) -> list[Answer]:
        async def cancelled(endpoint: str) -> None:
            await self.fleet.abort(rids_of(body), endpoint)

        sent = post_json(body)
        if body.stream:
            return await self._last_lines(body, sent, affinity, cancelled, tokens)
        answered = await self.transport.post("/generate", sent, affinity=affinity, cancelled=cancelled, tokens=tokens)
        return answers_of(answered.body, answered.url)

    async def _last_lines(
        self, body: Generate, sent: bytes, affinity: str, cancelled: Cancelled, tokens: int
    ) -> list[Answer]:
        """A line of a stream holds the answer up to there, so that the last one of each answer is kept, and read."""
        last: dict[int, bytes] = {}
        several = body.sampling_params.n > 1
        stream = self.transport.stream("/generate", sent, affinity=affinity, cancelled=cancelled, tokens=tokens)
        try:
            async with aclosing(stream) as lines:
                async for line in lines:
                    last[_line.decode(line).index if several else 0] = line
        except msgspec.DecodeError as error:
            raise ModelError(f"{self.name}: not a stream of /generate ({error}): is it an SGLang server?") from None
        except ModelError as error:
            if not last:  # the transport has tried that again
                raise
            return [Answer(error=Failure(str(error), code=503))]
        if not last:
            raise ModelError(f"{self.name}: an empty stream: is it an SGLang server?")
        return streamed(last, self.name)

    async def _renamed(self, body: Generate) -> Generate:
        """The request under another id; the attempt that was given up and still runs under this one is aborted."""
        for endpoint in self.transport.urls:
            await self.fleet.abort(rids_of(body), endpoint)
        new = next(self._ids)
        rid = new if isinstance(body.rid, str) else batch_ids(new, len(body.rid))
        return msgspec.structs.replace(body, rid=rid)

    async def render(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), *, reply: bool = True
    ) -> tuple[int, ...]:
        """The tokens of a conversation by the server's own chat template. Raises ModelError with its objections."""
        asked: dict[str, Any] = {
            "messages": [template_message(message) for message in messages],
            "add_generation_prompt": reply,
            **self.extra.asked,
        }
        if tools:
            asked["tools"] = list(tools)
        return tuple((await self._tokenize(asked, _Tokens)).tokens)

    async def encode(self, texts: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """The tokens of plain texts, no special token added."""
        if not texts:
            return ()
        asked = {"prompt": [clean(text) for text in texts], "add_special_tokens": False}
        return tuple(map(tuple, (await self._tokenize(asked, _TokenLists)).tokens))

    async def _tokenize(self, asked: dict[str, Any], kind: type[Told]) -> Told:
        answered = await self.fleet.any("/tokenize", post_json(asked))
        try:
            return msgspec.json.decode(answered.body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ModelError(f"{answered.url}: not an answer of /tokenize ({error}): is it SGLang 0.5.23?") from None

    async def info(self) -> ModelInfo:
        """What the servers are. Raises ModelError where one cannot be reached, lacks the model, or is another one's."""
        few = min(self.settings.retries, 1)  # nobody is playing yet: that it is down should be said soon
        await self.fleet.forget()
        found = await self._facts(few)
        self._held = _held(found)
        routed = await self.fleet.routed()
        lost = await self._lost_constraints() if routed else without_grammar(found)
        features = sorted(self.features - lost)
        return info_of(found, self.model, self.lora_path, ", ".join(self.transport.urls), features, routed=routed)

    async def _facts(self, retries: int | None = None) -> list[Facts]:
        text = post_json({"prompt": PROBE_TEXT, "add_special_tokens": False})
        talk = post_json(
            {"messages": list(map(template_message, PROBE_TALK)), "add_generation_prompt": True, **self.extra.asked}
        )
        asked = [self.fleet.each(path, retries=retries) for path in ("/model_info", "/server_info", "/v1/models")]
        asked += [self.fleet.each("/tokenize", body, retries=retries) for body in (text, talk)]
        told = await asyncio.gather(*asked)
        return [facts_of(url, *[answers[url] for answers in told]) for url in told[0]]

    async def _lost_constraints(self) -> set[Feature]:
        """The constraints that do not arrive, or that the server does not know."""
        asked = [
            self.complete(Request((Message("user", "Hi"),), sampling=Sampling(max_tokens=16), constraint=each))
            for each in CANARIES
        ]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        return {
            each.kind
            for each, answer in zip(CANARIES, answers, strict=True)
            if isinstance(answer, BaseException) or "qzx-7" not in answer[0].text
        }

    async def health(self) -> float:
        """Seconds until the slowest server has made a token (/health_generate takes one at least)."""
        began = time.perf_counter()
        await self.fleet.each("/health_generate")
        return time.perf_counter() - began

    async def open_session(self, capacity: int = 1 << 20, session_id: str = "") -> str:
        """Open a session of so many characters on every server; its id, for the option `session_id`."""
        session_id = session_id or next(self._ids)
        await self.fleet.each("/open_session", post_json({"capacity_of_str_len": capacity, "session_id": session_id}))
        return session_id

    async def close_session(self, session_id: str) -> None:
        """Let the servers forget a session."""
        await self.fleet.each("/close_session", post_json({"session_id": session_id}))

    async def close(self) -> None:
        """Let aborts go out, and close the connections."""
        await self._asking.stop()
        await self.transport.close()
        await self.fleet.close()


def _held(found: Sequence[Facts]) -> Held:
    return Held(
        names=[facts.names for facts in found],
        tokens=[(facts.tokenizer_hash, facts.template_hash) for facts in found],
        versions=[facts.weight_version for facts in found],
    )
