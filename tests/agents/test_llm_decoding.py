"""Bound answers, votes and full contexts."""

import asyncio
import math
from typing import Any

import pytest

from arena.agents.conversation import DROPPED
from arena.agents.decoding import majority
from arena.episode import prompts
from arena.match import play
from arena.model import Completion, ContextOverflow, ModelError, Sampling
from arena.referee import Referee
from arena.registry import make_game
from tests.agents.seated import MODES, agent, asked, calls, played, said
from tests.agents.toy_model import END, ToyModel, view


def test_constrained_asks_for_the_list_and_nothing_else() -> None:
    model = ToyModel("5", "7", "9")
    episode = played(agent(model, decode="constrained"))
    constraint = model.requests[0].constraint
    assert constraint is not None
    assert constraint.text == "(1|2|3|4|5|6|7|8|9)"
    assert all(turn.attempts[0].verdict == "legal" for turn in episode.turns)
    assert calls(episode)[0].logprob_kind == "regex"


def test_constrained_where_there_is_no_list_voids_with_a_reason() -> None:
    episode = asyncio.run(play("Arithmetic-v0", [agent(ToyModel("5"), decode="constrained")]))
    assert episode.outcome == "void"
    assert "decode=constrained: there is no list of legal actions" in episode.reason


def test_score_plays_the_likeliest_whole_action() -> None:
    model = ToyModel("", likes={"7": -0.1, "3": -0.2})
    cold = Sampling(temperature=0, max_tokens=5)
    episode = played(agent(model, cold, decode="score"))
    assert [turn.action for turn in episode.turns if turn.seat == 0][:2] == ["7", "3"]
    call = calls(episode)[0]
    assert (call.kind, call.received, call.logprob_kind) == ("score", "7", "raw")
    assert (call.completion_ids, call.logprobs) == ((ord("7"), END), (-0.25, -0.1))
    assert prompts(calls(episode)) == [prompt for prompt, _ in model.scored]
    assert calls(episode)[1].extends == len(call.prompt_ids) + 2  # the action is in the conversation, as tokens
    assert model.encoded == 9  # each action once, whatever the number of turns
    assert not model.requests
    read = [len(prompt) * len(answers) + sum(map(len, answers)) for prompt, answers in model.scored]
    assert [each.usage["prompt_tokens"] for each in calls(episode)] == read
    assert {each.usage["seconds"] for each in calls(episode)} == {0.1}


def test_the_end_of_the_turn_tells_1_from_10() -> None:
    for first, likes in (("1", {"1": -0.1, "10": -0.5}), ("10", {"1": -2.0, "10": -0.5})):
        seen = view(make_game("TicTacToe-v0"))
        seen.legal_actions = ("1", "10")
        who = agent(ToyModel("", likes=likes), Sampling(temperature=0), decode="score")
        assert asyncio.run(who.act(seen)).text == first


def test_the_probability_of_a_scored_choice_is_on_record_and_it_is_nothing_to_train_on() -> None:
    likes = {"1": 0.0, "2": -1.0}
    seen = view(make_game("TicTacToe-v0"))
    seen.legal_actions = ("1", "2")
    who = agent(ToyModel("", likes=likes), Sampling(temperature=0.5), decode="score")
    reply = asyncio.run(who.act(seen))
    total = 1 + math.exp(-2)
    assert math.exp(reply.calls[0].usage["choice_logprob"]) == pytest.approx(
        {"1": 1 / total, "2": math.exp(-2) / total}[reply.text]
    )
    assert not who.info().trainable
    assert agent(ToyModel("")).info().trainable


@pytest.mark.parametrize("mode", MODES)
def test_an_answer_that_a_service_filtered_is_cut_and_ends_nothing(mode: str) -> None:
    filtered = Completion("<answer>5</answer> and", "content_filter", gaps=("content_filter: cut",))
    model = ToyModel(filtered, "<answer>7</answer>", "<answer>9</answer>", "<answer>3</answer>")
    model.features = MODES[mode]
    episode = played(agent(model))
    assert (episode.outcome, episode.forfeits) == ("terminated", ())
    first = episode.turns[0].attempts[0]
    assert (first.verdict, first.raw) == ("truncated", filtered.text)
    assert first.calls[0].finish_reason == "content_filter"
    assert "content_filter: cut" in episode.gaps
    votes = [filtered, Completion("<answer>7</answer>"), filtered]
    assert majority(view(make_game("TicTacToe-v0")), votes) == 1


