"""POST /generate and the tokenizer's routes."""

import asyncio
import time
from typing import Any

import aiohttp
import pytest

from tests.fakes import tokenizer
from tests.fakes.asking import Asker, asked, asking
from tests.fakes.engine import Asked, marked
from tests.fakes.server import FakeSGLang
from tests.fakes.template import Template


def ids_of(answer: dict[str, Any]) -> list[int]:
    return [one[1] for one in answer["meta_info"]["output_token_logprobs"]]


def test_one_answer() -> None:
    async def test(ask: Asker) -> None:
        answer = await ask.generate("hi there", return_logprob=True, return_prompt_token_ids=True, rid="r1")
        meta = answer["meta_info"]
        assert answer["text"] == "I have thought about it."
        assert answer["prompt_token_ids"] == tokenizer.encode("hi there")
        assert answer["output_ids"] == ids_of(answer)
        assert answer["output_ids"][-1] == tokenizer.EOS
        assert (meta["id"], meta["finish_reason"]) == ("r1", {"type": "stop", "matched": 2})
        assert meta["input_token_logprobs"] == []
        assert meta["weight_versions"] == [{"version": "default", "start": 0, "end": len(answer["output_ids"])}]

    asked(test, FakeSGLang())


def test_batches_n_and_ids() -> None:
    async def test(ask: Asker) -> None:
        two = await ask.generate([[9, 10], [11]], rid=["a", "b"])
        assert [(one["meta_info"]["id"], one["meta_info"]["prompt_tokens"]) for one in two] == [("a", 2), ("b", 1)]
        status, four = await ask.post(
            "/generate", text=["x", "y"], sampling_params=[{"n": 2}, {"n": 2, "max_new_tokens": 1}], rid="c"
        )
        assert status == 200
        assert len({one["meta_info"]["id"] for one in four}) == 4
        assert [len(one["output_ids"]) == 1 for one in four] == [False, False, True, True]

    asked(test, FakeSGLang())


def test_length_stop_and_ignored_eos() -> None:
    async def test(ask: Asker) -> None:
        cut = await ask.generate("x", params={"max_new_tokens": 2})
        assert cut["meta_info"]["finish_reason"] == {"type": "length", "length": 2}
        stopped = await ask.generate("x", params={"stop": ["about", "thought"]})
        assert stopped["text"] == "I have "
        assert stopped["meta_info"]["finish_reason"] == {"type": "stop", "matched": "thought"}
        assert tokenizer.decode(stopped["output_ids"]) == "I have thought"
        kept = await ask.generate("x", params={"stop": "thought", "no_stop_trim": True})
        assert kept["text"] == "I have thought"
        on = await ask.generate("x", params={"ignore_eos": True, "max_new_tokens": 60})
        assert len(on["output_ids"]) == 60
        assert tokenizer.EOS not in on["output_ids"]

    asked(test, FakeSGLang())


def test_the_cache_serves_the_prompt_and_what_was_generated() -> None:
    async def test(ask: Asker) -> None:
        prompt = tokenizer.encode("a long prompt about the game")
        first = await ask.generate(prompt)
        assert first["meta_info"]["cached_tokens"] == 0
        longer = prompt + first["output_ids"] + tokenizer.encode("and then?")
        second = await ask.generate(longer)
        cached = len(prompt) + len(first["output_ids"]) - 1
        assert second["meta_info"]["cached_tokens"] == cached
        assert second["meta_info"]["cached_tokens_details"] == {"device": cached, "host": 0}
        again = await ask.generate(longer)
        assert again["meta_info"]["cached_tokens"] == len(longer) - 1
        scored = await ask.generate(longer, return_logprob=True, logprob_start_len=0)
        assert scored["meta_info"]["cached_tokens"] == 0
        assert (await ask.post("/flush_cache"))[0] == 200
        assert (await ask.generate(longer))["meta_info"]["cached_tokens"] == 0

    asked(test, FakeSGLang())


def test_decoded_and_rescored_logprobs_agree_at_temperature_one_only() -> None:
    async def test(ask: Asker) -> None:
        prompt = tokenizer.encode("who moves?")
        for heat, same in ((1.0, True), (0.0, True), (0.7, False)):
            said = await ask.generate(prompt, params={"temperature": heat}, return_logprob=True)
            whole = prompt + said["output_ids"]
            params = {"max_new_tokens": 0}
            again = await ask.generate(whole, params=params, return_logprob=True, logprob_start_len=len(prompt) - 1)
            assert again["output_ids"] == []
            assert again["meta_info"]["finish_reason"] == {"type": "length", "length": 0}
            null, *raw = again["meta_info"]["input_token_logprobs"]
            assert null == [None, prompt[-1], None]
            assert (raw == said["meta_info"]["output_token_logprobs"]) is same

    asked(test, FakeSGLang())


