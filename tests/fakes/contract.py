"""What SGLang 0.5.23 accepts and answers, checked with the types it generates from its own schema.

`problems_of_request` and `problems_of_answer` return one line per violation and nothing when all is well. They are
stricter than the server where it is lenient to nobody's good: SGLang drops top-level keys it does not know without a
word, and passes an unknown finish reason through.
"""

from typing import Any

from tests.fakes import sglang_api_types as api

JsonContractError = api.JsonContractError

# Accepted by the Python server (`GenerateReqInput`), absent from the schema.
PYTHON_ONLY = frozenset(
    {
        "input_embeds",
        "log_metrics",
        "return_entropy",
        "return_routed_experts",
        "return_pooled_hidden_states",
        "sampling_logprobs_mode",
    }
)
# What every answer of the real server carried; the types alone would fill gaps with defaults.
META = frozenset(
    {
        "id",
        "finish_reason",
        "prompt_tokens",
        "completion_tokens",
        "cached_tokens",
        "cached_tokens_details",
        "reasoning_tokens",
        "weight_version",
        "num_retractions",
        "dp_rank",
    }
)
META_LAST = frozenset({"weight_versions", "e2e_latency"})
REQUESTS = {
    "/generate": api.GenerateRequest,
    "/abort_request": api.AbortRequest,
}
ANSWERS = {
    "/model_info": api.GetModelInfoResponse,
    "/get_model_info": api.GetModelInfoResponse,
}
BODIES: dict[str, tuple[frozenset[str], frozenset[str]]] = {  # route: (needed keys, other keys it knows)
    "/flush_cache": (frozenset(), frozenset({"timeout"})),
    "/update_weight_version": (frozenset({"new_version"}), frozenset({"abort_all_requests"})),
    "/update_weights_from_disk": (
        frozenset({"model_path"}),
        frozenset(
            {
                "load_format",
                "abort_all_requests",
                "weight_version",
                "is_async",
                "torch_empty_cache",
                "keep_pause",
                "recapture_cuda_graph",
                "token_step",
                "flush_cache",
                "manifest",
            }
        ),
    ),
    "/pause_generation": (frozenset(), frozenset({"mode"})),
    "/continue_generation": (frozenset(), frozenset({"torch_empty_cache"})),
    "/open_session": (frozenset({"capacity_of_str_len"}), frozenset({"session_id", "streaming", "timeout"})),
    "/close_session": (frozenset({"session_id"}), frozenset()),
    "/tokenize": (
        frozenset(),
        frozenset(
            {
                "model",
                "prompt",
                "messages",
                "tools",
                "tool_choice",
                "reasoning_effort",
                "continue_final_message",
                "chat_template_kwargs",
                "add_special_tokens",
                "add_generation_prompt",
            }
        ),
    ),
    "/detokenize": (frozenset({"tokens"}), frozenset({"model", "skip_special_tokens"})),
}


def refusal_of_generate(body: Any) -> str | None:
    """The text of the 400 the real server gives, None where it accepts the body."""
    try:
        api.GenerateRequest.from_json_value(body)
    except JsonContractError as error:
        return str(error)
    return None


def problems_of_request(route: str, body: Any) -> list[str]:
    """Violations in the body of a request to a native route."""
    if not isinstance(body, dict):
        return [f"{route}: the body is a {type(body).__name__}, not a JSON object"]
    problems = _decoded(REQUESTS[route], body, route) if route in REQUESTS else []
    if route == "/generate":
        known = frozenset(api.GenerateRequest.__struct_fields__) | PYTHON_ONLY
        return problems + [f"{route}: {key!r} is no key SGLang knows: it is ignored" for key in body.keys() - known]
    if route in BODIES:
        needed, others = BODIES[route]
        problems += [f"{route}: {key!r} is missing" for key in needed - body.keys()]
        problems += [f"{route}: {key!r} is no key SGLang knows: it is ignored" for key in body.keys() - needed - others]
    return problems


def problems_of_answer(route: str, answer: Any) -> list[str]:
    """Violations in the body of a 200 of a native route."""
    if route in {"/model_info", "/get_model_info"}:
        return _decoded(ANSWERS[route], answer, route)
    if route == "/v1/models":
        return [line for card in answer["data"] for line in _decoded(api.ModelCard, card, route)]
    if route == "/detokenize" and isinstance(answer.get("text"), str):
        return _decoded(api.DetokenizeResponse, answer, route)
    if route == "/generate":
        return [line for one in (answer if isinstance(answer, list) else [answer]) for line in _of_generate(one)]
    return []


def problems_of_event(event: Any) -> list[str]:
    """Violations in one event of a streamed `/generate`."""
    if "error" in event:
        return _decoded(api.GenerateStreamError, event, "/generate (stream)")
    return _of_generate(event, last=event["meta_info"]["finish_reason"] is not None)


def _decoded(kind: Any, value: Any, route: str) -> list[str]:
    try:
        kind.from_json_value(value)
    except JsonContractError as error:
        return [f"{route}: {error}"]
    return []


def _of_generate(answer: Any, last: bool = True) -> list[str]:
    """One answer, or one event, of `/generate`; `last` where the finish reason must be there."""
    try:
        read = api.GenerateResponse.from_json_value(answer)
    except JsonContractError as error:
        return [f"/generate: {error}"]
    if read.meta_info is None:
        return ["/generate: an answer without meta_info"]
    if getattr(read.meta_info.finish_reason, "message", None) == "Abort in waiting queue":
        return []  # the server says little of a request it never ran
    needed = META | (META_LAST if last else frozenset())
    problems = [f"/generate: meta_info lacks {key!r}" for key in sorted(needed - answer["meta_info"].keys())]
    return problems + _of_tokens(read) + (_of_end(read) if last else [])


def _of_tokens(read: api.GenerateResponse) -> list[str]:
    """Ids, counts and log-probabilities must tell one story."""
    meta, ids = read.meta_info, read.output_ids
    assert meta is not None
    if ids is None:
        return ["/generate: no output_ids"]
    problems = []
    if meta.completion_tokens != len(ids):
        problems.append(f"/generate: {meta.completion_tokens} completion_tokens, {len(ids)} output_ids")
    if meta.output_token_logprobs is not None and [one.token_id for one in meta.output_token_logprobs] != ids:
        problems.append("/generate: the ids of output_token_logprobs are not output_ids")
    if meta.cached_tokens >= max(1, meta.prompt_tokens):
        problems.append(f"/generate: {meta.cached_tokens} cached of {meta.prompt_tokens} prompt tokens")
    return problems


def _of_end(read: api.GenerateResponse) -> list[str]:
    meta = read.meta_info
    assert meta is not None
    problems = []
    if not isinstance(meta.finish_reason, api.FinishStop | api.FinishLength | api.FinishAbort):
        problems.append(f"/generate: finish reason {meta.finish_reason!r}")
    spans = [(span.start, span.end) for span in meta.weight_versions]
    ends = [0, *(end for _, end in spans)]
    if [start for start, _ in spans] != ends[:-1] or ends[-1] != meta.completion_tokens:
        problems.append(f"/generate: weight_versions {spans} do not cover {meta.completion_tokens} tokens")
    return problems
