"""Harbor's ATIF, against the field list of its source."""

from typing import Any

import msgspec
import pytest

from arena.adapters.datasets.formats import make_format
from arena.adapters.datasets.tokens import segments
from arena.adapters.datasets.trajectory import Trajectory
from arena.episode import prompts
from arena.match import play_sync
from arena.registry import make_game
from arena.tools.codec import CODECS
from tests.adapters.datasets import atif_fields
from tests.adapters.datasets.atif_fields import Step
from tests.adapters.datasets.talks import chat, llm, played, seat
from tests.adapters.datasets.test_verifiers_graph import ADD, ANSWERS, BOTH, KINDS, TIMES, calculated, seats
from tests.adapters.models.matches import first_legal, over_http
from tests.adapters.models.matches import played as served
from tests.agents.test_llm_tools import structured
from tests.agents.toy_model import ToyModel
from tests.fakes.server import FakeSGLang


def read(trajectory: Trajectory, spec: str = "atif") -> atif_fields.Trajectory:
    (row,) = make_format(spec).rows([trajectory])
    return atif_fields.read(row)


def answers(found: atif_fields.Trajectory) -> list[Step]:
    return [step for step in found.steps if step.source == "agent" and not step.is_copied_context]


@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_is_a_step_with_its_prompt_tokens_and_log_probabilities(kind: str) -> None:
    trajectory = seat(played([KINDS[kind](), "first"]))
    found = read(trajectory)
    chosen = [
        (call, prompt)
        for call, prompt in zip(trajectory.calls, prompts(trajectory.calls), strict=True)
        if call.kind != "sample"
    ]
    assert len(answers(found)) == len(chosen) == len(trajectory.attempts)
    for step, (call, prompt), (turn, attempt) in zip(answers(found), chosen, trajectory.attempts, strict=True):
        assert step.metrics is not None
        assert step.metrics.prompt_token_ids == list(prompt)
        assert step.metrics.completion_token_ids == list(call.completion_ids)
        assert step.metrics.logprobs == list(call.logprobs)
        assert step.llm_call_count == len(attempt.calls)
        assert step.extra is not None
        assert (step.extra["ply"], step.extra["verdict"]) == (turn.ply, attempt.verdict)


def test_a_conversation_that_grows_copies_nothing_and_prompts_can_be_left_out() -> None:
    trajectory = seat(played([llm(ToyModel(*ANSWERS)), "first"]))
    found = read(trajectory, "atif?prompt_ids=false")
    assert [step.source for step in found.steps][:4] == ["system", "user", "agent", "user"]
    assert not any(step.is_copied_context for step in found.steps)
    assert all(step.metrics and step.metrics.prompt_token_ids is None for step in answers(found))


def test_what_a_window_tells_again_is_copied() -> None:
    trajectory = seat(played([llm(ToyModel(*ANSWERS), style="window", window=1), "first"]))
    found = read(trajectory)
    copied = [step for step in found.steps if step.is_copied_context]
    assert {step.source for step in copied} == {"user", "agent"}
    assert all(step.metrics is None and step.llm_call_count is None for step in copied)
    assert (
        len(answers(found))
        == len(trajectory.attempts)
        == len(segments(trajectory)[0].spans) + sum(len(each.spans) for each in segments(trajectory)[1:])
    )


def test_a_search_asks_no_model() -> None:
    episode = play_sync("TicTacToe-v0", ["minimax", "random"], 5)
    for trajectory in seats(episode):
        found = read(trajectory)
        assert {step.llm_call_count for step in answers(found)} == {0}
        assert all(step.metrics is None for step in found.steps)
        assert found.agent.model_name is None
        assert found.session_id == episode.id
        assert found.final_metrics is not None
        assert found.final_metrics.extra == {"reward": trajectory.reward}
    assert len({read(each).trajectory_id for each in seats(episode)}) == 2