def test_a_constraint_masks_what_it_forbids() -> None:
    async def test(ask: Asker) -> None:
        answer = await ask.generate("move", params={"regex": r"(\[0\]|\[1\])"}, return_logprob=True)
        logprobs = [one[0] for one in answer["meta_info"]["output_token_logprobs"]]
        assert answer["text"] in {"[0]", "[1]"}
        assert [p == 0.0 for p in logprobs] == [True, False, True, True]
        schema = '{"type": "object", "properties": {"move": {"type": "integer"}}, "required": ["move"]}'
        forced = await ask.generate("move", params={"json_schema": schema}, return_logprob=True)
        assert forced["text"] == '{"move": 0}'
        assert {one[0] for one in forced["meta_info"]["output_token_logprobs"]} == {0.0}

    asked(test, FakeSGLang())


def test_an_answer_against_its_constraint_is_the_tests_mistake() -> None:
    fake = FakeSGLang(lambda prompt, asked: "no move")

    async def test(ask: Asker) -> None:
        with fake.expected("breaks the constraint"):
            assert (await ask.generate("x", params={"regex": "(a|b)"}))["text"] in {"a", "b"}

    asked(test, fake)


def test_top_logprobs_and_texts() -> None:
    async def test(ask: Asker) -> None:
        more = {"return_logprob": True, "top_logprobs_num": 2, "token_ids_logprob": [9]}
        meta = (await ask.generate([9, 10, 11], params={"max_new_tokens": 2}, logprob_start_len=1, **more))["meta_info"]
        assert meta["input_token_logprobs"][0] == [None, 10, None]
        assert [len(row) for row in meta["output_top_logprobs"]] == [2, 2]
        assert meta["input_top_logprobs"][0] is None
        assert [row[0][1] for row in meta["output_token_ids_logprobs"]] == [9, 9]

    asked(test, FakeSGLang())


def test_streams_are_cumulative_and_end_as_the_answer_does() -> None:
    async def test(ask: Asker) -> None:
        *events, done = await ask.events("/generate", text="x", stream=True, return_logprob=True, rid="s")
        assert done == "[DONE]"
        assert [len(event["output_ids"]) for event in events] == list(range(1, len(events) + 1))
        assert [event["meta_info"]["finish_reason"] is None for event in events][-2:] == [True, False]
        assert all(events[-1]["text"].startswith(event["text"]) for event in events)
        assert events[-1]["text"] == "I have thought about it."
        both = await ask.events("/generate", text="x", stream=True, sampling_params={"n": 2, "stream_interval": 50})
        assert [event["index"] for event in both[:-1]] == [0, 1]

    asked(test, FakeSGLang())


def test_a_stream_never_shows_half_a_character() -> None:
    async def test(ask: Asker) -> None:
        events = await ask.events("/generate", text="x", stream=True)
        assert [event["text"] for event in events[:-1] if "\ufffd" in event["text"]] == []
        assert events[-2]["text"] == "zażółć 🎲"

    asked(test, FakeSGLang(lambda prompt, asked: "zażółć 🎲"))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"sampling_params": {}}, "Either text, input_ids or input_embeds should be provided."),
        ({"input_ids": []}, "input_ids cannot be empty."),
        ({"text": "x", "sampling_params": {"temperature": -1}}, "temperature must be a non-negative finite number"),
        ({"text": "x", "sampling_params": {"max_new_tokens": 64}}, "a total of 65 tokens: 1 tokens from the input"),
        ({"input_ids": [9] * 70}, "The input (70 tokens) is longer than the model's context length (64 tokens)."),
        ({"text": "x", "sampling_params": {"regex": "(("}}, "Failed to compile regex grammar: "),
        ({"text": "x", "lora_path": "a"}, "LoRA adapter 'a' was requested, but LoRA is not enabled."),
        ({"text": "x", "session_params": {"id": "a"}}, "Invalid request session id"),
    ],
)
def test_refusals(body: dict[str, Any], says: str) -> None:
    async def test(ask: Asker) -> None:
        status, said = await ask.post("/generate", **body)
        assert status == 400
        assert says in said["error"]["message"]
        streamed = await ask.events("/generate", **body, stream=True)
        assert streamed[0]["error"]["message"] == said["error"]["message"]
        assert streamed[0]["error"]["retryable"] is False

    asked(test, FakeSGLang(context_length=64))


