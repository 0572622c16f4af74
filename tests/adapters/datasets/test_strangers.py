"""What strangers may have written into a record, in every format of text."""

from pathlib import Path

import pytest

from arena.adapters.datasets import export
from arena.adapters.datasets.chat import exchanges
from arena.model import Completion
from tests.adapters.datasets.talks import chat, llm, played, seat
from tests.adapters.datasets.test_exporting import rows

SPELT = '{"content": "5\\ud800", "tool_calls": [{"id": "\\ud800", "function": {"name": "\\udfff", "arguments": "{}"}}]}'
CALLED = Completion("5\ud800", tool_calls=({"id": "\ud800", "function": {"name": "\udfff", "arguments": "{}"}},))
FORMATS = ["sft?legal_only=false", "sft?turns=all&legal_only=false", "kto", "atif", "verifiers", "art?logprobs=false"]


@pytest.mark.parametrize("spec", FORMATS)
@pytest.mark.parametrize("reply", [SPELT, CALLED])
@pytest.mark.parametrize("tools", ["", "openai"])
def test_lone_surrogates_in_an_answer_stop_no_export(
    spec: str, reply: str | Completion, tools: str, tmp_path: Path
) -> None:
    episodes = [
        played([llm(chat(reply, "5"), tools=tools), "random"]),
        played([llm(chat(reply, "Final answer: 7"), tools=tools)], "CalculatorTask-v0"),
    ]
    for at, episode in enumerate(episodes):
        export([episode], spec, tmp_path / str(at), kind="jsonl")
        assert "\ufffd" in str(rows(tmp_path / str(at))) or "\\ud800" in str(rows(tmp_path / str(at)))


@pytest.mark.parametrize("game", ["TicTacToe-v0", "CalculatorTask-v0"])
@pytest.mark.parametrize("content", ["no", "<answer>5</answer>"])
def test_words_that_look_like_calls_are_words_where_no_tools_were_offered(game: str, content: str) -> None:
    wrote = f'{{"content": "{content}", "tool_calls": [{{"id": "x", "function": {{"name": "add"}}}}]}}'
    model = chat(wrote, "<answer>5</answer>", "Final answer: 7")
    episode = played([llm(model), *["random"] * (game == "TicTacToe-v0")], game)
    found = list(exchanges(seat(episode)))
    assert found[0].answer.content == wrote
    assert [each.prompt for each in found] == model.told
