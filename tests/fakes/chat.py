"""/v1/chat/completions in three dialects: SGLang's, vLLM's and a hosted service's."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from aiohttp import web

from tests.fakes import tokenizer
from tests.fakes.constraint import constraint_of, instance
from tests.fakes.engine import Answer, Asked, Refused, Run, new_rid
from tests.fakes.generation import Job, Wanted, answer_of, steps, whole
from tests.fakes.native import error, refusal, rendered
from tests.fakes.trouble import Events

if TYPE_CHECKING:
    from tests.fakes.server import Call

CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)


def keys(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


OPENAI = keys("""model messages max_tokens max_completion_tokens temperature top_p n stop stream stream_options logprobs
    top_logprobs tools tool_choice parallel_tool_calls response_format seed user frequency_penalty presence_penalty
    logit_bias reasoning_effort store metadata service_tier""")
SAMPLING = keys("""temperature top_p top_k min_p stop stop_token_ids stop_regex regex ebnf ignore_eos no_stop_trim
    skip_special_tokens frequency_penalty presence_penalty repetition_penalty logit_bias custom_params""")
SGLANG = (
    OPENAI
    | SAMPLING
    | keys("""min_tokens structural_tag continue_final_message chat_template_kwargs separate_reasoning stream_reasoning
        return_prompt_token_ids return_token_ids return_meta_info return_cached_tokens_details input_ids rid session_id
        session_params priority lora_path extra_key cache_salt routing_key return_hidden_states custom_logit_processor
        add_generation_prompt return_input_ids_in_sglext return_output_ids_in_sglext""")
)
VLLM = (
    OPENAI
    | (SAMPLING - {"regex", "ebnf", "no_stop_trim", "stop_regex", "custom_params"})
    | keys("""min_tokens guided_regex guided_json guided_choice structured_outputs add_generation_prompt
        continue_final_message chat_template_kwargs return_token_ids return_tokens_as_token_ids prompt_logprobs
        include_stop_str_in_output request_id priority cache_salt""")
)
KNOWN = {"openai": OPENAI, "vllm": VLLM, "sglang": SGLANG}


async def chat(call: Call) -> web.StreamResponse:
    """POST /v1/chat/completions."""
    wrong = _wrong(call)
    if wrong is not None:
        return wrong
    try:
        jobs = _jobs(call)
        if call.body.get("stream"):
            return await _stream(call, jobs)
        await whole(call.engine, jobs, call.trouble)
    except Refused as refused:
        return failed(call, refused.message, refused.status) if refused.status else refusal(refused, call.request)
    except (ValueError, KeyError, TypeError) as bad:
        return failed(call, f"{type(bad).__name__}: {bad}", 400)
    return await call.answer(_answer(call, jobs))


def failed(call: Call, message: str, status: int, code: str | None = None) -> web.Response:
    """An error in the dialect's form."""
    if call.fake.dialect == "sglang":
        kinds = {400: "BadRequestError"}
        return error(message, status, kinds.get(status, str(status)))
    kind = "invalid_request_error" if call.fake.dialect == "openai" else "BadRequestError"
    inner = {"message": message, "type": kind, "param": None, "code": code if call.fake.dialect == "openai" else status}
    return web.json_response({"error": inner}, status=status)


def _wrong(call: Call) -> web.Response | None:
    """The refusal of a body that no model need see."""
    body, fake = call.body, call.fake
    unknown = sorted(body.keys() - KNOWN[fake.dialect])
    if unknown and fake.dialect == "openai":
        return failed(call, f"Unrecognized request argument supplied: {unknown[0]}", 400)
    call.fake.violations.extend(
        f"{call.route}: {key!r} is no key {fake.dialect} knows: it is ignored" for key in unknown
    )
    if not isinstance(body.get("messages"), list):
        return error("1 validation error:\n  messages: Input should be a valid list", 400, "Bad Request")
    for key in ("max_tokens", "max_completion_tokens"):
        if body.get(key) is not None and not isinstance(body[key], int):
            return error(f"1 validation error:\n  {key}: Input should be a valid integer", 400, "Bad Request")
    if fake.model_names is not None and body.get("model") not in fake.model_names:
        name = body.get("model")
        text = f"The model `{name}` does not exist" + (
            " or you do not have access to it." if fake.dialect == "openai" else "."
        )
        return failed(call, text, 404, "model_not_found")
    if not body["messages"] and "input_ids" not in body:
        return failed(call, "Messages cannot be empty.", 400)
    if body.get("tool_choice") == "required" and not body.get("tools"):
        return failed(call, "Tools cannot be empty if tool choice is set to required.", 400)
    return None