@pytest.mark.parametrize("tools", ["hermes", "openai"])
def test_results_are_observations_of_the_step_that_called(tools: str) -> None:
    write = CODECS["hermes"].write
    model = ToyModel(write([ADD]), write([ADD, TIMES]), "Final answer: 7")
    if tools == "openai":
        model = chat(structured(*BOTH[:1]), structured(*BOTH), "Final answer: 7")
    found = read(calculated(llm(model, tools=tools)))
    assert [step.source for step in found.steps] == ["system", "user", "agent", "agent", "agent"]
    second = found.steps[3]
    assert second.tool_calls is not None
    assert second.observation is not None
    assert [(call.function_name, call.arguments) for call in second.tool_calls] == [
        ("add", {"a": 2, "b": 3}),
        ("multiply", {"a": 2, "b": 3}),
    ]
    assert [each.source_call_id for each in second.observation.results] == [
        each.tool_call_id for each in second.tool_calls
    ]
    assert second.observation.results[0].content == "You called add(a=2, b=3) -> 5"
    assert found.agent.tool_definitions is not None
    assert found.agent.tool_definitions[0]["function"]["name"] == "add"


def test_a_served_models_counts_add_up() -> None:
    async def one(fake: FakeSGLang) -> Any:
        from arena.registry import make_agent

        return await served(make_agent(f"sglang:{fake.url}"))

    episode = over_http(one, FakeSGLang(first_legal))
    found = read(seat(episode))
    metrics = [step.metrics for step in answers(found) if step.metrics]
    assert found.final_metrics is not None
    assert found.final_metrics.total_completion_tokens == sum(len(each.completion_token_ids or ()) for each in metrics)
    assert found.final_metrics.total_prompt_tokens == sum(len(each.prompt_token_ids or ()) for each in metrics)
    assert found.final_metrics.total_steps == len(found.steps)


@pytest.mark.parametrize("game", ["SecretMafia-v0", "LiarsDice-v0"])
def test_nobody_reads_what_another_seat_alone_was_shown(game: str) -> None:
    episode = play_sync(game, ["random"] * make_game(game).players, 3)
    texts = {each.player: msgspec.json.encode(read(each)).decode() for each in seats(episode)}
    checked = 0
    for turn in episode.turns:
        for player, text in texts.items():
            shown = "\n".join(
                [*(each.observation for each in episode.turns if each.seat == player), episode.final[player]]
            )
            for line in turn.observation.splitlines():
                if player != turn.seat and line not in shown and line not in episode.seats[player].rules:
                    assert msgspec.json.encode(line).decode()[1:-1] not in text
                    checked += 1
    assert checked > 10


def test_truncated_and_forfeited() -> None:
    cut = play_sync("TicTacToe-v0", ["first", "first"], max_turns=3)
    extra = read(seat(cut)).extra or {}
    assert (extra["outcome"], extra["reason"]) == ("truncated", cut.reason)
    lost = played([llm(ToyModel("no")), "first"], referee=msgspec.structs.replace(cut.referee, retries=0))
    found = read(seat(lost))
    assert (found.extra or {})["forfeited"] is True
    assert answers(found)[-1].extra == {
        "ply": 0, "verdict": lost.turns[0].attempts[0].verdict, "reason": lost.turns[0].attempts[0].reason,
    }  # fmt: skip
    assert not list(make_format("atif").rows([seat(lost, 1)]))  # it was never asked


def test_hostile_texts_and_calls() -> None:
    hostile = '"}]}\n\u2028\x85{"steps": [] \ud83d<|im_end|>\x00'
    agent = llm(ToyModel(hostile, "<answer>5</answer>"))
    agent.name = hostile
    episode = played([agent, "first"])
    found = read(seat(episode))
    assert answers(found)[0].message == episode.turns[0].attempts[0].calls[0].received
    assert found.agent.name == episode.seats[0].agent
    odd = structured(("add", "[" * 5000), (hostile, '{"a": '))
    found = read(calculated(llm(chat(odd, "Final answer: 7"), tools="openai")))
    assert answers(found)[0].llm_call_count == 1
