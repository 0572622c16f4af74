"""Pairs: the better and the worse action of one position."""

import re
from typing import Any

import pytest

from arena.adapters.datasets.dpo import DPO
from arena.adapters.datasets.format import Row
from arena.adapters.datasets.formats import make_format
from arena.adapters.datasets.tokens import Lacking
from arena.adapters.datasets.trajectory import Trajectory
from arena.episode import Episode
from arena.match import play_sync
from arena.referee import Referee
from arena.registry import GAMES
from arena.rollouts.branching import branch_sync
from tests.adapters.datasets.talks import chat, llm, played, seat
from tests.players import Says

GAME = "TicTacToe-v0"


def rows(episode: Episode, player: int = 0, **options: Any) -> list[Row]:
    return list(DPO(**options).rows([Trajectory(episode, player)]))


def said(row: Row, which: str) -> str:
    (message,) = row[which]
    assert message["role"] == "assistant"
    return str(message["content"])


def blunder() -> Episode:
    """X takes 1 2 and lets 3 go by, which wins at once; O does not see it either."""
    return play_sync(GAME, [Says("1", "2", "9", "7", "8"), Says("5", "4", "6")])


def test_the_winning_move_is_chosen_and_the_blunder_rejected() -> None:
    episode = blunder()
    found = [row for row in rows(episode, candidates=9, rollout="minimax?nodes=5000", rollouts=2) if row["ply"] == 4]
    assert ("3", "9") in [(row["chosen"][0]["content"][8:9], row["rejected"][0]["content"][8:9]) for row in found]
    best = next(row for row in found if said(row, "chosen") == "<answer>3</answer>")
    assert best["value_chosen"] == 1.0
    assert best["value_rejected"] < 1.0
    assert best["prompt"][-1]["content"].startswith("You are X.\nX X .\nO O .")
    assert {said(row, "chosen") for row in found} <= {"<answer>3</answer>", "<answer>6</answer>"}  # or it stops 6


def test_values_are_means_of_real_continuations() -> None:
    episode = play_sync(GAME, ["random", "random"], 5)
    found = rows(episode, rollouts=6, candidates=2)
    assert found
    for row in found:
        for which in ("chosen", "rejected"):
            action = said(row, which).removeprefix("<answer>").removesuffix("</answer>")
            again = branch_sync(episode, row["ply"], 6, ["random", "random"], actions={0: action})
            assert row[f"value_{which}"] == pytest.approx(sum(e.returns[0] for e in again if e.returns) / 6)
        assert row["value_chosen"] > row["value_rejected"]
        played_there = next(turn.action for turn in episode.turns if turn.ply == row["ply"])
        assert f"<answer>{played_there}</answer>" in (said(row, "chosen"), said(row, "rejected"))
        assert row["rollouts"] == 6


def test_the_same_seed_gives_the_same_pairs_and_another_others() -> None:
    first, again = (play_sync(GAME, ["random", "random"], 5) for _ in range(2))
    pairs = [
        [(said(row, "chosen"), said(row, "rejected"), row["value_chosen"]) for row in rows(episode, 1, seed=seed)]
        for episode, seed in ((first, 0), (again, 0), (first, 1), (first, 2))
    ]
    assert pairs[0] == pairs[1]
    assert len({str(each) for each in pairs}) > 1


def test_margin_noise_and_number_of_plies_make_fewer() -> None:
    episode = play_sync(GAME, ["random", "random"], 5)
    everything = rows(episode, candidates=4)
    sure = rows(episode, candidates=4, margin=0.5)
    assert sure == [row for row in everything if row["value_chosen"] - row["value_rejected"] > 0.5]
    assert 0 < len(sure) < len(everything)
    quiet = rows(episode, candidates=4, sigmas=2.0)
    assert quiet == [row for row in everything if row["value_chosen"] - row["value_rejected"] > 2 * row["error"]]
    assert 0 < len(quiet) < len(everything)
    few = rows(episode, candidates=4, plies=1)
    assert len({row["ply"] for row in few}) == 1
    assert all(row in everything for row in few)


def test_no_pair_where_nothing_differs() -> None:
    episode = play_sync(GAME, ["first", "first"])
    last = [row for row in rows(episode, rollouts=1) if row["error"] is not None]
    assert last == []
    draw = play_sync(GAME, [Says("5", "2", "3", "4", "9"), Says("1", "8", "7", "6")])
    assert draw.returns == (0.0, 0.0)
    assert [row for row in rows(draw) if row["ply"] == 8] == []  # one square is left


def test_both_answers_have_the_form_that_the_prompt_asks_for() -> None:
    model = chat("Let me think. The centre! \\boxed{5}", "\\boxed{7}", "\\boxed{9}", "\\boxed{3}", "\\boxed{4}")
    episode = played([llm(model, answer="boxed"), "random"])
    found = rows(episode, candidates=3)
    assert found
    for row in found:
        assert "\\boxed{ACTION}" in row["prompt"][0]["content"]
        for which in ("chosen", "rejected"):
            assert re.fullmatch(r"\\boxed\{[1-9]\}", said(row, which))
    assert {row["pair"] for row in found} == {"fork"}


