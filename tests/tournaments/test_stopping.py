"""When a tournament has told enough: each rule holds when it should, not before, and the same after a restart."""

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

from arena.tournaments.history import History, Result
from arena.tournaments.ratings import rate
from arena.tournaments.schedules import blocks
from arena.tournaments.stopping import LEAST, Spent, Stopping
from tests.tournaments.schedules.play import asked, by_strength, ended


def games(history: History, strengths: list[float], draw: float = 0.0, seed: int = 0) -> Iterator[Result]:
    """All games of the schedule, one by one."""
    outcome = by_strength(strengths, seed, draw)
    for block in blocks(history):
        assert block is not None
        for game in history.maker.games(block):
            yield ended(game, outcome(game))


def until(
    stop: Any, strengths: list[float], draw: float = 0.0, seed: int = 0, **more: Any
) -> tuple[str, History, Stopping]:
    """Play until a rule holds or all is played."""
    tournament = asked(len(strengths), stop=stop, **{"blocks": 400, **more})
    history, stopping = History(tournament), Stopping(tournament)
    for result in games(history, strengths, draw, seed):
        history.add(result)
        if reason := stopping.reached(history):
            return reason, history, stopping
    return "", history, stopping


def test_no_rule_never_holds() -> None:
    reason, history, stopping = until({}, [0.0, 200], blocks=20)
    assert (reason, stopping.far, stopping.trial) == ("", "", None)
    assert history.finished == 40


def test_intervals() -> None:
    reason, history, stopping = until("interval=150", [0.0, 50, 100])
    assert reason.startswith("widest interval 1")
    assert reason.endswith("of 150 Elo")
    rated = rate(history.comparisons())
    assert 130 < 2 * rated.half.max() <= 150
    assert stopping.ratings is not None
    assert np.allclose(stopping.ratings.half, rated.half, rtol=1e-6)
    assert 60 < history.finished < 400


def test_intervals_are_around_the_anchors() -> None:
    about_mean = until("interval=200", [0.0, 50, 100])[1].finished
    about_one = until("interval=200", [0.0, 50, 100], anchors={"a0": 800})
    assert about_one[1].finished > about_mean
    assert about_one[2].ratings is not None
    assert about_one[2].ratings.elo[0] == pytest.approx(800)


def test_nothing_is_believed_of_few_blocks() -> None:
    for stop in ("interval=100000", "ranks=0.51"):
        reason, history, stopping = until(stop, [0.0, 1000, 2000])
        assert reason
        assert history.finished > (LEAST - 1) * 3  # three pairs, each agent in two of them
        assert "blocks" not in stopping.far
    _, _, stopping = until("interval=100000", [0.0, 100, 200], blocks=3)
    assert stopping.far.endswith(f"6 of {LEAST} blocks")


def test_groups_that_never_met_have_no_intervals_in_common() -> None:
    pairs = {"kind": "list", "tables": [["a0", "a1"], ["a2", "a3"]]}
    assert until("interval=100000", [0.0, 10, 0, 10], schedule=pairs, blocks=50)[0] == ""


def test_ranks() -> None:
    reason, history, _ = until("ranks=0.95", [0.0, 150, 300])
    assert reason.startswith("neighbours are told apart with 0.9")
    assert 36 <= history.finished < 1000
    assert until("ranks=0.999", [0.0, 0, 0], blocks=40)[0] == ""


@pytest.mark.parametrize(("strengths", "accepted"), [([200.0, 0.0], "+80"), ([0.0, 0.0], "+0"), ([0.0, 300.0], "+0")])
def test_a_sequential_test(strengths: list[float], accepted: str) -> None:
    reason, history, stopping = until("sprt=0:80", strengths, 0.2)
    assert reason.startswith(f"sequential test: a0 is {accepted} Elo to a1 rather than")
    assert stopping.trial is not None
    assert stopping.trial.verdict
    assert stopping.trial.blocks == history.finished // 2 >= 10


def test_a_sequential_test_names_its_two() -> None:
    stop = {"sprt": {"elo0": 0, "elo1": 80, "agents": ["a2", "a0"]}}
    reason, history, stopping = until(stop, [0.0, 700, 200])
    assert reason.startswith("sequential test: a2 is +80 Elo to a0")
    seen = [block for block in history.known.values() if history.over(block) and set(block.table) == {0, 2}]
    assert stopping.trial is not None
    assert stopping.trial.blocks == len(seen)


def test_half_a_block_tells_nothing_and_an_incomplete_one_single_games() -> None:
    tournament = asked(2, stop="sprt=0:5", blocks=20)
    history, stopping = History(tournament), Stopping(tournament)
    for number, block in enumerate(blocks(history)):
        assert block is not None
        first, second = history.maker.games(block)
        history.add(ended(first, (1.0, -1.0)))
        stopping.reached(history)
        assert stopping.trial is not None
        assert (stopping.trial.blocks, stopping.trial.games) == ((number, 0) if number >= 10 else (0, 0))
        history.add(ended(second, (1.0, -1.0)))
        stopping.reached(history)
        if number == 15:
            break
    for block in list(blocks(history))[16:]:
        assert block is not None
        first, second = history.maker.games(block)
        history.add(ended(first, (1.0, -1.0)))
        history.leave(second)
    stopping.reached(history)
    assert (stopping.trial.blocks, stopping.trial.games) == (16, 4) if stopping.trial else None


