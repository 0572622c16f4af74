"""sglang-router 0.3.2 as a client meets it: what it serves, and what it drops on the way to a worker."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from aiohttp import web

from tests.fakes import native
from tests.fakes.chat import OPENAI, SAMPLING, chat, keys

if TYPE_CHECKING:
    from tests.fakes.server import Call

GENERATE = keys("""text input_ids sampling_params return_logprob logprob_start_len top_logprobs_num token_ids_logprob
    return_text_in_logprobs stream rid lora_path session_params return_hidden_states""")
CHAT = OPENAI | SAMPLING | keys("min_tokens continue_final_message separate_reasoning lora_path rid")
ROUTES: "dict[tuple[str, str], Callable[[Call], Awaitable[web.StreamResponse]]]" = {
    ("POST", "/generate"): native.generate,
    ("POST", "/v1/chat/completions"): chat,
    ("GET", "/v1/models"): native.models,
    ("GET", "/health"): native.health,
    ("GET", "/model_info"): native.model_info,
    ("GET", "/get_model_info"): native.model_info,
    ("GET", "/server_info"): native.server_info,
    ("GET", "/get_server_info"): native.server_info,
    ("POST", "/flush_cache"): native.flush_cache,
    ("GET", "/workers"): native.workers,
}


def without_unknown(route: str, body: Any) -> Any:
    """The body with the fields the router knows."""
    known = {"/generate": GENERATE, "/v1/chat/completions": CHAT}.get(route)
    if known is None or not isinstance(body, dict):
        return {} if body is None else body
    return {key: value for key, value in body.items() if key in known}


def unavailable() -> web.Response:
    """The answer while no worker is ready."""
    text = "No available workers (all circuits open or unhealthy)"
    inner = {"type": "Service Unavailable", "code": "no_available_workers", "message": text}
    return web.json_response({"error": inner}, status=503)
