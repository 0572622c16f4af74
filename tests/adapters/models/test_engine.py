"""The engine in process: with a stand-in for SGLang, and (marked `sglang`) with the real one, in its environment."""

import asyncio
import importlib
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from arena.adapters.models.engine import Engine
from arena.model import Completion, Constraint, ContextOverflow, Message, ModelError, Request
from tests.sglang.recipe import Recipe, offline

HI = (Message("user", "Hi"),)


class HTTPException(Exception):
    """As fastapi's."""

    def __init__(self, status_code: int, detail: str) -> None:
        super().__init__(detail)
        self.status_code, self.detail = status_code, detail


class Tokenizer:
    """One token a character."""

    seen: list[Any]

    def apply_chat_template(
        self, messages: Any, *, tools: Any, add_generation_prompt: bool, tokenize: bool, **variables: Any
    ) -> str:
        assert tokenize is False
        self.variables = variables
        if messages[0]["content"] == "bad":
            raise ValueError("Conversation roles must alternate")
        self.seen = [messages, tools]
        return "".join(f"<{m['role']}>{m['content']}" for m in messages) + (
            "<assistant>" if add_generation_prompt else ""
        )

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        assert add_special_tokens is False
        return [ord(char) for char in text]


class StandIn:
    """What `arena.adapters.models.engine` uses of `sglang.Engine`; it must always be in one thread, and one loop."""

    made: "list[StandIn]"

    def __init__(self, model_path: str, **server_args: Any) -> None:
        if model_path == "/nowhere":
            raise OSError("no such\nfolder")
        self.server_args, self.asked = server_args, list[Any]()
        self.aborted, self.ended = list[str](), False
        self.thread = threading.current_thread()
        self.tokenizer_manager = SimpleNamespace(
            tokenizer=Tokenizer(),
            abort_request=self.aborted.append,
            model_config=SimpleNamespace(context_len=64),
            server_args=SimpleNamespace(resolved_dict=lambda: {"dtype": "float32", "grammar_backend": None}),
        )
        StandIn.made.append(self)

    async def async_generate(self, **asked: Any) -> Any:
        assert threading.current_thread() is self.thread
        self.asked.append(asked)
        ids = asked["input_ids"]
        if isinstance(ids[0], list):
            return [self._read(each, asked["logprob_start_len"]) for each in ids]
        if len(ids) > 64:
            raise ValueError("The input (99 tokens) is longer than the model's context length (64 tokens).")
        if ids == [1]:
            await asyncio.sleep(60)
        if ids == [2]:
            raise HTTPException(503, "The request queue is full.")
        return self._said(ids)

    def _said(self, ids: list[int]) -> dict[str, Any]:
        meta = {
            "finish_reason": {"type": "stop", "matched": 0},
            "prompt_tokens": len(ids),
            "completion_tokens": 2,
            "output_token_logprobs": [[-0.5, 7, None], [-0.25, 0, None]],
            "weight_version": "w",
        }
        return {"text": "x", "output_ids": [7, 0], "meta_info": meta}

    def _read(self, ids: list[int], start: int) -> dict[str, Any]:
        entries = [[None if at == start else -float(at), id_, None] for at, id_ in enumerate(ids) if at >= start]
        return {
            "text": "",
            "output_ids": [],
            "meta_info": {"input_token_logprobs": entries, "finish_reason": {"type": "length"}},
        }

    def get_model_info(self) -> dict[str, Any]:
        return {"weight_version": "w", "reasoning_parser": None}

    def shutdown(self) -> None:
        self.ended = True