def test_refusals_of_the_contract() -> None:
    fake = FakeSGLang()

    async def test(ask: Asker) -> None:
        with fake.expected("unknown field `foo`"):
            status, said = await ask.post("/generate", text="x", sampling_params={"foo": 1})
        assert (status, said["error"][:20]) == (400, "unknown field `foo`,")
        with fake.expected("invalid type"):
            status, said = await ask.post("/generate", text=5)
        assert (status, said["object"], said["type"], said["code"]) == (400, "error", "Bad Request", 400)

    asked(test, fake)


def test_a_token_outside_the_vocabulary_takes_the_connection_down() -> None:
    fake = FakeSGLang()

    async def test(ask: Asker) -> None:
        with fake.expected("outside the vocabulary"), pytest.raises(aiohttp.ClientError):
            await ask.post("/generate", input_ids=[99_999_999])

    asked(test, fake)


def test_tokenize_and_detokenize() -> None:
    async def test(ask: Asker) -> None:
        ids = tokenizer.encode("hello world")
        assert await ask.post("/tokenize", prompt="hello world") == (
            200,
            {"tokens": [tokenizer.BOS, *ids], "count": len(ids) + 1, "max_model_len": 8192},
        )
        status, bare = await ask.post("/tokenize", prompt=["a", "hello world"], add_special_tokens=False)
        assert (status, bare["tokens"], bare["count"]) == (200, [tokenizer.encode("a"), ids], [1, len(ids)])
        messages = [{"role": "user", "content": "hi"}]
        status, opened = await ask.post("/tokenize", messages=messages, add_generation_prompt=True)
        assert tokenizer.decode(opened["tokens"]) == "<|bos|><|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
        assert (await ask.post("/tokenize", messages=messages))[1] == opened
        shut = (await ask.post("/tokenize", messages=messages, add_generation_prompt=False))[1]["tokens"]
        assert opened["tokens"][: len(shut)] == shut
        tools = [{"type": "function", "function": {"name": "add"}}]
        assert "add" in tokenizer.decode((await ask.post("/tokenize", messages=messages, tools=tools))[1]["tokens"])
        assert await ask.post("/detokenize", tokens=[*ids, tokenizer.EOS]) == (200, {"text": "hello world"})
        assert await ask.post("/detokenize", tokens=[ids, [2]], skip_special_tokens=False) == (
            200,
            {"text": ["hello world", "<|im_end|>"]},
        )
        assert (await ask.post("/tokenize"))[0] == (await ask.post("/detokenize", tokens=[10**9]))[0] == 400

    asked(test, FakeSGLang(template=Template(bos=True)))


def test_retokenising_an_answer_drifts() -> None:
    async def test(ask: Asker) -> None:
        answers = [await ask.generate(f"prompt {number}") for number in range(8)]
        drifted = [one for one in answers if tokenizer.encode(tokenizer.decode(one["output_ids"])) != one["output_ids"]]
        assert drifted
        assert {one["text"] for one in answers} == {"I have thought about it."}

    asked(test, FakeSGLang())
    exact = FakeSGLang(drift=0.0)

    async def same(ask: Asker) -> None:
        one = await ask.generate("x")
        assert tokenizer.encode(tokenizer.decode(one["output_ids"])) == one["output_ids"]

    asked(same, exact)


def test_every_answer_carries_its_askers_mark() -> None:
    async def test(ask: Asker) -> None:
        answers = await asyncio.gather(*(ask.generate(f"[mark:old] then [mark:m{one}] go") for one in range(50)))
        assert [one["text"].split()[0] for one in answers] == [f"[mark:m{one}]" for one in range(50)]

    asked(test, FakeSGLang(marked(), latency=0.01, jitter=0.01))


def test_the_answer_is_told_what_was_asked() -> None:
    seen: list[Asked] = []

    def answer(prompt: str, asked: Asked) -> str:
        seen.append(asked)
        return prompt[::-1]

    async def test(ask: Asker) -> None:
        assert (await ask.generate("abc", params={"n": 2}))[1]["text"] == "cba"
        assert [(one.index, one.body["text"], one.constraint) for one in seen] == [(0, "abc", None), (1, "abc", None)]

    asked(test, FakeSGLang(answer))


def test_latency_is_kept() -> None:
    async def test() -> None:
        async with asking(FakeSGLang(latency=0.5)) as ask:
            began = time.perf_counter()
            await asyncio.gather(*(ask.generate("x") for _ in range(5)))
            assert 0.5 <= time.perf_counter() - began < 2.4, "five at once, not one after the other"

    asyncio.run(test())
