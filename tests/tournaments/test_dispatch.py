"""Caps, the window, and the dispatch of thousands of games at once."""

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import pytest

from arena.agent import Agent, Reply, View
from arena.registry import AGENTS
from arena.tournaments.caps import Caps, Need, caps_of
from arena.tournaments.config import parse
from arena.tournaments.runner import Refused, Tally, run
from arena.tournaments.schedule import Fixture
from arena.tournaments.store import Store
from arena.tournaments.window import Window


def fixture(number: int, *agents: int) -> Fixture:
    return Fixture(f"game {number}", "block", 0, 0, 0, 0, agents)


def own(agent: int) -> Need:
    return Need((f"agent {agent}",))


class Host(Agent):
    """Plays the first legal action after a time; counts the games in which its server is asked."""

    now: ClassVar[Counter[str]] = Counter()
    most: ClassVar[Counter[str]] = Counter()
    total = best = 0

    def __init__(self, target: str = "", seconds: float = 0.01) -> None:
        self.seconds, self.endpoints = seconds, tuple(filter(None, target.split(",")))

    async def act(self, view: View) -> Reply:
        names = [self.name, *self.endpoints]
        Host.now.update(names)
        Host.total += 1
        Host.best = max(Host.best, Host.total)
        for name in names:
            Host.most[name] = max(Host.most[name], Host.now[name])
        await asyncio.sleep(self.seconds)
        Host.now.subtract(names)
        Host.total -= 1
        return Reply((view.legal_actions or ("",))[0])


@pytest.fixture(autouse=True)
def _hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AGENTS, "host", f"{__name__}:Host")
    Host.now.clear()
    Host.most.clear()
    Host.total = Host.best = 0


def test_a_game_takes_one_place_of_each_cap() -> None:
    caps = Caps({"agent 0": 1, "agent 1": 2}, [[own(0)], [own(1)], []])
    first = caps.take(caps.key((0, 1, 0)))
    assert first == ("agent 0", "agent 1")
    assert caps.take(caps.key((1, 0))) == own(0)
    assert caps.take(caps.key((1, 2))) == ("agent 1",)
    assert caps.take(caps.key((2, 1))) == own(1)
    assert caps.take(caps.key((2, 2))) == ()
    caps.give(first)
    assert caps.take(caps.key((1, 0))) == ("agent 0", "agent 1")


def test_of_several_servers_the_roomiest_is_taken() -> None:
    either = Need(("a", "b"))
    caps = Caps({"a": 1, "b": 2}, [[either], [Need(("a",))]])
    assert [caps.take(caps.key((0,))) for _ in range(4)] == [("b",), ("a",), ("b",), either]
    caps.give(("a",))
    assert caps.take(caps.key((0, 1))) == ("a",), "one game, one place at a server that both ask"


def test_who_is_held_back_lets_others_by_and_comes_first_again() -> None:
    caps = Caps({"agent 0": 1}, [[own(0)], [], []])
    window = Window(caps)
    for number, agents in enumerate([(0, 1), (0, 2), (0, 1), (1, 2), (2, 1)]):
        window.add(fixture(number, *agents))
    window.add(fixture(3, 1, 2))
    assert len(window) == 5
    order = [ready.fixture.id for _ in range(3) if (ready := window.take())]
    assert order == ["game 0", "game 3", "game 4"]
    assert window.take() is None
    window.give(("agent 0",))
    again = window.take()
    assert again is not None
    assert again.fixture.id == "game 1"
    assert window.take() is None
    assert len(window) == 1


@pytest.mark.parametrize("seed", range(5))
def test_the_window_is_work_conserving(seed: int) -> None:
    """At every moment: what is not started could not be. In the end all games have been started, each once."""
    rng = random.Random(seed)
    caps = Caps({f"agent {n}": 1 + n % 3 for n in range(6)}, [[own(n)] for n in range(6)] + [[]])
    window = Window(caps)
    waiting: dict[str, tuple[int, ...]] = {}
    held: dict[str, tuple[str, ...]] = {}
    for number in range(300):
        agents = tuple(rng.sample(range(7), 2))
        waiting[f"game {number}"] = agents
        window.add(fixture(number, *agents))
    started = []
    while waiting or held:
        while (ready := window.take()) is not None:
            started.append(ready.fixture.id)
            held[ready.fixture.id] = ready.held
            del waiting[ready.fixture.id]
        for agents in waiting.values():
            assert any(caps.used[f"agent {a}"] == caps.limits.get(f"agent {a}") for a in agents)
        window.give(held.pop(rng.choice(sorted(held))))
    assert len(started) == len(set(started)) == 300
    assert not +caps.used


