"""POST /v1/chat/completions in its dialects."""

import asyncio
import json
from typing import Any

import pytest

from tests.fakes import tokenizer
from tests.fakes.asking import Asker, asked
from tests.fakes.engine import marked
from tests.fakes.server import Dialect, FakeSGLang

ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    },
}
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'


def test_a_plain_answer_any_model() -> None:
    async def test(ask: Asker) -> None:
        status, body = await ask.chat("hi [mark:q]", model="never heard of")
        choice = body["choices"][0]
        assert (status, body["model"], body["object"]) == (200, "never heard of", "chat.completion")
        assert choice["message"]["content"] == "[mark:q] I have thought about it."
        assert (choice["finish_reason"], choice["matched_stop"], choice["logprobs"]) == ("stop", 2, None)
        assert choice.keys().isdisjoint({"prompt_token_ids", "response_token_ids", "meta_info"})
        assert body["usage"]["total_tokens"] == body["usage"]["prompt_tokens"] + body["usage"]["completion_tokens"]
        assert body["metadata"]["weight_version"] == "default"

    asked(test, FakeSGLang(marked()))


def test_the_extras_tell_every_token() -> None:
    async def test(ask: Asker) -> None:
        extras = {"return_prompt_token_ids": True, "return_token_ids": True, "return_meta_info": True}
        _, body = await ask.chat("hi", logprobs=True, top_logprobs=2, rid="me", n=1, **extras)
        choice = body["choices"][0]
        prompt = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
        assert tokenizer.decode(choice["prompt_token_ids"]) == prompt
        ids = choice["response_token_ids"]
        assert tokenizer.decode(ids) == "I have thought about it.<|im_end|>"
        assert [one[1] for one in choice["meta_info"]["output_token_logprobs"]] == ids
        content = choice["logprobs"]["content"]
        assert "".join(one["token"] for one in content) == tokenizer.decode(ids)
        assert {len(one["top_logprobs"]) for one in content} == {2}
        assert body["id"] == "me"
        _, given = await ask.chat("ignored", input_ids=[9, 10], return_prompt_token_ids=True)
        assert given["choices"][0]["prompt_token_ids"] == [9, 10]

    asked(test, FakeSGLang())


def test_n_limits_and_constraints() -> None:
    async def test(ask: Asker) -> None:
        _, body = await ask.chat("x", n=3, max_tokens=2)
        assert [(one["index"], one["finish_reason"]) for one in body["choices"]] == [(n, "length") for n in range(3)]
        assert body["usage"]["completion_tokens"] == 6
        _, body = await ask.chat("x", regex="(yes|no)", max_completion_tokens=9)
        assert body["choices"][0]["message"]["content"] in {"yes", "no"}
        schema = {"name": "x", "schema": {"enum": ["Paris"]}}
        _, body = await ask.chat("x", response_format={"type": "json_schema", "json_schema": schema})
        assert body["choices"][0]["message"]["content"] == '"Paris"'
        assert (
            json.loads(
                (await ask.chat("x", response_format={"type": "json_object"}))[1]["choices"][0]["message"]["content"]
            )
            == {}
        )

    asked(test, FakeSGLang())


def test_tool_calls() -> None:
    async def test(ask: Asker) -> None:
        _, body = await ask.chat("x", tools=[ADD])
        choice = body["choices"][0]
        assert choice["finish_reason"] == "tool_calls"
        assert choice["message"]["content"] == "so"
        call = choice["message"]["tool_calls"][0]
        assert (call["type"], call["function"]) == ("function", {"name": "add", "arguments": '{"a": 1}'})
        plain = (await ask.chat("x"))[1]["choices"][0]
        assert plain["message"]["content"] == "so" + CALL
        assert "tool_calls" not in plain["message"]
        *_, before, last, done = await ask.events(
            "/v1/chat/completions", messages=[{"role": "user", "content": "x"}], tools=[ADD], stream=True
        )
        assert before["choices"][0]["delta"]["tool_calls"][0]["function"]["name"] == "add"
        assert (last["choices"][0]["finish_reason"], done) == ("tool_calls", "[DONE]")

    asked(test, FakeSGLang(lambda prompt, asked: "so" + CALL))


