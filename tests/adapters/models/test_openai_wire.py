"""Answers of chat completions as servers write them, well or badly."""

import json
from typing import Any

import pytest
from aiohttp import web

from arena.adapters.models.openai import OpenAICompatible
from arena.adapters.models.openai_answers import completions
from arena.adapters.models.openai_dialects import DIALECTS, body_of
from arena.adapters.models.openai_wire import Answer, Broken, assembled, read
from arena.model import Completion, Constraint, Message, ModelError, Request
from tests.adapters.models.small_server import asked

ASKED = Request((Message("user", "Your move?"),))


def completion(choice: Any, dialect: str = "openai", logprobs: bool = True, **more: Any) -> Completion:
    answer = read(json.dumps({"choices": [choice], "usage": {}, **more}).encode())
    return completions(answer, ASKED, DIALECTS[dialect], n=1, seconds=0.0, price=None, logprobs=logprobs, gaps=())[0]


def message(**said: Any) -> dict[str, Any]:
    return {"message": said, "finish_reason": "stop"}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("[4]", "[4]"),
        (None, ""),
        ([{"type": "text", "text": "[4"}, {"type": "text", "text": "]"}, {"type": "image"}, 5], "[4]"),
        ({"text": "no"}, ""),
        (5, ""),
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "\U0001f600"),
        ("x" * (1 << 20), "x" * (1 << 20)),
    ],
)
def test_contents(content: Any, text: str) -> None:
    assert completion(message(content=content)).text == text


def test_thoughts_and_refusals() -> None:
    assert completion(message(content="a", reasoning_content="hm")).reasoning == "hm"
    assert completion(message(content="a", reasoning="hm")).reasoning == "hm"
    assert completion(message(content=None, refusal="I must not.")).text == "I must not."


@pytest.mark.parametrize(
    ("word", "finish", "reason", "gaps"),
    [
        ("stop", "stop", "", 0),
        ("length", "length", "", 0),
        ("tool_calls", "tool_calls", "", 0),
        ("function_call", "tool_calls", "", 0),
        ("abort", "abort", "aborted by the server", 0),
        ("content_filter", "content_filter", "", 1),
        (None, "stop", "", 1),
        ("eos\u202e", "stop", "", 1),
    ],
)
def test_how_answers_end(word: str | None, finish: str, reason: str, gaps: int) -> None:
    found = completion({"message": {"content": "a"}, "finish_reason": word})
    assert (found.finish, found.reason, len(found.gaps)) == (finish, reason, gaps)


def test_the_reason_of_an_abort() -> None:
    meta = {"finish_reason": {"type": "abort", "message": "preempted\ud800 Bearer abc"}}
    found = completion({"message": {"content": "a"}, "finish_reason": "abort", "meta_info": meta})
    assert found.reason == "preempted Bearer ***"


@pytest.mark.parametrize("arguments", ['{"a": 1', '{"a": 1}', "", None, {"a": 1}, [1], 5])
def test_arguments_stay_what_the_model_wrote(arguments: Any) -> None:
    call = {"id": None, "function": {"name": None, "arguments": arguments}}
    (found,) = completion(message(content=None, tool_calls=[call, {"id": "x"}])).tool_calls
    written = arguments if isinstance(arguments, str) else "" if arguments is None else json.dumps(arguments)
    assert found["function"]["arguments"].replace(" ", "") == written.replace(" ", "")
    assert (found["id"], found["type"], found["function"]["name"]) == ("call_0", "function", "")


def listed(*logprobs: float | None) -> dict[str, Any]:
    return {"content": [{"token": "t", "logprob": p} for p in logprobs]}


def meta_of(*entries: tuple[float | None, int]) -> dict[str, Any]:
    return {"output_token_logprobs": [[p, token, "t"] for p, token in entries]}


@pytest.mark.parametrize(
    ("fields", "ids", "logprobs", "gap"),
    [
        ({"token_ids": [5, 2], "logprobs": listed(-1, -2)}, (5, 2), (-1, -2), ""),
        ({"response_token_ids": [5, 2], "meta_info": meta_of((-1, 5), (-2, 2))}, (5, 2), (-1, -2), ""),
        ({"meta_info": meta_of((-1, 5), (-2, 2))}, (5, 2), (-1, -2), ""),
        ({"token_ids": [5, 2]}, (5, 2), (), "logprobs: did not come"),
        ({"token_ids": [5, 2], "logprobs": listed(-1)}, (5, 2), (), "logprobs: are not those of the tokens"),
        ({"token_ids": [5, 2], "logprobs": listed(-1, None)}, (5, 2), (), "logprobs: are not those of the tokens"),
        ({"token_ids": [5], "meta_info": meta_of((-1, 6))}, (5,), (), "logprobs: are not those of the tokens"),
        ({"logprobs": listed(-1)}, (), (), "ids: did not come"),
        ({"token_ids": []}, (), (), "ids: did not come"),
    ],
)
def test_tokens(fields: dict[str, Any], ids: tuple[int, ...], logprobs: tuple[float, ...], gap: str) -> None:
    found = completion({**message(content="a"), **fields}, "sglang", prompt_token_ids=[1])
    assert (found.ids, found.logprobs) == (ids, logprobs)
    assert [g for g in found.gaps if g != "usage: did not come"] == ([gap] if gap else [])


