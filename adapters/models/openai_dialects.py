"""Dialects of /v1/chat/completions: which fields a kind of server takes, and what it tells in return."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from arena.model import Constraint, Feature, Message, ModelError, Request
from arena.text import clean

__all__ = ["DIALECTS", "Dialect", "Extras", "body_of", "cleaned", "features_of"]

Extras = Literal["auto", "sglang", "vllm", "openai", "none"]


class Dialect(msgspec.Struct, frozen=True):
    """One kind of server."""

    name: str
    server: str
    features: frozenset[Feature] = frozenset()
    sampling: tuple[str, ...] = ()
    """Fields of Sampling that are sent besides max_tokens, temperature, top_p and stop."""
    tokens: bool = False
    """It tells tokens and their log-probabilities."""
    stop_stays: str = ""
    """The field that leaves the text that ended the answer in it."""
    id: str = ""
    """The field for the request's id."""
    abort: str = ""
    """The route that aborts a request by it."""
    priority: bool = False
    thoughts: str = ""
    """The field of an assistant's message for its thoughts."""


DIALECTS = {
    "sglang": Dialect(
        "sglang",
        "SGLang",
        frozenset({"logprobs", "regex", "json_schema", "ebnf", "n", "tools"}),
        sampling=("top_k", "min_p"),
        tokens=True,
        stop_stays="no_stop_trim",
        id="rid",
        abort="/abort_request",
        priority=True,
        thoughts="reasoning_content",
    ),
    "vllm": Dialect(
        "vllm",
        "vLLM",
        frozenset({"logprobs", "regex", "json_schema", "ebnf", "n", "tools"}),
        sampling=("top_k", "min_p"),
        tokens=True,
        stop_stays="include_stop_str_in_output",
        id="request_id",
        priority=True,
        thoughts="reasoning",
    ),
    "openai": Dialect("openai", "OpenAI-compatible", frozenset({"json_schema", "n", "tools"})),
    "none": Dialect("none", "OpenAI-compatible"),
}
"""vLLM aborts what nobody waits for any longer by itself."""

NEUTRAL = {"top_k": -1, "min_p": 0.0}


def body_of(
    request: Request,
    model: str,
    dialect: Dialect,
    *,
    n: int,
    max_tokens_field: str = "max_tokens",
    logprobs: bool = True,
    guided: bool = False,
    streamed: bool = False,
) -> tuple[dict[str, Any], list[str]]:
    """The fields to send for `n` answers, and what of the request this kind of server cannot be asked for.

    `guided`: an old vLLM, which calls constraints guided_*. `streamed`: the answer is to come bit by
    bit. Raises ModelError for what must not be left out.
    """
    sampling, gaps = request.sampling, list[str]()
    body: dict[str, Any] = {
        "model": model,
        "messages": [_message(message, dialect.thoughts) for message in request.messages],
        max_tokens_field: sampling.max_tokens,
        "temperature": sampling.temperature,
    }
    body |= {"top_p": sampling.top_p} if sampling.top_p != 1 else {}
    body |= {"n": n} if n > 1 else {}
    body |= {"tools": request.tools} if request.tools else {}
    if sampling.stop:
        body["stop"] = sampling.stop
        if dialect.stop_stays:
            body[dialect.stop_stays] = True
        else:
            gaps.append("stop: the text that ended the answer is not in it")
    for name, neutral in NEUTRAL.items():
        value = getattr(sampling, name)
        if value != neutral and name in dialect.sampling:
            body[name] = value
        elif value != neutral:
            gaps.append(f"{name}: no field of this kind of server")
    if not dialect.thoughts and any(message.reasoning for message in request.messages):
        gaps.append("thoughts: those of earlier answers are not in the prompt, no field of this kind of server")
    if request.priority is not None:
        body |= {"priority": request.priority} if dialect.priority else {}
        gaps += [] if dialect.priority else ["priority: no field of this kind of server"]
    if request.constraint is not None:
        body |= _constraint(request.constraint, dialect, guided=guided)
    if streamed:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body | _told(dialect, logprobs=logprobs, streamed=streamed), gaps


def features_of(dialect: Dialect, *, logprobs: bool, streamed: bool) -> frozenset[Feature]:
    """What can be asked for, by this choice of log-probabilities and streaming."""
    tells = bool(_told(dialect, logprobs=logprobs, streamed=streamed).get("logprobs"))
    return dialect.features if tells else dialect.features - {"logprobs"}


def _told(dialect: Dialect, *, logprobs: bool, streamed: bool) -> dict[str, Any]:
    """SGLang 0.5.23 refuses to tell tokens in a stream."""
    if not dialect.tokens or (streamed and dialect.name == "sglang"):
        return {}
    told: dict[str, Any] = {"return_token_ids": True} | ({"logprobs": True} if logprobs else {})
    return told | ({"return_prompt_token_ids": True, "return_meta_info": True} if dialect.name == "sglang" else {})


def _constraint(constraint: Constraint, dialect: Dialect, *, guided: bool) -> dict[str, Any]:
    kind, text = constraint.kind, constraint.text
    if kind not in dialect.features:
        able = ", ".join(sorted(dialect.features & {"regex", "json_schema", "ebnf"})) or "no constraint"
        raise ModelError(f"a server of the kind extras={dialect.name} cannot keep to a {kind}; it takes {able}")
    if kind == "json_schema":
        try:
            schema = {"name": "answer", "schema": msgspec.json.decode(text), "strict": True}
        except msgspec.DecodeError as error:
            raise ModelError(f"the JSON schema of the constraint is not JSON: {error}") from error
        return {"response_format": {"type": "json_schema", "json_schema": schema}}
    if dialect.name == "sglang":
        return {kind: text}
    if guided:
        return {"guided_regex" if kind == "regex" else "guided_grammar": text}
    return {"structured_outputs": {"regex" if kind == "regex" else "grammar": text}}


def _message(message: Message, thoughts: str) -> Message | Mapping[str, Any]:
    """A message as it is sent: an empty content is written, and nothing else that is not there."""
    if message.content and not message.reasoning:
        return message
    own = {"role": message.role, "content": message.content}
    own |= {thoughts: message.reasoning} if message.reasoning and thoughts else {}
    own |= {"tool_call_id": message.tool_call_id} if message.tool_call_id else {}
    return own | ({"tool_calls": message.tool_calls, "content": message.content or None} if message.tool_calls else {})


def cleaned(request: Request) -> Request:
    """The request without lone surrogates, which no JSON holds."""
    plain = msgspec.structs.replace
    messages = [plain(m, content=clean(m.content), reasoning=clean(m.reasoning)) for m in request.messages]
    return plain(request, messages=tuple(messages))
