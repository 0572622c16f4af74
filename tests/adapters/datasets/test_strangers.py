"""What strangers may have written into a record, in every format of text."""

from pathlib import Path

import pytest

from arena.adapters.datasets import export
from arena.model import Completion
from tests.adapters.datasets.talks import chat, llm, played
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
