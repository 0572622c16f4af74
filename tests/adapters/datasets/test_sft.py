"""Rows of supervised fine-tuning: from matches that were really played."""

from typing import Any

import pytest

from arena.adapters.datasets.format import Row
from arena.adapters.datasets.formats import make_format
from arena.adapters.datasets.sft import SFT
from arena.adapters.datasets.tokens import Lacking
from arena.adapters.datasets.trajectory import Trajectory
from arena.episode import Episode
from arena.match import play_sync
from arena.referee import Referee
from arena.rollouts.branching import branch_sync
from arena.tools.codec import CODECS, Call
from tests.adapters.datasets.talks import chat, llm, played, seat
from tests.players import Says

GAME = "TicTacToe-v0"
WRONG = ("bad", "I take <answer>5</answer>", "<answer>5</answer>", "<answer>7</answer>", "<answer>9</answer>")


def rows(episode: Episode, player: int = 0, **options: Any) -> list[Row]:
    return list(SFT(**options).rows([Trajectory(episode, player)]))


def test_a_row_for_each_answer_after_what_it_was_given_after() -> None:
    model = chat("<answer>5</answer>", "Now <answer>7</answer>", "<answer>9</answer>")
    episode = played([llm(model), "first"])
    found = rows(episode)
    assert [row["completion"] for row in found] == [
        [{"role": "assistant", "content": each.attempts[0].raw}] for each in seat(episode).turns
    ]
    for row, told in zip(found, model.told, strict=True):
        assert row["prompt"] == [{"role": each.role, "content": each.content} for each in told]
    assert [row["ply"] for row in found] == [turn.ply for turn in seat(episode).turns]


def test_whose_row_it_is() -> None:
    episode = play_sync(GAME, ["minimax?nodes=200", "random"], 3)
    for player, name, other in ((0, "minimax?nodes=200", "random"), (1, "random", "minimax?nodes=200")):
        row = rows(episode, player)[0]
        assert episode.returns is not None
        assert (row["agent"], row["opponents"], row["reward"]) == (name, [other], episode.returns[player])
        assert (row["episode"], row["env"], row["seat"]) == (episode.id, GAME, player)
        assert (row["role"], row["advantage"]) == (f"seat {player}", None)
        assert row["group_id"] == Trajectory(episode, player).group_id
    mafia = play_sync("SecretMafia-v0", ["random"] * 7)
    roles = [{row["role"] for row in rows(mafia, player)} for player in range(7)]  # some die before they are asked
    assert all(found <= {each.role} for found, each in zip(roles, mafia.seats, strict=True))
    assert len(set().union(*roles)) > 1
    assert {row["advantage"] for row in SFT().rows([Trajectory(episode, 0, 0.5)])} == {0.5}
    assert rows(episode, 0)[0]["group_id"] != rows(episode, 1)[0]["group_id"]


def test_wrong_answers_are_not_taught_unless_that_is_wanted() -> None:
    episode = played([llm(chat(*WRONG)), "first"])
    wrong = [a.raw for _, a in seat(episode).attempts if a.verdict != "legal"]
    assert len(wrong) >= 1
    taught = [row["completion"][0]["content"] for row in rows(episode)]
    assert not set(wrong) & set(taught)
    assert len(taught) == len(seat(episode).turns)
    assert wrong[0] in [message["content"] for message in rows(episode)[0]["prompt"]]  # it was said, all the same
    everything = rows(episode, legal_only=False)
    assert [row["completion"][0]["content"] for row in everything] == [a.raw for _, a in seat(episode).attempts]
    assert rows(episode, turns="all") == []
    (whole,) = rows(episode, turns="all", legal_only=False)
    assert [m["content"] for m in whole["messages"] if m["role"] == "assistant"] == [
        a.raw for _, a in seat(episode).attempts
    ]


def test_what_was_played_for_a_seat_is_not_taught() -> None:
    episode = play_sync(GAME, [Says("5", "mist"), "first"], referee=Referee(illegal="random"))
    assert [row["completion"][0]["content"] for row in rows(episode)] == ["<answer>5</answer>"]
    gone = play_sync(GAME, [Says("mist"), "first"])
    assert gone.forfeits == (0,)
    assert rows(gone) == rows(gone, turns="last") == rows(gone, turns="all") == []
    assert len(rows(gone, legal_only=False)) == 1


def test_the_last_answer_and_whole_conversations() -> None:
    episode = play_sync("IteratedPrisonersDilemma-v0", ["random", "random"], options={"rounds": 5})
    each, (last,), (whole,) = (rows(episode, turns=turns) for turns in ("each", "last", "all"))
    assert last == each[-1]
    assert whole["messages"] == last["prompt"] + last["completion"]
    assert [m["role"] for m in whole["messages"]] == ["system"] + ["user", "assistant"] * 5
    assert len(rows(episode, turns="all", style="snapshot")) == 5
    assert len(rows(episode, turns="last", style="snapshot")) == 1
    for row in rows(episode, style="snapshot"):
        assert [m["role"] for m in row["prompt"]] == ["system", "user"]


