"""OpenAICompatible: a model behind /v1/chat/completions, whoever serves it.

SGLang, vLLM, llama.cpp, hosted services: they share the route and little else. What each of them takes and tells is in
`openai_dialects`; what was asked for and did not come, as behind a router that drops what it does not know, is in
`Completion.gaps`.
"""

import asyncio
import difflib
import itertools
import os
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Literal

import msgspec

from arena.adapters.models.cache import Cache, Held, question_key
from arena.adapters.models.extra import penalised
from arena.adapters.models.failures import OVERFLOW, one_line
from arena.adapters.models.once import Once
from arena.adapters.models.openai_answers import completions
from arena.adapters.models.openai_dialects import DIALECTS, Dialect, Extras, body_of, cleaned, features_of
from arena.adapters.models.openai_wire import Answer, Broken, assembled, read
from arena.adapters.models.prices import price_of
from arena.adapters.models.transport import DEFAULTS, Answered, Settings, Transport, base_url
from arena.model import Completion, ContextOverflow, Feature, Model, ModelError, ModelInfo, Request
from arena.text import clean

__all__ = ["OpenAICompatible"]

V1 = "/v1"
CHAT = f"{V1}/chat/completions"
FIRST_WAIT = 0.1
"""Seconds: the longest wait before a broken answer is asked for again, doubled every time."""
UNREADABLE = 2
"""Further attempts at an answer that could not be read."""
AGAIN = frozenset({408, 429, 500, 502, 503, 504})
OLD_VLLM = (0, 11)
"""From here on constraints are called structured_outputs."""
SHOWN_MODELS = 20


_encoder = msgspec.json.Encoder()


class _Card(msgspec.Struct):
    id: str
    owned_by: str | None = None
    max_model_len: int | None = None


class _Cards(msgspec.Struct):
    data: list[_Card] = []


class _Told(msgspec.Struct):
    """What /model_info or /version say."""

    model_path: str | None = None
    weight_version: Any = None
    version: Any = None


