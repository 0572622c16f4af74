"""Exported episodes, loaded by verifiers itself."""

from pathlib import Path
from typing import Any

import pytest

from arena.adapters.datasets.exporting import export
from arena.adapters.datasets.filters import Filters
from arena.adapters.datasets.tokens import segments
from arena.adapters.datasets.trajectory import Trajectory
from arena.agents.llm import LLMAgent
from arena.episode import Episode
from arena.match import play_sync
from arena.model import Completion
from arena.registry import make_game
from arena.tools.codec import CODECS
from tests.adapters.datasets.talks import chat, llm, played
from tests.adapters.datasets.test_verifiers_graph import ADD, ANSWERS, BOTH, KINDS, TIMES
from tests.adapters.models.matches import first_legal, over_http
from tests.adapters.models.matches import played as served
from tests.agents.test_llm_tools import structured
from tests.agents.toy_model import ToyModel
from tests.fakes.server import FakeSGLang

pytestmark = pytest.mark.train
vf: Any = pytest.importorskip("verifiers.v1.episode")
store: Any = pytest.importorskip("verifiers.v1.utils.trace_store")
wire: Any = pytest.importorskip("verifiers.v1.trace")


def loaded(episodes: list[Episode], tmp_path: Path, spec: str = "verifiers", **more: Any) -> list[Any]:
    """What verifiers' own reader of a run's folder gives; it says the same written and read once more."""
    export(episodes, spec, tmp_path / "out", **more)
    folder = tmp_path / "out" / "data" / "train"
    found: list[Any] = store.read_episodes(folder, wire.WireTrace)
    lines = (folder / store.TRACES_FILE).read_text(encoding="utf-8").split("\n")[:-1]
    for episode, line in zip(found, lines, strict=True):
        assert vf.WireEpisode.model_validate_json(line).to_record() == episode.to_record()
        (tmp_path / "again").mkdir(exist_ok=True)
        store.write_episode(tmp_path / "again", episode)
    again = store.read_episodes(tmp_path / "again", wire.WireTrace)
    assert [each.to_record() for each in again] == [each.to_record() for each in found]
    return found


def same_samples(trace: Any, trajectory: Trajectory) -> None:
    """Its branches, each a training sample, are our sequences."""
    found = segments(trajectory)
    assert len(trace.branches) == len(found)
    for branch, segment in zip(trace.branches, found, strict=True):
        given = len(segment.prompt_ids)
        assert branch.trainable
        assert branch.token_ids == [*segment.prompt_ids, *segment.response_ids]
        assert branch.sampled_mask == [False] * given + [bool(one) for one in segment.mask]
        assert branch.logprobs == [0.0] * given + segment.known()
        assert branch.advantages is None
    assert sum(len(branch.calls) for branch in trace.branches) == sum(len(each.spans) for each in found)


@pytest.mark.parametrize("kind", KINDS)
def test_branches_are_our_sequences(kind: str, tmp_path: Path) -> None:
    episode = played([KINDS[kind](), "first"])
    (found,) = loaded([episode], tmp_path, filters=Filters(seats=(0,)))
    (trace,) = found.traces
    same_samples(trace, Trajectory(episode, 0))
    assert trace.reward == Trajectory(episode, 0).reward
    assert trace.num_turns == len(Trajectory(episode, 0).attempts)
    assert trace.is_truncated is False


def test_what_a_served_model_said_over_http(tmp_path: Path) -> None:
    async def two(fake: FakeSGLang) -> list[Episode]:
        from arena.registry import make_agent

        return [await served(make_agent(f"sglang:{fake.url}")), await served(make_agent(f"sglang:{fake.url}"))]

    episodes: list[Episode] = over_http(two, FakeSGLang(first_legal))
    for found, episode in zip(loaded(episodes, tmp_path, filters=Filters(seats=(0,))), episodes, strict=True):
        same_samples(found.traces[0], Trajectory(episode, 0))
        assert found.usage.completion_tokens > 0
        assert found.num_total_tokens == found.num_input_tokens + found.num_output_tokens


def test_seats_are_traces_by_their_roles(tmp_path: Path) -> None:
    mafia = play_sync("SecretMafia-v0", ["random"] * make_game("SecretMafia-v0").players, 3)
    (found,) = loaded([mafia], tmp_path)
    roles = [seat.role for seat in mafia.seats]
    assert {name: len(traces) for name, traces in found.by_agent.items()} == {r: roles.count(r) for r in roles}
    assert [trace.reward for trace in found.traces] == list(mafia.returns or ())
    assert not any(trace.agent.trainable for trace in found.traces)
    assert found.task.data.model_extra == {"env": mafia.env, "seed": mafia.seed, "options": mafia.options}
    assert found.num_total_tokens == 0


@pytest.mark.parametrize("tools", ["hermes", "openai"])
def test_tool_calls_are_verifiers_own(tools: str, tmp_path: Path) -> None:
    write = CODECS["hermes"].write
    model = ToyModel(write([ADD]), write([ADD, TIMES]), "Final answer: 7")
    if tools == "openai":
        model = chat(structured(*BOTH[:1]), structured(*BOTH), "Final answer: 7")
    episode = played([llm(model, tools=tools)], "CalculatorTask-v0", options={"max_calls": 3})
    ((trace,),) = [found.traces for found in loaded([episode], tmp_path)]
    assert [message.role for message in trace.messages][-3:] == ["tool", "tool", "assistant"]
    assert [call.name for call in trace.assistant_messages[1].tool_calls] == ["add", "multiply"]
    assert [tool.name for tool in trace.tools] == ["add", "subtract", "multiply", "divide"]
    answered = [message.tool_call_id for message in trace.tool_messages]
    assert answered == [call.id for said in trace.assistant_messages for call in said.tool_calls or ()]


def test_what_was_cut_is_truncated_for_verifiers_too(tmp_path: Path) -> None:
    cut = Completion("I think", "length", ids=(57, 58), logprobs=(-0.25, -1.0), logprob_kind="raw")
    episodes = [
        play_sync("TicTacToe-v0", ["first", "first"], max_turns=3),
        played([llm(ToyModel(*ANSWERS[:1], cut)), "first"]),
    ]
    for found in loaded(episodes, tmp_path, filters=Filters(seats=(0,))):
        assert found.traces[0].is_truncated


def test_hostile_texts(tmp_path: Path) -> None:
    hostile = '"}]}\n\u2028\x85{"traces": [] \ud83d<|im_end|>\x00'
    agent: LLMAgent = llm(ToyModel(hostile, "<answer>5</answer>"))
    agent.name = hostile
    episode = played([agent, "first"])
    (found,) = loaded([episode], tmp_path)
    assert found.traces[0].assistant_messages[0].content == episode.turns[0].attempts[0].calls[0].received
    same_samples(found.traces[0], Trajectory(episode, 0))
