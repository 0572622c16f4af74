"""Exported text, loaded by datasets and trained on by TRL: which tokens carry loss is read off its batches."""

import json
import math
import re
from collections.abc import Iterator
from copy import deepcopy
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from arena.adapters.datasets.exporting import export
from arena.adapters.datasets.format import Row
from arena.adapters.datasets.formats import make_format
from arena.adapters.datasets.trajectory import Trajectory
from arena.episode import Episode
from arena.match import play_sync
from arena.tools.codec import CODECS, Call
from tests.adapters.datasets.talks import chat, llm, played
from tests.players import Says

pytestmark = pytest.mark.train
datasets: Any = pytest.importorskip("datasets")
tokenizers: Any = pytest.importorskip("tokenizers")
transformers: Any = pytest.importorskip("transformers")
trl: Any = pytest.importorskip("trl")
torch: Any = pytest.importorskip("torch")

SPECS = ("sft", "sft?turns=all&legal_only=false", "kto", "dpo?rollouts=2", "turns", "episodes")
GAME, PD = "TicTacToe-v0", "IteratedPrisonersDilemma-v0"
START, END, PAD = "<|im_start|>", "<|im_end|>", "<|pad|>"
# ChatML with marks around all that an assistant samples; what stands between two messages is the next one's.
TEMPLATE = """
{%- if tools %}{{ '<|im_start|>tools' }}{% for tool in tools %}{{ '\n' + tool | tojson }}{% endfor %}{{ '<|im_end|>' }}
{%- endif %}
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\n' }}
{%- if message.role == 'assistant' %}
{%- generation %}
{{- message.content }}
{%- for call in message.tool_calls or [] %}{{ '<tool_call>' + call.function | tojson + '</tool_call>' }}{% endfor %}
{{- '<|im_end|>' }}
{%- endgeneration %}
{%- else %}{{ message.content + '<|im_end|>' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""


@pytest.fixture(autouse=True)
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Caches of their own, one thread, no progress bars."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    datasets.disable_progress_bars()
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    """Bytes, and the tokens that mark turns."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {char: at for at, char in enumerate(alphabet)}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens([START, END, PAD])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END, pad_token=PAD)
    fast.chat_template = TEMPLATE
    return fast


def model(tokenizer: Any) -> Any:
    config = transformers.Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return transformers.Qwen2ForCausalLM(config)


def loaded(episodes: list[Episode], spec: str, folder: Path, kind: str = "", **more: Any) -> Any:
    """What datasets makes of an export."""
    export(episodes, spec, folder / "out", kind=kind)
    return datasets.load_dataset(str(folder / "out"), split="train", **more)


def rows(episodes: list[Episode], spec: str) -> list[Row]:
    made = make_format(spec)
    return [row for e in episodes for p in range(len(e.seats)) for row in made.rows([Trajectory(e, p)])]


def batch(trainer: Any) -> Any:
    """All rows at once, as the trainer's model is given them, after a step in which its weights changed."""
    before = [weights.detach().clone() for weights in trainer.model.parameters()]
    loss = trainer.train().training_loss
    assert loss == loss
    assert loss > 0
    assert any(not torch.equal(a, b) for a, b in zip(before, trainer.model.parameters(), strict=True))
    dataset = trainer.train_dataset
    return trainer.data_collator([dataset[at] for at in range(len(dataset))])


def settings(config: Any, folder: Path, **more: Any) -> Any:
    return config(
        output_dir=str(folder / "trained"),
        use_cpu=True,
        max_steps=1,
        per_device_train_batch_size=4,
        learning_rate=0.01,
        max_length=8192,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        bf16=False,
        **more,
    )


def spans(tokenizer: Any, ids: Any, on: Any) -> list[str]:
    """The text of every stretch of tokens that carries loss."""
    pairs = list(zip(ids.tolist(), on.tolist(), strict=True))
    stretches = [(carries, [token for token, _ in held]) for carries, held in groupby(pairs, lambda p: bool(p[1]))]
    return [tokenizer.decode(tokens) for carries, tokens in stretches if carries]