def play(folder: Path, **asked: Any) -> Tally:
    tournament = parse({"games": ["TicTacToe"], "max_turns": 2, **asked})
    with Store.resume(folder, tournament) as store:
        return run(tournament, store)


def test_an_agent_sits_in_no_more_games_than_its_cap(tmp_path: Path) -> None:
    agents = [{"spec": "host", "name": "capped", "concurrency": 3}, {"spec": "host", "name": "free"}, "first"]
    tally = play(tmp_path, agents=agents, blocks=20, concurrency=40)
    assert (tally.finished, tally.left) == (120, 0)
    assert 0 < Host.most["capped"] <= 3


def test_a_server_is_asked_by_no_more_games_than_its_cap(tmp_path: Path) -> None:
    agents = [{"spec": "host:a:1", "name": "one"}, {"spec": "host:a:1?seconds=0.011", "name": "two"}, "first"]
    tally = play(tmp_path, agents=agents, blocks=10, endpoints={"a:1": 4})
    assert tally.left == 0
    assert 0 < Host.most["a:1"] <= 4


def test_an_endpoint_that_nobody_asks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no agent asks b:2; endpoints of this tournament: a:1"):
        play(tmp_path, agents=["host:a:1", "first"], endpoints={"b:2": 4})


def test_searches_that_are_timed_wait_for_processes_and_others_do_not() -> None:
    asked = parse({"games": ["TicTacToe"], "agents": ["mcts", "first"], "deadline": 5})
    caps = caps_of(asked, [entry.make() for entry in asked.agents], 2)
    assert (caps.key((1, 1)), caps.key((0, 1))) == ((), (Need(("processes",)),))
    assert caps.limits == {"processes": 2}


class Gate(Agent):
    """Answers the preflight at once; in games only when `open` is set, or `goal` games wait for it."""

    asked = waiting = most = 0
    goal = 1 << 30
    open = False

    async def act(self, view: View) -> Reply:
        Gate.asked += 1
        if self.name in Gate.passed:
            Gate.waiting += 1
            Gate.most = max(Gate.most, Gate.waiting)
            Gate.open |= Gate.waiting >= Gate.goal
            while not Gate.open:
                await asyncio.sleep(0.02)
            Gate.waiting -= 1
        Gate.passed.add(self.name)
        return Reply((view.legal_actions or ("",))[0])

    passed: ClassVar[set[str]] = set()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> type[Gate]:
    monkeypatch.setitem(AGENTS, "gate", f"{__name__}:Gate")
    Gate.passed.clear()
    Gate.waiting = Gate.most = 0
    Gate.goal, Gate.open = 1 << 30, False
    return Gate


def test_slow_games_do_not_hold_fast_ones(gate: type[Gate], tmp_path: Path) -> None:
    """One agent does not answer before all games of the others are finished, and holds half of all places."""
    agents = [{"spec": "gate", "name": "slow", "concurrency": 2}, "random", "first"]
    asked = parse(
        {"games": ["TicTacToe"], "max_turns": 2, "agents": agents, "blocks": 8, "concurrency": 4, "stalled": 60}
    )

    def report(tally: Tally) -> None:
        gate.open |= tally.finished == 16

    with Store.resume(tmp_path, asked) as store:
        tally = run(asked, store, report, tick=0.02)
        assert (tally.finished, tally.left) == (48, 0)
    assert gate.most == 2


def test_thousands_of_games_at_once(gate: type[Gate], tmp_path: Path) -> None:
    """No place stays free while a game could take it: nobody answers until two thousand games wait."""
    gate.goal = 2000
    agents = [{"spec": "gate", "name": "capped", "concurrency": 50}]
    agents += [{"spec": "gate", "name": f"free {number}"} for number in range(4)]
    tally = play(tmp_path, agents=agents, blocks=200, concurrency=2000, max_turns=1, stalled=100)
    assert (tally.finished, tally.left, tally.voids) == (4000, 0, 0)
    assert gate.most == 2000