def test_truncated_games_that_are_left_out_tell_nothing() -> None:
    tournament = asked(2, stop="sprt=0:5", blocks=30, truncated="drop")
    history, stopping = History(tournament), Stopping(tournament)
    for block in blocks(history):
        assert block is not None
        first, second = history.maker.games(block)
        history.add(ended(first, (1.0, -1.0)))
        history.add(ended(second, (1.0, -1.0), truncated=True))
    stopping.reached(history)
    assert stopping.trial is not None
    assert (stopping.trial.blocks, stopping.trial.games) == (0, 30)
    assert len(history.comparisons().outcome) == 30


@pytest.mark.parametrize("stop", ["sprt=0:80", "interval=160", "ranks=0.9"])
def test_the_same_history_gives_the_same_answer_in_a_new_process(stop: str) -> None:
    reason, history, _ = until(stop, [0.0, 120, 260] if stop == "ranks=0.9" else [150.0, 0.0], 0.2)
    again = History(history.tournament)
    for key in history.log:
        for result in history.blocks[key].values():
            again.add(result)
    assert reason
    assert Stopping(history.tournament).reached(again) == reason


def test_a_verdict_stands_though_games_under_way_speak_against_it() -> None:
    reason, history, stopping = until("sprt=0:80", [200.0, 0.0])
    for block in list(blocks(History(history.tournament)))[history.finished // 2 :][:100]:
        assert block is not None
        for game in history.maker.games(block):
            history.add(ended(game, (1.0, -1.0) if game.agents[0] == 1 else (-1.0, 1.0)))
    assert stopping.reached(history) == reason
    assert Stopping(history.tournament).reached(history) == reason


@pytest.mark.parametrize(
    ("stop", "spent", "said"),
    [
        ("games=20", Spent(20), "budget: 20 of 20 games are spent"),
        ("games=20", Spent(19), ""),
        ("tokens=1000000", Spent(1, 1_234_567), "budget: 1,234,567 of 1,000,000 tokens are spent"),
        ("dollars=2.5", Spent(1, 5, 2.51), "budget: 2.51 of 2.5 dollars are spent"),
        ("dollars=2.5", Spent(1, 5, 2.49), ""),
        ("minutes=30", Spent(minutes=30.5), "budget: 30.5 of 30 minutes are spent"),
        ("minutes=30", None, ""),
    ],
)
def test_budgets(stop: str, spent: Spent | None, said: str) -> None:
    tournament = asked(2, stop=stop)
    assert Stopping(tournament).reached(History(tournament), spent) == said


def test_rules_for_tables_and_tasks() -> None:
    for game in ("LiarsDice?players=3", "Arithmetic"):
        tournament = asked(4, games=[game], stop="ranks=0.99", blocks=900)
        history, stopping, rng = History(tournament), Stopping(tournament), Random(1)
        reason = ""
        for block in blocks(history):
            assert block is not None
            for each in history.maker.games(block):
                earned = tuple([float(rng.random() < 0.2 + 0.2 * agent) for agent in each.agents])
                history.add(ended(each, earned))
            if reason := stopping.reached(history):
                break
        assert reason
        assert stopping.ratings is not None
        assert np.argsort(stopping.ratings.elo).tolist() == [0, 1, 2, 3]


def test_asking_after_every_game_is_cheap() -> None:
    """A look waits until a fiftieth is new: far fewer looks than games."""
    tournament = asked(3, stop="interval=1", blocks=300)
    history, stopping = History(tournament), Stopping(tournament)
    looks, before = 0, None
    for result in games(history, [0.0, 50, 100]):
        history.add(result)
        stopping.reached(history)
        looks += stopping.ratings is not before
        before = stopping.ratings
    assert history.finished == 1800
    assert 100 < looks < 300


@pytest.mark.slow
def test_coverage_where_intervals_end_the_tournament(scale: int) -> None:
    """Looking on until the intervals are narrow costs little coverage: width hardly depends on who wins."""
    inside = total = 0
    for seed in range(20 * scale):
        strengths = [0.0, 80, 160, 240]
        reason, _, stopping = until("interval=180", strengths, 0.2, seed)
        assert reason
        assert stopping.ratings is not None
        truth = np.array(strengths) - np.mean(strengths)
        off = np.abs(stopping.ratings.elo - 1000 - truth)
        inside += int((off <= stopping.ratings.half).sum())
        total += 4
    print(f"coverage {inside / total:.3f} of {total}")
    assert inside / total > 0.90
