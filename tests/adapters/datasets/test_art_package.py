"""Exported groups, loaded and tokenized by openpipe-art itself."""

import math
import os
from pathlib import Path
from typing import Any

import pytest

from arena.adapters.datasets.art import read_groups
from arena.adapters.datasets.exporting import export
from arena.adapters.datasets.filters import Filters
from arena.adapters.datasets.trajectory import Trajectory
from arena.episode import Episode
from arena.model import Completion
from arena.tools.codec import CODECS
from tests.adapters.datasets.talks import chat, llm, played
from tests.adapters.datasets.test_verifiers_graph import ADD, ANSWERS, KINDS, TIMES
from tests.agents.toy_model import ToyModel

pytestmark = pytest.mark.train
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # ART imports litellm, which asks the network otherwise
transformers: Any = pytest.importorskip("transformers")
masking: Any = pytest.importorskip("transformers.masking_utils")
kept = masking._preprocess_mask_arguments
art: Any = pytest.importorskip("art")
# ART 0.5.18 replaces a function of transformers by one that lacks an argument of 5.24: no model would run any more in
# this process, and others' tests need theirs.
masking._preprocess_mask_arguments = kept
migration: Any = pytest.importorskip("art.utils.trajectory_migration")
parquet: Any = pytest.importorskip("art.utils.trajectory_logging")
preprocessing: Any = pytest.importorskip("art.preprocessing.tokenize")

TEMPLATE = """{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}{% for call in message.tool_calls or [] %}<call>{{ call.function.name }}{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def exported(episodes: list[Episode], tmp_path: Path, spec: str = "art") -> tuple[list[Any], list[Any]]:
    """The groups as ART's own reader of JSON lines gives them, and as ours does."""
    export(episodes, spec, tmp_path / "out", filters=Filters(seats=(0,)))
    (path,) = (tmp_path / "out" / "data").iterdir()
    return migration.deserialize_trajectory_groups(path.read_text(encoding="utf-8")), list(read_groups(path))


def tokenizer() -> Any:
    """One token for each character, with ChatML's marks and a token that no text has."""
    from tokenizers import Regex, Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split

    marks = ["<|im_start|>", "<|im_end|>", "<unk>", "<none>"]
    vocabulary = {chr(code): code for code in range(128)} | {mark: 128 + at for at, mark in enumerate(marks)}
    made = Tokenizer(WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = Split(Regex(r"[\s\S]"), "isolated")
    made.add_special_tokens(marks)
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>", eos_token="<|im_end|>")
    wrapped.chat_template = TEMPLATE
    return wrapped


def tokenized(group: Any, without_logprobs: bool = False) -> list[Any]:
    """What ART trains on: a result for each history."""
    options = {"drop_zero_advantage_trajectories": False, "shuffle_group_trajectories": False}
    return list(preprocessing.tokenize_trajectory_groups(tokenizer(), [group], without_logprobs, False, **options))


@pytest.mark.parametrize("kind", KINDS)
def test_what_art_trains_on_is_what_was_sampled(kind: str, tmp_path: Path) -> None:
    episodes = [played([KINDS[kind](), "first"], sample=sample) for sample in (0, 1)]
    _, (group,) = exported(episodes, tmp_path)
    found = tokenized(group)
    own = [[at for at, one in enumerate(result.assistant_mask) if one] for result in found]
    answers = [call for episode in episodes for call in Trajectory(episode, 0).calls if call.kind != "sample"]
    sampled = [result.token_ids[at] for result, ours in zip(found, own, strict=True) for at in ours]
    assert sampled == [token for call in answers for token in call.completion_ids]
    logprobs = [result.logprobs[at] for result, ours in zip(found, own, strict=True) for at in ours]
    assert logprobs == [p for call in answers for p in call.logprobs]
    for result, ours in zip(found, own, strict=True):
        assert all(math.isnan(p) for at, p in enumerate(result.logprobs) if at not in ours)


@pytest.mark.parametrize("kind", ["chat", "cut"])
def test_arts_own_reader_gives_the_same_where_there_is_one_history(kind: str, tmp_path: Path) -> None:
    (theirs,), (ours,) = exported([played([KINDS[kind](), "first"])], tmp_path)
    assert [each.token_ids for each in tokenized(theirs)] == [each.token_ids for each in tokenized(ours)]
    assert theirs.trajectories[0].metadata == ours.trajectories[0].metadata


def test_all_of_a_group_comes_back(tmp_path: Path) -> None:
    write = CODECS["hermes"].write
    tool = llm(ToyModel(write([ADD]), write([ADD, TIMES]), "Final answer: 7"), tools="hermes")
    tooled = played([tool], "CalculatorTask-v0", options={"max_calls": 3})
    snapshot = played([llm(ToyModel(*ANSWERS), style="snapshot"), "first"])
    loaded, ours = exported([tooled, snapshot], tmp_path)
    assert [group.trajectories[0].reward for group in loaded] == [group.trajectories[0].reward for group in ours]
    by_env = {group.metadata["env"]: group.trajectories[0] for group in ours}
    calls = by_env["CalculatorTask-v0"]
    assert [each["function"]["name"] for each in calls.tools] == ["add", "subtract", "multiply", "divide"]
    choice = next(each for each in calls.messages_and_choices if not isinstance(each, dict))
    assert choice.message.tool_calls[0].function.name == "add"
    assert len(by_env["TicTacToe-v0"].additional_histories) == len(Trajectory(snapshot, 0).turns) - 1
    assert by_env["TicTacToe-v0"].metadata["episode"] == snapshot.id


def test_arts_parquet_keeps_which_messages_are_trained_on(tmp_path: Path) -> None:
    (group,), _ = exported([played([llm(ToyModel(*ANSWERS)), "first"])], tmp_path)
    parquet.write_trajectory_groups_parquet([group], tmp_path / "groups.parquet")
    import pyarrow.parquet as pq

    (row,) = pq.read_table(tmp_path / "groups.parquet").to_pylist()
    assert [message["trainable"] for message in row["messages"]] == [
        message["role"] == "assistant" for message in row["messages"]
    ]
    assert row["reward"] == group.trajectories[0].reward


def test_text_without_tokens_is_loaded_as_messages(tmp_path: Path) -> None:
    (group,), _ = exported([played([llm(chat(*ANSWERS)), "first"])], tmp_path, "art?logprobs=false")
    messages = group.trajectories[0].messages_and_choices
    assert all(isinstance(message, dict) for message in messages)
    (result,) = tokenized(group, without_logprobs=True)
    own = [token for token, one in zip(result.token_ids, result.assistant_mask, strict=True) if one]
    said = "".join(message["content"] for message in messages if message["role"] == "assistant")
    assert own == list(map(ord, said))


def test_hostile_texts(tmp_path: Path) -> None:
    hostile = '"}]}\n\u2028\x85{"message": [] \ud83d<|im_end|>\x00'
    cut = Completion(hostile, ids=(1, 2), logprobs=(-0.25, -1.0), logprob_kind="raw")
    episode = played([llm(ToyModel(cut, *ANSWERS)), "first"])
    for (group,) in exported([episode], tmp_path):
        choice = next(each for each in group.trajectories[0].messages_and_choices if not isinstance(each, dict))
        assert choice.message.content == episode.turns[0].attempts[0].calls[0].received
