"""SGLang through its native interface: what is kept, what answers cost, scores."""

from pathlib import Path

import pytest

from arena.adapters.models.native import SCORED_AT_ONCE
from arena.adapters.models.sglang import SGLang
from arena.adapters.models.transport import Settings
from arena.model import Message, Request, Sampling
from tests.adapters.models.asking import HI, play, sent
from tests.fakes.server import FakeSGLang


def test_answers_at_temperature_0_are_kept(tmp_path: Path) -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        sure = Request(messages=HI, sampling=Sampling(temperature=0))
        first = await model.complete(sure)
        assert (await model.complete(sure))[0].ids == first[0].ids
        assert server.count["/generate"] == 1
        await model.complete(Request(messages=HI))
        await model.complete(Request(messages=HI))
        assert server.count["/generate"] == 3
        await model.update_weights(f"{server.model_path}/2", "2")
        assert (await model.complete(sure))[0].weight_versions == ((0, "2"),)

    play(work, settings=Settings(cache=str(tmp_path / "answers")))


def test_what_an_answer_costs() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        (answer,) = await model.complete(Request(messages=HI))
        usage = answer.usage
        fresh = usage["prompt_tokens"] - usage["cached_tokens"]
        assert usage["cost"] == pytest.approx((2 * fresh + 8 * usage["completion_tokens"]) / 1e6)

    play(work, settings=Settings(input_price=2, output_price=8, cached_price=0))
    with pytest.raises(ValueError, match="name the model"):
        SGLang("http://127.0.0.1:1", settings=Settings(prices="prices.toml"))


def test_the_prompt_of_several_answers_counts_once() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        first, *others = await model.complete(Request(messages=HI, n=3))
        assert first.usage["prompt_tokens"] == len(await model.render(HI))
        assert [(each.usage["prompt_tokens"], each.usage["cached_tokens"]) for each in others] == [(0, 0)] * 2
        assert others[0].usage["cost"] == pytest.approx(others[0].usage["completion_tokens"] * 8e-6)
        assert not any(each.gaps for each in (first, *others))

    play(work, settings=Settings(input_price=2, output_price=8))


def test_scores_are_the_raw_log_probabilities() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        prompt = await model.render(HI)
        (answer,) = await model.complete(Request(prompt_ids=prompt))
        (cold,) = await model.complete(Request(prompt_ids=prompt, sampling=Sampling(temperature=0.5)))
        raw = await model.rescore(prompt, answer.ids)
        assert raw == pytest.approx(answer.logprobs, abs=1e-6)
        assert await model.rescore(prompt, cold.ids) != pytest.approx(cold.logprobs, abs=1e-3)
        a, b, nothing, again = (await model.score(prompt, [answer.ids, (30, 31), (), answer.ids])).rows
        assert (a, len(b), nothing, again) == (raw, 2, (), raw)

    play(work)


def test_what_scores_cost_is_what_the_server_read() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        prompt, answers = await model.render((Message("user", "x" * 400),)), [(30, 2), (31, 2), (30, 2)]
        usage = (await model.score(prompt, answers)).usage
        assert usage["prompt_tokens"] == 2 * (len(prompt) + 2)  # each answer once, however often it is asked
        assert usage["scored_tokens"] == 4
        assert len(prompt) - 1 <= usage["cached_tokens"] < len(prompt) + 2
        assert usage["seconds"] > 0
        fresh = usage["prompt_tokens"] - usage["cached_tokens"]
        assert usage["cost"] == pytest.approx((2 * fresh + usage["cached_tokens"]) / 1e6)

    play(work, settings=Settings(input_price=2, cached_price=1, output_price=8))


def test_scores_share_the_prompt_in_the_cache() -> None:
    async def work(model: SGLang, server: FakeSGLang) -> None:
        prompt = await model.render((Message("user", "x" * 400),))
        answers = [(30 + i, 2) for i in range(SCORED_AT_ONCE + 2)]
        scores = await model.score(prompt, answers, priority=3)
        assert len(scores.rows) == len(answers)
        assert {body["priority"] for body in sent(server)} == {3}
        assert [len(body["input_ids"]) for body in sent(server)] == [1, SCORED_AT_ONCE, 1]
        assert all(body["logprob_start_len"] == len(prompt) - 1 for body in sent(server))
        (answer,) = await model.complete(Request(prompt_ids=(*prompt, 30)))
        assert answer.usage["cached_tokens"] >= len(prompt) - 1
        server.requests.clear()
        assert (await model.score(prompt, [])).rows == ()
        assert (await model.score(prompt, [()])).rows == ((),)
        assert not server.requests
        with pytest.raises(ValueError, match="after a prompt of at least one token"):
            await model.score((), [(1,)])

    play(work)
