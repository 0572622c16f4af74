"""From a server's answer to completions: what they say, what they cost, and what is missing in them."""

from collections.abc import Sequence
from typing import Any

from arena.adapters.models.failures import one_line
from arena.adapters.models.openai_dialects import Dialect
from arena.adapters.models.openai_wire import Answer, Broken, Choice, Said, Span, Usage, arguments_of, text_of
from arena.adapters.models.prices import Price
from arena.model import Completion, Finish, Request, logprob_kind
from arena.text import clean

__all__ = ["completions"]

FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "abort": "abort",
    "content_filter": "content_filter",
}
FILTERED = "content_filter: the service cut the answer"
"""What a model says can bring that about: it must not end a game by nobody's fault."""


def completions(
    answer: Answer,
    request: Request,
    dialect: Dialect,
    *,
    n: int,
    seconds: float,
    price: Price | None,
    logprobs: bool,
    gaps: Sequence[str],
    penalised: bool = False,
) -> list[Completion]:
    """The answers, `n` at most. `penalised`: see `logprob_kind`. Raises Broken where there is none."""
    if not answer.choices:
        raise Broken("an answer without choices")
    choices = sorted(answer.choices, key=lambda choice: choice.index)[:n]
    return [
        _completion(
            answer,
            choice,
            request,
            dialect,
            share=(place, len(choices)),
            seconds=seconds,
            price=price,
            logprobs=logprobs,
            gaps=gaps,
            penalised=penalised,
        )
        for place, choice in enumerate(choices)
    ]


def _completion(
    answer: Answer,
    choice: Choice,
    request: Request,
    dialect: Dialect,
    *,
    share: tuple[int, int],
    seconds: float,
    price: Price | None,
    logprobs: bool,
    gaps: Sequence[str],
    penalised: bool,
) -> Completion:
    said = choice.message or choice.delta
    if said is None:
        raise Broken("a choice without a message")
    missing = [*gaps] if answer.usage is not None else [*gaps, "usage: did not come"]
    calls = _calls(said)
    finish, reason = _finish(choice, calls, missing)
    ids, probabilities = _tokens(choice, missing, logprobs=logprobs) if dialect.tokens else ((), ())
    prompt_ids = choice.prompt_token_ids or answer.prompt_token_ids or ()
    if dialect.tokens and not prompt_ids:
        missing.append("prompt_ids: did not come")
    return Completion(
        text=clean(text_of(said.content) or said.refusal or ""),
        finish=finish,
        reason=reason,
        reasoning=clean(said.reasoning_content or said.reasoning or ""),
        tool_calls=calls,
        ids=ids,
        logprobs=probabilities,
        logprob_kind=_kind(request, dialect, penalised=penalised) if probabilities else "",
        prompt_ids=tuple(prompt_ids),
        usage={**_usage(answer.usage, *share, len(ids), price), "seconds": seconds},
        weight_versions=_versions(answer, choice),
        gaps=tuple(missing),
    )


def _usage(usage: Usage | None, place: int, among: int, tokens: int, price: Price | None) -> dict[str, float]:
    """What one of several answers used. The prompt was read once: it counts for the first of them.

    What was written is counted together; where an answer does not tell its tokens, each has an equal share.
    """
    if usage is None:
        return {}
    total = int(usage.completion_tokens or 0)
    found: dict[str, float] = {"prompt_tokens": (usage.prompt_tokens or 0) if place == 0 else 0}
    found["completion_tokens"] = tokens if tokens and among > 1 else total // among + (place < total % among)
    cached = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else None
    if cached is not None:
        found["cached_tokens"] = cached if place == 0 else 0
    details = usage.completion_tokens_details
    if details is not None and details.reasoning_tokens and among == 1:
        found["reasoning_tokens"] = details.reasoning_tokens
    if price is not None:
        found["cost"] = price.cost(found)
    return found


def _finish(choice: Choice, calls: Sequence[Any], missing: list[str]) -> tuple[Finish, str]:
    word = choice.finish_reason
    if word is None or word not in FINISHES:
        missing.append(f"finish_reason: {'did not come' if word is None else f'{one_line(word)[:40]!r} is not known'}")
    finish = FINISHES.get(word or "stop", "stop")
    if finish == "stop" and calls:
        return "tool_calls", ""
    if finish == "content_filter":
        missing.append(FILTERED)
    return finish, _abort_reason(choice) if finish == "abort" else ""


def _abort_reason(choice: Choice) -> str:
    told = choice.meta_info.finish_reason if choice.meta_info is not None else None
    message = told.get("message") if isinstance(told, dict) else None
    return one_line(message) if isinstance(message, str) else "aborted by the server"


def _calls(said: Said) -> tuple[dict[str, Any], ...]:
    """Tool calls as OpenAI writes them; arguments stay the text the model wrote, whether it is JSON or not."""
    return tuple(
        {
            "id": clean(call.id or f"call_{place}"),
            "type": "function",
            "function": {
                "name": clean(call.function.name or ""),
                "arguments": clean(arguments_of(call.function.arguments)),
            },
        }
        for place, call in enumerate(said.tool_calls or ())
        if call.function is not None
    )


def _tokens(choice: Choice, missing: list[str], *, logprobs: bool) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The tokens and their log-probabilities; SGLang's meta_info has both, even where a router drops the tokens."""
    entries = choice.meta_info.output_token_logprobs if choice.meta_info is not None else None
    ids = choice.token_ids or choice.response_token_ids
    if ids is None and entries is not None:
        ids = [entry[1] for entry in entries]
    if ids is None:
        missing.append("ids: did not come")
        return (), ()
    if not logprobs:
        return tuple(ids), ()
    listed = choice.logprobs.content if choice.logprobs is not None else None
    found = [e[0] for e in entries] if entries is not None else [token.logprob for token in listed or ()]
    kept = tuple(p for p in found if p is not None)
    if len(kept) != len(ids) or (entries is not None and [e[1] for e in entries] != ids):
        missing.append(f"logprobs: {'did not come' if not found else 'are not those of the tokens'}")
        return tuple(ids), ()
    return tuple(ids), kept


def _kind(request: Request, dialect: Dialect, *, penalised: bool) -> str:
    """vLLM tells them before temperature and penalties (its `raw_logprobs`, the default), but after a constraint."""
    if dialect.name == "vllm":
        return request.constraint.kind if request.constraint is not None else "raw"
    return logprob_kind(request.sampling, request.constraint, penalised=penalised)


def _versions(answer: Answer, choice: Choice) -> tuple[tuple[int, str], ...]:
    spans: list[Span] | None = choice.meta_info.weight_versions if choice.meta_info is not None else None
    if not spans and answer.metadata is not None:
        spans = answer.metadata.weight_versions
        if not spans and answer.metadata.weight_version is not None:
            spans = [Span(answer.metadata.weight_version)]
    return tuple((span.start, clean(str(span.version))) for span in spans or ())
