"""slime's own Sample takes our rows. slime is on no index: it is read from a checkout on the path."""

from typing import Any

import msgspec
import pytest

from arena.adapters.datasets.slime import Slime
from tests.adapters.datasets.made import Asked, trajectory_of
from tests.adapters.datasets.test_slime_openrlhf import SAMPLE, STATUS

pytestmark = pytest.mark.train
TYPES: Any = pytest.importorskip("slime.utils.types", reason="slime is not on the path")
DATA: Any = pytest.importorskip("slime.observability.rollout_data_utils")
BROKEN = (Asked("a", "q"), Asked("bc", "r", samples=1, versions=2), Asked("d", breaks=True))


def read(*asked: Asked, **options: Any) -> list[Any]:
    rows = Slime(**options).rows([trajectory_of(*asked, returns=(0.5, 0.0))])
    return [TYPES.Sample.from_dict(msgspec.json.decode(msgspec.json.encode(row))) for row in rows]


def test_the_field_lists_of_our_tests_are_the_real_ones() -> None:
    assert set(TYPES.Sample.__dataclass_fields__) == SAMPLE
    assert {status.value for status in TYPES.Sample.Status} == STATUS


@pytest.mark.parametrize("options", [{}, {"logprobs": False}])
def test_rows_are_samples_and_siblings(options: dict[str, Any]) -> None:
    samples = read(*BROKEN, **options)
    assert len(samples) == 2
    for sample in samples:
        sample._validate_response_metadata_lengths()
        assert set(vars(sample)) == SAMPLE, "a key that is no field would be set beside them"
        assert sample.effective_response_length == sum(sample.loss_mask)
    DATA.validate_rollout_id_annotated([[samples]])


def test_a_sample_that_slime_builds_itself_is_ours() -> None:
    """Call by call, as its rollouts append what was sampled and what was given."""
    (ours,) = read(Asked("a", "q"), Asked("bc", "r", samples=1))
    given = len(ours.tokens) - ours.response_length
    built = TYPES.Sample(tokens=ours.tokens[:given])
    start = 0
    for end in [at for at in range(1, ours.response_length + 1) if _changes(ours.loss_mask, at)]:
        sampled, tokens = ours.loss_mask[start] == 1, ours.tokens[given + start : given + end]
        known = ours.rollout_log_probs[start:end] if sampled else None
        built.append_response_tokens(tokens=tokens, log_probs=known, trainable=sampled)
        start = end
    for name in ("tokens", "response_length", "loss_mask", "rollout_log_probs"):
        assert getattr(built, name) == getattr(ours, name)


def _changes(mask: list[int], at: int) -> bool:
    return at == len(mask) or mask[at] != mask[at - 1]
