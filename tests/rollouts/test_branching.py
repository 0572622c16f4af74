"""Branches: continuations of a recorded match, with and without an action that is given."""

import asyncio
from typing import Any

import pytest

from arena.agent import Agent, Reply, View
from arena.episode import Episode
from arena.match import play_sync
from arena.registry import GAMES, make_game
from arena.rollouts.branching import branch, branch_sync
from arena.workers import Workers
from tests.players import Fixed, Later, Recalls, Slow, essence, plies, sane
from tests.toy_games import Bazaar


class Closes(Fixed):
    """Counts how many of its kind are made and closed."""

    made = closed = 0

    def __init__(self) -> None:
        Closes.made += 1

    def close(self) -> None:
        Closes.closed += 1


@pytest.mark.parametrize("game", sorted(GAMES))
def test_every_game_branches(game: str) -> None:
    seats = ["random"] * make_game(game).players
    start = sane(play_sync(game, seats, 1))
    ply = plies(start) // 2
    ends = [sane(episode) for episode in branch_sync(start, ply, 3, seats)]
    assert [(e.parent, e.fork, e.sample) for e in ends] == [(start.id, ply, n) for n in range(3)]
    again = asyncio.run(branch(start, ply, 3, seats))
    assert [essence(e) for e in again] == [essence(e) for e in ends]  # reproducible, whichever way


def test_continuations_differ_and_share_what_is_before() -> None:
    start = play_sync("LiarsDice-v0", ["random"] * 2, 3)
    ends = branch_sync(start, 1, 16, ["random"] * 2)
    assert len({e.turns[-1].hash for e in ends}) > 4
    assert {e.turns[0].hash for e in ends} == {start.turns[0].hash}
    more = branch_sync(start, 1, 16, ["random"] * 2, sample=16)
    assert [e.sample for e in more] == list(range(16, 32))
    assert {e.turns[-1].hash for e in more} != {e.turns[-1].hash for e in ends}


def test_two_actions_of_one_position_are_told_apart_by_what_follows() -> None:
    """Of a position with a win at hand, the winning action is worth more than another."""
    start = play_sync("TicTacToe-v0", ["first", "first"], 0)  # X holds 1, 3 and O 2, 4 after four plies
    assert start.turns[4].observation.endswith("X O X\nO . .\n. . .")
    worth: dict[str, list[float]] = {}
    for action in ("5", "9"):
        ends = [sane(e) for e in branch_sync(start, 4, 40, ["random"] * 2, actions={0: action})]
        assert {e.turns[4].action for e in ends} == {action}
        assert all(e.turns[4].attempts[0].reason == "forced" for e in ends)
        assert not any(turn.attempts[0].reason for e in ends for turn in e.turns if turn.ply != 4)
        worth[action] = [e.returns[0] for e in ends if e.returns]
    assert sum(worth["5"]) > sum(worth["9"])


def test_an_agent_made_here_is_made_once_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("arena.registry").registry.AGENTS, "closes", "tests.rollouts.test_branching:Closes")
    Closes.made = Closes.closed = 0
    start = play_sync("TicTacToe-v0", ["first", "first"], 0)
    asyncio.run(branch(start, 2, 5, ["closes", "first"]))
    assert (Closes.made, Closes.closed) == (1, 1)
    mine = Closes()
    asyncio.run(branch(start, 2, 5, [mine, "first"]))
    assert Closes.closed == 1


def test_as_many_as_asked_for_are_in_flight() -> None:
    start = play_sync("TicTacToe-v0", ["first", "first"], 0)
    for concurrency, most in ((1, 1), (3, 3), (64, 8)):
        Slow.asked = Slow.most = 0
        assert len(asyncio.run(branch(start, 2, 8, [Slow(), Slow()], concurrency=concurrency))) == 8
        assert Slow.most == most


def test_agents_that_wait_take_it_up_in_every_branch() -> None:
    start = play_sync("ConnectFour-v0", ["random"] * 2, 0)
    agents: list[Agent] = [Later(), Recalls()]
    for episode in asyncio.run(branch(start, 5, 4, agents, actions={1: "4"})):
        first, second = next(t for t in episode.turns[5:] if t.seat == 0), episode.turns[7]
        assert first.attempts[0].reasoning == "number 4"
        assert second.attempts[0].reasoning == "number 4"  # two taken up, one given
    assert len(agents[0].seen) == 12  # type: ignore[attr-defined]  # a Later


def test_one_that_fails_is_void_and_the_others_are_not() -> None:
    class Fails(Agent):
        name = "fails"

        def act(self, view: View) -> Reply:
            if view.rng.random() < 0.4:
                raise ConnectionError("gone")
            return Reply(view.sample_action())

    start = play_sync("TicTacToe-v0", ["first", "first"], 0)
    outcomes = [e.outcome for e in branch_sync(start, 3, 20, [Fails(), "first"])]
    assert 0 < outcomes.count("void") < 20


def test_a_pool_serves_the_branches() -> None:
    async def go() -> list[Episode]:
        with Workers(1) as pool:
            return await branch(start, 5, 2, ["minimax", "first"], pool=pool)

    start = play_sync("TicTacToe-v0", ["first", "first"], 0)
    assert [sane(e).outcome for e in asyncio.run(go())] == ["terminated"] * 2


def test_a_game_that_is_not_registered_is_given() -> None:
    start = play_sync(Bazaar, ["random"] * 3, 4)
    ends = branch_sync(start, 1, 2, ["random"] * 3, game=Bazaar, actions={0: "say a", 2: "say c"})
    assert [[t.action for t in e.turns[3:6:2]] for e in ends] == [["say a", "say c"]] * 2
    assert len(asyncio.run(branch(start, 1, 2, ["random"] * 3, game=Bazaar))) == 2


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"k": 0}, "k=0: allowed are numbers from 1"),
        ({"k": 2.0}, "k=2.0: allowed"),
        ({"ply": 99}, "no such ply"),
        ({"actions": {0: "banana"}}, "is no action of seat 0"),
        ({"agents": ["first"]}, "TicTacToe has 2 seats, 1 agents were given"),
        ({"agents": ["nobody", "first"]}, "nobody"),
    ],
)
def test_what_cannot_be_is_refused(how: dict[str, Any], why: str) -> None:
    start = play_sync("TicTacToe-v0", ["first", "first"], 0)
    asked: dict[str, Any] = {"episode": start, "ply": 2, "k": 3, "agents": ["first", "first"]} | how
    with pytest.raises(ValueError, match=why):
        branch_sync(**asked)
    with pytest.raises(ValueError, match=why):
        asyncio.run(branch(**asked))


def test_a_cancelled_branch_leaves_nothing_behind() -> None:
    async def go() -> int:
        task = asyncio.create_task(branch(start, 2, 8, [Slow(60), Slow(60)]))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(asyncio.all_tasks())

    start = play_sync("TicTacToe-v0", ["first", "first"], 0)
    assert asyncio.run(go()) == 1
