"""Sequences of tokens: whatever a conversation did, masks, ids and log-probabilities are those of its calls."""

from typing import Any

import pytest
from hypothesis import given

from arena.adapters.datasets.tokens import Lacking, Segment, own, segments
from arena.adapters.datasets.trajectory import Trajectory
from arena.agent import LEAST, Call
from arena.episode import Attempt, EpisodeError, Turn
from arena.game import replace
from tests.adapters.datasets.made import (
    CONVERSATIONS,
    END,
    Asked,
    Expected,
    breaks_in,
    episode_of,
    ids,
    text,
    trajectory_of,
)


def same(found: list[Segment], expected: list[Expected]) -> None:
    """The sequences hold these answers, each after its prompt, and nothing else that counts as sampled."""
    answers = iter(expected)
    for segment in found:
        whole = segment.prompt_ids + segment.response_ids
        assert len(segment.mask) == len(segment.logprobs) == len(segment.response_ids)
        inside = set[int]()
        for span in segment.spans:
            asked = next(answers)
            start, end = len(segment.prompt_ids) + span.start, len(segment.prompt_ids) + span.end
            assert (whole[:start], whole[start:end]) == (asked.prompt, asked.answer)
            assert segment.logprobs[span.start : span.end] == asked.logprobs
            inside |= set(range(span.start, span.end))
        assert [at for at, sampled in enumerate(segment.mask) if sampled] == sorted(inside)
        assert [at for at, known in enumerate(segment.logprobs) if known is not None] == sorted(inside)
        assert segment.spans[0].start == 0
    assert next(answers, None) is None


@given(CONVERSATIONS)
def test_every_answer_stands_after_its_prompt_and_only_answers_count(asked: list[Asked]) -> None:
    episode, (expected,) = episode_of(asked)
    found = segments(Trajectory(episode, 0))
    same(found, expected)
    assert len(found) == 1 + breaks_in(expected)


@given(CONVERSATIONS, CONVERSATIONS)
def test_seats_do_not_mix(mine: list[Asked], theirs: list[Asked]) -> None:
    episode, expected = episode_of(mine, theirs)
    for seat in (0, 1):
        same(segments(Trajectory(episode, seat)), expected[seat])


@given(CONVERSATIONS)
def test_what_counts_reads_as_what_was_said(asked: list[Asked]) -> None:
    episode, _ = episode_of(asked)
    sampled = [
        token
        for segment in segments(Trajectory(episode, 0))
        for token, counts in zip(segment.response_ids, segment.mask, strict=True)
        if counts
    ]
    assert text(sampled).split(chr(END)) == [*[one.said for one in asked], ""]


@given(CONVERSATIONS)
def test_a_turn_earns_once_at_its_last_token(asked: list[Asked]) -> None:
    episode, _ = episode_of(asked)
    trajectory = Trajectory(episode, 0)
    found = segments(trajectory)
    for segment in found:
        rewards = segment.rewards()
        assert all(segment.mask[at] for at, earned in enumerate(rewards) if earned)
        assert sum(rewards) == sum(span.reward for span in segment.spans)
    spans = [span for segment in found for span in segment.spans]
    for turn in trajectory.turns:
        rewards = [span.reward for span in spans if span.turn is turn]
        assert rewards == [0.0] * (len(turn.attempts) - 1) + [turn.reward]
    assert sum(span.reward for span in spans) == pytest.approx(trajectory.reward)


