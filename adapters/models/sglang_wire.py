"""What goes over the wire to SGLang's /generate, and how its answers are read; the same in process (`engine`).

Source: `sglang.api.v1` of SGLang 0.5.23 (its generated contract), the server's code, and what a real server answered.
"""

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from arena.adapters.models.extra import PLAIN, Extra
from arena.adapters.models.failures import AGAIN, OVERFLOW, one_line
from arena.model import Completion, Constraint, ContextOverflow, Finish, ModelError, Request, Sampling, logprob_kind
from arena.text import clean

__all__ = [
    "Answer",
    "Generate",
    "Params",
    "answer_of",
    "answers_of",
    "batch_ids",
    "completion",
    "failure",
    "generate",
    "params",
    "refused",
    "retryable",
    "scores",
    "scoring",
    "streamed",
]

ENDS: dict[str, Finish] = {"stop": "stop", "length": "length"}


class Params(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`sampling_params`. What the server has defaults of its own for (which --preferred-sampling-params and a model's
    generation_config can change) is always sent; an unknown key is HTTP 400 there.
    """

    max_new_tokens: int
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    n: int
    stop: tuple[str, ...] = ()
    no_stop_trim: bool = False
    skip_special_tokens: bool
    spaces_between_special_tokens: bool
    ignore_eos: bool = False
    regex: str = ""
    json_schema: str = ""
    ebnf: str = ""
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0


class Generate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of POST /generate: one prompt, or with lists a batch of them.

    `logprob_start_len` stays -1 ("the answer only") but for scores: 0 makes the server compute the whole prompt anew,
    its prefix cache unused (measured: cached_tokens 0). The prompt's ids come from `return_prompt_token_ids`.
    """

    input_ids: tuple[int, ...] | list[tuple[int, ...]]
    sampling_params: Params
    rid: str | list[str]
    return_logprob: bool = False
    logprob_start_len: int = -1
    return_prompt_token_ids: bool = False
    stream: bool = False
    lora_path: str = ""
    session_id: str = ""
    priority: int | None = None
    cache_salt: str = ""


class FinishReason(msgspec.Struct, frozen=True):
    """Why an answer ended. An abort is HTTP 200 as well, with the tokens there were."""

    type: str
    matched: Any = None
    """A stop text, or the id of a token."""
    message: str | None = None
    status_code: int | None = None


class Span(msgspec.Struct, frozen=True):
    """Tokens start to end (exclusive) were drawn by this version of the weights."""

    version: str = ""
    start: int = 0
    end: int = 0


Entries = list[tuple[float | None, int, str | None]]
"""[logprob, token id, its text or null] of every token."""


class Meta(msgspec.Struct, frozen=True):
    """`meta_info`, as much of it as is used."""

    id: str = ""
    finish_reason: FinishReason | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    weight_version: str | None = None
    weight_versions: list[Span] | None = None
    output_token_logprobs: Entries | None = None
    input_token_logprobs: Entries | None = None


class Failure(msgspec.Struct, frozen=True):
    """How an error is written into a stream, whose status was sent long before."""

    message: str = ""
    code: int | None = None


class Answer(msgspec.Struct, frozen=True):
    """One answer of /generate."""

    text: str | None = None
    meta_info: Meta = Meta()
    output_ids: list[int] | None = None
    prompt_token_ids: list[int] | None = None
    index: int = 0
    """Which one of several answers a line of a stream belongs to."""
    error: Failure | None = None


_decoder = msgspec.json.Decoder(Answer | list[Answer])


def params(
    sampling: Sampling,
    constraint: Constraint | None = None,
    n: int = 1,
    *,
    special: bool = False,
    ignore_eos: bool = False,
) -> Params:
    """Sampling parameters as the server wants them.

    `special`: special tokens stay in the text, for tool calls that are written with them. Stop texts stay in the answer
    (`no_stop_trim`), but that would keep an end-of-turn token in the text too, where specials are kept: then the server
    trims both, and `completion` puts the stop text back.
    """
    bound: dict[str, Any] = {} if constraint is None else {constraint.kind: clean(constraint.text)}
    return Params(
        max_new_tokens=sampling.max_tokens,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        min_p=sampling.min_p,
        n=n,
        stop=tuple([clean(text) for text in sampling.stop]),
        no_stop_trim=bool(sampling.stop) and not special,
        skip_special_tokens=not special,
        spaces_between_special_tokens=False,
        ignore_eos=ignore_eos,
        **bound,
    )


def generate(
    request: Request,
    prompt: tuple[int, ...],
    rid: str,
    *,
    logprobs: bool,
    prompt_ids: bool,
    lora_path: str = "",
    session_id: str = "",
    stream: bool = False,
    extra: Extra = PLAIN,
) -> Generate:
    """The body that asks a request whose prompt are these tokens."""
    drawn = params(request.sampling, request.constraint, request.n, special=bool(request.tools))
    return Generate(
        input_ids=prompt,
        sampling_params=drawn if extra is PLAIN else msgspec.structs.replace(drawn, **extra.drawn),
        rid=rid,
        return_logprob=logprobs,
        return_prompt_token_ids=prompt_ids,
        lora_path=lora_path,
        session_id=session_id,
        stream=stream,
        priority=request.priority,
        cache_salt=extra.cache_salt,
    )


def scoring(
    prompt: tuple[int, ...], answers: Sequence[tuple[int, ...]], rid: str, priority: int | None = None
) -> Generate:
    """The body that asks for the log-probabilities of given answers, one or more.

    The entry at `logprob_start_len` is always null, so it starts at the last token of the prompt.
    """
    return Generate(
        input_ids=[prompt + answer for answer in answers],
        sampling_params=params(Sampling(max_tokens=0)),
        rid=batch_ids(rid, len(answers)),
        return_logprob=True,
        logprob_start_len=len(prompt) - 1,
        priority=priority,
    )


def batch_ids(rid: str, size: int) -> list[str]:
    """Ids of a batch's requests, of one length: an abort ends all whose id begins with the one it names."""
    return [f"{rid}-{i:04d}" for i in range(size)]


def answers_of(body: bytes, server: str) -> list[Answer]:
    """All answers in a body: a batch, or n > 1, is a list. ModelError where it is not what /generate answers."""
    try:
        decoded = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        found = _with_surrogates(body)
        if found is None:
            raise ModelError(f"{server}: not an answer of /generate ({error}): is it an SGLang server?") from None
        decoded = found
    return decoded if isinstance(decoded, list) else [decoded]


def _with_surrogates(body: bytes) -> Answer | list[Answer] | None:
    """What msgspec does not read: a lone surrogate written as an escape. None where something else is wrong."""
    if b"\\ud" not in body.lower():
        return None
    try:
        return msgspec.convert(json.loads(body), Answer | list[Answer])
    except (ValueError, RecursionError):
        return None


def answer_of(value: Any, server: str) -> list[Answer]:
    """`answers_of` for what the engine in process returns."""
    try:
        return msgspec.convert(value if isinstance(value, list) else [value], list[Answer])
    except msgspec.ValidationError as error:
        raise ModelError(f"{server}: not an answer of generate ({error}): is it SGLang 0.5?") from None


def streamed(last: dict[int, bytes], server: str) -> list[Answer]:
    """The answers of a stream from the last line of each: a line holds all there was before it."""
    answers = [answers_of(line, server)[0] for _, line in sorted(last.items())]
    for answer in answers:
        told = len(answer.output_ids or ())
        if answer.error is None and 0 < told < answer.meta_info.completion_tokens:
            raise ModelError(
                f"{server}: streams only what is new: start it without --incremental-streaming-output, "
                "or leave first_token_seconds unset"
            )
    return answers


def retryable(answers: Sequence[Answer]) -> str:
    """Why these answers should be asked for again, or "": full queues, time-outs and preemption end a stream so.

    (Without a stream SGLang turns an abort with a status code into an HTTP error.)
    """
    for answer in answers:
        error, finish = answer.error, answer.meta_info.finish_reason
        if error is not None and error.code in AGAIN:
            return error.message
        if error is None and finish is None:
            return "the answer broke off"
        if finish is not None and finish.type == "abort" and finish.status_code in AGAIN:
            return finish.message or "aborted"
    return ""


def failure(answers: Sequence[Answer], server: str) -> ModelError | None:
    """What an answer says is wrong with the question."""
    for answer in answers:
        finish = answer.meta_info.finish_reason
        if answer.error is not None:
            return refused(answer.error.message, server)
        if finish is not None and finish.type == "abort" and finish.status_code == 400:
            return refused(finish.message or "aborted", server)
    return None


def refused(words: str, server: str) -> ModelError:
    """The error for what the server says of a question it does not take."""
    kind = ContextOverflow if OVERFLOW.search(words[:1000]) else ModelError
    return kind(f"{server} refuses the request: {one_line(words)}")


def completion(
    answer: Answer,
    request: Request,
    prompt: tuple[int, ...],
    *,
    logprobs: bool,
    seconds: float,
    penalised: bool = False,
) -> Completion:
    """The answer to a request whose prompt were these tokens; what was asked for and is missing is in `gaps`."""
    meta, gaps = answer.meta_info, list[str]()
    ids, probabilities = _tokens(answer, logprobs, gaps)
    _check_prompt(answer, prompt, gaps)
    finish = meta.finish_reason or FinishReason("abort", message="the server gave no reason to stop")
    return Completion(
        text=_text(answer, finish, special=bool(request.tools)),
        finish=ENDS.get(finish.type, "abort"),
        reason="" if finish.type in ENDS else one_line(finish.message or finish.type),
        ids=ids,
        logprobs=probabilities,
        logprob_kind=(logprob_kind(request.sampling, request.constraint, penalised=penalised) if probabilities else ""),
        prompt_ids=tuple(answer.prompt_token_ids or ()),
        usage={
            "prompt_tokens": meta.prompt_tokens,
            "cached_tokens": meta.cached_tokens,
            "completion_tokens": meta.completion_tokens,
            "seconds": seconds,
        },
        weight_versions=_spans(meta),
        gaps=tuple(gaps),
    )


def _tokens(answer: Answer, logprobs: bool, gaps: list[str]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The answer's tokens and their log-probabilities, which name the tokens too where `output_ids` was lost."""
    entries = answer.meta_info.output_token_logprobs
    named = tuple([entry[1] for entry in entries]) if entries is not None else None
    ids = tuple(answer.output_ids) if answer.output_ids is not None else named
    if ids is None:
        gaps.append("ids: the answer's tokens did not come")
        ids = ()
    elif len(ids) != answer.meta_info.completion_tokens:
        gaps.append(f"ids: {len(ids)} of {answer.meta_info.completion_tokens} tokens came")
    if not logprobs or entries is None or named != ids:
        if logprobs:
            gaps.append(
                "logprobs: did not come" if entries is None else "logprobs: are of other tokens than the answer's"
            )
        return ids, ()
    if any(entry[0] is None for entry in entries):
        gaps.append("logprobs: some are null")
    return ids, tuple([entry[0] if entry[0] is not None else float("-inf") for entry in entries])


def _check_prompt(answer: Answer, prompt: tuple[int, ...], gaps: list[str]) -> None:
    told = answer.meta_info.prompt_tokens
    unread = told == 0 and answer.output_ids == []  # aborted while it was waiting
    if told != len(prompt) and not unread:
        gaps.append(f"prompt: {len(prompt)} tokens were sent, the server read {told}")
    if answer.prompt_token_ids is not None and tuple(answer.prompt_token_ids) != prompt:
        gaps.append("prompt: the server read other tokens than were sent")


def _text(answer: Answer, finish: FinishReason, special: bool) -> str:
    text = clean(answer.text or "")
    return text + clean(finish.matched) if special and isinstance(finish.matched, str) else text


def _spans(meta: Meta) -> tuple[tuple[int, str], ...]:
    if meta.weight_versions:
        return tuple([(span.start, clean(span.version)) for span in meta.weight_versions])
    return ((0, clean(meta.weight_version)),) if meta.weight_version else ()


def scores(answers: Sequence[Answer], wanted: Sequence[tuple[int, ...]], server: str) -> list[tuple[float, ...]]:
    """The log-probabilities of the wanted answers' tokens. ModelError where the server's are of other tokens."""
    if len(answers) != len(wanted):
        raise ModelError(f"{server}: {len(wanted)} answers were to be scored, {len(answers)} scores came")
    return [_score(answer, ids, server) for answer, ids in zip(answers, wanted, strict=True)]


def _score(answer: Answer, wanted: tuple[int, ...], server: str) -> tuple[float, ...]:
    entries = (answer.meta_info.input_token_logprobs or [])[1:]
    if tuple([entry[1] for entry in entries]) != wanted:
        raise ModelError(f"{server}: the log-probabilities that came are not those of the answer that was to be scored")
    return tuple([entry[0] if entry[0] is not None else float("-inf") for entry in entries])
