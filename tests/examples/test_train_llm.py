"""`examples.train_llm`: the command, shortened to one seed; decoders that are made, and checkpoints that are taken."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl")
pytest.importorskip("datasets")
from examples.train_llm import decoder
from examples.train_llm.course import STAGES, train_all
from examples.train_llm.plan import PROMPTING, Refused, Size
from tests.repository import ROOT

pytestmark = pytest.mark.train
TALK = [
    {"role": "system", "content": "You are X. Write a free square."},
    {"role": "user", "content": "X: 1 2 O3"},
    {"role": "assistant", "content": "1"},
    {"role": "user", "content": "X: X1 O2 O3"},
    {"role": "assistant", "content": "9"},
]
SMOLLM2 = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}"
    "{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""As HuggingFaceTB/SmolLM2-135M-Instruct has it."""
LEAST = Size(
    blocks=4, sft_steps=2, grpo_steps=1, prompts=2, group=4, sft_looks=1, grpo_looks=1, look=2, games=2, rated=1
)


@pytest.fixture(scope="module")
def made() -> tuple[Any, Any]:
    texts = [message["content"] for message in TALK] + ["X: 1 2 3 4 5 6 7 8 9 X1 O5"]
    return decoder.make(texts, seed=0)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, as a user does."""
    told = [sys.executable, "-m", "examples.train_llm", *arguments]
    return subprocess.run(told, cwd=ROOT, env={**os.environ, "HF_HUB_OFFLINE": "1"}, capture_output=True, text=True)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one short run."""
    folder = tmp_path_factory.mktemp("train") / "runs"
    done = command("--out", str(folder), "--seeds", "901", "--size", "quick")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "1 run(s), seeds 901" in done.stdout
    return folder


def result(out: Path, stage: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "seed-901" / f"{stage}.json").read_text())
    return found


def test_it_learns_from_records(out: Path) -> None:
    first, *_, last = result(out, "sft")["curve"]
    assert first["random"]["illegal"] + first["minimax"]["illegal"] > 90  # of 100 games: it knows nothing
    assert last["random"]["illegal"] + last["minimax"]["illegal"] < 65
    assert last["random"]["won"] > 15  # of 50
    losses = [entry["loss"] for entry in result(out, "sft")["log"] if "loss" in entry]
    assert sum(losses[-10:]) < 0.3 * sum(losses[:10])


def test_it_learns_from_its_own_games(out: Path) -> None:
    rewards = [entry["reward"] for entry in result(out, "grpo")["log"] if "reward" in entry]
    assert len(rewards) == 50
    assert sum(rewards[-8:]) / 8 > sum(rewards[:8]) / 8
    told = result(out, "figures")
    before, after = (sum(each["returns"] for each in told[model]["sampled"].values()) for model in ("sft", "grpo"))
    assert after > before
    assert told["grpo"]["sampled"]["random"]["won"] > 50  # of 100


def test_before_and_after_are_rated(out: Path) -> None:
    rating = result(out, "rating")
    elo = {row["name"]: row["elo"] for row in rating["rows"]}
    assert set(elo) == {"random", "mcts", "minimax", "sft", "grpo"}
    assert all(row["half"] > 0 for row in rating["rows"])
    assert elo["minimax"] > elo["grpo"] > elo["random"]
    assert rating["difference"] == pytest.approx(elo["grpo"] - elo["sft"])


def test_it_stays_within_its_time(out: Path) -> None:
    assert sum(result(out, stage)["cpu_seconds"] for stage in STAGES) < 200


def test_what_is_finished_is_not_done_again(out: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (out / "seed-901").rglob("*") if path.is_file()}
    report = (out / "report.md").read_text()
    (out / "report.md").unlink()
    done = command("--out", str(out), "--seeds", "901", "--size", "quick")
    assert done.returncode == 0, done.stderr[-3000:]
    assert (out / "report.md").read_text() == report
    del before[out / "seed-901" / "terms.json"]
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert (out / "curves.svg").read_text().startswith("<svg ")