def episodes() -> list[Episode]:
    """A model that errs and thinks, people, search; talk of two seats."""
    answers = ("bad", "<think>é, the centre</think>\n<answer>5</answer>", "<answer>7</answer>", "<answer>9</answer>")
    return [
        played([llm(chat(*answers)), "first"]),
        play_sync(GAME, ["minimax?nodes=100", Says("**1**", "2", "3", "4", "6", "7", "8", "9")]),
        play_sync(PD, ["random", Says("defect")], options={"rounds": 3}),
    ]


def tool_task() -> Episode:
    call = CODECS["json"].write([Call("add", {"a": 2, "b": 3}), Call("multiply", {"a": 4, "b": "x"})])
    return play_sync("CalculatorTask-v0", [Says(call, "Final answer: 7")])


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
@pytest.mark.parametrize(
    "spec", ["sft", "sft?turns=all&legal_only=false", "kto", "dpo?rollouts=2", "turns", "episodes"]
)
def test_datasets_loads_the_rows_as_they_are(spec: str, kind: str, tmp_path: Path) -> None:
    played_out = episodes()
    expected = rows(played_out, spec) if spec != "episodes" else _whole(played_out)
    found = loaded(played_out, spec, tmp_path, kind)
    assert [json.dumps(row, sort_keys=True) for row in found.to_list()] == [
        json.dumps(row, sort_keys=True) for row in expected
    ]
    streamed = datasets.load_dataset(str(tmp_path / "out"), split="train", streaming=True)
    assert next(iter(streamed)) == expected[0]


def _whole(played_out: list[Episode]) -> list[Row]:
    made = make_format("episodes")
    return [row for episode in played_out for row in made.rows([Trajectory(episode, 0)])]


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_tool_calls_load_with_the_keys_that_they_had(kind: str, tmp_path: Path) -> None:
    mixed = [tool_task(), *episodes()]
    found = loaded(mixed, "sft?tools=openai", tmp_path, kind)
    said = found[0]["completion"][0]
    assert [call["function"]["arguments"] for call in said["tool_calls"]] == [{"a": 2, "b": 3}, {"a": 4, "b": "x"}]
    assert found[1]["prompt"][-1].keys() == {"role", "content", "tool_call_id"}
    assert found[2]["prompt"][0].keys() == {"role", "content"}
    assert found[0]["tools"][0]["function"]["name"] == "add"
    assert found[2]["tools"] is None


def test_sft_puts_its_loss_on_answers_alone(tokenizer: Any, tmp_path: Path) -> None:
    data = loaded(episodes(), "sft", tmp_path)
    trainer = trl.SFTTrainer(
        model(tokenizer), settings(trl.SFTConfig, tmp_path), train_dataset=data, processing_class=tokenizer
    )
    held = batch(trainer)
    on = held["labels"] != -100
    for row, ids, carries in zip(data, held["input_ids"], on, strict=True):
        (answer,) = row["completion"]
        assert spans(tokenizer, ids, carries) == [answer["content"] + END]
        prompt = tokenizer.decode(ids[: int(carries.float().argmax())])
        assert prompt == tokenizer.apply_chat_template(row["prompt"], tokenize=False, add_generation_prompt=True)
    assert any("é, the centre" in row["completion"][0]["content"] for row in data)
    assert "bad" not in [row["completion"][0]["content"] for row in data]


def test_sft_of_whole_conversations_needs_marks_in_the_template(tokenizer: Any, tmp_path: Path) -> None:
    data = loaded(episodes(), "sft?turns=all", tmp_path)
    config = settings(trl.SFTConfig, tmp_path, assistant_only_loss=True)
    held = batch(trl.SFTTrainer(model(tokenizer), config, train_dataset=data, processing_class=tokenizer))
    on = held["labels"] != -100
    for row, ids, carries in zip(data, held["input_ids"], on, strict=True):
        said = [message["content"] + END for message in row["messages"] if message["role"] == "assistant"]
        assert spans(tokenizer, ids, carries) == said
    assert max(len([m for m in row["messages"] if m["role"] == "assistant"]) for row in data) >= 3