@given(CONVERSATIONS)
def test_versions_are_those_of_the_tokens_they_sampled(asked: list[Asked]) -> None:
    episode, _ = episode_of(asked)
    told = []
    for segment in segments(Trajectory(episode, 0)):
        for start, end, version in segment.versions:
            assert start < end
            assert all(segment.mask[start:end])
            (span,) = [span for span in segment.spans if span.start <= start and end <= span.end]
            assert (start - span.start, version) in span.call.weight_versions
            told.append(version)
        for span in segment.spans:
            if span.call.weight_versions:
                covered = [range(a, b) for a, b, _ in segment.versions if span.start <= a < span.end]
                assert [at for part in covered for at in part] == list(range(span.start, span.end))
    starts = [[n * (len(one.said) + 1) // one.versions for n in range(one.versions)] for one in asked]
    assert len(told) == sum(len(set(each)) for each in starts)


def test_the_same_call_twice_is_two_answers() -> None:
    trajectory = trajectory_of(Asked("a"))
    call = Call("generate", prompt_ids=ids("q"), completion_ids=ids("ab"), logprobs=(-0.5, -0.5), logprob_kind="raw")
    turns = [Turn(ply, 0, "o", "ab", (Attempt("ab", calls=(call,)),)) for ply in (0, 2)]
    twice = Trajectory(replace_turns(trajectory, turns), 0)
    assert [(each.prompt_ids, each.response_ids) for each in segments(twice)] == [(ids("q"), ids("ab"))] * 2


def replace_turns(trajectory: Trajectory, turns: list[Turn]) -> Any:
    episode = episode_of([Asked()], [Asked()])[0]
    episode.turns = turns
    return episode


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no ids at all, as chat servers answer": (
        {"kind": "chat", "prompt_ids": (), "extends": 0, "completion_ids": (), "logprobs": ()},
        r"the answer's token ids were not recorded \(chat\)",
    ),
    "ids of the answer only": (
        {"kind": "chat", "prompt_ids": (), "extends": 0},
        r"the prompt's token ids were not recorded \(chat\)",
    ),
    "no log-probabilities": ({"logprobs": ()}, "log-probabilities were not recorded"),
    "chosen by score": ({"kind": "score"}, "chosen by its score"),
    "minus infinity": ({"logprobs": (-0.5, LEAST)}, "log-probability of minus infinity"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_lacking_is_said_with_its_place(wrong: str) -> None:
    fields, message = WRONG[wrong]
    with pytest.raises(Lacking, match=rf"^episode e0, seat 0, ply 2: .*{message}"):
        segments(trajectory_of(Asked("a"), Asked("b", breaks=True, more=fields)))


def test_without_logprobs_nothing_asks_for_them() -> None:
    for fields in ({"logprobs": ()}, {"logprobs": (-0.5, LEAST)}, {"logprob_kind": "regex"}, {}):
        (segment,) = segments(trajectory_of(Asked("a", more=fields)), logprobs=False, kinds="own")
        assert (segment.mask, segment.logprobs) == ((1, 1), (None, None))


@pytest.mark.parametrize("kind", ["regex", "temperature=0.7,regex", "temperature=0.7,penalised", "json_schema", ""])
def test_other_distributions_are_refused_unless_they_are_asked_for(kind: str) -> None:
    trajectory = trajectory_of(Asked("a"), Asked("b", more={"logprob_kind": kind}))
    assert not own(kind)
    with pytest.raises(Lacking, match=f"of kind {kind or 'not told'!r}, not the model's own"):
        segments(trajectory, kinds="own")
    (segment,) = segments(trajectory, kinds="any")
    assert segment.kinds == ("raw", kind)


@pytest.mark.parametrize("kind", ["raw", "temperature=0.7"])
def test_temperature_is_the_model_s_own(kind: str) -> None:
    (segment,) = segments(trajectory_of(Asked("a", more={"logprob_kind": kind})), kinds="own")
    assert segment.kinds == (kind,)
    assert own(kind)


def test_a_reply_that_nobody_sampled_is_lacking_and_silence_is_not() -> None:
    trajectory = trajectory_of(Asked("a"))
    for raw, reasoning, fits in (("5", "", False), ("", "I think", False), ("", "", True)):
        turns = [*trajectory.turns, Turn(2, 0, "o", None, (Attempt(raw, "truncated", "", reasoning),))]
        other = Trajectory(replace_turns(trajectory, turns), 0)
        if fits:
            assert len(segments(other)[0].spans) == 1
        else:
            with pytest.raises(Lacking, match="ply 2: no tokens were recorded of llm:0's reply"):
                segments(other)


def test_a_seat_that_was_never_asked_has_no_sequence() -> None:
    episode, _ = episode_of([Asked()], [Asked()])
    episode.turns = [turn for turn in episode.turns if turn.seat == 0]
    assert segments(Trajectory(episode, 1)) == []


def test_private_tools_are_no_answers() -> None:
    tool = Call("tool", "2+2", "4")
    say = Call("generate", "", "", 0, ids("q4"), ids("ab"), (-0.5, -0.25), "raw", "stop")
    episode, _ = episode_of([Asked()], [Asked()])
    episode.turns = [Turn(0, 0, "o", "ab", (Attempt("ab", calls=(tool, say)),))]
    (segment,) = segments(Trajectory(episode, 0))
    assert [span.call for span in segment.spans] == [say]


def test_two_answers_in_one_reply_both_count_and_the_turn_pays_at_the_last() -> None:
    draft = Call("generate", "", "", 0, ids("q"), ids("ab"), (-0.5, -0.25), "raw", "stop")
    final = Call("generate", "", "", 3, ids("r"), ids("c"), (-0.125,), "raw", "stop")
    episode, _ = episode_of([Asked()], [Asked()])
    episode.turns = [Turn(0, 0, "o", "c", (Attempt("c", calls=(draft, final)),), reward=1.0)]
    (segment,) = segments(Trajectory(episode, 0))
    assert (segment.mask, segment.known(), segment.rewards()) == (
        (1, 1, 0, 1),
        [-0.5, -0.25, 0.0, -0.125],
        [0, 0, 0, 1],
    )
    assert segment.known(9.0)[2] == 9.0


@given(CONVERSATIONS)
def test_what_the_parent_played_is_given(asked: list[Asked]) -> None:
    """Of an episode that was played on from another's middle, only what was played in it counts."""
    asked = [replace_retry(one) for one in asked]
    fork = 2 * (len(asked) // 2)
    episode, (expected,) = episode_of(asked, parent="e", fork=fork)
    trajectory = Trajectory(episode, 0)
    assert [turn.ply for turn in trajectory.played] == [turn.ply for turn in trajectory.turns if turn.ply >= fork]
    same(segments(trajectory), expected[fork // 2 :])


def replace_retry(asked: Asked) -> Asked:
    return asked._replace(retry=False)


def test_the_parent_s_turns_need_no_tokens() -> None:
    episode, (expected, _) = episode_of([Asked("a"), Asked("b", breaks=True)], [Asked()], parent="e", fork=2)
    episode.turns[0].attempts = (Attempt("5"),)
    same(segments(Trajectory(episode, 0)), expected[1:])
    episode.fork = 0
    with pytest.raises(Lacking, match="ply 0: no tokens were recorded"):
        segments(Trajectory(episode, 0))


def test_a_record_that_contradicts_itself_is_an_error_and_no_lack() -> None:
    trajectory = trajectory_of(Asked("a"))
    (attempt,) = trajectory.turns[0].attempts
    wrong = replace(attempt.calls[0], extends=9)
    trajectory.turns[0].attempts = (Attempt("a", calls=(wrong,)),)
    with pytest.raises(EpisodeError, match="extends 9 tokens"):
        segments(trajectory)


def test_a_long_conversation_is_one_sequence() -> None:
    (segment,) = segments(trajectory_of(*[Asked("abc", "d" * 50)] * 200))
    assert (len(segment.spans), sum(segment.mask)) == (200, 800)
