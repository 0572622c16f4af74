"""OpenRLHF's own reading of responses takes our rows.

Its module imports vllm for the type of sampling parameters, which the function tested here does not touch: an empty
class stands in for it, as nothing of a GPU's is on a CPU.
"""

import sys
from types import ModuleType
from typing import Any

import pytest

from arena.adapters.datasets.columns import sequences
from arena.adapters.datasets.openrlhf import OpenRLHF
from tests.adapters.datasets.made import Asked, trajectory_of

pytestmark = pytest.mark.train
pytest.importorskip("openrlhf", reason="openrlhf 0.11.2 is not installed")
with pytest.MonkeyPatch.context() as patch:
    for name, what in (("vllm", "SamplingParams"), ("openrlhf.trainer.ray.vllm_engine", "batch_vllm_engine_call")):
        empty: Any = ModuleType(name)
        setattr(empty, what, type(what, (), {}))
        patch.setitem(sys.modules, name, empty)
    READER: Any = pytest.importorskip("openrlhf.trainer.ppo_utils.samples_generator").SamplesGenerator


@pytest.mark.parametrize("logprobs", [True, False])
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_responses_become_experience(logprobs: bool, finish: str) -> None:
    asked = (Asked("a", "q"), Asked("bc", "r", samples=1, more={"finish_reason": finish}))
    trajectory = trajectory_of(*asked, returns=(0.5, 0.0))
    (row,) = OpenRLHF(logprobs=logprobs).rows([trajectory])
    (segment,) = sequences(trajectory, "refuse", "own")
    found = READER._process_response_into_experience(None, row, max_len=2048)
    given = len(segment.prompt_ids)
    assert found.sequences[0].tolist() == [*segment.prompt_ids, *segment.response_ids]
    assert found.action_mask[0].tolist() == [0] * (given - 1) + list(segment.mask)
    if logprobs:
        assert found.rollout_log_probs[0].tolist() == [0.0] * (given - 1) + segment.known()
    else:
        assert found.rollout_log_probs is None
    assert (found.rewards.tolist(), found.scores.tolist()) == ([0.5], [0.5])
    assert found.truncated.item() is (finish == "length")
    assert set(found.info) == {"response_clip_ratio", "reward", "score", "legal", "answers"}
