"""OpenAICompatible against the fake server in its three dialects: what is asked and what comes back."""

import asyncio
import json
from typing import Any

import pytest

from arena.adapters.models.openai import OpenAICompatible
from arena.adapters.models.settings import Settings
from arena.model import (
    Constraint,
    Message,
    ModelError,
    Request,
    Sampling,
)
from tests.adapters.models.chatting import (
    DIALECTS,
    HELLO,
    WAYS,
    WEATHER,
    completed,
    sampled,
    says,
    sent,
)
from tests.fakes.server import Dialect, FakeSGLang

pytestmark = pytest.mark.usefixtures("short_waits")


@WAYS
@DIALECTS
def test_an_answer(dialect: Dialect, settings: Settings) -> None:
    fake = FakeSGLang(says("I play [4]."), dialect=dialect, cache_report=True)
    (answer,) = completed(HELLO, fake, settings=settings)
    assert (answer.text, answer.finish, answer.reason, answer.tool_calls) == ("I play [4].", "stop", "", ())
    assert {"prompt_tokens", "completion_tokens", "cached_tokens", "seconds"} == answer.usage.keys()
    assert 0 < answer.usage["seconds"] < 2
    assert sent(fake)["messages"] == [{"role": "system", "content": "Play."}, {"role": "user", "content": "Your move?"}]
    assert sent(fake)["max_tokens"] == 20


@pytest.mark.parametrize(("dialect", "kind"), [("sglang", "temperature=0.7"), ("vllm", "raw")])
def test_tokens_are_told_where_the_server_can(dialect: Dialect, kind: str) -> None:
    fake = FakeSGLang(says("I play [4]."), dialect=dialect)
    (answer,) = completed(sampled(temperature=0.7), fake)
    assert len(answer.ids) == len(answer.logprobs) == answer.usage["completion_tokens"]
    assert all(p <= 0 for p in answer.logprobs)
    assert len(answer.prompt_ids) == answer.usage["prompt_tokens"]
    assert (answer.logprob_kind, answer.gaps) == (kind, ())
    (bare,) = completed(HELLO, FakeSGLang(dialect=dialect), logprobs=False)
    assert bare.ids
    assert (bare.logprobs, bare.logprob_kind, bare.gaps) == ((), "", ())


def test_versions_of_the_weights_are_told() -> None:
    (answer,) = completed(HELLO, FakeSGLang())
    assert answer.weight_versions == ((0, "default"),)


@DIALECTS
def test_what_a_stream_does_not_tell_is_a_gap(dialect: Dialect) -> None:
    fake = FakeSGLang(dialect=dialect)
    (answer,) = completed(HELLO, fake, settings=Settings(first_token_seconds=5.0))
    assert ("return_token_ids" in sent(fake)) == (dialect == "vllm")  # SGLang 0.5.23 refuses that
    missing = () if dialect == "openai" else ("ids: did not come", "prompt_ids: did not come")
    assert (answer.ids, answer.gaps) == ((), missing)


def test_what_a_router_drops_is_a_gap() -> None:
    async def main() -> None:
        async with FakeSGLang() as worker, FakeSGLang(router=True, workers=[worker]) as router:
            model = OpenAICompatible(router.url)
            (answer,) = await model.complete(HELLO)
            await model.close()
            assert any(gap.startswith(("ids", "prompt_ids")) for gap in answer.gaps), answer

    asyncio.run(main())


@WAYS
@DIALECTS
def test_several_answers(dialect: Dialect, settings: Settings) -> None:
    fake = FakeSGLang(dialect=dialect)
    request = Request(HELLO.messages, sampling=HELLO.sampling, n=3)
    answers = completed(request, fake, settings=settings)
    assert len(answers) == 3
    assert fake.count["/v1/chat/completions"] == 1
    assert [a.usage["prompt_tokens"] > 0 for a in answers] == [True, False, False]


def test_several_answers_one_by_one_where_n_is_not_known() -> None:
    fake = FakeSGLang(dialect="openai")
    answers = completed(Request(HELLO.messages, n=3), fake, extras="none")
    assert len(answers) == 3
    assert fake.count["/v1/chat/completions"] == 3
    assert sent(fake).keys() == {"model", "messages", "max_tokens", "temperature"}


@pytest.mark.parametrize(
    ("dialect", "kind", "text", "answer"),
    [
        ("sglang", "regex", "(red|green)", {"red", "green"}),
        ("sglang", "json_schema", '{"const": "red"}', {'"red"'}),
        ("sglang", "ebnf", 'root ::= "red"', {"red"}),
        ("vllm", "regex", "(red|green)", {"red", "green"}),
        ("vllm", "json_schema", '{"const": "red"}', {'"red"'}),
        ("openai", "json_schema", '{"const": "red"}', {'"red"'}),
    ],
)
def test_constraints(dialect: Dialect, kind: Any, text: str, answer: set[str]) -> None:
    request = Request(HELLO.messages, constraint=Constraint(kind, text))
    assert completed(request, FakeSGLang(dialect=dialect))[0].text in answer


@pytest.mark.parametrize(("extras", "able"), [("openai", "json_schema"), ("none", "no constraint")])
def test_a_constraint_that_cannot_be_asked_for_is_an_error(extras: str, able: str) -> None:
    request = Request(HELLO.messages, constraint=Constraint("regex", "a"))
    with pytest.raises(ModelError, match=f"extras={extras} cannot keep to a regex; it takes {able}"):
        completed(request, FakeSGLang(dialect="openai"), extras=extras)