def _jobs(call: Call) -> list[Job]:
    body, engine = call.body, call.engine
    ids = body.get("input_ids") or tokenizer.encode(rendered(call, body["messages"]))
    params = sampling_of(body, call.fake.dialect)
    if params.get("max_new_tokens") is None:
        params["max_new_tokens"] = max(1, min(engine.context_length - len(ids), 1 << 10))
    want_ids = bool(body.get("return_prompt_token_ids") or body.get("return_token_ids"))
    wanted = Wanted(
        logprobs=bool(body.get("logprobs")), top=body.get("top_logprobs") or 0, texts=True, prompt_ids=want_ids
    )
    n = body.get("n") or 1
    rid = body.get("rid") or body.get("request_id") or new_rid()
    return [Job(engine.plan(rid if n == 1 else f"{rid}_{one}", ids, params, body, one), wanted) for one in range(n)]


def sampling_of(body: dict[str, Any], dialect: str) -> dict[str, Any]:
    """The native `sampling_params` a chat body stands for."""
    params = {key: body[key] for key in SAMPLING & body.keys() if body[key] is not None}
    limit = body.get("max_completion_tokens")
    params["max_new_tokens"] = body.get("max_tokens") if limit is None else limit
    form = body.get("response_format") or {}
    if form.get("type") == "json_schema":
        params["json_schema"] = json.dumps(form["json_schema"]["schema"])
    elif form.get("type") == "json_object":
        params["json_schema"] = '{"type": "object"}'
    if dialect == "vllm":
        outputs = body.get("structured_outputs") or {}
        regex = outputs.get("regex") or body.get("guided_regex")
        choice = outputs.get("choice") or body.get("guided_choice")
        params |= {"regex": regex} if regex else {}
        params |= {"regex": "(" + "|".join(map(re.escape, choice)) + ")"} if choice else {}
    constraint_of(params)
    return params


def calling(inner: Answer) -> Answer:
    """An answer that calls the first tool where the body requires a call."""

    def answer(prompt: str, asked: Asked) -> str:
        tools, choice = asked.body.get("tools"), asked.body.get("tool_choice")
        if not tools or choice in (None, "auto", "none") or asked.constraint is not None:
            return inner(prompt, asked)
        wanted = choice["function"]["name"] if isinstance(choice, dict) else tools[0]["function"]["name"]
        function = next(tool["function"] for tool in tools if tool["function"]["name"] == wanted)
        arguments = instance(function.get("parameters", {"type": "object"}), asked.random)
        return f"<tool_call>\n{json.dumps({'name': wanted, 'arguments': arguments})}\n</tool_call>"

    return answer


def calls_of(text: str) -> tuple[str, list[dict[str, Any]]]:
    """The text left and its tool calls; where one cannot be read, all stays text, as SGLang's detectors do."""
    calls = []
    for number, found in enumerate(CALL.findall(text)):
        try:
            said = json.loads(found)
            function = {"name": said["name"], "arguments": json.dumps(said.get("arguments", {}))}
        except (ValueError, KeyError, TypeError):
            return text, []
        calls.append({"id": f"call_{new_rid()[:24]}", "index": number, "type": "function", "function": function})
    return (CALL.sub("", text).strip(), calls) if calls else (text, [])


def _answer(call: Call, jobs: Sequence[Job]) -> dict[str, Any]:
    results = [answer_of(call.engine, job) for job in jobs]
    first = results[0]
    body = {
        "id": first["meta_info"]["id"] if call.fake.dialect == "sglang" else f"chatcmpl-{first['meta_info']['id']}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": call.body.get("model", "default"),
        "choices": [
            _choice(call, number, job.run, result)
            for number, (job, result) in enumerate(zip(jobs, results, strict=True))
        ],
        "usage": usage(call, jobs),
    }
    if call.fake.dialect == "sglang":
        meta = first["meta_info"]
        body["metadata"] = {"weight_version": meta["weight_version"], "weight_versions": meta["weight_versions"]}
    elif call.fake.dialect == "vllm":
        body["prompt_logprobs"] = None
        if call.body.get("return_token_ids"):
            body["prompt_token_ids"] = jobs[0].run.prompt_ids
    else:
        body["system_fingerprint"] = "fp_fake"
    return body


def _choice(call: Call, number: int, run: Run, result: dict[str, Any]) -> dict[str, Any]:
    meta, reason = result["meta_info"], result["meta_info"]["finish_reason"]
    text, calls = calls_of(result["text"]) if call.body.get("tools") and call.fake.tool_calls else (result["text"], [])
    message: dict[str, Any] = {"role": "assistant", "content": text}
    message |= {"tool_calls": calls} if calls else {}
    end = "tool_calls" if calls and reason["type"] == "stop" else reason["type"]
    logprobs = {"content": _logprobs(meta)} if call.body.get("logprobs") else None
    choice = {"index": number, "message": message, "logprobs": logprobs, "finish_reason": end}
    if call.fake.dialect == "openai":
        message["refusal"] = None
        return choice
    if call.fake.dialect == "vllm":
        matched = reason.get("matched")
        ids = {"token_ids": result["output_ids"]} if call.body.get("return_token_ids") else {}
        return choice | {"stop_reason": None if matched == tokenizer.EOS else matched} | ids
    message["reasoning_content"] = None
    choice["matched_stop"] = reason.get("matched")
    return choice | _extras(call.body, result)