def test_weight_versions_are_spans() -> None:
    spans = [{"version": "step-2", "start": 0, "end": 1}, {"version": 3, "start": 1, "end": 40}]
    choice = {**message(content="a"), "meta_info": {"weight_versions": spans}}
    assert completion(choice).weight_versions == ((0, "step-2"), (1, "3"))
    assert completion(message(content="a"), metadata={"weight_version": "v1"}).weight_versions == ((0, "v1"),)
    assert completion(message(content="a")).weight_versions == ()


def test_usage_that_does_not_come_is_a_gap() -> None:
    found = completion(message(content="a"), usage=None)
    assert (found.usage, found.gaps) == ({"seconds": 0.0}, ("usage: did not come",))


def test_usage_is_shared_out_so_that_it_adds_up() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 8, "prompt_tokens_details": {"cached_tokens": 4}}
    body = {"choices": [{**message(content="a"), "index": i} for i in range(3)], "usage": usage}
    answer = read(json.dumps(body).encode())
    found = completions(answer, ASKED, DIALECTS["openai"], n=3, seconds=0.0, price=None, logprobs=False, gaps=())
    assert [c.usage["completion_tokens"] for c in found] == [3, 3, 2]
    assert sum(c.usage["prompt_tokens"] for c in found) == 9
    assert sum(c.usage["cached_tokens"] for c in found) == 4


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'{"choices": {}}',
        b'{"choices": [{"message": "hi"}]}',
        b'{"choices": [{"message": {"tool_calls": [5]}}]}',
        b'{"choices": [{"message": {"content": "\xff"}}]}',
        b'{"choices": [{"message": {"content": "a"}, "finish_reason": 1.5e400}]}',
        b'{"choices"' + b"[" * 50_000,
        b'{"x": "\\ud800", "choices": "no"}',
        b'{"x": "\\ud800", "choices": ' + b"[" * 50_000,
        b'{"x": "\\ud800", "y": ' + b"9" * 10_000 + b"}",
    ],
)
def test_what_is_no_answer_is_broken_and_nothing_else(body: bytes) -> None:
    with pytest.raises(Broken):
        completions(read(body), ASKED, DIALECTS["openai"], n=1, seconds=0, price=None, logprobs=False, gaps=())


@pytest.mark.parametrize("body", [b"{}", b'{"choices": []}', b'{"choices": [{}]}', b'{"choices": [{"message": null}]}'])
def test_an_answer_without_a_message_is_broken(body: bytes) -> None:
    with pytest.raises(Broken, match="without"):
        completions(read(body), ASKED, DIALECTS["openai"], n=1, seconds=0, price=None, logprobs=False, gaps=())


def piece(delta: Any = None, finish: str | None = None, index: int = 0, **more: Any) -> bytes:
    return json.dumps({"choices": [{"index": index, "delta": delta, "finish_reason": finish, **more}]}).encode()


def called(arguments: str, name: str | None = None, index: int | None = None, own: str | None = None) -> dict[str, Any]:
    return {"tool_calls": [{"id": own, "index": index, "function": {"name": name, "arguments": arguments}}]}


def calls(answer: Answer) -> list[tuple[str | None, str | None, Any]]:
    said = answer.choices[0].message
    assert said is not None
    assert said.tool_calls is not None
    return [(c.id, c.function.name, c.function.arguments) for c in said.tool_calls if c.function is not None]


@pytest.mark.parametrize("indexed", [True, False])
def test_pieces_of_calls_come_together(indexed: bool) -> None:
    first, second = (0, 1) if indexed else (None, None)
    pieces = [
        piece(called("", "weather", first, "c1")),
        piece(called('{"city"', index=first)),
        piece(called(': "Rome"}', index=first)),
        piece(called("{}", "time", second, "c2")),
        piece(finish="tool_calls"),
    ]
    assert calls(assembled(pieces)) == [("c1", "weather", '{"city": "Rome"}'), ("c2", "time", "{}")]


