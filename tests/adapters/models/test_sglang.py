"""The native SGLang model against a server that keeps SGLang's contract."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from arena.adapters.models.sglang import SGLang
from arena.adapters.models.transport import Settings
from arena.model import Completion, Constraint, ContextOverflow, Message, ModelError, Request, Sampling
from tests.adapters.models.asking import FAST, HI, play, sent
from tests.fakes import tokenizer
from tests.fakes.engine import marked
from tests.fakes.server import FakeSGLang
from tests.fakes.trouble import Trouble

TOOLS = ({"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}},)


def test_tokens_go_in_and_come_out() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        prompt = await model.render(HI)
        (answer,) = await model.complete(Request(prompt_ids=prompt))
        assert sent(server)[0]["input_ids"] == list(prompt)
        assert tokenizer.decode(answer.ids, False) == "[mark:a] I have thought about it.<|im_end|>"
        assert (answer.text, answer.finish) == ("[mark:a] I have thought about it.", "stop")
        assert len(answer.logprobs) == len(answer.ids) == answer.usage["completion_tokens"]
        assert (answer.logprob_kind, answer.gaps, answer.prompt_ids) == ("raw", (), ())
        assert answer.usage["prompt_tokens"] == len(prompt)
        assert answer.weight_versions == ((0, "default"),)

    play(work)


def test_the_next_turn_extends_the_last_and_is_cached() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        prompt = await model.render(HI)
        (first,) = await model.complete(Request(prompt_ids=prompt))
        following = (*prompt, *first.ids, *(await model.encode(["\nmore"]))[0])
        (second,) = await model.complete(Request(prompt_ids=following))
        assert second.usage["cached_tokens"] >= len(prompt) + len(first.ids) - 1

    play(work)


def test_messages_are_rendered_by_the_servers_template() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        await model.complete(Request(messages=HI, tools=TOOLS))
        (asked,) = sent(server)
        text = tokenizer.decode(asked["input_ids"])
        assert text.startswith("<|im_start|>system\n# Tools")
        assert text.endswith("Hi [mark:a]<|im_end|>\n<|im_start|>assistant\n")
        assert asked["sampling_params"]["skip_special_tokens"] is False

    play(work)


def test_thoughts_reach_the_template() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        await model.render((*HI, Message("assistant", "a", reasoning="hm\ud800")))
        assert sent(server, "/tokenize")[-1]["messages"][-1] == {
            "role": "assistant",
            "content": "a",
            "reasoning_content": "hm\ufffd",
        }

    play(work)


def test_a_conversation_without_a_reply_is_the_start_of_one_with() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        without, opened = await model.render(HI, reply=False), await model.render(HI)
        assert opened[: len(without)] == without
        assert len(opened) > len(without)
        call = ({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}},)
        turns = (*HI, Message("assistant", tool_calls=call), Message("tool", "4", tool_call_id="c"))
        assert "<tool_response>\n4\n" in tokenizer.decode(await model.render(turns, TOOLS))

    play(work)


def test_plain_texts_become_tokens_without_special_ones() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        assert [tokenizer.decode(ids) for ids in await model.encode(["ab", "", "c\ud800"])] == ["ab", "", "c\ufffd"]
        assert await model.encode([]) == ()

    play(work, FakeSGLang())


@pytest.mark.parametrize(
    ("constraint", "check"),
    [
        (Constraint("regex", r"(\[3\]|\[5\])"), lambda text: text in ("[3]", "[5]")),
        (Constraint("json_schema", '{"enum": ["a", "b"]}'), lambda text: json.loads(text) in ("a", "b")),
        (Constraint("ebnf", 'root ::= "yes" | "no"'), lambda text: text in ("yes", "no")),
    ],
)
def test_constraints_hold(constraint: Constraint, check: Callable[[str], bool]) -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        request = Request(messages=HI, constraint=constraint, sampling=Sampling(temperature=0.5))
        (answer,) = await model.complete(request)
        assert check(answer.text)
        assert answer.logprob_kind == f"temperature=0.5,{constraint.kind}"

    play(work)


def test_several_answers() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        answers = await model.complete(Request(messages=HI, n=3))
        assert [answer.text[:8] for answer in answers] == ["[mark:a]"] * 3
        assert not any(answer.gaps for answer in answers)

    play(work)
    play(work, settings=Settings(first_token_seconds=5))


def test_answers_that_are_missing_are_a_gap() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        answers = await model.complete(Request(messages=HI, n=2))
        assert [answer.gaps for answer in answers] == [("n: 2 answers were asked for, 1 came",)]

    one = b'{"text": "a", "output_ids": [], "meta_info": {"finish_reason": {"type": "stop"}, "prompt_tokens": 21}}'
    fake = FakeSGLang(marked())
    fake.trouble.script(Trouble("garbage", body=one.replace(b"21", str(len(rendered(HI))).encode())))
    play(work, fake, logprobs=False)


def rendered(messages: tuple[Message, ...]) -> list[int]:
    return tokenizer.encode(
        FakeSGLang().engine.template.render([{"role": m.role, "content": m.content} for m in messages])
    )


def test_options_reach_the_server() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        (answer,) = await model.complete(Request(messages=HI, priority=2, id="mine"))
        (asked,) = sent(server)
        assert (asked["priority"], asked["rid"], asked["session_id"]) == (2, "mine", "s")
        assert "return_logprob" not in asked
        assert asked["return_prompt_token_ids"] is True
        assert answer.logprobs == ()
        assert answer.prompt_ids == await model.render(HI)
        assert "logprobs" not in model.features

    play(work, logprobs=False, prompt_ids=True, session_id="s")


THINK_LESS = {"chat_template_kwargs": {"enable_thinking": False}, "reasoning_effort": "low"}


def test_further_fields_go_where_they_belong() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        await model.info()
        (answer,) = await model.complete(Request(messages=HI, sampling=Sampling(temperature=0.5)))
        prompt = await model.render(HI)
        await model.score(prompt, [(30,)])
        talks = [body for body in sent(server, "/tokenize") if "messages" in body]
        assert [{name: body[name] for name in THINK_LESS} for body in talks] == [THINK_LESS] * 3
        asked, scored = sent(server)
        assert asked["sampling_params"]["repetition_penalty"] == 1.1
        assert asked["cache_salt"] == scored["cache_salt"] == "a"
        assert "repetition_penalty" not in scored["sampling_params"]  # what is scored is raw
        assert answer.logprob_kind == "temperature=0.5,penalised"
        assert model.policy() == {"extra": {**THINK_LESS, "repetition_penalty": 1.1, "cache_salt": "a"}}

    play(work, extra={**THINK_LESS, "repetition_penalty": 1.1, "cache_salt": "a"})


@pytest.mark.parametrize(
    ("extra", "wrong"),
    [
        ({"enable_thinking": False}, "unknown field `enable_thinking`; allowed are chat_template_kwargs, "),
        ({"frequency_penalty": 3}, "<= 2.0"),
        ({"repetition_penalty": 0}, "> 0"),
    ],
)
def test_further_fields_that_are_none(extra: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ValueError, match=f"^extra: .*{wrong}"):
        SGLang("http://127.0.0.1:1", extra=extra)


def test_an_adapter_that_is_not_loaded_is_an_error_in_the_servers_words() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        with pytest.raises(ModelError, match="LoRA is not enabled"):
            await model.complete(Request(messages=HI))
        with pytest.raises(ModelError, match="no adapter 'mine' is loaded: none is"):
            await model.info()

    play(work, lora_path="mine")


def test_a_request_has_either_messages_or_tokens() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        for wrong in (Request(), Request(messages=HI, prompt_ids=(9,))):
            with pytest.raises(ValueError, match="either messages or prompt_ids"):
                await model.complete(wrong)

    play(work)


@pytest.mark.parametrize("settings", [FAST, Settings(retries=2, first_token_seconds=5)], ids=["whole", "streamed"])
def test_what_the_server_refuses(settings: Settings) -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        with pytest.raises(ContextOverflow, match="context length"):
            await model.complete(Request(prompt_ids=(20,) * 100))
        with pytest.raises(ContextOverflow, match="context length"):
            await model.complete(Request(prompt_ids=(20,) * 10, sampling=Sampling(max_tokens=99)))
        with pytest.raises(ModelError, match=r"(?i)regex") as caught:
            await model.complete(
                Request(prompt_ids=(20,), sampling=Sampling(max_tokens=9), constraint=Constraint("regex", "[a-"))
            )
        assert type(caught.value) is ModelError
        assert server.count["/generate"] == 3

    play(work, FakeSGLang(context_length=64), settings=settings)


@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize("settings", [FAST, Settings(retries=2, first_token_seconds=5)], ids=["whole", "streamed"])
def test_trouble_on_the_way_is_tried_again(settings: Settings) -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        (answer,) = await model.complete(Request(messages=HI, id="same"))
        assert answer.text.startswith("[mark:a]")
        assert [body["rid"] for body in sent(server)] == ["same"] * 3

    fake = FakeSGLang(marked())
    fake.trouble.script(Trouble("status", 503, retry_after=0.0), Trouble("drop"))
    play(work, fake, settings=settings)


@pytest.mark.usefixtures("short_waits")
def test_a_stream_that_breaks_off_is_asked_again() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        (answer,) = await model.complete(Request(messages=HI))
        assert answer.text == "[mark:a] I have thought about it."
        assert server.count["/generate"] == 2

    fake = FakeSGLang(marked())
    fake.trouble.script(Trouble("cut"))
    play(work, fake, settings=Settings(retries=2, first_token_seconds=5))


def test_a_streamed_answer_is_the_same() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        found.append((await model.complete(Request(messages=HI, sampling=Sampling(temperature=0), id="x")))[0])
        assert sent(server)[0].get("stream", False) is (model.settings.first_token_seconds is not None)

    found: list[Completion] = []
    play(work)
    play(work, settings=Settings(first_token_seconds=5))
    assert found[0].ids == found[1].ids
    assert found[0].logprobs == found[1].logprobs
    assert found[0].text == found[1].text


@pytest.mark.parametrize("settings", [FAST, Settings(retries=0, first_token_seconds=5)], ids=["whole", "streamed"])
def test_an_abort_brings_the_tokens_there_were(settings: Settings) -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        (answer,) = await model.complete(Request(messages=HI))
        assert answer.finish == "abort"
        assert answer.reason
        assert 0 < len(answer.ids) == len(answer.logprobs)

    fake = FakeSGLang(marked())
    fake.trouble.script(Trouble("abort"))
    play(work, fake, settings=settings)


def test_an_abort_that_says_later_is_asked_again() -> None:
    later = b'{"text": "", "meta_info": {"finish_reason": {"type": "abort", "message": "full", "status_code": 503}}}'

    async def work(model: SGLang, server: FakeSGLang) -> None:
        (answer,) = await model.complete(Request(messages=HI))
        assert answer.finish == "stop"
        server.trouble.script(*[Trouble("garbage", body=later)] * 3)
        with pytest.raises(ModelError, match=r"full \(asked 3 times\)"):
            await model.complete(Request(messages=HI))

    fake = FakeSGLang(marked())
    fake.trouble.script(Trouble("garbage", body=later))
    play(work, fake)


@pytest.mark.parametrize("garbage", ["text", "empty", "truncated", "wrong types"])
def test_garbage_is_one_line(garbage: str) -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        with pytest.raises(ModelError, match=r"not an answer of /generate .*is it an SGLang server\?"):
            await model.complete(Request(messages=HI))

    fake = FakeSGLang()
    fake.trouble.script(Trouble("garbage", body=garbage))
    play(work, fake)


@pytest.mark.parametrize("settings", [FAST, Settings(first_token_seconds=5)], ids=["whole", "streamed"])
@pytest.mark.parametrize("n", [1, 2])
def test_a_cancelled_request_is_aborted_at_the_server(settings: Settings, n: int) -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        task = asyncio.create_task(model.complete(Request(messages=HI, id="mine", n=n)))
        while not server.engine.running:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while server.engine.running:
            await asyncio.sleep(0.01)
        await model.transport.close()
        assert [body["rid"] for body in sent(server, "/abort_request")] == (["mine"] if n == 1 else [])
        assert len(server.aborted) >= (1 if model.streams else n)  # the fake streams one after the other

    play(work, FakeSGLang(marked(), latency=30.0), settings=settings)


def test_an_attempt_that_still_runs_is_aborted_and_asked_under_another_id() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        running = asyncio.create_task(SGLang(server.url).complete(Request(messages=HI, id="twice")))
        while not server.engine.running:
            await asyncio.sleep(0.01)
        server.engine.latency = 0.0
        (answer,) = await model.complete(Request(messages=HI, id="twice"))
        assert answer.finish == "stop"
        assert (await running)[0].finish == "abort"
        first, second, third = [body["rid"] for body in sent(server)]
        assert first == second == "twice" != third

    play(work, FakeSGLang(marked(), latency=30.0))


def test_an_abort_ends_no_request_whose_id_goes_on() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        tasks = [asyncio.create_task(model.complete(Request(messages=HI))) for _ in range(20)]
        while len(server.engine.running) < len(tasks):
            await asyncio.sleep(0.01)
        tasks[1].cancel()
        await asyncio.wait(tasks)
        assert [task.cancelled() for task in tasks].count(True) == 1
        assert {task.result()[0].finish for task in tasks if not task.cancelled()} == {"stop"}
        assert len({body["rid"] for body in sent(server)}) == len(tasks)

    play(work, FakeSGLang(marked(), latency=0.3))