def _extras(body: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    extras: dict[str, Any] = {}
    if body.get("return_prompt_token_ids") or body.get("return_token_ids"):
        extras["prompt_token_ids"] = result["prompt_token_ids"]
    if body.get("return_token_ids"):
        extras["response_token_ids"] = result["output_ids"]
    if body.get("return_meta_info"):
        extras["meta_info"] = result["meta_info"]
    return extras


def _logprobs(meta: dict[str, Any], start: int = 0) -> list[dict[str, Any]]:
    tops = meta.get("output_top_logprobs") or [[]] * meta["completion_tokens"]
    pairs = zip(meta["output_token_logprobs"], tops, strict=True)
    return [
        _token(p, text) | {"top_logprobs": [_token(q, other) for q, _, other in row]}
        for (p, _, text), row in list(pairs)[start:]
    ]


def _token(p: float, text: str) -> dict[str, Any]:
    return {"token": text, "bytes": list(text.encode()), "logprob": p}


def usage(call: Call, jobs: Sequence[Job]) -> dict[str, Any]:
    """Token counts; the cached ones only where the server reports them."""
    prompt, said = len(jobs[0].run.prompt_ids), sum(job.run.done for job in jobs)
    details = {"cached_tokens": jobs[0].run.cached} if call.fake.cache_report else None
    counts = {
        "prompt_tokens": prompt,
        "total_tokens": prompt + said,
        "completion_tokens": said,
        "prompt_tokens_details": details,
    }
    return counts | (
        {"reasoning_tokens": 0, "completion_tokens_details": None} if call.fake.dialect == "sglang" else {}
    )


async def _stream(call: Call, jobs: Sequence[Job]) -> web.StreamResponse:
    events = Events(call.request, call.trouble)
    for number, job in enumerate(jobs):
        if not await _stream_one(call, events, number, job):
            return events.response
    options = call.body.get("stream_options") or {}
    if options.get("include_usage") and not await events.send(
        chunk(call, jobs[0], None) | {"usage": usage(call, jobs)}
    ):
        return events.response
    return await events.end()


async def _stream_one(call: Call, events: Events, number: int, job: Job) -> bool:
    """One choice: the role, what is said bit by bit (tool calls at the end), the reason; False once cut."""
    if not await events.send(chunk(call, job, {"index": number, "delta": {"role": "assistant", "content": ""}})):
        return False
    said = counted = 0
    delta: dict[str, Any] = {}
    async with aclosing(steps(call.engine, job, 1, call.trouble)) as running:
        async for over in running:
            result = answer_of(call.engine, job, over)
            delta = _delta(call, result, said, over)
            if not delta:
                continue
            logprobs = {"content": _logprobs(result["meta_info"], counted)} if call.body.get("logprobs") else None
            said, counted = len(result["text"]), job.run.done
            if not await events.send(chunk(call, job, {"index": number, "delta": delta, "logprobs": logprobs})):
                return False
    reason = answer_of(call.engine, job)["meta_info"]["finish_reason"]
    end = "tool_calls" if delta.get("tool_calls") and reason["type"] == "stop" else reason["type"]
    last = {"index": number, "delta": {}, "finish_reason": end, "matched_stop": reason.get("matched")}
    return await events.send(chunk(call, job, last))


def _delta(call: Call, result: dict[str, Any], said: int, over: bool) -> dict[str, Any]:
    """What is new; with tools nothing until all is said, as a call cannot be told from text before."""
    if not (call.body.get("tools") and call.fake.tool_calls):
        new = result["text"][said:]
        return {"content": new} if new else {}
    return _called(result) if over else {}


def _called(result: dict[str, Any]) -> dict[str, Any]:
    text, calls = calls_of(result["text"])
    return {"content": text} | ({"tool_calls": calls} if calls else {})


def chunk(call: Call, job: Job, choice: dict[str, Any] | None) -> dict[str, Any]:
    """One event of a stream; without a choice, the one that carries the usage."""
    if choice is not None:
        delta = {"role": None, "content": None, "reasoning_content": None} | choice["delta"]
        choice = {"logprobs": None, "finish_reason": None, "matched_stop": None} | choice | {"delta": delta}
    return {
        "id": job.run.rid,
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": call.body.get("model", "default"),
        "choices": [] if choice is None else [choice],
    }