def test_pieces_of_several_answers_come_together_whatever_their_order() -> None:
    pieces = [
        piece({"content": "b"}, index=1),
        piece({"role": "assistant", "content": None, "reasoning_content": "h"}),
        piece({"content": "a1", "reasoning_content": "m"}, logprobs=listed(-1), token_ids=[5]),
        piece({"content": "a2"}, "stop", logprobs=listed(-2), token_ids=[2]),
        piece(None, "length", 1),
        b'{"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}',
    ]
    answer = assembled(pieces)
    found = completions(answer, ASKED, DIALECTS["vllm"], n=2, seconds=0, price=None, logprobs=True, gaps=())
    assert [(c.text, c.finish, c.reasoning) for c in found] == [("a1a2", "stop", "hm"), ("b", "length", "")]
    assert (found[0].ids, found[0].logprobs) == ((5, 2), (-1, -2))


@pytest.mark.parametrize("pieces", [[piece({"content": "a"})], [piece({"content": "a"}), b"{"], [b"text"]])
def test_a_stream_that_ends_too_early_is_broken(pieces: list[bytes]) -> None:
    with pytest.raises(Broken):
        assembled(pieces)


def test_an_error_in_a_stream_is_kept() -> None:
    assert assembled([piece({"content": "a"}), b'{"error": {"message": "full"}}']).error == {"message": "full"}


@pytest.mark.parametrize(
    ("kind", "guided", "fields"),
    [
        ("regex", False, {"structured_outputs": {"regex": "a"}}),
        ("regex", True, {"guided_regex": "a"}),
        ("ebnf", False, {"structured_outputs": {"grammar": "a"}}),
        ("ebnf", True, {"guided_grammar": "a"}),
    ],
)
def test_vllm_called_constraints_otherwise_once(kind: Any, guided: bool, fields: dict[str, Any]) -> None:
    request = Request(ASKED.messages, constraint=Constraint(kind, "a"))
    body, _ = body_of(request, "m", DIALECTS["vllm"], max_tokens_field="max_tokens", logprobs=False, guided=guided, n=1)
    assert fields.items() <= body.items()


@pytest.mark.parametrize(
    ("routes", "kind", "guided", "server"),
    [
        ({"/version": {"version": "0.10.1"}}, "vllm", True, "vLLM 0.10.1"),
        ({"/version": {"version": "0.11.0"}}, "vllm", False, "vLLM 0.11.0"),
        ({"/version": {"version": "1.0.0rc1"}}, "vllm", False, "vLLM 1.0.0rc1"),
        ({"/model_info": {"model_path": "/m", "weight_version": "w1"}}, "sglang", False, "SGLang"),
        ({"/model_info": {"hello": 1}, "/version": ["x"]}, "openai", False, "OpenAI-compatible"),
        ({}, "openai", False, "OpenAI-compatible"),
    ],
)
def test_the_kind_of_a_server_is_told_by_its_routes(
    routes: dict[str, Any], kind: str, guided: bool, server: str
) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path == "/v1/models":
            return web.json_response({"data": [{"id": "m"}]})
        found = routes.get(request.path)
        return web.json_response(found) if found is not None else web.Response(text="<html>", status=200)

    async def use(transport: Any) -> tuple[str, bool, str]:
        model = OpenAICompatible(transport.urls[0])
        info = await model.info()
        await model.close()
        return info.details["extras"], model.guided, info.server

    assert asked(handler, use) == (kind, guided, server)


def test_a_server_without_a_list_of_models_is_taken_at_its_word() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path == "/v1/chat/completions":
            return web.json_response({"error": "messages are missing"}, status=400)
        raise web.HTTPNotFound

    async def use(transport: Any) -> dict[str, str]:
        model = OpenAICompatible(transport.urls[0], model="m")
        info = await model.info()
        await model.close()
        return info.details

    details = asked(handler, use)
    assert isinstance(details, dict)
    assert details["models"] == "the server lists none"


def test_a_wrong_path_is_found_by_info() -> None:
    async def handler(_: web.Request) -> web.StreamResponse:
        raise web.HTTPNotFound

    async def use(transport: Any) -> None:
        await OpenAICompatible(f"{transport.urls[0]}/api", model="m").info()

    with pytest.raises(ModelError, match=r"/api has no /v1/chat/completions \(404\)"):
        asked(handler, use)


@pytest.mark.parametrize("body", [b"<html>", b'{"data": 5}', b'{"data": [{"name": "x"}]}'])
def test_a_page_instead_of_a_list_of_models_is_one_line(body: bytes) -> None:
    async def handler(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body)

    async def use(transport: Any) -> None:
        await OpenAICompatible(transport.urls[0]).info()

    with pytest.raises(ModelError, match=r"/v1/models: no list of models \(.*\): is this a base URL\?"):
        asked(handler, use)