def test_score_at_a_temperature_draws_from_the_seats_own_stream() -> None:
    def moves() -> list[str | None]:
        likes = {str(n): -n / 10 for n in range(10)}
        episode = played(agent(ToyModel("", likes=likes), decode="score"))
        return [turn.action for turn in episode.turns]

    assert moves() == moves()
    assert len({asked(agent(ToyModel("", likes=dict.fromkeys("123456789", -1.0)), decode="score")).text}) == 1


@pytest.mark.parametrize("at_once", [True, False])
def test_a_vote_is_on_record_losers_first(at_once: bool) -> None:
    model = ToyModel("<answer>1</answer>", "[3]", "so <answer>3</answer>", "<answer>7</answer>")
    if not at_once:
        model.features = model.features - {"n"}
    memory: dict[str, Any] = {}
    reply = asked(agent(model, decode="vote", votes=3), memory=memory)
    assert reply.text == "[3]"
    assert [(call.kind, call.received) for call in reply.calls] == [
        ("sample", "<answer>1</answer>"),
        ("sample", "so <answer>3</answer>"),
        ("generate", "[3]"),
    ]
    assert [request.n for request in model.requests] == ([3] if at_once else [1, 1, 1])
    prompt = model.requests[0].prompt_ids
    assert prompts(reply.calls) == [prompt] * 3
    assert [call.extends for call in reply.calls] == [0, len(prompt), len(prompt)]
    assert memory["llm"].before == prompt + reply.calls[-1].completion_ids


def test_one_failed_vote_fails_the_turn_with_its_own_error() -> None:
    class Failing(ToyModel):
        async def complete(self, request: Any) -> tuple[Completion, ...]:
            if len(self.requests) == 1:
                raise ModelError("out of luck")
            return await super().complete(request)

    model = Failing("5")
    model.features = model.features - {"n"}
    with pytest.raises(ModelError, match="out of luck"):
        asked(agent(model, decode="vote", votes=3))


LONG = {"rounds": 30}


@pytest.mark.parametrize("mode", MODES)
def test_a_full_context_drops_the_oldest_exchanges(mode: str) -> None:
    model = ToyModel("<answer>defect</answer>", context=1600)
    model.features = MODES[mode]
    episode = played(agent(model), "IteratedPrisonersDilemma-v0", options=LONG)
    assert episode.outcome == "terminated"
    assert episode.gaps == (DROPPED,)
    assert all(turn.attempts[0].verdict == "legal" for turn in episode.turns)
    assert all(text.startswith("<|im_start|>system") for text in map(said, [model] * len(model.requests)))
    if mode == "tokens":
        recorded = calls(episode)
        whole = prompts(recorded)
        assert max(map(len, whole)) + 50 <= 1600
        breaks = [at for at in range(1, len(whole)) if recorded[at].extends < len(whole[at - 1])]
        assert 0 < len(breaks) < len(whole) / 2  # not every turn


@pytest.mark.parametrize(
    ("rule", "outcome", "reason"), [("truncate", "truncated", "context is full"), ("forfeit", "terminated", "")]
)
def test_a_full_context_ends_by_the_rule(rule: str, outcome: str, reason: str) -> None:
    model = ToyModel("<answer>defect</answer>", context=1600)
    referee = Referee(retries=1, illegal="forfeit")
    episode = played(agent(model, overflow=rule), "IteratedPrisonersDilemma-v0", referee, options=LONG)
    assert episode.outcome == outcome
    assert reason in episode.reason
    assert episode.forfeits == ((0,) if rule == "forfeit" else ())


def test_a_prompt_that_never_fits_ends_the_episode_by_nobodys_fault() -> None:
    reply = asked(agent(ToyModel("5", context=100)))
    assert "context is full" in reply.ends
    assert not reply.truncated


def test_a_server_that_says_so_itself_is_heard() -> None:
    class Full(ToyModel):
        async def complete(self, request: Any) -> tuple[Completion, ...]:
            raise ContextOverflow("input is longer than the context")

    assert "longer than the context" in asked(agent(Full("5"))).ends