def test_another_size_needs_another_folder(out: Path) -> None:
    done = command("--out", str(out), "--seeds", "901", "--size", "full")
    assert done.returncode == 2
    assert "run of other terms" in done.stderr


def test_only_replies_are_learned_with_their_end(made: tuple[Any, Any]) -> None:
    _, tokenizer = made
    told = tokenizer.apply_chat_template(TALK, return_assistant_tokens_mask=True, return_dict=True)
    learned = [token for token, mask in zip(told["input_ids"], told["assistant_masks"], strict=True) if mask]
    assert tokenizer.convert_ids_to_tokens(learned) == ["1", "<|im_end|>", "9", "<|im_end|>"]


def test_every_word_and_square_is_one_token(made: tuple[Any, Any]) -> None:
    _, tokenizer = made
    ids = tokenizer.encode("X: 1 O5", add_special_tokens=False)
    assert tokenizer.convert_ids_to_tokens(ids) == ["X", ":", "1", "O5"]
    assert tokenizer.decode([ids[2], tokenizer.eos_token_id], skip_special_tokens=True) == "1"
    assert tokenizer.convert_ids_to_tokens(tokenizer.encode("sesame")) == ["<|unk|>"]


def test_the_seed_draws_the_weights(made: tuple[Any, Any]) -> None:
    model, tokenizer = made
    weights = [next(decoder.make_model(tokenizer, seed).parameters()) for seed in (0, 0, 1)]
    assert weights[0].equal(weights[1])
    assert not weights[0].equal(weights[2])
    assert 100_000 < model.num_parameters() < 1_000_000


def test_a_template_without_marks_is_exchanged_for_one_that_writes_the_same(
    made: tuple[Any, Any], tmp_path: Path
) -> None:
    model, tokenizer = made
    tokenizer.chat_template = SMOLLM2
    decoder.save(model, tokenizer, tmp_path)
    tokenizer.chat_template = decoder.TEMPLATE
    found, own = decoder.load(tmp_path)
    assert own.chat_template == decoder.TEMPLATE
    assert own.apply_chat_template(TALK, tokenize=False) == own.apply_chat_template(
        TALK, tokenize=False, chat_template=SMOLLM2
    )
    assert found.num_parameters() == model.num_parameters()


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{% for message in messages %}[{{ message['role'] }}] {{ message['content'] }}{% endfor %}", "is no ChatML"),
        (None, "has no chat template"),
    ],
)
def test_a_template_that_cannot_be_learned_with_is_refused(
    made: tuple[Any, Any], tmp_path: Path, template: str | None, why: str
) -> None:
    model, tokenizer = made
    tokenizer.chat_template = template
    decoder.save(model, tokenizer, tmp_path)
    tokenizer.chat_template = decoder.TEMPLATE
    with pytest.raises(Refused, match=why):
        decoder.load(tmp_path)


def test_a_checkpoint_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be loaded") as error:
        decoder.load(tmp_path / "none")
    assert "\n" not in str(error.value)


def test_a_checkpoint_goes_through_all_stages(made: tuple[Any, Any], tmp_path: Path) -> None:
    model, tokenizer = made
    tokenizer.chat_template = SMOLLM2
    decoder.save(model, tokenizer, tmp_path / "checkpoint")
    tokenizer.chat_template = decoder.TEMPLATE
    told = train_all(tmp_path / "runs", [7], LEAST, str(tmp_path / "checkpoint"))
    assert "seeds 7" in told
    assert "| grpo |" in told
    learned, _ = decoder.load(tmp_path / "runs" / "seed-7" / "grpo" / "model")
    assert learned.num_parameters() == model.num_parameters()
    assert not next(learned.parameters()).equal(next(model.parameters()))
    assert Path(PROMPTING.template, "turn.j2").is_file()
