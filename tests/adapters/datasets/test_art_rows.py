"""ART's trajectories, read without the package."""

from typing import Any

import msgspec
import pytest

from arena.adapters.datasets.art import read_groups
from arena.adapters.datasets.formats import make_format
from arena.adapters.datasets.tokens import Lacking
from arena.adapters.datasets.trajectory import Trajectory
from arena.match import play_sync
from arena.model import Completion
from tests.adapters.datasets.talks import chat, llm, played, seat
from tests.adapters.datasets.test_verifiers_graph import ADD, ANSWERS, KINDS, TIMES, calculated
from tests.agents.toy_model import ToyModel

Row = dict[str, Any]


def row_of(*unit: Trajectory, spec: str = "art") -> Row:
    (row,) = make_format(spec).rows(unit)
    found: Row = msgspec.json.decode(msgspec.json.encode(row))
    return found


def choices(trajectory: Row) -> list[Row]:
    """The answers that are trained on, the first history's first."""
    histories = [trajectory, *trajectory["additional_histories"]]
    return [each for history in histories for each in history["messages_and_choices"] if "message" in each]


def tokens(choice: Row) -> tuple[list[int], list[float]]:
    """As ART's tokenizer reads them off a choice."""
    told = choice["logprobs"]["content"]
    return [int(each["token"].split(":")[1]) for each in told], [each["logprob"] for each in told]


@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_is_a_choice_with_its_own_tokens_once(kind: str) -> None:
    trajectory = seat(played([KINDS[kind](), "first"]))
    (found,) = row_of(trajectory)["trajectories"]
    asked = [call for call in trajectory.calls if call.kind != "sample"]
    assert [tokens(each) for each in choices(found)] == [
        (list(call.completion_ids), list(call.logprobs)) for call in asked
    ]
    assert [each["message"]["content"] for each in choices(found)] == [call.received for call in asked]
    assert found["reward"] == trajectory.reward


def test_what_was_told_is_no_choice() -> None:
    trajectory = seat(played([llm(ToyModel(*ANSWERS), style="window", window=1), "first"]))
    (found,) = row_of(trajectory)["trajectories"]
    assert found["additional_histories"]
    for history in (found, *found["additional_histories"]):
        told = [each for each in history["messages_and_choices"] if "message" not in each]
        assert told[0]["role"] == "system"
        assert all(each.keys() <= {"role", "content", "tool_call_id", "tool_calls"} for each in told)
    with pytest.raises(Lacking, match="conversations"):
        row_of(trajectory, spec="art?breaks=refuse")


def test_a_group_is_the_samples_of_one_seat() -> None:
    episodes = [played([llm(ToyModel(*ANSWERS)), "first"], sample=sample) for sample in (0, 1)]
    row = row_of(*[Trajectory(episode, 0, 0.5) for episode in episodes])
    assert [each["metadata"]["sample"] for each in row["trajectories"]] == [0, 1]
    assert {each["metadata"]["group_id"] for each in row["trajectories"]} == {row["metadata"]["group_id"]}
    assert [each["metrics"]["advantage"] for each in row["trajectories"]] == [0.5, 0.5]
    for each in row["trajectories"]:
        assert all(type(value) in (int, float, str, bool) for value in each["metadata"].values())
        assert all(type(value) in (int, float) for value in each["metrics"].values())


def test_what_was_not_recorded_is_lacking_or_text_where_asked_for() -> None:
    texts = seat(played([llm(chat(*ANSWERS)), "random"]))
    with pytest.raises(Lacking, match="token ids were not recorded"):
        row_of(texts)
    (found,) = row_of(texts, spec="art?logprobs=false")["trajectories"]
    assert choices(found) == []
    said = [each["content"] for each in found["messages_and_choices"] if each["role"] == "assistant"]
    assert said == [call.received for call in texts.calls]
    (other,) = row_of(seat(texts.episode, 1), spec="art?logprobs=false")["trajectories"]
    assert [each["role"] for each in other["messages_and_choices"]][:3] == ["system", "user", "assistant"]


def test_tool_calls_results_and_tools() -> None:
    from arena.tools.codec import CODECS

    write = CODECS["hermes"].write
    trajectory = calculated(llm(ToyModel(write([ADD]), write([ADD, TIMES]), "Final answer: 7"), tools="hermes"))
    (found,) = row_of(trajectory)["trajectories"]
    assert [each["function"]["name"] for each in found["tools"]] == ["add", "subtract", "multiply", "divide"]
    first, second, last = choices(found)
    assert [each["function"]["name"] for each in second["message"]["tool_calls"]] == ["add", "multiply"]
    assert (first["finish_reason"], last["finish_reason"]) == ("tool_calls", "stop")
    results = [each["tool_call_id"] for each in found["messages_and_choices"] if each.get("role") == "tool"]
    made = [call["id"] for each in (first, second) for call in each["message"]["tool_calls"]]
    assert results == made


def test_cut_answers_and_cut_episodes() -> None:
    cut = Completion("I think", "length", ids=(57, 58), logprobs=(-0.25, -1.0), logprob_kind="raw")
    (found,) = row_of(seat(played([llm(ToyModel(cut, *ANSWERS)), "first"])))["trajectories"]
    assert choices(found)[0]["finish_reason"] == "length"
    short = play_sync("TicTacToe-v0", ["first", "first"], max_turns=3)
    (found,) = row_of(seat(short), spec="art?logprobs=false")["trajectories"]
    assert found["metrics"]["truncated"] == 1.0
    lost = played([llm(ToyModel("no")), "first"], referee=msgspec.structs.replace(short.referee, retries=0))
    assert not list(make_format("art?logprobs=false").rows([seat(lost, 1)]))  # it was never asked


def test_reading_needs_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "art", None)
    with pytest.raises(ValueError, match="pip install openpipe-art"):
        next(read_groups("none.jsonl"))
