"""Tool tasks in the model's own format of calls."""

import asyncio
import json
from typing import Any

import pytest

from arena.agents.conversation import REWRITTEN
from arena.agents.llm import LLMAgent
from arena.agents.prompting import Prompter, Prompting
from arena.episode import Episode, prompts, validate
from arena.match import play
from arena.model import Completion, Feature, ModelError, Sampling
from arena.referee import Referee
from arena.registry import make_game
from arena.replaying import replay
from arena.tools.codec import CODECS, Call
from arena.tools.task import ToolTask
from tests.agents.toy_model import ToyModel, decode, view

TASK = "CalculatorTask-v0"
CHAT: tuple[Feature, ...] = ("n", "tools")
ADD, TIMES = Call("add", {"a": 2, "b": 3}), Call("multiply", {"a": 2, "b": 3})


def structured(*calls: tuple[str, str], text: str = "", **more: Any) -> Completion:
    """An answer with calls as an OpenAI server gives them."""
    made = [
        {"id": f"id-{at}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for at, (name, arguments) in enumerate(calls)
    ]
    return Completion(text, "tool_calls", tool_calls=tuple(made), **more)


def played(model: ToyModel, tools: str, *, retries: int = 0, **options: Any) -> Episode:
    who = LLMAgent(model, Prompting(tools=tools, **options), Sampling(max_tokens=50))
    episode = asyncio.run(play(TASK, [who], 1, {"max_calls": 3}, Referee(retries=retries, illegal="fallback")))
    validate(episode)
    replay(episode)
    return episode


@pytest.mark.parametrize("tools", [name for name in CODECS if name not in ("json", "openai")])
def test_calls_in_the_models_own_format_are_made(tools: str) -> None:
    said = CODECS[tools].write([ADD])
    model = ToyModel(said, CODECS[tools].write([ADD, TIMES]), "Final answer: 7")
    episode = played(model, tools)
    codec = make_task().codec
    assert [turn.action for turn in episode.turns] == [codec.write([ADD]), codec.write([ADD, TIMES]), "Final answer: 7"]
    recorded = [call for turn in episode.turns for call in turn.attempts[0].calls]
    assert recorded[0].received == said  # as it came
    told = decode(model.requests[-1].prompt_ids)
    assert told.startswith("tools 4\n")
    assert told.count("<|im_start|>tool\n") == 3
    assert f"assistant\n{said}<|im_end|><|im_start|>tool\nYou called add(a=2, b=3) -> 5\n\nA depot has" in told
    assert told.count("<|im_start|>tool\nYou called add(a=2, b=3) -> 5<|im_end|>") == 1  # the first of two, alone
    assert prompts(recorded) == [request.prompt_ids for request in model.requests]
    assert recorded[1].extends == len(recorded[0].prompt_ids) + len(recorded[0].completion_ids)
    assert episode.gaps == ()


def make_task() -> ToolTask:
    task = make_game(TASK)
    assert isinstance(task, ToolTask)
    return task


def test_the_rules_do_not_teach_another_format() -> None:
    task = make_task()
    told = Prompter(Prompting(tools="hermes")).system(view(task))
    assert '{"name"' not in told
    assert "Tools:" not in told
    assert "Call tools in your own format" in told
    assert "You have 16 calls" in told
    assert task.rules(0) in Prompter(Prompting()).system(view(task))
    schemas = Prompter(Prompting(tools="hermes")).schemas(task)
    assert [schema["function"]["name"] for schema in schemas] == ["add", "subtract", "multiply", "divide"]
    assert Prompter(Prompting()).schemas(task) == ()


def test_the_tasks_own_way_needs_no_option() -> None:
    model = ToyModel(make_task().codec.write([ADD]), "Final answer: 7")
    episode = played(model, "")
    assert episode.turns[0].action == '{"name": "add", "arguments": {"a": 2, "b": 3}}'
    assert not model.requests[0].tools
    assert "<|im_start|>user\nYou called add(a=2, b=3) -> 5" in decode(model.requests[1].prompt_ids)


@pytest.mark.parametrize(
    "said",
    [
        '<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}',
        '<tool_call>\n{"name": "add", "arguments": [2, 3]}\n</tool_call>',
        '<tool_call>\n{"name": "add", "name": "add", "arguments": {}}\n</tool_call>',
    ],
)
def test_a_malformed_call_comes_back_and_is_never_made(said: str) -> None:
    model = ToyModel(said[:-1] if said.endswith("}") else said, "Final answer: 7")
    episode = played(model, "hermes")
    told = decode(model.requests[1].prompt_ids)
    assert "Not a call, but counted as one: " in told
    assert "You called" not in told
    assert told.count("<|im_start|>user\n") == 2  # no result of a tool
    assert episode.turns[0].action == (said[:-1] if said.endswith("}") else said)


def test_a_call_in_a_thought_is_none() -> None:
    call = CODECS["hermes"].write([ADD])
    model = ToyModel(f"<think>{call}</think>Final answer: 7")
    episode = played(model, "hermes")
    assert len(episode.turns) == 1
    assert episode.turns[0].attempts[0].reasoning == call


def test_results_cannot_open_a_turn_or_end_a_result() -> None:
    said = CODECS["hermes"].write([Call("</tool_response><|im_end|>", {})])
    model = ToyModel(said, "Final answer: 7")
    played(model, "hermes")
    told = decode(model.requests[1].prompt_ids).rpartition("<|im_start|>tool\n")[2]
    assert "< /tool_response>< |im_end|>" in told


def test_what_was_not_made_is_said_to_each_call() -> None:
    model = ToyModel(CODECS["hermes"].write([ADD] * 5), "Final answer: 7")
    played(model, "hermes")
    results = decode(model.requests[1].prompt_ids).split("<|im_start|>tool\n")[1:]
    told = [result.partition("<|im_end|>")[0] for result in results]
    assert told[:4] == [*["You called add(a=2, b=3) -> 5"] * 3, "No calls are left: 2 not made."]
    assert told[4].endswith("Calls left: 0.")


def test_a_call_too_many_is_answered_by_the_referee() -> None:
    model = ToyModel(*[CODECS["hermes"].write([ADD])] * 4, "Final answer: 7")
    episode = played(model, "hermes", retries=1)
    assert [each.verdict for each in episode.turns[-1].attempts] == ["illegal", "legal"]
    last = decode(model.requests[-1].prompt_ids).rpartition("<|im_start|>tool\n")[2]
    assert last.startswith("[Not accepted: no calls are left")


def test_structured_calls_of_a_chat_server() -> None:
    model = ToyModel(structured(("add", '{"a": 2, "b": 3}'), text="Let me see"), "Final answer: 7", features=CHAT)
    episode = played(model, "openai")
    assert episode.turns[0].action == '{"name": "add", "arguments": {"a": 2, "b": 3}}'
    call = episode.turns[0].attempts[0].calls[0]
    assert call.kind == "chat"
    assert json.loads(call.received)["content"] == "Let me see"
    assert len(model.requests[0].tools) == 4
    system, user, assistant, result = model.requests[1].messages
    assert (system.role, user.role) == ("system", "user")
    assert assistant.content == "Let me see"
    assert assistant.tool_calls[0]["id"] == result.tool_call_id == "id-0"
    assert result.role == "tool"
    assert result.content.startswith("You called add(a=2, b=3) -> 5")


@pytest.mark.parametrize("arguments", ['{"a": 2', "[1]", '{"a": 1, "a": 2}', "x" * 200_000])
def test_malformed_structured_calls_are_never_made(arguments: str) -> None:
    model = ToyModel(structured(("add", arguments)), "Final answer: 7", features=CHAT)
    episode = played(model, "openai", retries=1)
    last = model.requests[-1].messages
    assert [message.role for message in last] == ["system", "user", "assistant", "user"]
    assert not last[2].tool_calls
    assert "Not a call" in last[3].content or "Not accepted" in last[3].content
    assert not any("You called" in event for turn in episode.turns for event in turn.events)


def test_structured_calls_nested_too_deep() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}
    call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": deep}}
    model = ToyModel(Completion("", "tool_calls", tool_calls=(call,)), "Final answer: 7", features=CHAT)
    assert played(model, "openai").outcome == "terminated"


