"""verl's own classes take our rows. They import on a CPU; the package is installed apart (its pins exclude ours)."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from arena.adapters.datasets.formats import make_format
from arena.adapters.datasets.tables import table
from arena.adapters.datasets.trajectory import Trajectory
from arena.match import play_sync
from tests.adapters.datasets.made import Asked, trajectory_of
from tests.adapters.datasets.test_verl import METRICS, OUTPUT

pytestmark = pytest.mark.train
LOOP: Any = pytest.importorskip("verl.experimental.agent_loop.agent_loop", reason="verl 0.9.1 is not installed")
DATA: Any = pytest.importorskip("verl.utils.dataset.rl_dataset")
CONFIG: Any = pytest.importorskip("omegaconf").OmegaConf
TORCH: Any = pytest.importorskip("torch")
BROKEN = (Asked("a", "q"), Asked("bc", "r", samples=1, versions=2), Asked("d", breaks=True))


def stored(spec: str, rows: list[dict[str, Any]], folder: Path) -> Path:
    schema = make_format(spec).schema()
    assert schema is not None
    pq.write_table(table(rows, schema), folder / "rows.parquet", compression="zstd")
    return folder / "rows.parquet"


def test_the_field_lists_of_our_tests_are_the_real_ones() -> None:
    assert set(LOOP.AgentLoopOutput.model_fields) == OUTPUT
    assert set(LOOP.AgentLoopMetrics.model_fields) == METRICS


@pytest.mark.parametrize("spec", ["verl", "verl?logprobs=false"])
def test_rows_of_a_file_are_outputs(spec: str, tmp_path: Path) -> None:
    rows = list(make_format(spec).rows([trajectory_of(*BROKEN, returns=(0.5, 0.0))]))
    for row in pq.read_table(stored(spec, rows, tmp_path)).to_pylist():
        uid = row.pop("uid")
        output = LOOP.AgentLoopOutput(**row)
        assert output.extra_fields["group_id"] == uid
        held = output.as_dict()
        size = len(row["response_ids"])
        assert held["responses"].tolist() == row["response_ids"]
        assert held["response_mask"].tolist() == row["response_mask"]
        assert held["prompts"].tolist() == row["prompt_ids"]
        assert TORCH.count_nonzero(held["rm_scores"]) == 1
        assert held["rm_scores"][-1] == 0.5
        assert held["response_mask"][-1] == 1, "the reward is on a token that was sampled"
        assert ("rollout_log_probs" in held) is (spec == "verl")
        if spec == "verl":
            assert held["rollout_log_probs"].shape == (size,)
            assert not held["rollout_log_probs"][held["response_mask"] == 0].any()
        assert output.extra_fields["reward_extra_info"] == {"truncated": 0.0, "legal": 1.0}


def test_prompts_are_a_data_set(tmp_path: Path) -> None:
    rows = []
    for seed in range(3):
        episode = play_sync("TicTacToe-v0", ["first", "random"], seed)
        rows += list(make_format("verl_prompts?agent=arena").rows([Trajectory(episode, seed % 2)]))
    path = stored("verl_prompts?agent=arena", rows, tmp_path)
    config = CONFIG.create({"filter_overlong_prompts": False, "cache_dir": str(tmp_path)})
    found = DATA.RLHFDataset(str(path), None, config)
    assert len(found) == 3
    for at, row in enumerate(rows):
        item = found[at]
        assert item["raw_prompt"] == row["prompt"]
        assert (item["agent_name"], item["data_source"]) == ("arena", "TicTacToe-v0")
        assert item["index"] == row["extra_info"]["index"]
        assert item["interaction_kwargs"] == row["extra_info"]["interaction_kwargs"]
        assert item["reward_model"] == {"style": "rule", "ground_truth": ""}