@pytest.mark.parametrize(("turns", "before"), [("each", ""), ("all", "\n")])
def test_with_a_template_of_chatml_line_breaks_around_an_answer_carry_loss_too(
    turns: str, before: str, tokenizer: Any, tmp_path: Path
) -> None:
    """TRL's own template of Qwen2.5, as the documentation says; the text is the model's, the line breaks are not."""
    qwen = deepcopy(tokenizer)
    name = "qwen2_5.jinja" if turns == "each" else "qwen2_5_training.jinja"
    qwen.chat_template = (Path(trl.__file__).parent / "chat_templates" / name).read_text()
    data = loaded([episodes()[2]], f"sft?turns={turns}", tmp_path)
    config = settings(trl.SFTConfig, tmp_path, assistant_only_loss=turns == "all")
    held = batch(trl.SFTTrainer(model(qwen), config, train_dataset=data, processing_class=qwen))
    for row, ids, carries in zip(data, held["input_ids"], held["labels"] != -100, strict=True):
        said = row["completion"] if turns == "each" else [m for m in row["messages"] if m["role"] == "assistant"]
        assert spans(qwen, ids, carries) == [f"{before}{message['content']}{END}\n" for message in said]


def test_sft_of_tool_calls(tokenizer: Any, tmp_path: Path) -> None:
    data = loaded([tool_task()], "sft?tools=openai", tmp_path)
    trainer = trl.SFTTrainer(
        model(tokenizer), settings(trl.SFTConfig, tmp_path), train_dataset=data, processing_class=tokenizer
    )
    held = batch(trainer)
    first, second = zip(held["input_ids"], held["labels"] != -100, strict=True)
    (text,) = spans(tokenizer, *first)
    assert text.startswith('<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call><tool_call>')
    assert spans(tokenizer, *second) == [f"Final answer: 7{END}"]
    assert '<|im_start|>tools\n{"type": "function", "function": {"name": "add"' in tokenizer.decode(first[0])
    assert "<|im_start|>tool\nYou called add(a=2, b=3) -> 5<|im_end|>" in tokenizer.decode(second[0])


def test_dpo_compares_two_answers_to_one_prompt(tokenizer: Any, tmp_path: Path) -> None:
    data = loaded([play_sync(GAME, ["random", "random"], 5)], "dpo?rollouts=4&candidates=2&answer=boxed", tmp_path)
    assert len(data) >= 4
    learner, config = model(tokenizer), settings(trl.DPOConfig, tmp_path)
    trainer = trl.DPOTrainer(learner, deepcopy(learner), args=config, train_dataset=data, processing_class=tokenizer)
    held = batch(trainer)
    assert trainer.state.log_history[-1]["train_loss"] == pytest.approx(math.log(2))  # as like as not, before a step
    ids, on = held["input_ids"], held["completion_mask"]
    halves = list(zip(ids.chunk(2), on.chunk(2), strict=True))  # the chosen first, then the rejected
    for at, row in enumerate(data):
        for which, (tokens, carries) in zip(("chosen", "rejected"), halves, strict=True):
            (answer,) = row[which]
            assert spans(tokenizer, tokens[at], carries[at]) == [answer["content"] + END]
            assert re.fullmatch(r"\\boxed\{[1-9]\}", answer["content"])


def test_kto_weighs_each_answer_by_its_label(tokenizer: Any, tmp_path: Path) -> None:
    data = loaded(episodes(), "kto", tmp_path)
    assert set(data["label"]) == {True, False}
    learner, config = model(tokenizer), settings(trl.KTOConfig, tmp_path)
    trainer = trl.KTOTrainer(learner, deepcopy(learner), args=config, train_dataset=data, processing_class=tokenizer)
    held = batch(trainer)
    assert held["label"].tolist() == list(data["label"])
    for row, ids, on in zip(data, held["input_ids"], held["completion_mask"], strict=True):
        assert spans(tokenizer, ids, on) == [row["completion"][0]["content"] + END]
