"""prime-rl's TrainingSample, against the field list of its source."""

from typing import Any

import msgspec
import pytest

from arena.adapters.datasets.formats import make_format
from arena.adapters.datasets.tokens import Lacking, segments
from arena.adapters.datasets.trajectory import Trajectory
from arena.model import Sampling
from tests.adapters.datasets.talks import llm, played, seat
from tests.agents.toy_model import ToyModel

ANSWERS = ("<answer>9</answer>", "<answer>99</answer>", "<answer>5</answer>", "<answer>7</answer>")


class TrainingSample(msgspec.Struct, array_like=True, omit_defaults=True, forbid_unknown_fields=True):
    """The fields of prime-rl 559b447, transports/rollouts/types.py, with their types, in their order."""

    token_ids: list[int]
    mask: list[bool]
    logprobs: list[float]
    temperatures: list[float]
    env_name: str
    ref_logprobs: list[float] | None = None
    mm_kwargs: dict[str, Any] | None = None
    routed_experts: Any = None
    mm_token_type_ids: list[int] | None = None
    rl_weights: list[float] | None = None
    ce_weights: list[float] | None = None
    ref_kl_weights: list[float] | None = None
    advantages: list[float] | None = None


def samples(trajectory: Trajectory, spec: str = "prime_rl") -> list[TrainingSample]:
    """The rows, read as prime-rl would: every field of its type, none that it has not."""
    found = []
    for row in make_format(spec).rows([trajectory]):
        plain = msgspec.json.decode(msgspec.json.encode(row))
        assert plain.pop("about")["episode"] == trajectory.episode.id
        sample = TrainingSample(**plain)
        again = msgspec.msgpack.decode(msgspec.msgpack.encode(sample), type=TrainingSample)
        assert again == sample
        lengths = {len(part) for part in (sample.token_ids, sample.mask, sample.logprobs, sample.temperatures)}
        assert lengths == {len(sample.token_ids)}
        found.append(sample)
    return found


def test_one_conversation_is_one_sample_and_only_what_was_sampled_is_trained() -> None:
    trajectory = seat(played([llm(ToyModel(*ANSWERS)), "first"]))
    (segment,), (sample,) = segments(trajectory), samples(trajectory)
    assert sample.token_ids == [*segment.prompt_ids, *segment.response_ids]
    assert sample.mask == [False] * len(segment.prompt_ids) + [bool(one) for one in segment.mask]
    sampled = [token for token, own in zip(sample.token_ids, sample.mask, strict=True) if own]
    assert sampled == [token for call in trajectory.calls for token in call.completion_ids]
    assert {p for p, own in zip(sample.logprobs, sample.mask, strict=True) if own} == {-0.5}
    assert {p for p, own in zip(sample.logprobs, sample.mask, strict=True) if not own} == {0.0}
    assert (sample.env_name, sample.advantages) == ("TicTacToe-v0", None)


def test_the_advantage_lies_on_what_was_sampled() -> None:
    trajectory = Trajectory(played([llm(ToyModel(*ANSWERS)), "first"]), 0, -0.25)
    (sample,) = samples(trajectory, "prime_rl?env_name=ttt")
    assert sample.env_name == "ttt"
    assert sample.advantages == [-0.25 if own else 0.0 for own in sample.mask]


def test_the_temperature_is_that_of_the_log_probabilities() -> None:
    warm = llm(ToyModel(*ANSWERS), Sampling(max_tokens=50, temperature=0.7))
    (sample,) = samples(seat(played([warm, "first"])))
    assert {t for t, own in zip(sample.temperatures, sample.mask, strict=True) if own} == {0.7}
    assert {t for t, own in zip(sample.temperatures, sample.mask, strict=True) if not own} == {1.0}
    (sample,) = samples(seat(played([llm(ToyModel(*ANSWERS)), "first"])))
    assert set(sample.temperatures) == {1.0}


def test_what_a_constraint_changed_is_refused_unless_asked_for() -> None:
    warm = Sampling(max_tokens=50, temperature=0.5)
    trajectory = seat(played([llm(ToyModel("9", "5", "7", "3"), warm, decode="constrained"), "first"]))
    with pytest.raises(Lacking, match="not the model's own"):
        samples(trajectory)
    (sample,) = samples(trajectory, "prime_rl?kinds=any")
    assert {t for t, own in zip(sample.temperatures, sample.mask, strict=True) if own} == {0.5}


def test_a_snapshot_style_gives_a_sample_for_each_prompt_and_can_be_refused() -> None:
    trajectory = seat(played([llm(ToyModel(*ANSWERS), style="snapshot"), "first"]))
    found = samples(trajectory)
    assert len(found) == len(segments(trajectory)) > 1
    with pytest.raises(Lacking, match="sequences, not one"):
        samples(trajectory, "prime_rl?breaks=refuse")


@pytest.mark.parametrize("features", [("n",), ("tokens", "n")])
def test_what_was_not_recorded_is_lacking(features: tuple[Any, ...]) -> None:
    trajectory = seat(played([llm(ToyModel(*ANSWERS, features=features)), "first"]))
    if "tokens" in features:
        for call in trajectory.calls:
            msgspec.structs.force_setattr(call, "logprobs", ())
    with pytest.raises(Lacking, match="were not recorded"):
        samples(trajectory)
    with pytest.raises(Lacking, match="no tokens were recorded of first's reply"):
        samples(seat(trajectory.episode, 1))


def test_the_columns_of_parquet_hold_the_rows() -> None:
    pa = pytest.importorskip("pyarrow")
    form = make_format("prime_rl")
    for advantage in (None, 0.5):
        rows = list(form.rows([Trajectory(played([llm(ToyModel(*ANSWERS)), "first"]), 0, advantage)]))
        table = pa.Table.from_pylist(rows, schema=form.schema())
        assert table.to_pylist() == rows


@pytest.mark.parametrize("spec", ["prime_rl?breaks=x", "prime_rl?kinds=x"])
def test_options(spec: str) -> None:
    with pytest.raises(ValueError, match="allowed are"):
        make_format(spec)