def test_a_schema_that_is_no_json_is_an_error() -> None:
    request = Request(HELLO.messages, constraint=Constraint("json_schema", "{"))
    with pytest.raises(ModelError, match="the JSON schema of the constraint is not JSON"):
        completed(request, FakeSGLang())


@WAYS
@DIALECTS
def test_tool_calls(dialect: Dialect, settings: Settings) -> None:
    call = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>'
    fake = FakeSGLang(says(f"Let me see. {call}{call}"), dialect=dialect)
    request = Request(HELLO.messages, tools=(WEATHER,), sampling=Sampling(max_tokens=500))
    (answer,) = completed(request, fake, settings=settings)
    assert (answer.text, answer.finish) == ("Let me see.", "tool_calls")
    assert [json.loads(c["function"]["arguments"]) for c in answer.tool_calls] == [{"city": "Rome"}] * 2
    assert len({c["id"] for c in answer.tool_calls}) == 2
    assert {c["type"] for c in answer.tool_calls} == {"function"}


def test_a_conversation_with_tools_is_sent_as_openai_writes_it() -> None:
    calls = ({"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}},)
    talk = (
        Message("user", "Weather?"),
        Message("assistant", "", tool_calls=calls),
        Message("tool", "", tool_call_id="c1"),
        Message("user", ""),
    )
    fake = FakeSGLang(dialect="openai")
    completed(Request(talk), fake)
    assert sent(fake)["messages"] == [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": None, "tool_calls": list(calls)},
        {"role": "tool", "content": "", "tool_call_id": "c1"},
        {"role": "user", "content": ""},
    ]


@DIALECTS
def test_thoughts_go_back_where_there_is_a_field_for_them(dialect: Dialect) -> None:
    fake = FakeSGLang(dialect=dialect)
    talk = (Message("user", "a"), Message("assistant", "b", reasoning="hm\ud800"), Message("user", "c"))
    (answer,) = completed(Request(talk), fake)
    field = {"sglang": {"reasoning_content": "hm\ufffd"}, "vllm": {"reasoning": "hm\ufffd"}}.get(dialect, {})
    assert sent(fake)["messages"][1] == {"role": "assistant", "content": "b", **field}
    lost = "thoughts: those of earlier answers are not in the prompt, no field of this kind of server"
    assert (lost in answer.gaps) is (dialect == "openai")


@DIALECTS
def test_sampling_is_sent_where_it_is_known(dialect: Dialect) -> None:
    fake = FakeSGLang(dialect=dialect)
    request = sampled(temperature=0.5, top_p=0.9, top_k=20, min_p=0.1, stop=("END",))
    (answer,) = completed(request, fake)
    body = sent(fake)
    assert (body["temperature"], body["top_p"], body["stop"]) == (0.5, 0.9, ["END"])
    if dialect == "openai":
        assert [gap.partition(":")[0] for gap in answer.gaps] == ["stop", "top_k", "min_p"]
    else:
        assert (body["top_k"], body["min_p"], answer.gaps) == (20, 0.1, ())


def test_the_text_that_ends_an_answer_stays_in_it() -> None:
    (answer,) = completed(sampled(stop=("[4]",)), FakeSGLang(says("I play [4] now.")))
    assert (answer.text, answer.finish) == ("I play [4]", "stop")


def test_an_answer_that_is_too_long_is_cut() -> None:
    assert completed(sampled(max_tokens=2), FakeSGLang())[0].finish == "length"


@pytest.mark.parametrize(("dialect", "field"), [("sglang", "priority"), ("vllm", "priority"), ("openai", None)])
def test_priority(dialect: Dialect, field: str | None) -> None:
    fake = FakeSGLang(dialect=dialect)
    (answer,) = completed(Request(HELLO.messages, priority=7), fake)
    assert sent(fake).get("priority") == (7 if field else None)
    assert answer.gaps == (() if field else ("priority: no field of this kind of server",))


@pytest.mark.parametrize(("dialect", "field"), [("sglang", "rid"), ("vllm", "request_id")])
def test_the_id_is_sent(dialect: Dialect, field: str) -> None:
    fake = FakeSGLang(dialect=dialect)
    completed(Request(HELLO.messages, id="game-1-turn-2"), fake)
    assert sent(fake)[field] == "game-1-turn-2"


def test_newer_models_want_another_field_for_the_length_and_further_fields_are_passed_on() -> None:
    fake = FakeSGLang(dialect="openai")
    completed(HELLO, fake, max_tokens_field="max_completion_tokens", extra={"reasoning_effort": "low"})
    assert (sent(fake)["max_completion_tokens"], sent(fake)["reasoning_effort"]) == (20, "low")
    assert "max_tokens" not in sent(fake)


@pytest.mark.parametrize(("dialect", "kind"), [("sglang", "penalised"), ("vllm", "raw")])
def test_penalties_change_what_log_probabilities_are_of(dialect: Dialect, kind: str) -> None:
    (answer,) = completed(HELLO, FakeSGLang(dialect=dialect), extra={"presence_penalty": 0.5})
    assert answer.logprob_kind == kind
    (answer,) = completed(HELLO, FakeSGLang(dialect=dialect), extra={"presence_penalty": 0})
    assert answer.logprob_kind == "raw"


def test_half_characters_are_replaced() -> None:
    fake = FakeSGLang(dialect="openai")
    completed(Request((Message("user", "a\ud800b"),)), fake)
    assert sent(fake)["messages"][0]["content"] == "a\ufffdb"


def test_token_ids_are_refused() -> None:
    with pytest.raises(ModelError, match="chat completions take messages, not tokens"):
        completed(Request(prompt_ids=(1, 2)), FakeSGLang())
