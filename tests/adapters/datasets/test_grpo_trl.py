"""GRPO rows in the real trainer: what it is given is what it trains on."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from arena.adapters.datasets.format import Row
from arena.adapters.datasets.formats import make_format
from arena.adapters.datasets.grpo import Recorded
from arena.adapters.datasets.tables import table
from arena.adapters.datasets.trajectory import Trajectory
from arena.agent import Agent
from arena.match import play
from arena.referee import Referee
from arena.registry import make_agent
from tests.adapters.models.matches import first_legal, over_http
from tests.fakes import tokenizer
from tests.fakes.engine import Asked
from tests.fakes.server import FakeSGLang

pytestmark = pytest.mark.train
GENERATIONS = 4


def tries(prompt: str, asked: Asked) -> str:
    """Its first try is no action, so that a turn has several answers."""
    return "I pass." if "I pass." not in prompt else first_legal(prompt, asked)


def exported(spec: str) -> list[Row]:
    """Two groups of four samples: a model against a random player, from either seat."""

    async def work(fake: FakeSGLang) -> list[Row]:
        agent = make_agent(f"sglang:{fake.url}?max_tokens=64")
        form, found = make_format(spec), list[Row]()
        for seat in (0, 1):
            agents: list[str | Agent] = [agent, "random"] if seat == 0 else ["random", agent]
            for sample in range(GENERATIONS):
                episode = await play("TicTacToe-v0", agents, 3, {}, Referee(retries=2), sample=sample)
                found += form.rows([Trajectory(episode, seat)])
        await agent.close()  # type: ignore[misc]  # a served agent's is awaitable
        return found

    rows: list[Row] = over_http(work, FakeSGLang(tries))
    return rows


def package(name: str) -> Any:
    """Imported when a test runs: collecting tests must not cost what these packages do."""
    return pytest.importorskip(name)


def loaded(rows: list[Row], folder: Path) -> Any:
    schema = make_format("grpo").schema()
    assert schema is not None
    pq.write_table(table(rows, schema), folder / "rows.parquet", compression="zstd")
    return package("datasets").load_dataset("parquet", data_files=str(folder / "rows.parquet"), cache_dir=str(folder))[
        "train"
    ]


def small(seed: int = 0) -> tuple[Any, Any]:
    """A model of the fake's vocabulary, made here."""
    hf, tokenizers = package("transformers"), package("tokenizers")
    package("torch").manual_seed(seed)
    config = hf.LlamaConfig(
        vocab_size=tokenizer.SIZE,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=4096,
        eos_token_id=tokenizer.EOS,
        pad_token_id=tokenizer.PAD,
        bos_token_id=None,
    )
    vocab = {f"<{at}>": at for at in range(tokenizer.SIZE)}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocab, unk_token="<4>"))
    fast = hf.PreTrainedTokenizerFast(
        tokenizer_object=words, eos_token=f"<{tokenizer.EOS}>", pad_token=f"<{tokenizer.PAD}>", unk_token="<4>"
    )
    return hf.LlamaForCausalLM(config), fast


def watching() -> Any:
    """A trainer that keeps what the loss is computed from, in `given`."""

    class Watching(package("trl").GRPOTrainer):  # type: ignore[misc]  # its types are not looked at
        def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
            self.given = inputs
            return super()._compute_loss(model, inputs)

    return Watching


def test_the_trainer_trains_on_what_was_sampled(tmp_path: Path) -> None:
    rows = exported("grpo")
    held = loaded(rows, tmp_path)
    assert str(held.features["prompt_ids"].feature.dtype) == "int32"
    assert str(held.features["logprobs"].feature.dtype) == "float32"
    recorded = Recorded(held, GENERATIONS)
    assert len(recorded.prompts) == 2
    model, words = small()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    torch, trl = package("torch"), package("trl")
    trainer = watching()(
        model,
        recorded.earned,
        args=trl.GRPOConfig(
            output_dir=str(tmp_path / "out"),
            per_device_train_batch_size=2 * GENERATIONS,
            num_generations=GENERATIONS,
            max_steps=1,
            learning_rate=1e-2,
            report_to=[],
            use_cpu=True,
            bf16=False,
            save_strategy="no",
            mask_truncated_completions=True,
            disable_tqdm=True,
        ),
        train_dataset=package("datasets").Dataset.from_list(recorded.prompts),
        processing_class=words,
        rollout_func=recorded,
    )
    trainer.train()
    given = trainer.given
    by_reward = given["advantages"].tolist()
    for at in range(2 * GENERATIONS):
        (row,) = [row for row in rows if _same(row, given, at)]
        size = len(row["completion_ids"])
        assert given["tool_mask"][at][:size].tolist() == row["env_mask"]
        assert given["completion_mask"][at][:size].tolist() == [1] * size
        assert given["sampling_per_token_logps"][at][:size].tolist() == pytest.approx(row["logprobs"], abs=1e-6)
        group = [each["reward"] for each in rows if each["group_id"] == row["group_id"]]
        mean, spread = sum(group) / len(group), torch.tensor(group).std().item()
        assert by_reward[at] == pytest.approx((row["reward"] - mean) / (spread + 1e-4), abs=1e-4)
    logs = {key: value for entry in trainer.state.log_history for key, value in entry.items()}
    assert logs["completions/clipped_ratio"] == 0.0
    assert logs["completions/mean_length"] == pytest.approx(sum(sum(row["env_mask"]) for row in rows) / len(rows))
    assert logs["reward"] == pytest.approx(sum(row["reward"] for row in rows) / len(rows))
    assert any(len(set(row["env_mask"])) == 2 for row in rows)
    assert any(value for value in by_reward)
    assert any(not torch.equal(before[name], value) for name, value in model.state_dict().items())


def _same(row: Row, given: dict[str, Any], at: int) -> bool:
    """Whether it is the row at this place of the batch."""
    ids, prompt = given["completion_ids"][at].tolist(), given["prompt_ids"][at].tolist()
    fits = ids[: len(row["completion_ids"])] == row["completion_ids"]
    return (
        fits
        and prompt[-len(row["prompt_ids"]) :] == row["prompt_ids"]
        and set(ids[len(row["completion_ids"]) :]) <= {0}
    )
