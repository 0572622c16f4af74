"""What all formats of tokens share: the tokens that count, their log-probabilities, groups, refusals, files."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from arena.adapters.datasets.columns import number
from arena.adapters.datasets.format import Format, Row
from arena.adapters.datasets.formats import make_format
from arena.adapters.datasets.tables import table
from arena.adapters.datasets.tokens import Lacking, segments
from arena.adapters.datasets.trajectory import Trajectory
from tests.adapters.datasets.made import CONVERSATIONS, END, Asked, breaks_in, episode_of, text, trajectory_of

Sequence_ = tuple[list[int], list[int], list[float]]
"""Ids, mask and log-probabilities of a whole sequence, prompt included (0 and 0.0 there)."""


def _grpo(row: Row) -> Iterator[Sequence_]:
    yield _joined(row["prompt_ids"], row["completion_ids"], row["env_mask"], row["logprobs"])


def _verl(row: Row) -> Iterator[Sequence_]:
    yield _joined(row["prompt_ids"], row["response_ids"], row["response_mask"], row["response_logprobs"])


def _skyrl(row: Row) -> Iterator[Sequence_]:
    names = ("prompt_token_ids", "response_ids", "loss_masks", "rollout_logprobs")
    for entry in zip(*[row[name] for name in names], strict=True):
        yield _joined(*entry)


def _slime(row: Row) -> Iterator[Sequence_]:
    given = len(row["tokens"]) - row["response_length"]
    yield _joined(row["tokens"][:given], row["tokens"][given:], row["loss_mask"], row["rollout_log_probs"])


def _openrlhf(row: Row) -> Iterator[Sequence_]:
    tokens = row["observation_tokens"]
    mask = [int(any(start <= at < end for start, end in row["action_ranges"])) for at in range(len(tokens))]
    yield tokens, mask, row["rollout_log_probs"]


def _tinker(row: Row) -> Iterator[Sequence_]:
    for trajectory in row["trajectories_G"]:
        for step in trajectory["transitions"]:
            tokens, known = step["ac"]["tokens"], step["ac"]["maybe_logprobs"]
            yield _joined(step["ob"], tokens, [1] * len(tokens), known)


def _joined(prompt: list[int], ids: list[int], mask: list[int], known: list[float]) -> Sequence_:
    assert len(ids) == len(mask) == len(known)
    nothing = [0] * len(prompt)
    return [*prompt, *ids], [*nothing, *mask], [*nothing, *known]


READ: dict[str, Callable[[Row], Iterator[Sequence_]]] = {
    "grpo?breaks=rows": _grpo,
    "verl": _verl,
    "skyrl?steps=answers": _skyrl,
    "skyrl?steps=sequences": _skyrl,
    "slime": _slime,
    "openrlhf?breaks=rows": _openrlhf,
    "tinker": _tinker,
    "tinker_game": _tinker,
}
SPECS = sorted(READ)
UNBROKEN = ["grpo", "verl?breaks=refuse", "skyrl", "slime?breaks=refuse", "openrlhf"]
OPTIONAL = ["verl", "skyrl?steps=sequences", "slime", "openrlhf"]
"""Those whose consumers do without log-probabilities."""


def rows(form: Format | str, *unit: Trajectory) -> list[Row]:
    """Of a unit, as JSON gives them back."""
    return [msgspec.json.decode(msgspec.json.encode(row)) for row in make_format(form).rows(unit)]


@pytest.mark.parametrize("spec", SPECS)
@given(asked=CONVERSATIONS)
@settings(max_examples=40)
def test_what_counts_are_the_answers_with_their_logprobs(spec: str, asked: list[Asked]) -> None:
    episode, (expected,) = episode_of(asked)
    found = [each for row in rows(spec, Trajectory(episode, 0)) for each in READ[spec.split("&")[0]](row)]
    sampled = [token for ids, mask, _ in found for token, counts in zip(ids, mask, strict=True) if counts]
    assert tuple(sampled) == tuple(token for one in expected for token in one.answer)
    assert text(sampled).split(chr(END)) == [*[one.said for one in asked], ""]
    known = [logprob for _, mask, numbers in found for logprob, on in zip(numbers, mask, strict=True) if on]
    assert tuple(known) == tuple(logprob for one in expected for logprob in one.logprobs)
    assert not any(logprob for _, mask, numbers in found for logprob, on in zip(numbers, mask, strict=True) if not on)
    for ids, mask, _ in found:
        _behind_their_prompts(ids, mask, [(one.prompt, one.answer) for one in expected])


def _behind_their_prompts(ids: list[int], mask: list[int], asked: Sequence[tuple[Any, Any]]) -> None:
    """Each token that counts is of an answer that was given to exactly what stands before it."""
    for at, counts in enumerate(mask):
        if counts:
            whole = tuple(ids[: at + 1])
            assert any((prompt + answer)[: at + 1] == whole and at >= len(prompt) for prompt, answer in asked)


@pytest.mark.parametrize("spec", UNBROKEN)
@given(asked=CONVERSATIONS)
@settings(max_examples=30)
def test_one_sequence_or_none(spec: str, asked: list[Asked]) -> None:
    episode, (expected,) = episode_of(asked)
    if breaks_in(expected):
        with pytest.raises(Lacking, match=rf"e0, seat 0: the conversation is {1 + breaks_in(expected)} sequences"):
            rows(spec, Trajectory(episode, 0))
    else:
        (row,) = rows(spec, Trajectory(episode, 0))
        (found,) = READ[_known(spec)](row)
        assert sum(found[1]) == sum(len(one.answer) for one in expected)


def _known(spec: str) -> str:
    return next(name for name in READ if name.split("?")[0] == spec.split("?")[0])


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize(
    "more", [{"logprobs": ()}, {"completion_ids": (), "logprobs": ()}, {"logprob_kind": "regex"}, {"kind": "score"}]
)
def test_nothing_is_filled_in(spec: str, more: dict[str, Any]) -> None:
    trajectory = trajectory_of(Asked("a"), Asked("b", more=more))
    with pytest.raises(Lacking, match="episode e0, seat 0, ply 2"):
        rows(spec, trajectory)


@pytest.mark.parametrize("spec", SPECS)
def test_constrained_answers_come_when_they_are_asked_for_with_their_kind(spec: str) -> None:
    trajectory = trajectory_of(Asked("a"), Asked("b", more={"logprob_kind": "temperature=0.7,regex"}))
    asked = f"{spec}{'&' if '?' in spec else '?'}kinds=any"
    assert "temperature=0.7,regex" in str(rows(asked, trajectory))


@pytest.mark.parametrize("spec", OPTIONAL)
def test_logprobs_can_be_left_out_as_a_whole(spec: str) -> None:
    trajectory = trajectory_of(Asked("a", more={"logprobs": ()}), Asked("b"))
    (row,) = rows(f"{spec}{'&' if '?' in spec else '?'}logprobs=false", trajectory)
    names = ("response_logprobs", "rollout_logprobs", "rollout_log_probs")
    assert [row[name] for name in names if name in row] == [None]


@pytest.mark.parametrize("spec", [*SPECS, *UNBROKEN])
def test_of_a_seat_that_was_never_asked_there_is_nothing_to_write(spec: str) -> None:
    episode, _ = episode_of([Asked()], [Asked()])
    episode.turns = [turn for turn in episode.turns if turn.seat == 0]
    assert not rows(spec, Trajectory(episode, 1))
    if make_format(spec).unit != "seat":
        assert rows(spec, Trajectory(episode, 1), Trajectory(episode, 0)) == rows(spec, Trajectory(episode, 0))


@pytest.mark.parametrize("spec", SPECS)
def test_seats_are_told_apart(spec: str) -> None:
    """Role, opponents and group of both seats, each with its own return."""
    episode, _ = episode_of([Asked("a")], [Asked("b"), Asked("c")], returns=(1.0, -1.0))
    both = [Trajectory(episode, player, advantage) for player, advantage in ((0, 0.75), (1, -0.25))]
    told = [str(rows(spec, each)) for each in both]
    for each, other, found in zip(both, both[::-1], told, strict=True):
        assert f"'{each.role}'" in found
        assert each.group_id in found
        assert other.group_id not in found
        assert str(each.advantage) in found
        assert f"{each.opponents[0]}" in found
    if "tinker" not in spec:  # its rewards are those of turns, and a rest
        assert ("-1.0" in told[0], "-1.0" in told[1]) == (False, True)


@pytest.mark.parametrize("spec", [*SPECS, *UNBROKEN, "skyrl?rewards=turns", "grpo?eos=3"])
@pytest.mark.parametrize("advantage", [None, 0.5])
def test_tables_hold_the_rows(spec: str, advantage: float | None, tmp_path: Path) -> None:
    form = make_format(spec)
    unit = trajectory_of(Asked("ab", versions=2), Asked("c", samples=1), advantage=advantage)
    found = [msgspec.json.decode(msgspec.json.encode(row)) for row in form.rows([unit])]
    schema = form.schema()
    assert schema is not None
    held = table(found, schema)
    pq.write_table(held, tmp_path / "t.parquet", compression="zstd")
    assert _plain(pq.read_table(tmp_path / "t.parquet").to_pylist()) == _plain(found)
    assert set(schema.names) == set(found[0])


def _plain(value: Any) -> Any:
    """Without keys that hold nothing: a struct has them all."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if each is not None}
    return [_plain(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("spec", [*SPECS, *UNBROKEN])
def test_ids_and_logprobs_are_32_bits_wide(spec: str) -> None:
    schema = make_format(spec).schema()
    assert schema is not None
    wide = {field.name for field in schema if "int64" in str(field.type)}
    assert wide == ({"group_index", "index", "rollout_id"} if spec.startswith("slime") else set())
    assert re.search(r"list<(item|element): int32>", str(schema))
    assert re.search(r"list<(item|element): float>", str(schema))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("grpo?breaks=some", "breaks='some': allowed are refuse, rows"),
        ("grpo?kinds=raw", "kinds='raw': allowed are own, any"),
        ("verl?breaks=1", "breaks"),
        ("skyrl?steps=all", "steps='all': allowed are none, answers, sequences"),
        ("skyrl?rewards=all", "rewards='all': allowed are outcome, turns"),
        ("skyrl?rewards=turns&steps=answers", "SkyRL reads the rewards of last steps only"),
        ("slime?kinds=x", "kinds='x'"),
        ("openrlhf?breaks=x", "breaks='x'"),
        ("tinker?kinds=x", "kinds='x'"),
        ("tinker_game?kinds=x", "kinds='x'"),
    ],
)
def test_options_that_are_not_allowed(spec: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_format(spec)


@pytest.mark.parametrize("spec", [*SPECS, "verl_prompts"])
def test_every_format_says_for_whom_and_how_it_is_checked(spec: str) -> None:
    form = make_format(spec)
    assert any(digit.isdigit() for digit in form.consumer)
    assert any(word in form.checked for word in ("loaded", "field list", "step", "validated"))
    assert form.name == spec.split("?")[0]


@pytest.mark.parametrize("spec", SPECS)
def test_void_episodes_earn_nothing_and_give_no_rows(spec: str) -> None:
    void = trajectory_of(Asked(), outcome="void", returns=None, reason="the server is down")
    with pytest.raises(ValueError, match="void"):
        rows(spec, void)


def test_a_group_with_a_member_that_lacks_something_gives_no_rows() -> None:
    whole, lacking = trajectory_of(Asked("a")), trajectory_of(Asked("b", more={"logprobs": ()}), id="e9")
    for spec in ("skyrl", "slime", "tinker"):
        found = []
        with pytest.raises(Lacking, match="episode e9"):
            found += list(make_format(spec).rows([whole, lacking]))
        assert found == []


def test_numbers_of_ids_fit_64_bits() -> None:
    assert number("f" * 16) == 2**60 - 1
    assert len(segments(trajectory_of(Asked()))) == 1