def test_malformed_calls_stay_text_and_required_ones_are_made() -> None:
    async def test(ask: Asker) -> None:
        _, body = await ask.chat("x", tools=[ADD])
        assert body["choices"][0]["message"]["content"] == "<tool_call>{</tool_call>"
        for choice in ("required", {"type": "function", "function": {"name": "add"}}):
            message = (await ask.chat("x", tools=[ADD], tool_choice=choice))[1]["choices"][0]["message"]
            assert message["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 0}'}
        assert (await ask.chat("x", tool_choice="required"))[0] == 400

    asked(test, FakeSGLang(lambda prompt, asked: "<tool_call>{</tool_call>"))


def test_a_stream_adds_up_to_the_answer() -> None:
    async def test(ask: Asker) -> None:
        messages = [{"role": "user", "content": "x"}]
        *events, usage, done = await ask.events(
            "/v1/chat/completions",
            messages=messages,
            stream=True,
            stream_options={"include_usage": True},
            logprobs=True,
        )
        deltas = [event["choices"][0]["delta"] for event in events]
        assert deltas[0] == {"role": "assistant", "content": "", "reasoning_content": None}
        assert "".join(delta["content"] or "" for delta in deltas) == "I have thought about it."
        assert [event["choices"][0]["finish_reason"] for event in events][-2:] == [None, "stop"]
        assert (usage["choices"], done) == ([], "[DONE]")
        told = [one for event in events for one in (event["choices"][0]["logprobs"] or {"content": []})["content"]]
        assert len(told) in {usage["usage"]["completion_tokens"], usage["usage"]["completion_tokens"] - 1}

    asked(test, FakeSGLang())


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"messages": []}, "Messages cannot be empty."),
        ({"messages": "x"}, "messages: Input should be a valid list"),
        ({"max_tokens": "a"}, "max_tokens: Input should be a valid integer"),
        ({"max_tokens": 9000}, "Requested token count exceeds the model's maximum context length of 8192 tokens."),
        ({"regex": "(("}, "Failed to compile regex grammar"),
        ({"messages": [{"role": "user", "content": "\ud800"}]}, "surrogates not allowed"),
    ],
)
def test_refusals(body: dict[str, Any], says: str) -> None:
    async def test(ask: Asker) -> None:
        status, said = await ask.chat("x", **body)
        assert (status, said["object"], said["code"]) == (400, "error", 400)
        assert says in said["message"]

    asked(test, FakeSGLang())


def test_an_abort_is_a_finish_reason() -> None:
    fake = FakeSGLang(latency=5)

    async def test(ask: Asker) -> None:
        task = asyncio.create_task(ask.chat("x", rid="r"))
        while not fake.engine.running:
            await asyncio.sleep(0.002)
        await ask.post("/abort_request", rid="r")
        status, body = await task
        assert (status, body["choices"][0]["finish_reason"]) == (200, "abort")

    asked(test, fake)


def test_vllm_knows_other_extras() -> None:
    fake = FakeSGLang(dialect="vllm", model_names=["m"], cache_report=True)

    async def test(ask: Asker) -> None:
        _, body = await ask.chat("x", model="m", return_token_ids=True, structured_outputs={"choice": ["a+b", "c"]})
        choice = body["choices"][0]
        assert choice["message"]["content"] in {"a+b", "c"}
        assert choice["token_ids"][-1] == tokenizer.EOS
        assert tokenizer.decode(body["prompt_token_ids"]).endswith("assistant\n")
        assert body["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}
        assert body["id"].startswith("chatcmpl-")
        status, said = await ask.chat("x", model="other")
        assert (status, said["error"]["message"]) == (404, "The model `other` does not exist.")
        assert (await ask.post("/generate", text="x"))[0] == 404
        assert (await ask.post("/tokenize", prompt="x"))[0] == 200
        with fake.expected("'regex' is no key vllm knows"):
            assert (await ask.chat("x", model="m", regex="(a|b)"))[0] == 200

    asked(test, fake)


def test_a_hosted_service_refuses_what_it_does_not_know() -> None:
    fake = FakeSGLang(dialect="openai", model_names=["gpt"], api_key="secret")

    async def test(ask: Asker) -> None:
        assert (await ask.chat("x", model="gpt"))[1]["error"]["code"] == "invalid_api_key"
        ask.headers = {"Authorization": "Bearer secret"}
        status, body = await ask.chat("x", model="gpt", seed=1)
        assert (status, body["choices"][0]["message"]["refusal"]) == (200, None)
        assert body["choices"][0].keys() == {"index", "message", "logprobs", "finish_reason"}
        status, said = await ask.chat("x", model="gpt", return_token_ids=True)
        assert (status, said["error"]["type"]) == (400, "invalid_request_error")
        assert said["error"]["message"] == "Unrecognized request argument supplied: return_token_ids"
        status, said = await ask.chat("x", model="gpt-0")
        assert (status, said["error"]["code"]) == (404, "model_not_found")
        assert [one["id"] for one in (await ask.get("/v1/models"))[1]["data"]] == ["gpt"]
        assert (await ask.get("/health"))[0] == 404

    asked(test, fake)


@pytest.mark.parametrize("dialect", ["sglang", "vllm", "openai"])
def test_every_dialect_speaks_to_a_plain_client(dialect: Dialect) -> None:
    async def test(ask: Asker) -> None:
        status, body = await ask.chat("x", temperature=0.5, max_tokens=50, logprobs=True)
        assert (status, body["choices"][0]["message"]["content"]) == (200, "I have thought about it.")
        assert len(body["choices"][0]["logprobs"]["content"]) == body["usage"]["completion_tokens"]

    asked(test, FakeSGLang(dialect=dialect))
