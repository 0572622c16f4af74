"""The fake's bodies have the shape of the real server's: as recorded from SGLang 0.5.23, live in `tests.sglang`.

Requests are small, leave weights and sessions alone, and send no token id but those the server gave: an id outside
the vocabulary kills it.
"""

import asyncio
from typing import Any

import aiohttp
import pytest

from tests.fakes.asking import Asker, asking
from tests.fakes.server import FakeSGLang

SCORE = {"max_new_tokens": 0}
SHORT = {"max_new_tokens": 3, "temperature": 0.7}
CHAT = {"messages": [{"role": "user", "content": "hi"}], "model": "any", "max_tokens": 3, "temperature": 0}
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("/generate", {"text": "hi", "sampling_params": SHORT, "return_logprob": True, "return_prompt_token_ids": True}),
    ("/generate", {"text": ["hi", "ho"], "sampling_params": SHORT, "rid": ["shape-1", "shape-2"]}),
    ("/generate", {"text": "hi", "sampling_params": SHORT | {"n": 2}}),
    ("/generate", {"text": "a b c d", "sampling_params": SCORE, "return_logprob": True, "logprob_start_len": 0}),
    ("/generate", {"text": "x", "sampling_params": {"regex": r"(\[0\]|\[1\])"}, "return_logprob": True}),
    ("/generate", {"text": "hi", "sampling_params": SHORT, "return_logprob": True, "top_logprobs_num": 2}),
    ("/generate", {"text": "hi", "sampling_params": {"regex": "(("}}),
    ("/generate", {"text": "hi", "sampling_params": {"temperature": -1}}),
    ("/generate", {"text": "hi", "sampling_params": {"max_new_tokens": 1_000_000}}),
    ("/generate", {"sampling_params": SHORT}),
    ("/generate", {"text": "hi", "lora_path": "none", "sampling_params": SHORT}),
    ("/tokenize", {"prompt": "hello world"}),
    ("/tokenize", {"prompt": ["a", "b"], "add_special_tokens": False}),
    ("/tokenize", {"messages": CHAT["messages"], "add_generation_prompt": True}),
    ("/tokenize", {}),
    ("/detokenize", {"tokens": [1, 2]}),
    ("/detokenize", {"tokens": [[1], [2]]}),
    ("/abort_request", {"rid": "nobody"}),
    ("/v1/chat/completions", CHAT),
    ("/v1/chat/completions", CHAT | {"logprobs": True, "top_logprobs": 2, "return_token_ids": True}),
    ("/v1/chat/completions", CHAT | {"return_prompt_token_ids": True, "return_meta_info": True, "rid": "shape-3"}),
    ("/v1/chat/completions", CHAT | {"messages": []}),
    ("/v1/chat/completions", CHAT | {"max_tokens": "a"}),
    ("/v1/chat/completions", CHAT | {"regex": "(("}),
]
STREAMS: list[tuple[str, dict[str, Any]]] = [
    ("/generate", {"text": "hi", "sampling_params": SHORT, "return_logprob": True, "stream": True}),
    ("/v1/chat/completions", CHAT | {"stream": True, "stream_options": {"include_usage": True}}),
]
# What a client may leave unread, or that depends on what was said and on what the cache knew.
VARIES = {"cached_tokens_details", "text", "content", "matched", "length", "type", "matched_stop", "finish_reason"}


def shape(value: Any) -> Any:
    """Keys and types; a list is the shapes in it, each once; numbers are one type, as JSON has one."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in sorted(value.items()) if key not in VARIES}
    if isinstance(value, list):
        return sorted({repr(shape(one)) for one in value})
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def test_shapes() -> None:
    assert shape({"a": [1, 2.0], "b": None, "text": 3}) == {"a": ["'number'"], "b": "NoneType"}
    assert shape([{"a": 1}, {"a": 2}]) != shape([{"a": 1}, {"a": "2"}])


META: dict[str, Any] = {
    "id": "fk1",
    "finish_reason": {"type": "length", "length": 3},
    "prompt_tokens": 1,
    "weight_version": "default",
    "num_retractions": 0,
    "input_token_logprobs": [],
    "output_token_logprobs": [[-0.24, 29, None], [-3.98, 26094, None], [-0.18, 105, None]],
    "output_token_logprobs_length": 3,
    "reasoning_tokens": 0,
    "completion_tokens": 3,
    "cached_tokens": 0,
    "weight_versions": [{"version": "default", "start": 0, "end": 3}],
    "cached_tokens_details": None,
    "dp_rank": None,
    "e2e_latency": 0.2,
    "response_sent_to_client_ts": 1796177854.3,
}
RECORDED: list[tuple[str, dict[str, Any], int, Any]] = [
    (
        "/generate",
        REQUESTS[0][1],
        200,
        {"text": "-steady", "output_ids": [29, 26094, 105], "meta_info": META, "prompt_token_ids": [6004]},
    ),
    (
        "/generate",
        {"text": "hi", "sampling_params": {"regex": "(("}},
        400,
        {"error": {"message": "Failed to compile regex grammar: Regex parsing error"}},
    ),
    (
        "/generate",
        {"sampling_params": {"max_new_tokens": 3}},
        400,
        {"error": {"message": "Either text, input_ids or input_embeds should be provided."}},
    ),
    ("/nope", {}, 404, {"detail": "Not Found"}),
]


@pytest.mark.parametrize(("path", "body", "status", "answer"), RECORDED)
def test_the_fake_answers_as_was_recorded(path: str, body: dict[str, Any], status: int, answer: Any) -> None:
    async def run() -> None:
        async with asking(FakeSGLang()) as ask:
            got, said = await ask.post(path, **body)
            assert got == status
            assert shape(said) == shape(answer)

    asyncio.run(run())


async def differences(url: str) -> list[str]:
    """One line for every request whose two answers differ in status or shape."""
    found = []
    async with asking(FakeSGLang()) as fake, aiohttp.ClientSession() as session:
        real = Asker(session, url.rstrip("/"))
        for path, body in REQUESTS:
            (status, ours), (expected, theirs) = await fake.post(path, **body), await real.post(path, **body)
            if (status, shape(ours)) != (expected, shape(theirs)):
                found.append(f"{path} {body}\n  fake {status} {shape(ours)}\n  real {expected} {shape(theirs)}")
        for path, body in STREAMS:
            ours, theirs = await fake.events(path, **body), await real.events(path, **body)
            if [shape(ours[0]), shape(ours[-2]), ours[-1]] != [shape(theirs[0]), shape(theirs[-2]), theirs[-1]]:
                found.append(f"{path} stream\n  fake {ours[0]} {ours[-2]}\n  real {theirs[0]} {theirs[-2]}")
    return found