def test_a_chat_server_that_parses_no_calls_gets_them_back_structured() -> None:
    model = ToyModel("So: " + CODECS["hermes"].write([ADD]), "Final answer: 7", features=("n",))
    episode = played(model, "hermes")
    assistant, result = model.requests[1].messages[2:]
    assert assistant.content == "So:"
    assert assistant.tool_calls[0]["function"] == {"name": "add", "arguments": '{"a": 2, "b": 3}'}
    assert result.tool_call_id == assistant.tool_calls[0]["id"] == "call00000"
    assert episode.turns[0].action is not None


@pytest.mark.parametrize("thinking", ["separate", "keep", "strip"])
@pytest.mark.parametrize("tools", ["openai", "hermes"])
def test_thoughts_stay_with_the_calls_they_led_to(tools: str, thinking: str) -> None:
    call = structured(("add", '{"a": 2, "b": 3}'), text="So:", reasoning="two and three")
    if tools == "hermes":
        call = Completion("So: " + CODECS["hermes"].write([ADD]), reasoning="two and three")
    model = ToyModel(call, "Final answer: 7", features=CHAT)
    played(model, tools, thinking=thinking)
    before = model.requests[1].messages[2]
    assert before.tool_calls
    assert before.content == ("<think>\ntwo and three\n</think>\n\nSo:" if thinking == "keep" else "So:")
    assert before.reasoning == ("two and three" if thinking == "separate" else "")


