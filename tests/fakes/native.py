"""SGLang's own routes."""

from __future__ import annotations

import json
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from aiohttp import web

from tests.fakes import contract, tokenizer
from tests.fakes.engine import Refused, new_rid
from tests.fakes.generation import answer_of, jobs_of, steps, whole
from tests.fakes.trouble import Events, dropped, send

if TYPE_CHECKING:
    from tests.fakes.server import Call


def error(message: str, status: int = 400, kind: str = "BadRequestError") -> web.Response:
    """The body OpenAI routes and FastAPI's handlers of SGLang answer with."""
    body = {"object": "error", "message": message, "type": kind, "param": None, "code": status}
    return web.json_response(body, status=status)


def refusal(refused: Refused, request: web.Request, openai: bool = False) -> web.Response:
    """What a refused request is answered; status 0 stands for a server that dies of it."""
    if refused.status == 0:
        return dropped(request)
    if refused.status != 400:
        return error(refused.message, refused.status, str(refused.status))
    return error(refused.message) if openai else web.json_response({"error": {"message": refused.message}}, status=400)


async def generate(call: Call) -> web.StreamResponse:
    """POST /generate."""
    text = contract.refusal_of_generate(call.body)
    if text is not None:
        rest = {key: value for key, value in call.body.items() if key != "sampling_params"}
        by_schema = contract.refusal_of_generate(rest) is None
        return web.json_response({"error": text}, status=400) if by_schema else error(text, 400, "Bad Request")
    try:
        jobs, many = jobs_of(call.engine, call.body)
        if call.body.get("stream"):
            return await _stream(call, jobs, many)
        await whole(call.engine, jobs, call.trouble)
    except Refused as refused:
        if call.body.get("stream") and refused.status == 400:
            return await _stream_error(call, refused)
        return refusal(refused, call.request)
    answers = [answer_of(call.engine, job) for job in jobs]
    return await call.answer(answers if many else answers[0])


async def _stream(call: Call, jobs: list[Any], many: bool) -> web.StreamResponse:
    events = Events(call.request, call.trouble)
    for index, job in enumerate(jobs):
        every = job.run.params.get("stream_interval") or 1
        async with aclosing(steps(call.engine, job, every, call.trouble)) as running:
            async for over in running:
                event = answer_of(call.engine, job, over) | ({"index": index} if many else {})
                event["meta_info"].pop("response_sent_to_client_ts", None)
                if not over:  # the real server has it in these only
                    event["meta_info"]["response_sent_to_client_ts"] = time.time()
                call.fake.violations.extend(contract.problems_of_event(event))
                if not await events.send(event):
                    return events.response
    return await events.end()


async def _stream_error(call: Call, refused: Refused) -> web.StreamResponse:
    events = Events(call.request, call.trouble)
    body = {"message": refused.message, "type": "invalid_request_error", "code": refused.status, "retryable": False}
    await events.send({"error": body})
    return await events.end()


async def tokenize(call: Call) -> web.StreamResponse:
    """POST /tokenize: a prompt, several prompts, or messages through the chat template."""
    body, engine = call.body, call.engine
    prompt, messages = body.get("prompt"), body.get("messages")
    if (prompt is None) == (messages is None):
        text = "Value error, Exactly one of 'prompt' or 'messages' must be provided."
        return error(f"1 validation error:\n  {text}", 400, "Bad Request")
    try:
        if messages is not None:
            tokens: Any = tokenizer.encode(rendered(call, messages))
        else:
            bos = [tokenizer.BOS] if engine.template.bos and body.get("add_special_tokens", True) else []
            tokens = [bos + tokenizer.encode(text) for text in ([prompt] if isinstance(prompt, str) else prompt)]
            tokens = tokens[0] if isinstance(prompt, str) else tokens
    except (ValueError, TypeError, KeyError) as wrong:
        return error(str(wrong))
    count = [len(one) for one in tokens] if isinstance(prompt, list) else len(tokens)
    return await call.answer({"tokens": tokens, "count": count, "max_model_len": engine.context_length})


def rendered(call: Call, messages: list[dict[str, Any]]) -> str:
    """The prompt of a chat, its generation prompt as the body asks, open by default."""
    opened = call.body.get("add_generation_prompt")
    return call.engine.template.render(
        messages,
        call.body.get("tools") if call.body.get("tool_choice") != "none" else None,
        add_generation_prompt=True if opened is None else opened,
        continue_final_message=bool(call.body.get("continue_final_message")),
    )


async def detokenize(call: Call) -> web.StreamResponse:
    """POST /detokenize: one list of ids, or several."""
    tokens, skip = call.body.get("tokens"), call.body.get("skip_special_tokens", True)
    if not isinstance(tokens, list):
        return error("1 validation error:\n  tokens: Input should be a valid list", 400, "Bad Request")
    try:
        if tokens and isinstance(tokens[0], list):
            return await call.answer({"text": [tokenizer.decode(one, skip) for one in tokens]})
        return await call.answer({"text": tokenizer.decode(tokens, skip)})
    except (IndexError, TypeError) as wrong:
        return error(
            f"Error decoding tokens: {wrong}. Input tokens might be invalid for the model.", 400, "DecodeError"
        )


async def abort_request(call: Call) -> web.StreamResponse:
    """POST /abort_request: 200 whether or not anything runs."""
    call.engine.abort(call.body.get("rid") or "", bool(call.body.get("abort_all")))
    return web.Response()


async def health(call: Call) -> web.StreamResponse:
    """GET /health, /health_generate, /ready."""
    return web.Response()


