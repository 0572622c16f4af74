"""Episodes as verifiers' graphs of messages, read without the package."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.adapters.datasets.exporting import export
from arena.adapters.datasets.formats import make_format
from arena.adapters.datasets.tokens import Lacking, segments
from arena.adapters.datasets.trajectory import Trajectory
from arena.agents.llm import LLMAgent
from arena.episode import Episode
from arena.match import play_sync
from arena.model import Completion, Sampling
from arena.referee import Referee
from arena.registry import make_game
from arena.rollouts.branching import branch_sync
from arena.tools.codec import CODECS, Call
from tests.adapters.datasets.talks import chat, llm, played, seat
from tests.agents.test_llm_tools import structured
from tests.agents.toy_model import ToyModel

ANSWERS = ("<answer>9</answer>", "<answer>99</answer>", "<answer>5</answer>", "<answer>7</answer>")


def row_of(*unit: Trajectory, spec: str = "verifiers") -> dict[str, Any]:
    (row,) = make_format(spec).rows(unit)
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(row))
    return found


def seats(episode: Episode) -> list[Trajectory]:
    return [Trajectory(episode, player) for player in range(len(episode.seats))]


def paths(trace: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The nodes from the root to each leaf."""
    nodes = trace["nodes"]
    parents = {node["parent"] for node in nodes}
    found: list[list[dict[str, Any]]] = []
    for leaf in range(len(nodes)):
        if leaf not in parents:
            path, at = [], leaf
            while at is not None:
                path.append(nodes[at])
                at = nodes[at]["parent"]
            found.append(path[::-1])
    return found


def joined(path: list[dict[str, Any]], key: str) -> list[Any]:
    return [item for node in path for item in node[key]]


def same_as_segments(trajectory: Trajectory, trace: dict[str, Any]) -> None:
    found = segments(trajectory)
    assert len(paths(trace)) == len(found)
    for path, segment in zip(paths(trace), found, strict=True):
        given = [False] * len(segment.prompt_ids)
        assert joined(path, "token_ids") == [*segment.prompt_ids, *segment.response_ids]
        assert joined(path, "mask") == given + [bool(one) for one in segment.mask]
        assert joined(path, "logprobs") == [p for p in segment.logprobs if p is not None]


