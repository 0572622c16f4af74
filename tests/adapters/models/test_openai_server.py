"""OpenAICompatible against the fake server: what kind it is, what goes wrong, what it costs."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from arena.adapters.models.openai import OpenAICompatible
from arena.adapters.models.settings import Settings
from arena.model import (
    ContextOverflow,
    Feature,
    Message,
    ModelError,
    Request,
)
from tests.adapters.models.chatting import (
    DIALECTS,
    HELLO,
    WAYS,
    completed,
    informed,
    sampled,
    says,
    used,
)
from tests.adapters.models.small_server import closed_port, settle
from tests.fakes.server import Dialect, FakeSGLang
from tests.fakes.trouble import Trouble, Troubles

pytestmark = pytest.mark.usefixtures("short_waits")


# -- what is the server -----------------------------------------------------------------------------------------------

TAKES: dict[str, set[Feature]] = {
    "sglang": {"logprobs", "regex", "json_schema", "ebnf", "n", "tools"},
    "vllm": {"logprobs", "regex", "json_schema", "ebnf", "n", "tools"},
    "openai": {"json_schema", "n", "tools"},
}


@DIALECTS
def test_info(dialect: Dialect) -> None:
    info = informed(FakeSGLang(dialect=dialect, model="small"))
    assert (info.model, set(info.features)) == ("small", TAKES[dialect])
    assert info.details == {"route": "/v1/chat/completions", "extras": dialect}
    assert info.context == (0 if dialect == "openai" else 8192)
    assert info.server.startswith({"sglang": "SGLang", "vllm": "vLLM", "openai": "OpenAI-compatible"}[dialect])


def test_features_are_known_at_once_where_the_kind_is_given_and_later_where_not() -> None:
    async def use(model: OpenAICompatible) -> frozenset[Feature]:
        assert model.features == frozenset()
        await model.complete(HELLO)
        return model.features

    assert used(use, FakeSGLang()) == TAKES["sglang"]
    known = OpenAICompatible("http://host", extras="sglang", logprobs=False)
    assert known.features == TAKES["sglang"] - {"logprobs"}


def test_the_kind_is_asked_once() -> None:
    fake = FakeSGLang()

    async def use(model: OpenAICompatible) -> None:
        await asyncio.gather(*(model.complete(HELLO) for _ in range(20)))

    used(use, fake)
    assert (fake.count["/v1/models"], fake.count["/model_info"], fake.count["/v1/chat/completions"]) == (1, 1, 20)


def test_one_model_object_in_two_event_loops() -> None:
    model = None
    for _ in range(2):

        async def main() -> None:
            nonlocal model
            async with FakeSGLang() as fake:
                model = model or OpenAICompatible(fake.url)
                if model.transport.urls == (fake.url,):
                    await asyncio.gather(*(model.complete(HELLO) for _ in range(5)))
                else:
                    with pytest.raises(ModelError, match="cannot connect"):
                        await model.info()

        asyncio.run(main())


def test_an_unknown_model_is_an_error_that_names_those_there_are() -> None:
    line = r"has no model quen-7b: did you mean qwen-7b\? there are llama, qwen-7b"
    with pytest.raises(ModelError, match=line):
        informed(FakeSGLang(dialect="openai", model_names=["llama", "qwen-7b"]), model="quen-7b")
    with pytest.raises(ModelError, match="has no model other: there are fake"):  # SGLang itself would take any name
        informed(FakeSGLang(), model="other")


def test_which_of_several_models_must_be_said() -> None:
    for use in (informed, lambda fake: completed(HELLO, fake)):
        with pytest.raises(ModelError, match="name the model in model=; there are a, b"):
            use(FakeSGLang(dialect="openai", model_names=["a", "b"]))


def test_a_hosted_service_says_so_itself_where_info_was_not_asked() -> None:
    with pytest.raises(ModelError, match=r"answers 404: The model `b` does not exist"):
        completed(HELLO, FakeSGLang(dialect="openai", model_names=["a"]), model="b", extras="openai")


def test_a_wrong_key_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", "key-wrong-123")
    with pytest.raises(ModelError, match=r"refused the key \(401: .*api_key_env=MODEL_KEY") as caught:
        informed(FakeSGLang(api_key="key-right"), settings=Settings(api_key_env="MODEL_KEY"))
    assert "key-wrong-123" not in str(caught.value)
    with pytest.raises(ModelError, match=r"asks for a key \(401"):
        informed(FakeSGLang(api_key="key-right"))
    monkeypatch.setenv("MODEL_KEY", "key-right")
    assert informed(FakeSGLang(api_key="key-right"), settings=Settings(api_key_env="MODEL_KEY")).model == "fake"


def test_nobody_there_is_one_line() -> None:
    with pytest.raises(ModelError, match=r"cannot connect to http://127.*is the server up"):
        informed(FakeSGLang(), url=f"http://127.0.0.1:{closed_port()}")


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/"])
def test_the_base_url_with_or_without_v1(path: str) -> None:
    async def main() -> str:
        async with FakeSGLang() as fake:
            model = OpenAICompatible(fake.url + path)
            await model.complete(HELLO)
            found = await model.info()
            await model.close()
            return found.server

    assert asyncio.run(main()) == "SGLang"


def test_a_base_url_that_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"name the base URL, http://host/v1$"):
        OpenAICompatible("http://host/v1/chat/completions")

    async def main() -> None:
        async with FakeSGLang() as fake:
            model = OpenAICompatible(fake.url + "/api", model="fake", extras="openai")
            await model.complete(HELLO)

    with pytest.raises(ModelError, match=r"/api has no /v1/chat/completions \(404\): is it the right kind of server"):
        asyncio.run(main())


@pytest.mark.parametrize("wrong", [{"extras": "sgl"}, {"max_tokens_field": "max"}])
def test_options_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="allowed are"):
        OpenAICompatible("http://host", **wrong)


# -- trouble ----------------------------------------------------------------------------------------------------------


def troubled(*outcomes: Trouble, dialect: Dialect = "sglang") -> FakeSGLang:
    troubles = Troubles()
    troubles.script(*outcomes)
    return FakeSGLang(says("I play [4]."), dialect=dialect, trouble=troubles)


@WAYS
@pytest.mark.parametrize(
    "trouble",
    [
        Trouble("status", status=503),
        Trouble("status", status=429, retry_after=0.01),
        Trouble("drop"),
        Trouble("cut"),
        *[Trouble("garbage", body=kind) for kind in ("text", "empty", "truncated", "wrong types", "huge")],
        Trouble("garbage", body=b"{}"),
        Trouble("garbage", body=b'{"choices": []}'),
        Trouble("garbage", body=b'{"error": {"message": "upstream is busy", "code": 503}}'),
        Trouble("garbage", body=b"[" * 100_000),
        Trouble("garbage", body=b'{"choices": [{"message": {"content": "\xff"}}]}'),
    ],
    ids=str,
)
def test_trouble_passes(trouble: Trouble, settings: Settings) -> None:
    (answer,) = completed(HELLO, troubled(trouble, dialect="openai"), settings=settings)
    assert answer.text == "I play [4]."


def test_what_cannot_be_read_again_and_again_is_an_error() -> None:
    outcomes = [Trouble("garbage", body="text")] * 9
    with pytest.raises(
        ModelError, match=r"cannot be read \(.*\): is it an OpenAI-compatible server\? \(asked 3 times\)"
    ):
        completed(HELLO, troubled(*outcomes))


def test_an_abort_keeps_what_there_is() -> None:
    (answer,) = completed(HELLO, troubled(Trouble("abort")))
    assert answer.finish == "abort"
    assert answer.reason


def test_a_full_context() -> None:
    with pytest.raises(ContextOverflow):
        completed(Request((Message("user", "hi " * 9000),)), FakeSGLang())
    in_body = b'{"error": {"message": "longer than the model\'s context length", "code": 400}}'
    with pytest.raises(ContextOverflow):
        completed(HELLO, troubled(Trouble("garbage", body=in_body)))
    with pytest.raises(ModelError, match="fake answers with an error: out of tokens"):
        completed(HELLO, troubled(Trouble("garbage", body=b'{"error": "out of tokens"}')))


def test_a_cancelled_request_is_aborted_at_the_server() -> None:
    async def main() -> None:
        async with FakeSGLang(latency=30) as fake:
            model = OpenAICompatible(fake.url, model="fake", extras="sglang")
            call = asyncio.create_task(model.complete(Request(HELLO.messages, id="mine")))
            await settle(lambda: fake.in_flight > 0)
            await asyncio.sleep(0.02)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await settle(lambda: "mine" in fake.aborted)
            await model.close()

    asyncio.run(main())


def test_one_failure_among_several_questions_is_a_model_error() -> None:
    async def main() -> None:
        fake = troubled(*[Trouble("status", status=400)] * 2, dialect="openai")
        async with fake:
            model = OpenAICompatible(fake.url, model="fake", extras="none")
            with pytest.raises(ModelError, match="answers 400"):
                await model.complete(Request(HELLO.messages, n=3))
            await model.close()

    asyncio.run(main())


# -- money ------------------------------------------------------------------------------------------------------------


def test_cost_by_the_settings_or_the_file(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text('["fake"]\ninput = 1\noutput = 2\n')
    (answer,) = completed(HELLO, FakeSGLang(), settings=Settings(prices=str(tmp_path / "prices.toml")))
    usage = answer.usage
    assert usage["cost"] == pytest.approx((usage["prompt_tokens"] + 2 * usage["completion_tokens"]) / 1e6)
    with pytest.raises(ValueError, match="other is not listed; there are fake"):
        OpenAICompatible("http://host", model="other", settings=Settings(prices=str(tmp_path / "prices.toml")))


def test_answers_at_temperature_0_are_kept(tmp_path: Path) -> None:
    settings = Settings(cache=str(tmp_path), input_price=1.0, output_price=1.0)
    cold = sampled(temperature=0)

    async def main() -> None:
        async with FakeSGLang() as fake:
            first = OpenAICompatible(fake.url, settings=settings)
            (asked,) = await first.complete(cold)
            (kept,) = await first.complete(cold)
            (again,) = await OpenAICompatible(fake.url, settings=settings).complete(cold)
            assert (kept.text, kept.ids, again.text) == (asked.text, asked.ids, asked.text)
            assert (kept.usage["cached_answer"], kept.usage["cost"], "cached_answer" in asked.usage) == (1, 0, False)
            await first.complete(sampled(temperature=0.1))
            await first.complete(sampled(temperature=0.1))
            assert fake.count["/v1/chat/completions"] == 3
            await first.close()

    asyncio.run(main())