class OpenAICompatible(Model):
    """A model at one or more endpoints that speak /v1/chat/completions."""

    def __init__(
        self,
        urls: str | Sequence[str],
        *,
        model: str = "",
        settings: Settings = DEFAULTS,
        extras: Extras = "auto",
        max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens",
        logprobs: bool = True,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """`urls`: base URLs with or without /v1, as a list or with commas between. Raises ValueError.

        `model`: "" is the only one there is. `extras`: the kind of server, whose own fields are used; "auto" asks it,
        "openai" sends standard fields only, "none" only those every server knows. `max_tokens_field`: newer models of
        OpenAI demand max_completion_tokens. `logprobs`: have tokens' log-probabilities told where it is possible.
        `extra`: further fields of every request, such as {"reasoning_effort": "low"}.
        """
        if extras not in ("auto", *DIALECTS):
            raise ValueError(f"extras={extras}: allowed are auto, {', '.join(DIALECTS)}")
        if max_tokens_field not in ("max_tokens", "max_completion_tokens"):
            raise ValueError(f"max_tokens_field={max_tokens_field}: allowed are max_tokens and max_completion_tokens")
        listed = urls.split(",") if isinstance(urls, str) else urls
        self.transport = Transport.shared([_root(url) for url in listed], settings)
        self.settings, self.max_tokens_field = settings, max_tokens_field
        self.logprobs, self.extra = logprobs, dict(extra or {})
        self.model = model
        self.price = price_of(settings, model) if model else None
        self.cache = Cache.at(settings.cache) if settings.cache else None
        self.guided = False
        self.dialect: Dialect | None = None
        if extras != "auto":
            self._speaks(DIALECTS[extras])
        self.name = model or self.transport.urls[0]
        self._cards: list[_Card] | None = None
        self._told = _Told()
        self._settling: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None
        self._ids = map("{}-{}".format, itertools.repeat(os.urandom(8).hex()), itertools.count())
        self._chance = Random()
        self._held: Held | None = None
        self._asking = Once[Held]()

    async def complete(self, request: Request) -> tuple[Completion, ...]:
        """The answers. Raises ModelError; ContextOverflow where they do not fit."""
        if request.prompt_ids or not request.messages:
            raise ModelError(f"{self.name}: chat completions take messages, not tokens")
        dialect = self.dialect if self.dialect is not None and self.model else await self._settled()
        key, held = None, None
        if self.cache is not None and request.sampling.temperature == 0:
            request = cleaned(request)
            held = self._held or await self._asking.result(self._look)
            key = question_key(self._identity(dialect, held), request)
            known = self.cache.get(key) if key is not None else None
            if known is not None:
                return known
        try:
            answers = await self._answers(request, dialect)
        except UnicodeEncodeError:  # half a character, which is rare, and slow to look for
            answers = await self._answers(cleaned(request), dialect)
        if self.cache is not None and key is not None and held is not None:
            if held.gave(answers):
                self.cache.put(key, answers)
            else:
                self._held = None  # the weights have been updated
        return tuple(answers)

    async def _look(self) -> Held:
        """SGLang takes any name for the model, and tells which one it has."""
        dialect = await self._settled()
        told = await self._tells("/model_info") if dialect.name == "sglang" else None
        self._held = Held([(self.model, (told and told.model_path) or "")], versions=_version(told))
        return self._held

    def _identity(self, dialect: Dialect, held: Held) -> str:
        parts = [*self.transport.urls, self.model, dialect.name, self.max_tokens_field, str(self.logprobs)]
        return msgspec.json.encode([*parts, held, self.extra], order="deterministic").decode()

    async def _answers(self, request: Request, dialect: Dialect) -> list[Completion]:
        """All that are wanted. A server that gives fewer at a time is asked for the others one by one."""
        at_once = request.n if "n" in dialect.features else 1
        found = await self._ask(request, dialect, at_once)
        while len(found) < request.n:
            more = request.n - len(found)
            single = msgspec.structs.replace(request, id="")
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(self._ask(single, dialect, 1)) for _ in range(more)]
            except* ModelError as errors:
                raise _first(errors) from None
            found += [task.result()[0] for task in tasks]
        return found

    async def _ask(self, request: Request, dialect: Dialect, n: int) -> list[Completion]:
        """The answers to one request, asked again if they cannot be read."""
        body, gaps = body_of(
            request,
            self.model,
            dialect,
            max_tokens_field=self.max_tokens_field,
            logprobs=self.logprobs,
            guided=self.guided,
            streamed=self.settings.first_token_seconds is not None,
            n=n,
        )
        attempt = 0
        while True:
            attempt += 1
            id_ = request.id if attempt == 1 and request.id else next(self._ids)
            try:
                answer, answered = await self._once(body, request, dialect, id_)
                return completions(
                    answer,
                    request,
                    dialect,
                    n=n,
                    seconds=answered.seconds,
                    price=self.price,
                    logprobs=self.logprobs,
                    gaps=gaps,
                    penalised=penalised(self.extra),
                )
            except Broken as broken:
                if attempt > min(UNREADABLE, self.settings.retries):
                    line = f"{self.name}: an answer that cannot be read ({one_line(str(broken))})"
                    raise ModelError(f"{line}: is it an OpenAI-compatible server? (asked {attempt} times)") from None
            except ModelError as error:
                if "Duplicate request ID" not in str(error) or attempt > self.settings.retries:
                    raise
            await asyncio.sleep(self._chance.uniform(0, FIRST_WAIT * 2.0**attempt))

    async def _once(
        self, body: dict[str, Any], request: Request, dialect: Dialect, id_: str
    ) -> tuple[Answer, Answered]:
        async def cancelled(endpoint: str) -> None:
            await self.transport.notify(dialect.abort, msgspec.json.encode({"rid": id_}), endpoint)

        own: dict[str, Any] = {dialect.id: id_} if dialect.id else {}
        headers = {} if dialect.id else {"Idempotency-Key": id_}  # sent again, it is still the same request
        stop = cancelled if dialect.abort else None
        tokens = 0
        if self.settings.tokens_per_minute is not None:
            tokens = sum(len(m.content) for m in request.messages) // 4 + request.sampling.max_tokens * request.n
        sent = _encoder.encode({**body, **own, **self.extra})
        if self.settings.first_token_seconds is None:
            answered = await self.transport.post(
                CHAT, sent, affinity=request.affinity, cancelled=stop, tokens=tokens, headers=headers
            )
            return self._checked(read(answered.body)), answered
        payloads, answered = await self.transport.collect(
            CHAT, sent, affinity=request.affinity, cancelled=stop, tokens=tokens, headers=headers
        )
        return self._checked(assembled(payloads)), answered

    def _checked(self, answer: Answer) -> Answer:
        """The answer, unless it is an error that came as HTTP 200. Raises Broken if it may pass, else ModelError."""
        if answer.error is None:
            return answer
        told = answer.error if isinstance(answer.error, dict) else {"message": answer.error}
        line = one_line(str(told.get("message") or told))
        if told.get("code") in AGAIN:
            raise Broken(line)
        kind = ContextOverflow if OVERFLOW.search(line) else ModelError
        raise kind(f"{self.name} answers with an error: {line}")

    async def info(self) -> ModelInfo:
        """What the server is. Raises ModelError where it cannot be reached, or does not have the model."""
        self._held = None
        cards = self._cards = await self._listed()
        if cards is None:
            await self._check_route()
        dialect = await self._settled()
        card = next((card for card in cards or () if card.id == self.model), None)
        if cards and card is None:
            raise ModelError(self._unknown(cards))
        version = self._told.version
        return ModelInfo(
            model=self.model,
            server=f"{dialect.server} {one_line(str(version))[:40]}" if version is not None else dialect.server,
            url=self.transport.urls[0],
            context=(card.max_model_len or 0) if card is not None else 0,
            weight_version="" if self._told.weight_version is None else one_line(str(self._told.weight_version)),
            features=tuple(sorted(self.features)),
            details={"route": CHAT, "extras": dialect.name} | ({} if cards else {"models": "the server lists none"}),
        )

    async def close(self) -> None:
        """Let go of the connections."""
        await self._asking.stop()
        await self.transport.close()

    def _speaks(self, dialect: Dialect) -> None:
        self.dialect = dialect
        streamed = self.settings.first_token_seconds is not None
        self.features: frozenset[Feature] = features_of(dialect, logprobs=self.logprobs, streamed=streamed)

    def policy(self) -> dict[str, Any]:
        """See `Model.policy`."""
        own = {"extras": self.dialect.name if self.dialect is not None else "auto"}
        return own | {"max_tokens_field": self.max_tokens_field} | ({"extra": self.extra} if self.extra else {})

    async def _settled(self) -> Dialect:
        """Kind of server and name of the model, asked for once where they were not given."""
        loop = asyncio.get_running_loop()
        if self._settling is None or self._settling[0] is not loop:
            self._settling = loop, asyncio.Lock()
        async with self._settling[1]:
            if self.dialect is None or not self.model:
                self._cards = await self._listed() if self._cards is None else self._cards
                self._only_model(self._cards)
            if self.dialect is None:
                self._speaks(DIALECTS[await self._kind(self._cards or [])])
            return self.dialect or DIALECTS["none"]

    def _only_model(self, cards: list[_Card] | None) -> None:
        if self.model:
            return
        if not cards or len(cards) != 1:
            raise ModelError(f"{self.transport.urls[0]}: name the model in model=; {_names(cards)}")
        self.model, self.name = cards[0].id, one_line(cards[0].id)
        self.price = price_of(self.settings, self.model)

    async def _listed(self) -> list[_Card] | None:
        """The models of the server, None where it does not list them."""
        try:
            answered = await self.transport.get(f"{V1}/models", retries=min(self.settings.retries, 1))
            return msgspec.json.decode(answered.body, type=_Cards, strict=False).data
        except ModelError as error:
            if error.status not in {404, 405}:
                raise
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            base = self.transport.urls[0]
            raise ModelError(f"{base}{V1}/models: no list of models ({error}): is this a base URL?") from None
        return None

    async def _check_route(self) -> None:
        """Raise ModelError if the route is not there. An empty request is refused where it is, and costs nothing."""
        try:
            await self.transport.post(CHAT, b"{}", retries=0)
        except ModelError as error:
            if error.status in {0, 401, 403, 404, 405}:
                raise

    async def _kind(self, cards: Sequence[_Card]) -> str:
        """The kind of server: its list of models says it, or a route that no other has."""
        owners = {card.owned_by for card in cards}
        told = await self._tells("/model_info")
        if "sglang" in owners or (told is not None and told.model_path is not None):
            self._told = msgspec.structs.replace(told or _Told(), version=None)
            return "sglang"
        told = await self._tells("/version")
        version = str(told.version) if told is not None and told.version is not None else ""
        if "vllm" in owners or version:
            self._told = told or _Told()
            numbers = [int(part) for part in version.split(".")[:2] if part.isdecimal()]
            self.guided = len(numbers) == len(OLD_VLLM) and tuple(numbers) < OLD_VLLM
            return "vllm"
        return "openai"

    async def _tells(self, path: str) -> _Told | None:
        """What the server says there, None where it does not know the route."""
        try:
            answered = await self.transport.get(path, retries=min(self.settings.retries, 1))
            return msgspec.json.decode(answered.body, type=_Told, strict=False)
        except ModelError as error:
            if not 300 <= error.status < 500:
                raise
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None  # a page for people, say
        return None

    def _unknown(self, cards: Sequence[_Card]) -> str:
        near = difflib.get_close_matches(self.model, [card.id for card in cards], 1, 0.5)
        guess = f"did you mean {one_line(near[0])}? " if near else ""
        return f"{self.transport.urls[0]} has no model {self.model}: {guess}{_names(cards)}"


def _version(told: _Told | None) -> list[str]:
    return [] if told is None or told.weight_version is None else [clean(str(told.weight_version))]


def _names(cards: Sequence[_Card] | None) -> str:
    names = sorted(one_line(card.id) for card in cards or ())
    more = ", ..." if len(names) > SHOWN_MODELS else ""
    return f"there are {', '.join(names[:SHOWN_MODELS])}{more}" if names else "the server lists none"


def _first(errors: BaseExceptionGroup[ModelError]) -> ModelError:
    found = errors.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found


def _root(url: str) -> str:
    """The address without /v1. Raises ValueError for a route's address."""
    base = base_url(url)
    for route in (CHAT, f"{V1}/completions", f"{V1}/models", "/generate"):
        if base.endswith(route):
            raise ValueError(f"{url}: name the base URL, {base.removesuffix(route)}{V1}")
    return base.removesuffix(V1)
