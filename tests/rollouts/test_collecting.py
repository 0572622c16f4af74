"""Collections: what is played, in which groups, how much at once, and what happens when something goes wrong."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arena.agent import Agent, AgentError, Reply, View
from arena.match import play_sync
from arena.referee import Referee
from arena.registry import AGENTS, GAMES, make_game
from arena.rollouts.collecting import Group, collect, collect_sync
from arena.rollouts.progress import Progress
from arena.workers import Workers
from tests.players import Fixed, Says, Slow, essence, sane
from tests.toy_games import Bazaar


class Closes(Fixed):
    """Counts how many of its kind are made and closed."""

    made = closed = 0

    def __init__(self) -> None:
        Closes.made += 1

    def close(self) -> None:
        Closes.closed += 1


class Waits(Agent):
    """Random play that lets every other match go first; counts the matches that are in the air."""

    name = "waits"

    def __init__(self) -> None:
        self.asked = self.most = 0

    async def act(self, view: View) -> Reply:
        self.asked += 1
        self.most = max(self.most, self.asked)
        await asyncio.sleep(0)
        self.asked -= 1
        return Reply(view.sample_action())


class Sometimes(Agent):
    """Fails as often as told, in all."""

    name = "sometimes"

    def __init__(self, failures: int) -> None:
        self.left = failures

    def act(self, view: View) -> Reply:
        if self.left:
            self.left -= 1
            raise AgentError("the server is down")
        return Reply(view.sample_action())


@pytest.mark.parametrize("game", sorted(GAMES))
def test_every_game_is_collected(game: str) -> None:
    seats = ["random"] * make_game(game).players
    groups = collect_sync(game, seats, [3, 1], 2)
    assert [(g.seed, g.rotation, g.number) for g in groups] == [(3, 0, 0), (1, 0, 1)]
    for group in groups:
        assert [sane(episode).sample for episode in group.episodes] == [0, 1]
        assert {episode.seed for episode in group.episodes} == {group.seed}
        assert {episode.group_id for episode in group.episodes} == {group.key}
        assert group.void == []


def test_samples_are_the_matches_that_play_would_play() -> None:
    (group,) = collect_sync("LiarsDice-v0", ["random", "random"], [5], 4)
    for sample, episode in enumerate(group.episodes):
        assert essence(episode) == essence(play_sync("LiarsDice-v0", ["random"] * 2, 5, sample=sample)) | {
            "group_id": group.key
        }
    assert len({episode.turns[-1].hash for episode in group.episodes}) > 1


def test_a_key_tells_the_task_and_the_seating_and_is_the_same_in_every_run() -> None:
    def keys(*args: Any, **how: Any) -> list[str]:
        return [group.key for group in collect_sync(*args, **how)]

    base = keys("TicTacToe-v0", ["random", "first"], [1, 2], rotate=True)
    assert base == keys("TicTacToe-v0", ["random", "first"], [1, 2], 3, rotate=True)
    other = [
        *keys("TicTacToe-v0", ["random", "random"], [1]),
        *keys("TicTacToe-v0", ["random", "first"], [3]),
        *keys("TicTacToe-v0", ["random", "first"], [1], referee=Referee(retries=1)),
        *keys("ConnectFour-v0", ["random", "first"], [1]),
        *keys("ConnectFour-v0", ["random", "first"], [1], options={"rows": 5}),
        *keys("TicTacToe-v0", ["random", "first"], [1], max_turns=9),
        *keys("TicTacToe-v0", ["random", "first"], [1], turn_seconds=9),
    ]
    assert len({*base, *other}) == 11
    assert keys("TicTacToe-v0", ["random", "first"], [1], turn_seconds=9.0) == other[-1:]
    assert keys("TicTacToe-v0", ["random", "first"], [1, 2], rotate=True, deadline=600) == base


def test_every_rotation_is_a_group_of_its_own() -> None:
    agents: list[str | Agent] = ["random", Fixed(), "first", Says("liar")]
    groups = collect_sync("LiarsDice-v0", agents, [7], 2, options={"players": 4}, rotate=True)
    assert [g.rotation for g in groups] == [0, 1, 2, 3]
    names = ["random", "fixed", "first", "says"]
    for group in groups:
        for episode in group.episodes:
            assert [seat.agent for seat in episode.seats] == [names[(s - group.rotation) % 4] for s in range(4)]
    assert len({group.key for group in groups}) == 4


def test_rotations_that_seat_the_same_are_played_once() -> None:
    assert [g.rotation for g in collect_sync("TicTacToe-v0", ["random", "random"], [0], rotate=True)] == [0]
    me, you = Fixed(), Fixed()
    assert len(collect_sync("TicTacToe-v0", [me, you], [0], rotate=True)) == 2
    assert len(collect_sync("LiarsDice-v0", [me, you, me, you], [0], options={"players": 4}, rotate=True)) == 2


def test_an_agent_is_made_once_for_all_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AGENTS, "closes", f"{__name__}:Closes")
    Closes.made = Closes.closed = 0
    collect_sync("TicTacToe-v0", ["closes", "closes"], range(5), 3)
    assert (Closes.made, Closes.closed) == (1, 1)
    mine = Closes()
    collect_sync("TicTacToe-v0", [mine, "first"], range(5))
    assert Closes.closed == 1
    with pytest.raises(ValueError, match="seats"):
        collect_sync("TicTacToe-v0", ["closes", "closes", "closes"], [0])
    assert (Closes.made, Closes.closed) == (3, 2)


# How much at once


@pytest.mark.parametrize("concurrency", [1, 7, 300])
def test_no_more_matches_are_in_the_air_than_allowed(concurrency: int) -> None:
    agent = Waits()
    groups = collect_sync("TicTacToe-v0", [agent, agent], range(100), 3, concurrency=concurrency)
    assert len(groups) == 100
    assert agent.most == concurrency


@pytest.mark.parametrize("kind", [Waits, Fixed])
def test_what_is_not_taken_holds_play_up(kind: type[Agent]) -> None:
    """Seeds without end: no more are begun than twice what may be at once, and one group, beyond what was taken."""
    begun = 0

    def seeds() -> Iterator[int]:
        nonlocal begun
        for seed in itertools.count():
            begun += 1
            yield seed

    async def go() -> None:
        async with aclosing(collect("TicTacToe-v0", [kind(), kind()], seeds(), 4, concurrency=8)) as groups:
            for taken in range(1, 40):
                await anext(groups)
                for _ in range(30):
                    await asyncio.sleep(0)
                assert begun <= taken + (2 * 8 + 4) // 4 + 1
            await asyncio.sleep(0.05)
            assert begun < 50
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(go())


def test_groups_come_as_they_are_complete() -> None:
    class Late(Agent):
        name = "late"

        async def act(self, view: View) -> Reply:
            await asyncio.sleep(0.2 if view.game.observation(0) == first and view.ply == 0 else 0)
            return Reply(view.sample_action())

    first = make_game("KuhnPoker-v0", 0).observation(0)
    others = [seed for seed in range(1, 60) if make_game("KuhnPoker-v0", seed).observation(0) != first][:5]

    async def go() -> list[int]:
        return [group.seed async for group in collect("KuhnPoker-v0", [Late(), Late()], [0, *others])]

    came = asyncio.run(go())
    assert came[-1] == 0
    assert sorted(came[:-1]) == sorted(others)
    assert [g.seed for g in collect_sync("KuhnPoker-v0", [Late(), Late()], [0, *others])] == [0, *others]


def test_blocking_agents_are_asked_in_a_pool() -> None:
    async def go() -> list[Group]:
        with Workers(1) as pool:
            return [g async for g in collect("TicTacToe-v0", ["mcts?simulations=5", "first"], range(3), pool=pool)]

    assert all(sane(group.episodes[0]).outcome == "terminated" for group in asyncio.run(go()))


def test_limits_are_those_of_a_match() -> None:
    (cut,) = collect_sync("TicTacToe-v0", ["first", "first"], [0], max_turns=2)
    assert cut.episodes[0].outcome == "truncated"
    (late,) = collect_sync("TicTacToe-v0", [Slow(5), "first"], [0], deadline=0.02, void_retries=0)
    assert (late.episodes, late.void[0].reason) == ([], "the deadline passed at ply 0")
    (slow,) = collect_sync("TicTacToe-v0", [Slow(5), "first"], [0], turn_seconds=0.02)
    assert slow.episodes[0].forfeits == (0,)
    (toy,) = collect_sync(Bazaar, ["random"] * 3, [4], options={"rounds": 2})
    assert toy.episodes[0].options == {"rounds": 2}


# What goes wrong


def test_a_void_match_is_played_again() -> None:
    seen: list[Progress] = []
    agent = Sometimes(2)
    groups = collect_sync("TicTacToe-v0", [agent, "random"], range(3), 2, concurrency=1, progress=seen.append)
    assert [len(group.episodes) for group in groups] == [2, 2, 2]
    assert (seen[-1].again, seen[-1].void) == (2, 0)
    sound = play_sync("TicTacToe-v0", [Sometimes(0), "random"], 0)
    assert essence(groups[0].episodes[0])["turns"] == essence(sound)["turns"]


def test_a_match_that_stays_void_is_told() -> None:
    seen: list[Progress] = []
    groups = collect_sync(
        "TicTacToe-v0", [Sometimes(4), "first"], [8], 3, concurrency=1, void_retries=1, progress=seen.append
    )
    (group,) = groups
    assert [episode.sample for episode in group.episodes] == [2]
    assert [(episode.sample, episode.reason) for episode in group.void] == [
        (0, "AgentError: the server is down"),
        (1, "AgentError: the server is down"),
    ]
    assert seen[-1] == Progress(episodes=3, groups=1, void=2, again=2, total=3)


def test_an_agent_that_cannot_play_at_all_is_refused_before_anything_is_played() -> None:
    class Cannot(Fixed):
        asked = 0

        async def prepare(self, game: Any, referee: Referee) -> None:
            Cannot.asked += 1
            raise AgentError("no server at http://nowhere: start it")

    agent = Cannot()
    with pytest.raises(AgentError, match="no server at http://nowhere"):
        collect_sync("TicTacToe-v0", [agent, agent], range(1000))
    assert Cannot.asked == 1


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"n_per_seed": 0}, "n_per_seed=0: allowed are numbers from 1"),
        ({"concurrency": 0}, "concurrency=0: allowed"),
        ({"concurrency": 2.0}, "concurrency=2.0: allowed"),
        ({"void_retries": -1}, "void_retries=-1: allowed are numbers from 0"),
        ({"agents": ["first"]}, "TicTacToe-v0 has 2 seats, 1 agents were given"),
        ({"agents": ["nobody", "first"]}, "nobody"),
        ({"game": "NoGame-v0"}, "unknown game"),
        ({"options": {"size": 4}}, "size"),
        ({"deadline": -1}, "deadline=-1"),
        ({"seeds": [1, -1]}, "seed=-1"),
        ({"seeds": ["1"]}, "seed='1': allowed are 0 to 2"),
        ({"seeds": [1.0]}, r"seed=1\.0: allowed"),
        ({"seeds": [True]}, "seed=True: allowed"),
        ({"seeds": np.arange(2.0)}, r"seed=np.float64\(0.0\): allowed"),
        ({"seeds": [2**64]}, "seed=18446744073709551616: allowed"),
        ({"seeds": [5, 7, 5]}, "seed=5 is given twice"),
        ({"seeds": iter([5, np.int64(5)])}, "seed=5 is given twice"),
    ],
)
def test_what_cannot_be_is_refused(how: dict[str, Any], why: str) -> None:
    asked: dict[str, Any] = {
        "game": "TicTacToe-v0",
        "agents": ["first", "first"],
        "seeds": range(3),
        "n_per_seed": 1,
    } | how
    with pytest.raises(ValueError, match=why):
        collect_sync(**asked)


def test_seeds_of_numpy_are_those_numbers() -> None:
    plain = collect_sync("LiarsDice-v0", ["random", "random"], range(3))
    given: list[Any] = [np.arange(3), list(np.arange(3, dtype=np.uint64)), iter([np.int32(0), 1, np.uint8(2)])]
    for seeds in given:
        groups = collect_sync("LiarsDice-v0", ["random", "random"], seeds)
        assert [(group.key, group.seed) for group in groups] == [(group.key, group.seed) for group in plain]
        assert {type(group.seed) for group in groups} == {int}
        assert [essence(g.episodes[0]) for g in groups] == [essence(g.episodes[0]) for g in plain]


def test_a_list_of_seeds_is_checked_before_anything_is_played(tmp_path: Path) -> None:
    out, agent = tmp_path / "step.jsonl", Waits()
    with pytest.raises(ValueError, match="seed=3 is given twice"):
        collect_sync("TicTacToe-v0", [agent, agent], [*range(100), 3], concurrency=1, out=out)
    assert agent.most == 0
    assert not out.exists()


def test_what_seeds_or_progress_raise_ends_it() -> None:
    def seeds() -> Iterator[int]:
        yield from range(5)
        raise OSError("the list of seeds is gone")

    with pytest.raises(OSError, match="the list of seeds is gone"):
        collect_sync("TicTacToe-v0", ["random", "random"], seeds())

    def stop(now: Progress) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        collect_sync("TicTacToe-v0", ["random", "random"], range(10), progress=stop)


@pytest.mark.parametrize("how", ["cancelled", "left", "closed"])
def test_nothing_is_left_running(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AGENTS, "closes", f"{__name__}:Closes")
    Closes.made = Closes.closed = 0

    async def take(agent: Agent) -> None:
        async with aclosing(collect("TicTacToe-v0", [agent, "closes"], itertools.count(), concurrency=50)) as groups:
            async for _ in groups:
                if how == "left":
                    break
                if how == "closed":
                    await groups.aclose()

    async def go() -> None:
        agent = Slow(0.001)
        task = asyncio.create_task(take(agent))
        await asyncio.sleep(0.05)
        if how == "cancelled":
            assert len(asyncio.all_tasks()) > 50
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            await task
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(go())
    assert (Closes.made, Closes.closed) == (1, 1)


# How far it is


def test_progress_counts_up_to_the_total() -> None:
    seen: list[Progress] = []
    collect_sync("TicTacToe-v0", ["random", "first"], range(4), 3, rotate=True, progress=seen.append)
    assert [now.episodes for now in seen] == list(range(1, 25))
    assert seen[-1] == Progress(episodes=24, groups=8, total=24)
    seen.clear()
    collect_sync("TicTacToe-v0", ["random", "first"], iter([1, 2]), progress=seen.append)
    assert seen[-1] == Progress(episodes=2, groups=2, total=None)


def test_a_bar_is_shown_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    collect_sync("TicTacToe-v0", [Sometimes(1), "first"], range(6), 2, progress=True)
    told = capsys.readouterr()
    assert told.out == ""
    assert "12/12" in told.err
    assert "6 groups, 1 played again" in told.err


def test_thousands_are_in_the_air_at_once() -> None:
    agent = Waits()
    groups = collect_sync("TicTacToe-v0", [agent, agent], range(1500), 2, concurrency=3000)
    assert agent.most == 3000
    assert Counter(len(group.episodes) for group in groups) == {2: 1500}
