"""Model: the protocol of a served language model. Implementations are in `arena.adapters.models`, a policy that asks
one is `arena.agents.llm`.

A request holds a conversation as messages, or (a model with the feature "tokens") as token ids; answers come back as
completions. Whatever keeps a model from answering is a `ModelError` whose one line says what to do about it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from arena.agent import AgentError

__all__ = [
    "Completion",
    "Constraint",
    "ContextOverflow",
    "Feature",
    "Finish",
    "Message",
    "Model",
    "ModelError",
    "ModelInfo",
    "Request",
    "Sampling",
    "Scores",
    "logprob_kind",
]

Role = Literal["system", "user", "assistant", "tool"]
Finish = Literal["stop", "length", "content_filter", "abort", "tool_calls"]
"""length and content_filter: the answer was cut, by its length or by what the service does not let pass."""
Feature = Literal["tokens", "logprobs", "score", "regex", "json_schema", "ebnf", "n", "tools"]
"""tokens: prompts may be token ids, and answers bring theirs. score: log-likelihoods of given answers.
regex, json_schema, ebnf: what may constrain an answer. n: several answers to one request. tools: structured calls."""


class ModelError(AgentError):
    """The model could not be asked, and no retry helped: one line that says why and what to do."""

    status: int = 0
    """The HTTP status it came with; 0: there was none."""


class ContextOverflow(ModelError):
    """Prompt and answer do not fit into the model's context."""


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of a conversation, as chat APIs and chat templates have it."""

    role: Role
    content: str = ""
    tool_calls: tuple[dict[str, Any], ...] = ()
    """Of an assistant, as OpenAI writes them."""
    tool_call_id: str = ""
    """Of a tool's message: the call it answers."""
    reasoning: str = ""
    """Of an assistant: thoughts that the server set apart, for servers and templates that take them back so."""


class Sampling(msgspec.Struct, frozen=True, omit_defaults=True):
    """How an answer is drawn."""

    max_tokens: int = 1024
    """The longest answer; it is cut off there."""
    temperature: float = 1.0
    """0: always the likeliest token."""
    top_p: float = 1.0
    top_k: int = -1
    """-1: all tokens."""
    min_p: float = 0.0
    stop: tuple[str, ...] = ()
    """Texts that end the answer; they stay in it."""


class Constraint(msgspec.Struct, frozen=True):
    """What an answer must match: a regular expression, a JSON schema (as JSON text) or a grammar (EBNF)."""

    kind: Literal["regex", "json_schema", "ebnf"]
    text: str


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """One question to a model. Exactly one of `messages` and `prompt_ids` is given."""

    messages: tuple[Message, ...] = ()
    prompt_ids: tuple[int, ...] = ()
    sampling: Sampling = Sampling()
    constraint: Constraint | None = None
    tools: tuple[dict[str, Any], ...] = ()
    """Tools the model may call, as OpenAI writes them. With `prompt_ids` they are part of the prompt already."""
    n: int = 1
    """Answers wanted."""
    id: str = ""
    """A retry is the same request; a cancelled one is aborted at the server by it. "": the client makes one."""
    affinity: str = ""
    """Requests of one conversation go to one endpoint, whose cache knows their prefix."""
    priority: int | None = None
    """For servers that schedule by it."""


class Completion(msgspec.Struct, frozen=True, omit_defaults=True):
    """One answer."""

    text: str
    finish: Finish = "stop"
    reason: str = ""
    """Why it was aborted."""
    reasoning: str = ""
    """What the server set apart as thoughts."""
    tool_calls: tuple[dict[str, Any], ...] = ()
    ids: tuple[int, ...] = ()
    """Its tokens, an end-of-turn token included where the model drew one."""
    logprobs: tuple[float, ...] = ()
    """One for each of `ids`, or none."""
    logprob_kind: str = ""
    """See `logprob_kind`."""
    prompt_ids: tuple[int, ...] = ()
    """The prompt's tokens as the server reports them, where it does."""
    usage: dict[str, float] = {}
    """prompt_tokens, cached_tokens, completion_tokens, seconds, and cost (dollars) where prices are known."""
    weight_versions: tuple[tuple[int, str], ...] = ()
    """(index of the first token, weight version) of every span."""
    gaps: tuple[str, ...] = ()
    """What was asked for and did not come."""


class Scores(msgspec.Struct, frozen=True):
    """What a model thinks of given answers."""

    rows: tuple[tuple[float, ...], ...]
    """The raw log-probability (temperature 1, no constraint) of every token of each answer."""
    usage: dict[str, float] = {}
    """prompt_tokens (all that was read: the prompt as often as the server was sent it, and the answers), cached_tokens
    of them, scored_tokens (of the answers), seconds, and cost (dollars) where prices are known."""


class ModelInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a server says of its model."""

    model: str
    server: str = ""
    """Name and version, such as "SGLang 0.5.23"."""
    url: str = ""
    context: int = 0
    """Tokens of prompt and answer together; 0: not known."""
    weight_version: str = ""
    tokenizer_hash: str = ""
    template_hash: str = ""
    features: tuple[Feature, ...] = ()
    details: dict[str, str] = {}
    """What else is worth showing."""


class Model(ABC):
    """A language model that can be asked, many requests at once. Write `complete` and `info`."""

    name: str = ""
    features: frozenset[Feature] = frozenset()

    @abstractmethod
    async def complete(self, request: Request) -> tuple[Completion, ...]:
        """The `request.n` answers. Raises ModelError; a cancelled request is aborted at the server."""

    def policy(self) -> dict[str, Any]:
        """Those of its own options that change what it answers: they go on record. None of them is a secret."""
        return {}

    @abstractmethod
    async def info(self) -> ModelInfo:
        """Ask the server what it is. Raises ModelError where it cannot be reached, or lacks the model."""

    async def render(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), *, reply: bool = True
    ) -> tuple[int, ...]:
        """The conversation as tokens, by the model's own chat template ("tokens").

        `reply`: with the opening of the assistant's turn.
        """
        raise ModelError(f"{self.name}: this model does not tell tokens")

    async def encode(self, texts: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """The tokens of plain texts, no special token added ("tokens")."""
        raise ModelError(f"{self.name}: this model does not tell tokens")

    async def score(
        self,
        prompt_ids: Sequence[int],
        answers: Sequence[Sequence[int]],
        affinity: str = "",
        priority: int | None = None,
    ) -> Scores:
        """The log-probabilities of each answer after the prompt ("score"). `affinity`, `priority`: as of a Request."""
        raise ModelError(f"{self.name}: this model does not score answers")

    async def rescore(self, prompt_ids: Sequence[int], completion_ids: Sequence[int]) -> tuple[float, ...]:
        """The raw log-probabilities of what was sampled, whatever temperature or constraint drew it ("score")."""
        return (await self.score(prompt_ids, [completion_ids])).rows[0]

    async def close(self) -> None:
        """Let go of connections or processes."""
        return


def logprob_kind(sampling: Sampling, constraint: Constraint | None, *, penalised: bool = False) -> str:
    """Of which distribution a server's log-probabilities are: "raw", or what it was changed by.

    SGLang reports them after temperature (0 counts as 1), constraint and penalties of tokens that were there before
    (`penalised`), and before top-p, top-k and min-p.

    >>> logprob_kind(Sampling(temperature=0.7), Constraint("regex", "yes|no"))
    'temperature=0.7,regex'
    """
    changed = [f"temperature={sampling.temperature:g}"] if sampling.temperature not in (0.0, 1.0) else []
    changed += [constraint.kind] if constraint is not None else []
    changed += ["penalised"] if penalised else []
    return ",".join(changed) or "raw"