def test_a_thought_in_the_text_stays_with_the_call_it_led_to() -> None:
    said = "<think>hm</think>So: " + CODECS["hermes"].write([ADD])
    for thinking, history in (("separate", "<think>\nhm\n</think>\n\nSo:"), ("strip", "So:")):
        model = ToyModel(said, "Final answer: 7", features=CHAT)
        played(model, "hermes", thinking=thinking)
        assert model.requests[1].messages[2].content == history


def test_ids_of_calls_go_on_from_turn_to_turn() -> None:
    model = ToyModel(CODECS["hermes"].write([ADD]), CODECS["hermes"].write([TIMES]), "1", features=("n",))
    played(model, "hermes")
    assert [m.tool_call_id for m in model.requests[-1].messages if m.role == "tool"] == ["call00000", "call00001"]


def test_a_snapshot_tells_results_as_events() -> None:
    model = ToyModel(CODECS["hermes"].write([ADD]), CODECS["hermes"].write([TIMES]), "1")
    played(model, "hermes", style="snapshot")
    told = decode(model.requests[-1].prompt_ids)
    assert "<|im_start|>tool" not in told
    assert "<|im_start|>user\nYou called add(a=2, b=3) -> 5\nYou called multiply(a=2, b=3) -> 6\n\nA depot" in told


def test_a_template_that_writes_calls_otherwise_once_they_have_results_is_a_break() -> None:
    model = ToyModel(CODECS["hermes"].write([ADD]), "1", rewrites=True)
    episode = played(model, "hermes")
    assert episode.gaps == (REWRITTEN,)
    assert "assistant*\n<call>add<|im_end|>" in decode(model.requests[1].prompt_ids)


def test_preflight_tries_results() -> None:
    class NoResults(ToyModel):
        async def render(self, messages: Any, tools: Any = (), *, reply: bool = True) -> tuple[int, ...]:
            if any(message.role == "tool" for message in messages):
                raise ModelError("roles must alternate")
            return await super().render(messages, tools, reply=reply)

    who = LLMAgent(NoResults("1"), Prompting(tools="hermes"))
    with pytest.raises(
        ModelError, match="the chat template of toy at http://toy takes no results of tools: roles must"
    ):
        asyncio.run(who.prepare(make_game(TASK), Referee()))
    asyncio.run(LLMAgent(ToyModel("1"), Prompting(tools="hermes")).prepare(make_game(TASK), Referee()))


def test_preflight_sees_that_a_template_shows_no_tools() -> None:
    class Blind(ToyModel):
        async def render(self, messages: Any, tools: Any = (), *, reply: bool = True) -> tuple[int, ...]:
            return await super().render(messages, (), reply=reply)

    with pytest.raises(ValueError, match="the chat template of toy at http://toy shows no tools; leave tools out"):
        asyncio.run(LLMAgent(Blind("1"), Prompting(tools="hermes")).prepare(make_game(TASK), Referee()))
