"""Seats that were never asked: there is nothing to write of them, which refuses no export."""

from pathlib import Path

import pytest

from arena.adapters.datasets import Credit, Files, Filters, export
from arena.episode import Episode, write
from arena.match import play_sync
from tests.adapters.datasets.talks import llm, played
from tests.adapters.datasets.test_exporting import rows
from tests.agents.toy_model import ToyModel

WORDS = ["sft", "kto", "turns", "minari", "atif", "verifiers", "art?logprobs=false", "verl_prompts"]
TOKENS = [
    "grpo",
    "verl",
    "slime",
    "openrlhf",
    "prime_rl",
    "tinker",
    "tinker_game",
    "skyrl",
    "art",
    "verifiers?tokens=true",
]


def killed_at_once() -> tuple[Episode, list[int]]:
    """A town in which somebody died before he could say a word."""
    episode = play_sync("SecretMafia-v0", ["random"] * 7, 1)
    asked = {turn.seat for turn in episode.turns}
    return episode, [seat for seat in range(7) if seat not in asked]


@pytest.mark.parametrize("spec", WORDS)
def test_of_a_seat_that_was_never_asked_there_is_no_row(spec: str, tmp_path: Path) -> None:
    episode, unasked = killed_at_once()
    assert unasked
    summary = export([episode], spec, tmp_path / "all", kind="jsonl", credit=Credit("rae"))
    assert not summary.lacking
    asked = tuple(seat for seat in range(7) if seat not in unasked)
    export([episode], spec, tmp_path / "asked", kind="jsonl", filters=Filters(seats=asked))
    assert len(rows(tmp_path / "all")) == len(rows(tmp_path / "asked"))
    with pytest.raises(ValueError, match="makes no row of the 1 seats"):
        export([episode], spec, tmp_path / "none", kind="jsonl", filters=Filters(seats=tuple(unasked[:1])))


@pytest.mark.parametrize("spec", [*TOKENS, "verifiers?tokens=true"])
def test_formats_of_tokens_leave_it_out_too(spec: str, tmp_path: Path) -> None:
    models = [llm(ToyModel("no")), llm(ToyModel("5"))]
    lost = played(models, referee=play_sync("TicTacToe-v0", ["first", "first"]).referee)
    assert {turn.seat for turn in lost.turns} == {0}
    write(tmp_path / "lost.jsonl", [lost])
    summary = export(Files(tmp_path / "lost.jsonl"), spec, tmp_path / "out", kind="jsonl")
    assert summary.rows == {"train": 1}
    assert not summary.lacking