KINDS: dict[str, Callable[[], LLMAgent]] = {
    "chat": lambda: llm(ToyModel(*ANSWERS)),
    "snapshot": lambda: llm(ToyModel(*ANSWERS), style="snapshot"),
    "window": lambda: llm(ToyModel(*ANSWERS), style="window", window=1),
    "strip": lambda: llm(ToyModel("<think>so</think><answer>9</answer>", *ANSWERS[1:]), thinking="strip"),
    "no system": lambda: llm(ToyModel(*ANSWERS, system=False)),
    "no end": lambda: llm(ToyModel(*ANSWERS, ends=False)),
    "votes": lambda: llm(ToyModel(*ANSWERS, *ANSWERS), decode="vote", votes=3),
    "cut": lambda: llm(ToyModel(Completion("9", "length", ids=(57,), logprobs=(-0.25,), logprob_kind="raw"), *ANSWERS)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_paths_are_the_sequences_of_tokens_that_were_given_and_sampled(kind: str) -> None:
    trajectory = seat(played([KINDS[kind](), "first"]))
    (trace,) = row_of(trajectory)["traces"]
    same_as_segments(trajectory, trace)
    assert trace["agent"]["trainable"]
    assert "lacking" not in trace["info"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_node_has_its_own_message_and_calls_point_at_answers(kind: str) -> None:
    trajectory = seat(played([KINDS[kind](), "first"]))
    (trace,) = row_of(trajectory)["traces"]
    nodes = trace["nodes"]
    for at, node in enumerate(nodes):
        assert node["parent"] is None or node["parent"] < at
        assert len(node["mask"]) == len(node["token_ids"])
        assert len(node["logprobs"]) == sum(node["mask"])
        assert node["sampled"] or not any(node["mask"])
        assert not node["sampled"] or node["message"]["role"] == "assistant"
    answers = [at for at, node in enumerate(nodes) if node["sampled"]]
    assert len(answers) == len(trajectory.attempts)
    assert [call["node"] for call in trace["calls"] if "node" in call] == answers
    assert len(trace["calls"]) == len(trajectory.calls)
    for (_, attempt), at in zip(trajectory.attempts, answers, strict=True):
        said = nodes[at]["message"]
        assert said["content"] == attempt.calls[-1].received


def test_a_snapshot_tells_the_rules_once() -> None:
    trajectory = seat(played([KINDS["snapshot"](), "first"]))
    (trace,) = row_of(trajectory)["traces"]
    assert sum(node["message"]["role"] == "system" for node in trace["nodes"]) == 1
    assert len(paths(trace)) > 1


def test_without_tokens_it_is_text_and_says_why() -> None:
    episode = played([llm(chat(*ANSWERS)), "random"])
    model, other = row_of(*seats(episode))["traces"]
    for trace, why in ((model, "token ids were not recorded"), (other, "no tokens were recorded of random's reply")):
        assert why in trace["info"]["lacking"]
        assert not trace["agent"]["trainable"]
        assert not any(node["token_ids"] or node["mask"] or node["logprobs"] for node in trace["nodes"])
        assert len(paths(trace)) == 1
    assert next(node["message"]["content"] for node in model["nodes"] if node["sampled"]) == ANSWERS[0]
    with pytest.raises(Lacking, match="no tokens were recorded of random's reply"):
        row_of(*seats(episode)[1:], spec="verifiers?tokens=true")


def test_actions_chosen_by_score_and_by_constraint_do_not_train() -> None:
    for decode in ("score", "constrained"):
        (trace,) = row_of(seat(played([llm(ToyModel("9", "5", "7", "3"), decode=decode), "first"])))["traces"]
        assert not trace["agent"]["trainable"]
        assert trace["info"]["lacking"]
    known = row_of(
        seat(played([llm(ToyModel("9", "5", "7", "3"), decode="constrained"), "first"])), spec="verifiers?kinds=any"
    )
    assert known["traces"][0]["agent"]["trainable"]


def test_what_stands_beside_the_nodes() -> None:
    episode = played([llm(ToyModel(*ANSWERS), Sampling(max_tokens=50, top_p=0.9)), "first"])
    first, second = (Trajectory(episode, player, advantage) for player, advantage in ((0, 0.5), (1, -0.5)))
    row = row_of(first, second, spec="verifiers?env_name=ttt")
    assert (row["id"], row["ok"], row["errors"]) == (episode.id, True, [])
    assert row["env"] == {"id": "arena/TicTacToe-v0", "name": "ttt"}
    assert row["task"]["data"]["seed"] == episode.seed
    assert row["task"]["key"] == first.task_id
    trace, other = row["traces"]
    assert trace["agent"]["name"] == first.role != other["agent"]["name"] == second.role
    assert trace["rewards"]["return"] == {"score": first.reward, "weight": 1.0}
    assert other["rewards"]["return"]["score"] == second.reward == -first.reward
    assert trace["calls"][0]["sampling"]["top_p"] == 0.9
    assert trace["metrics"]["wrong_replies"] == 1.0
    assert trace["stop_condition"] == "agent_completed"
    assert trace["info"]["opponents"] == ["first"]
    for node in trace["nodes"]:
        assert node.get("advantages") == ([0.5] * sum(node["mask"]) if node["sampled"] else None)
    assert row["group"] == row_of(first)["group"]
    told = msgspec.structs.replace(episode, referee=Referee(retries=7))
    assert row["group"] != row_of(seat(told))["group"]


def test_truncated_and_forfeited() -> None:
    cut = play_sync("TicTacToe-v0", ["first", "first"], max_turns=3)
    assert {trace["stop_condition"] for trace in row_of(*seats(cut))["traces"]} == {"max_turns"}
    lost = played([llm(ToyModel("no")), "first"], referee=msgspec.structs.replace(cut.referee, retries=1))
    assert lost.forfeits == (0,)
    (trace,) = row_of(seat(lost))["traces"]
    assert (trace["stop_condition"], trace["metrics"]["forfeited"]) == ("forfeit", 1.0)
    assert not list(make_format("verifiers").rows([seat(lost, 1)]))  # it was never asked
    assert [trace["id"] for trace in row_of(*seats(lost))["traces"]] == [trace["id"]]


ADD, TIMES = Call("add", {"a": 2, "b": 3}), Call("multiply", {"a": 2, "b": 3})
BOTH = [("add", '{"a": 2, "b": 3}'), ("multiply", '{"b": 3, "a": 2}')]


def calculated(agent: LLMAgent) -> Trajectory:
    return seat(played([agent], "CalculatorTask-v0", options={"max_calls": 3}))


def test_a_tool_task_has_tools_calls_and_results_with_their_tokens() -> None:
    write = CODECS["hermes"].write
    agent = llm(ToyModel(write([ADD]), write([ADD, TIMES]), "Final answer: 7"), tools="hermes")
    trajectory = calculated(agent)
    (trace,) = row_of(trajectory)["traces"]
    same_as_segments(trajectory, trace)
    assert [tool["name"] for tool in trace["tools"]] == ["add", "subtract", "multiply", "divide"]
    assert {"type", "name", "description", "parameters"} == trace["tools"][0].keys()
    assert trace["nodes"][0]["tools"] == trace["tools"]
    messages = [node["message"] for node in trace["nodes"]]
    roles = ["system", "user", "assistant", "tool", "assistant", "tool", "tool", "assistant"]
    assert [message["role"] for message in messages] == roles
    assert messages[4]["tool_calls"] == [
        {"id": messages[5]["tool_call_id"], "name": "add", "arguments": '{"a": 2, "b": 3}'},
        {"id": messages[6]["tool_call_id"], "name": "multiply", "arguments": '{"a": 2, "b": 3}'},
    ]


def test_calls_that_a_server_gives_apart_stay_as_they_came() -> None:
    odd = Completion("", "tool_calls", tool_calls=({"id": 5, "function": {"name": "add", "arguments": "{"}},))
    agent = llm(chat(structured(*BOTH[:1]), structured(*BOTH), odd, "Final answer: 7"), tools="openai")
    (trace,) = row_of(calculated(agent))["traces"]
    made = [call for node in trace["nodes"] for call in node["message"].get("tool_calls", ())]
    assert made[0] == {"id": "id-0", "name": "add", "arguments": BOTH[0][1]}
    assert trace["info"]["lacking"]
    assert trace["calls"][0]["finish_reason"] == "tool_calls"


@pytest.mark.parametrize("game", ["SecretMafia-v0", "LiarsDice-v0"])
def test_nobody_reads_in_a_trace_what_another_seat_alone_was_shown(game: str) -> None:
    episode = play_sync(game, ["random"] * make_game(game).players, 3)
    traces = row_of(*seats(episode))["traces"]
    texts = ["\n".join(said["message"]["content"] for said in trace["nodes"]) for trace in traces]
    checked = 0
    for turn in episode.turns:
        for player, text in enumerate(texts):
            shown = "\n".join(other.observation for other in episode.turns if other.seat == player)
            for line in turn.observation.splitlines():
                if player == turn.seat:
                    assert line in text
                elif line not in shown and line not in episode.seats[player].rules:
                    assert line not in text
                    checked += 1
    assert checked > 10


def test_hostile_texts_and_names_come_back_as_they_were(tmp_path: Path) -> None:
    hostile = '"}]}\n\u2028\x85{"traces": [] \ud83d<|im_end|>\x00'
    agent = llm(ToyModel(hostile, "<answer>5</answer>"))
    agent.name = hostile
    episode = played([agent, "first"])
    export([episode], "verifiers", tmp_path / "out")
    lines = (tmp_path / "out" / "data" / "train" / "traces.jsonl").read_bytes().splitlines()
    assert len(lines) == 1
    trace = msgspec.json.decode(lines[0])["traces"][0]
    said = [node["message"]["content"] for node in trace["nodes"] if node["sampled"]]
    assert said[0] == episode.turns[0].attempts[0].calls[0].received
    assert trace["info"]["agent"] == episode.seats[0].agent
    same_as_segments(seat(episode), trace)


def test_of_an_episode_played_on_from_another_only_what_was_played_in_it_is_trained() -> None:
    whole = played([llm(ToyModel(*ANSWERS)), "first"])
    ply = whole.turns[-1].ply - 1
    (fork,) = branch_sync(whole, ply, 1, [llm(ToyModel("<answer>3</answer>", "<answer>7</answer>")), "first"])
    trajectory = seat(fork)
    (trace,) = row_of(trajectory)["traces"]
    assert trace["agent"]["trainable"]
    same_as_segments(trajectory, trace)
    answers = [node for node in trace["nodes"] if node["message"]["role"] == "assistant"]
    before = [attempt for turn in trajectory.turns if turn.ply < fork.fork for attempt in turn.attempts]
    assert [node["sampled"] for node in answers] == [False] * len(before) + [True] * (len(answers) - len(before))
    assert 0 < len(before) < len(answers)