async def model_info(call: Call) -> web.StreamResponse:
    """GET /model_info."""
    fake = call.fake
    return await call.answer(
        {
            "model_path": fake.loaded or fake.model_path,
            "served_model_name": fake.loaded or fake.model,
            "tokenizer_path": fake.model_path,
            "is_generation": True,
            "preferred_sampling_params": None,
            "weight_version": call.engine.weight_version,
            "load_format": "auto",
            "reasoning_parser": None,
            "tool_call_parser": "qwen" if fake.tool_calls else None,
            "disaggregation_mode": "null",
            "has_image_understanding": False,
            "has_audio_understanding": False,
            "model_type": "llama",
            "architectures": ["LlamaForCausalLM"],
        }
    )


async def server_info(call: Call) -> web.StreamResponse:
    """GET /server_info: the part of it a client may read."""
    fake, engine = call.fake, call.engine
    return await call.answer(
        {
            "model_path": fake.model_path,
            "served_model_name": fake.model,
            "tokenizer_path": fake.model_path,
            "context_length": engine.context_length,
            "dtype": "float32",
            "max_running_requests": engine.max_running,
            "max_queued_requests": engine.max_queued,
            "random_seed": engine.seed,
            "weight_version": engine.weight_version,
            "version": "0.5.23",
            "status": "ready",
            "internal_states": [{"weight_version": engine.weight_version}],
        }
    )


async def models(call: Call) -> web.StreamResponse:
    """GET /v1/models."""
    names = sorted(call.fake.model_names or {call.fake.loaded or call.fake.model})
    length = call.engine.context_length
    owned = {"object": "model", "created": 1_700_000_000, "owned_by": call.fake.dialect}
    more: dict[str, Any] = {"parent": None, "max_model_len": length} if call.fake.dialect != "openai" else {}
    cards = [{"id": name, **owned, **({"root": name} if more else {}), **more} for name in names]
    return await call.answer({"object": "list", "data": cards})


async def flush_cache(call: Call) -> web.StreamResponse:
    """GET or POST /flush_cache: refused while anything runs."""
    if call.engine.running:
        return web.Response(text="Flush cache failed.\n", status=400)
    call.engine.cache.flush()
    text = (
        "Cache flushed.\nPlease check backend logs for more details. "
        "(When there are running or waiting requests, the operation will not be performed.)\n"
    )
    return web.Response(text=text)


async def update_weights_from_disk(call: Call) -> web.StreamResponse:
    """POST /update_weights_from_disk: fails for a path that is not `model_path` or below it."""
    body, engine = call.body, call.engine
    if not str(body["model_path"]).startswith(call.fake.model_path):
        text = f"Failed to get model config: {body['model_path']} is no model"
        return web.json_response({"success": False, "message": text, "num_paused_requests": 0}, status=400)
    if body.get("abort_all_requests"):
        engine.abort(everything=True)
    engine.update(body.get("weight_version"), body.get("flush_cache", True))
    call.fake.loaded = body["model_path"]
    text = "Succeeded to update model weights."
    if body.get("weight_version") is not None:
        text += f" Weight version updated to {body['weight_version']}."
    return await call.answer({"success": True, "message": text, "num_paused_requests": 0})


async def update_weight_version(call: Call) -> web.StreamResponse:
    """POST /update_weight_version: aborts all that runs unless told not to."""
    version = call.body["new_version"]
    if call.body.get("abort_all_requests", True):
        call.engine.abort(everything=True)
    call.engine.update(version, flush=False)
    text = f"Weight version updated to {version}"
    return await call.answer({"success": True, "message": text, "new_version": version})


async def pause_generation(call: Call) -> web.StreamResponse:
    """POST /pause_generation."""
    call.engine.pause(call.body.get("mode", "abort"))
    return await call.answer({"message": "Generation paused successfully.", "status": "ok"})


async def continue_generation(call: Call) -> web.StreamResponse:
    """POST /continue_generation."""
    call.engine.go.set()
    return await call.answer({"message": "Generation continued successfully.", "status": "ok"})


async def open_session(call: Call) -> web.StreamResponse:
    """POST /open_session: answers the id as a JSON string."""
    name = call.body.get("session_id") or new_rid()
    if name in call.engine.sessions:
        text = "Failed to open the session. Check if a session with the same id is still open."
        return web.json_response({"error": {"message": text}}, status=400)
    call.engine.sessions.add(name)
    return await call.answer(name)


async def close_session(call: Call) -> web.StreamResponse:
    """POST /close_session."""
    call.engine.sessions.discard(call.body["session_id"])
    return web.Response()


async def metrics(call: Call) -> web.StreamResponse:
    """GET /metrics: the three gauges a client looks at."""
    engine, name = call.engine, json.dumps(call.fake.model)
    gauges = {"num_running_reqs": engine.active, "num_queue_reqs": len(engine.queue), "token_usage": 0.0}
    lines = [
        f"# TYPE sglang:{key} gauge\nsglang:{key}{{model_name={name}}} {value:.1f}\n" for key, value in gauges.items()
    ]
    return web.Response(text="".join(lines))


async def workers(call: Call) -> web.StreamResponse:
    """GET /workers of the router."""
    listed = [
        {
            "id": f"worker-{number}",
            "url": worker.url,
            "model_id": worker.model,
            "worker_type": "regular",
            "is_healthy": True,
        }
        for number, worker in enumerate(call.fake.workers)
    ]
    return await call.answer(
        {"workers": listed, "total": len(listed), "stats": {"prefill_count": 0, "decode_count": 0}}
    )


async def sent(call: Call, payload: Any) -> web.StreamResponse:
    """A 200 with a JSON body, checked against the contract."""
    if call.fake.dialect == "sglang":
        call.fake.violations.extend(contract.problems_of_answer(call.route, payload))
    return await send(call.request, payload, call.trouble)