def test_form_style_and_template_are_options(tmp_path: Any) -> None:
    episode = play_sync(GAME, ["first", "random"])
    move = episode.turns[0].action
    assert rows(episode, answer="plain")[0]["completion"] == [{"role": "assistant", "content": move}]
    assert rows(episode, answer="boxed")[0]["completion"][0]["content"] == f"\\boxed{{{move}}}"
    assert "Legal actions" not in rows(episode, show_legal=False)[0]["prompt"][1]["content"]
    assert "1, 2, 3, 4 and 5 more" in rows(episode, legal_limit=4)[0]["prompt"][1]["content"]
    merged = rows(episode, system=False)[0]["prompt"]
    assert [m["role"] for m in merged] == ["user"]
    assert merged[0]["content"] == "\n\n".join([m["content"] for m in rows(episode)[0]["prompt"]])
    (tmp_path / "system.j2").write_text("Rules: {{ rules }}")
    assert rows(episode, template=str(tmp_path))[0]["prompt"][0]["content"].startswith("Rules: Tic-tac-toe")


def test_models_are_taught_what_they_said_or_their_moves_anew() -> None:
    episode = played([llm(chat("<think>hm</think><answer>5</answer>", "<answer>7</answer>", "9")), "first"])
    assert rows(episode, answer="plain")[0]["completion"][0]["content"] == "<think>hm</think><answer>5</answer>"
    assert rows(episode, answer="plain", anew=True)[0]["completion"][0]["content"] == "5"


def test_tools_and_their_calls() -> None:
    call = CODECS["json"].write([Call("add", {"a": 2, "b": 3})])
    episode = play_sync("CalculatorTask-v0", [Says(call, "Final answer: 7")])
    first, second = rows(episode, tools="openai")
    assert [tool["function"]["name"] for tool in first["tools"]] == ["add", "subtract", "multiply", "divide"]
    (said,) = first["completion"]
    assert said["tool_calls"][0]["function"] == {"name": "add", "arguments": {"a": 2, "b": 3}}
    assert second["prompt"][-1]["role"] == "tool"
    assert second["prompt"][-1]["tool_call_id"] == said["tool_calls"][0]["id"]
    assert second["prompt"][:-1] == first["prompt"] + first["completion"]
    assert rows(episode)[0]["tools"] is None
    assert rows(episode)[0]["completion"] == [{"role": "assistant", "content": call}]


def test_played_on_from_the_middle_of_another_only_its_own_turns_are_taught() -> None:
    start = play_sync(GAME, ["first", "first"])
    (on,) = branch_sync(start, 4, 1, ["random", "random"])
    own = [turn.action for turn in on.turns if turn.seat == 0 and turn.ply >= 4]
    assert [row["completion"][0]["content"] for row in rows(on, answer="plain")] == own
    (forced,) = branch_sync(start, 4, 1, ["random", "random"], actions={0: "9"})
    assert [row["ply"] for row in rows(forced)] == [t.ply for t in forced.turns if t.seat == 0 and t.ply > 4]
    with pytest.raises(Lacking, match="played on from another's middle"):
        rows(on, turns="all")
    (whole,) = branch_sync(start, 0, 1, ["random", "random"])
    assert len(rows(whole, turns="all")) == 1


def test_void_episodes_are_lacking() -> None:
    episode = play_sync(GAME, ["first", "first"])
    episode.outcome, episode.returns, episode.reason, episode.final = "void", None, "down", ()
    with pytest.raises(Lacking, match="void"):
        rows(episode)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("sft?turns=some", "turns='some': allowed are each, last, all"),
        ("sft?style=loud", "style='loud': allowed are chat, snapshot, window"),
        ("sft?answer=bare", "answer='bare': allowed are answer, boxed, final, bracket, plain"),
        ("sft?window=-1", "window=-1: allowed are 0 to 64"),
        ("sft?tools=hammer", "tools='hammer': allowed are"),
        ("sft?template=/nowhere", "template='/nowhere': a folder with"),
        ("sft?decode=vote", "unknown option of format sft 'decode'"),
        ("sft?legal_only=7", "option legal_only of format sft must be bool"),
    ],
)
def test_options_that_cannot_be_meant(spec: str, message: str) -> None:
    with pytest.raises(ValueError, match="^" + message.replace("(", "\\(")) as caught:
        make_format(spec)
    assert "\n" not in str(caught.value)


def test_its_columns_hold_its_rows() -> None:
    pa = pytest.importorskip("pyarrow")
    from arena.adapters.datasets.tables import table

    episode = play_sync(GAME, ["random", "first"])
    for turns in ("each", "all"):
        found = rows(episode, turns=turns)
        held = table(found, SFT(turns).schema())
        assert set(held.column_names) == set(found[0])
        assert held.num_rows == len(found)
        assert held["reward"].type == pa.float64()
