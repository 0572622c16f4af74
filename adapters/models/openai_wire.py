"""What chat-completions servers answer, read leniently: whole or streamed, in the dialects of OpenAI, SGLang and vLLM.

Reference: OpenAI, "API reference: Chat Completions"; the extra fields as SGLang 0.5.23 and vLLM have them.
"""

import json
from collections.abc import Iterable
from typing import Any

import msgspec

__all__ = ["Answer", "Broken", "Choice", "ToolCall", "Usage", "assembled", "read"]


class Broken(Exception):
    """A body that is no answer."""


class Function(msgspec.Struct):
    name: str | None = None
    arguments: Any = None
    """JSON as text; some servers send the object itself."""


class ToolCall(msgspec.Struct):
    """A call of a tool, or what is new of it."""

    id: str | None = None
    index: int | None = None
    function: Function | None = None


class Said(msgspec.Struct):
    """The message, or what is new of it."""

    content: Any = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None


class Token(msgspec.Struct):
    logprob: float | None = None


class Logprobs(msgspec.Struct):
    content: list[Token] | None = None


class Span(msgspec.Struct):
    version: Any = None
    start: int = 0


class Meta(msgspec.Struct):
    """SGLang's `meta_info`."""

    output_token_logprobs: list[tuple[float | None, int, Any]] | None = None
    weight_versions: list[Span] | None = None
    finish_reason: Any = None


class Choice(msgspec.Struct):
    """One of the answers, or what is new of it."""

    index: int = 0
    message: Said | None = None
    delta: Said | None = None
    finish_reason: str | None = None
    logprobs: Logprobs | None = None
    token_ids: list[int] | None = None
    """vLLM's."""
    response_token_ids: list[int] | None = None
    """SGLang's."""
    prompt_token_ids: list[int] | None = None
    meta_info: Meta | None = None


class PromptDetails(msgspec.Struct):
    cached_tokens: float | None = None


class CompletionDetails(msgspec.Struct):
    reasoning_tokens: float | None = None


class Usage(msgspec.Struct):
    """Tokens counted by the server."""

    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None


class Versions(msgspec.Struct):
    weight_version: Any = None
    weight_versions: list[Span] | None = None


class Answer(msgspec.Struct):
    """A body, or one payload of a stream."""

    choices: list[Choice] = []
    usage: Usage | None = None
    error: Any = None
    metadata: Versions | None = None
    prompt_token_ids: list[int] | None = None
    """vLLM's."""


_decoder = msgspec.json.Decoder(Answer, strict=False)


def read(body: bytes) -> Answer:
    """The answer in a body. Raises Broken."""
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if b"\\u" not in body.lower():
            raise Broken(str(error)) from None
    try:  # a lone surrogate, which msgspec does not read, may be written as an escape
        return msgspec.convert(json.loads(body), Answer, strict=False)
    except (ValueError, RecursionError) as error:
        raise Broken(str(error)) from None


def assembled(payloads: Iterable[bytes]) -> Answer:
    """The answer whose pieces a stream brought. Raises Broken, also if the stream ended before the answer did."""
    whole: Answer = Answer()
    choices: dict[int, Choice] = {}
    for payload in payloads:
        piece = read(payload)
        whole.error = whole.error or piece.error
        whole.usage = piece.usage or whole.usage
        whole.metadata = piece.metadata or whole.metadata
        whole.prompt_token_ids = piece.prompt_token_ids or whole.prompt_token_ids
        for choice in piece.choices:
            _add(choices.setdefault(choice.index, Choice(index=choice.index, message=Said(content=""))), choice)
    if whole.error is None and any(choice.finish_reason is None for choice in choices.values()):
        raise Broken("the stream ended before the answer did")
    whole.choices = [choices[index] for index in sorted(choices)]
    return whole


def _add(whole: Choice, piece: Choice) -> None:
    whole.finish_reason = piece.finish_reason or whole.finish_reason
    whole.meta_info = piece.meta_info or whole.meta_info
    whole.prompt_token_ids = piece.prompt_token_ids or whole.prompt_token_ids
    whole.token_ids = _joined(whole.token_ids, piece.token_ids)
    whole.response_token_ids = _joined(whole.response_token_ids, piece.response_token_ids)
    if piece.logprobs is not None:
        known = whole.logprobs.content if whole.logprobs is not None else None
        whole.logprobs = Logprobs(_joined(known, piece.logprobs.content))
    if piece.delta is not None and whole.message is not None:
        _say(whole.message, piece.delta)


def _say(whole: Said, new: Said) -> None:
    whole.content += text_of(new.content)
    for name in ("reasoning_content", "reasoning", "refusal"):
        more = getattr(new, name)
        if more:
            setattr(whole, name, (getattr(whole, name) or "") + more)
    if new.tool_calls:
        whole.tool_calls = whole.tool_calls or []
        for call in new.tool_calls:
            _call(whole.tool_calls, call)


def _call(known: list[ToolCall], new: ToolCall) -> None:
    """A piece of a call goes to the one with its index; without an index, a name begins a new one."""
    named = new.function is not None and bool(new.function.name)
    if new.index is None:
        found = None if named or not known else known[-1]
    else:
        found = next((call for call in known if call.index == new.index), None)
    if found is None or found.function is None:
        known.append(ToolCall(new.id, new.index, new.function or Function()))
        return
    found.id = found.id or new.id
    if new.function is not None:
        found.function.name = found.function.name or new.function.name
        found.function.arguments = arguments_of(found.function.arguments) + arguments_of(new.function.arguments)


def _joined(known: list[Any] | None, new: list[Any] | None) -> list[Any] | None:
    return known if new is None else [*(known or ()), *new]


def text_of(content: Any) -> str:
    """The text of a content: text, nothing, or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(text_of(part.get("text")) for part in content if isinstance(part, dict))
    return ""


def arguments_of(arguments: Any) -> str:
    """The arguments of a call as JSON text."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else msgspec.json.encode(arguments).decode()