def test_after_a_wrong_reply_the_fork_is_of_the_position_not_of_the_quarrel() -> None:
    model = chat("bad", "<answer>5</answer>", "<answer>7</answer>", "<answer>9</answer>", "<answer>3</answer>")
    episode = played([llm(model), "first"])
    first = [row for row in rows(episode, candidates=8) if row["ply"] == 0]
    assert first
    assert [len(row["prompt"]) for row in first] == [2] * len(first)


def test_wrong_replies_against_the_legal_one_in_the_end() -> None:
    model = chat("bad", "worse", "Fine: <answer>5</answer>", "<answer>7</answer>", "<answer>9</answer>")
    episode = played([llm(model), "first"])
    found = rows(episode, pairs="wrong")
    assert [(said(row, "rejected"), said(row, "chosen")) for row in found] == [
        ("bad", "Fine: <answer>5</answer>"),
        ("worse", "Fine: <answer>5</answer>"),
    ]
    assert found[1]["prompt"] == [
        *found[0]["prompt"],
        *found[0]["rejected"],
        {"role": "user", "content": found[1]["prompt"][-1]["content"]},
    ]
    assert (found[0]["value_chosen"], found[0]["rollouts"], found[0]["pair"]) == (None, 0, "wrong")
    both = rows(episode, pairs="both")
    assert both == [*found, *rows(episode)]
    never = play_sync(GAME, [Says("bad"), "first"], referee=Referee(retries=2))
    assert rows(never, pairs="both") == []


def test_seats_that_act_at_once_do_again_what_they_did() -> None:
    episode = play_sync("RockPaperScissors-v0", [Says("rock"), Says("scissors")])
    for row in rows(episode, candidates=2, rollouts=2):
        if row["ply"] == episode.turns[-1].ply:  # nothing is left to chance
            assert said(row, "chosen") == "<answer>rock</answer>"
            assert row["error"] == 0.0


def test_dice_that_were_thrown_are_thrown_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bazaar throws dice at its end; whatever is said, the same: no pair."""
    monkeypatch.setitem(GAMES, "Bazaar-v0", "tests.toy_games:Bazaar")
    episode = play_sync("Bazaar-v0", ["random", "random", "random"], 3, {"rounds": 2})
    assert rows(episode, candidates=3) == []


def test_open_text_is_set_against_what_the_game_draws() -> None:
    episode = play_sync("Arithmetic-v0", ["random"], 4)
    answer = next(
        str(n) for n in range(-400, 10_000) if play_sync("Arithmetic-v0", [Says(str(n))], 4).returns == (1.0,)
    )
    right = play_sync("Arithmetic-v0", [Says(answer)], 4)
    (row,) = rows(right)
    assert said(row, "chosen") == answer
    assert (row["value_chosen"], row["value_rejected"]) == (1.0, 0.0)
    assert episode.turns[0].action != answer


def test_only_own_turns_of_a_fork_and_none_for_what_was_played_for_a_seat() -> None:
    start = play_sync(GAME, ["random", "random"], 5)
    (on,) = branch_sync(start, 3, 1, ["random", "random"])
    assert min(row["ply"] for row in rows(on, candidates=5)) >= 3
    gone = play_sync(GAME, [Says("5", "mist"), "first"], referee=Referee(illegal="random"))
    assert {row["ply"] for row in rows(gone, candidates=8)} == {0}


def test_an_agent_that_cannot_play_on_is_told_of() -> None:
    with pytest.raises(Lacking, match="minimax cannot play on: ValueError: minimax cannot play KuhnPoker"):
        rows(play_sync("KuhnPoker-v0", [Says("bet", "call"), Says("call")]), rollout="minimax")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("dpo?pairs=some", "pairs='some': allowed are fork, wrong, both"),
        ("dpo?rollouts=0", "rollouts=0: allowed are 1 and more"),
        ("dpo?margin=-1", "margin=-1: allowed are 0 and more"),
        ("dpo?sigmas=1&rollouts=1", "sigmas needs rollouts=2 or more"),
        ("dpo?rollout=nobody", "unknown agent 'nobody'"),
        ("dpo?style=loud", "style='loud': allowed are"),
    ],
)
def test_options_that_cannot_be_meant(spec: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        make_format(spec)


def test_its_columns_hold_its_rows() -> None:
    pytest.importorskip("pyarrow")
    from arena.adapters.datasets.tables import table

    found = rows(play_sync(GAME, ["random", "random"], 5), pairs="both")
    held = table(found, DPO().schema())
    assert set(held.column_names) == set(found[0])
    assert held["value_chosen"].to_pylist() == [row["value_chosen"] for row in found]


def test_nothing_of_another_seat_is_in_a_pair() -> None:
    episode = play_sync("KuhnPoker-v0", [Says("bet", "call"), Says("call")], 2)
    other = seat(episode, 1).turns[0].observation
    for row in rows(episode, candidates=3):
        assert all(other not in m["content"] for m in (*row["prompt"], *row["chosen"], *row["rejected"]))