@pytest.fixture(autouse=True)
def stand_in(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package `sglang` that is none, but for tests of the real one."""
    if request.node.get_closest_marker("sglang"):
        return
    StandIn.made = []
    module = ModuleType("sglang")
    module.__spec__ = importlib.machinery.ModuleSpec("sglang", None)
    module.__dict__.update(Engine=StandIn, __version__="0.5.23")
    web = ModuleType("fastapi")
    web.__dict__.update(HTTPException=HTTPException)
    monkeypatch.setitem(sys.modules, "sglang", module)
    monkeypatch.setitem(sys.modules, "fastapi", web)


def test_without_sglang_there_is_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "sglang")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"SGLang is not installed here: install it .* sglang:http://"):
        Engine("/model")


def test_it_is_loaded_once_when_it_is_first_asked() -> None:
    model = Engine("/model", server_args={"dtype": "float32"})
    assert StandIn.made == []

    async def ask() -> list[Any]:
        return await asyncio.gather(*[model.complete(Request(prompt_ids=(5, 6))) for _ in range(3)])

    first, second = asyncio.run(ask()), asyncio.run(ask())  # from two event loops
    (engine,) = StandIn.made
    assert engine.server_args == {"log_level": "error", "dtype": "float32"}
    assert len(engine.asked) == 6
    assert [answer.text for (answer,) in first + second] == ["x"] * 6
    asyncio.run(model.close())
    asyncio.run(model.close())
    assert engine.ended
    assert not engine.thread.is_alive()


def asked(request: Request, **options: Any) -> tuple[Completion, dict[str, Any], StandIn]:
    model = Engine("/model", **options)

    async def ask() -> Completion:
        try:
            return (await model.complete(request))[0]
        finally:
            await model.close()

    answer = asyncio.run(ask())
    return answer, StandIn.made[0].asked[0], StandIn.made[0]


def test_answers_are_those_of_the_server() -> None:
    constraint = Constraint("regex", "x")
    answer, sent, _ = asked(Request(prompt_ids=(5, 6), constraint=constraint, id="mine", priority=1), lora_path="a")
    assert (answer.ids, answer.logprobs, answer.logprob_kind) == ((7, 0), (-0.5, -0.25), "regex")
    assert (answer.finish, answer.gaps, answer.weight_versions) == ("stop", (), ((0, "w"),))
    assert {key: sent[key] for key in ("input_ids", "rid", "priority", "lora_path", "return_logprob")} == {
        "input_ids": [5, 6],
        "rid": "mine",
        "priority": 1,
        "lora_path": "a",
        "return_logprob": True,
    }
    assert sent["sampling_params"]["regex"] == "x"


def test_messages_go_through_the_template() -> None:
    calls = ({"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},)
    tools = ({"type": "function", "function": {"name": "f"}},)
    _, sent, engine = asked(Request((*HI, Message("assistant", tool_calls=calls)), tools=tools))
    assert "".join(map(chr, sent["input_ids"])) == "<user>Hi<assistant><assistant>"
    messages, shown = engine.tokenizer_manager.tokenizer.seen
    assert messages[0] == {"role": "user", "content": "Hi"}
    assert messages[1]["tool_calls"][0]["function"] == {"name": "f", "arguments": {"a": 1}}
    assert shown == list(tools)


@pytest.mark.parametrize(
    ("request_", "kind", "words"),
    [
        (Request(prompt_ids=(5,) * 99), ContextOverflow, "context length"),
        (Request(prompt_ids=(2,)), ModelError, "The request queue is full"),
        (Request((Message("user", "bad"),)), ModelError, "roles must alternate"),
        (
            Request((Message("assistant", tool_calls=({"function": {"name": "f", "arguments": "{"}},)),)),
            ModelError,
            "the arguments of a tool call are not JSON",
        ),
    ],
)
def test_what_it_refuses(request_: Request, kind: type[ModelError], words: str) -> None:
    with pytest.raises(kind, match=words):
        asked(request_)


def test_further_fields_go_where_they_belong() -> None:
    extra = {"chat_template_kwargs": {"enable_thinking": False}, "presence_penalty": 0.5, "cache_salt": "a"}
    answer, sent, engine = asked(Request(HI), extra=extra)
    assert (sent["sampling_params"]["presence_penalty"], sent["cache_salt"]) == (0.5, "a")
    assert answer.logprob_kind == "penalised"
    assert engine.tokenizer_manager.tokenizer.variables == {"enable_thinking": False}
    assert Engine("/model", extra=extra, server_args={"dtype": "auto"}).policy() == {
        "extra": extra,
        "server_args": {"dtype": "auto"},
    }


def test_a_model_that_cannot_be_loaded() -> None:
    with pytest.raises(ModelError, match=r"^/nowhere cannot be loaded: no such folder$"):
        asyncio.run(Engine("/nowhere").info())


def test_a_cancelled_request_is_aborted() -> None:
    async def run() -> None:
        model = Engine("/model")
        task = asyncio.create_task(model.complete(Request(prompt_ids=(1,), id="mine")))
        while not (StandIn.made and StandIn.made[0].asked):
            await asyncio.sleep(0.005)
        task.cancel()
        await asyncio.wait([task])
        await model.close()
        assert StandIn.made[0].aborted == ["mine"]

    asyncio.run(run())


def test_scores_and_facts() -> None:
    async def run() -> None:
        model = Engine("/model", logprobs=False)
        assert (await model.score((5, 6), [(7,), (8, 9)])).rows == ((-2.0,), (-2.0, -3.0))
        assert await model.encode(["ab"]) == ((97, 98),)
        info = await model.info()
        assert (info.model, info.server, info.context) == ("/model", "SGLang 0.5.23 in process", 64)
        assert (info.weight_version, info.details) == ("w", {"dtype": "float32"})
        assert "logprobs" not in info.features
        await model.close()

    asyncio.run(run())


REAL = """
import asyncio, json, sys
from arena.adapters.models.engine import Engine
from arena.model import Constraint, Message, Request, Sampling

CPU = dict(
    device="cpu", attention_backend="torch_native", sampling_backend="pytorch", grammar_backend="xgrammar",
    dtype="float32", max_total_tokens=4096, max_running_requests=8, context_length=1024, disable_overlap_schedule=True,
)

async def first(model):
    prompt = await model.render((Message("user", "What is the capital of France? Answer in one sentence."),))
    (said,) = await model.complete(Request(prompt_ids=prompt, sampling=Sampling(max_tokens=16, temperature=0)))
    raw = await model.rescore(prompt, said.ids)
    return said, max(abs(a - b) for a, b in zip(said.logprobs, raw, strict=True))

async def second(model):
    cell, short = Constraint("regex", "\\\\[[0-8]\\\\]"), Sampling(max_tokens=8)
    request = Request((Message("user", "Choose a cell."),), sampling=short, constraint=cell, n=2)
    answers = await model.complete(request)
    info = await model.info()
    await model.close()
    return answers, info

if __name__ == "__main__":
    model = Engine(sys.argv[1], server_args=CPU)
    said, apart = asyncio.run(first(model))
    answers, info = asyncio.run(second(model))
    found = dict(text=said.text, apart=apart, gaps=said.gaps, moves=[a.text for a in answers], server=info.server)
    print(json.dumps(found))
"""


@pytest.mark.sglang
def test_the_real_engine(tmp_path: Path) -> None:
    recipe = Recipe.from_environment()
    if missing := recipe.missing():
        stop = pytest.skip if os.environ.get("SGLANG_BASE_URL") else pytest.fail  # tests of a server elsewhere go on
        stop(f"make sglang-cpu first: {', '.join(missing)} missing")
    script = tmp_path / "play.py"
    script.write_text(REAL, encoding="utf-8")
    done = subprocess.run(
        [recipe.python, script, recipe.model],
        env={**offline(), "SGLANG_USE_CPU_ENGINE": "1", "OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    print(f"engine: decode - prefill {found['apart']:.1e}")
    assert found["text"] == "The capital of France is Paris."
    assert found["apart"] < 1e-3
    assert found["gaps"] == []
    assert all(len(move) == 3 and move[1] in "012345678" for move in found["moves"])
    assert found["server"].startswith("SGLang 0.5")
