"""The match loop against time: deadlines, answers that do not come, teardown, cancellation."""

import asyncio
import threading
import time
from random import Random
from typing import Any, ClassVar

import pytest

from arena.agent import Agent, Reply, View
from arena.game import Action, LiveGame, Player
from arena.match import play, play_sync
from arena.registry import make_agent
from tests.players import Broken, Naps, Served, Slow, sane


@pytest.mark.parametrize("agent", [Slow(30), Naps(30, blocking=True), Naps(0.2)], ids=["async", "blocking", "plain"])
def test_the_deadline_covers_everything(agent: Agent) -> None:
    start = time.monotonic()
    episode = play_sync("TicTacToe-v0", [agent, "random"], 0, deadline=0.1)
    assert time.monotonic() - start < 10
    assert episode.outcome == "void"
    assert "the deadline passed at ply" in episode.reason


@pytest.mark.parametrize("blocking", [True, False])
def test_a_plain_agent_out_of_time_has_given_a_wrong_answer(blocking: bool) -> None:
    agents = [Naps(0.3, blocking), make_agent("first")]
    episode = sane(play_sync("TicTacToe-v0", agents, 0, turn_seconds=0.05))
    assert (episode.outcome, episode.forfeits) == ("terminated", (0,))
    assert episode.turns[0].attempts[0].reason == "no answer within 0.05 s"


def test_out_of_time_is_a_local_agents_fault_and_a_servers_misfortune() -> None:
    local = sane(play_sync("TicTacToe-v0", [Slow(30), "random"], 0, turn_seconds=0.02))
    assert (local.outcome, local.forfeits) == ("terminated", (0,))
    assert local.turns[0].attempts[0].reason == "no answer within 0.02 s"
    served = play_sync("TicTacToe-v0", [Served(30), "random"], 0, turn_seconds=0.02)
    assert served.outcome == "void"
    assert "TimeoutError" in served.reason


def test_an_agents_own_timeout_is_not_the_turns() -> None:
    class TimesOut(Agent):
        async def act(self, view: View) -> Reply:
            raise TimeoutError("a database")

    for limit in (None, 5.0):
        episode = play_sync("TicTacToe-v0", [TimesOut(), "random"], 0, turn_seconds=limit)
        assert (episode.outcome, episode.reason) == ("void", "TimeoutError: a database")


@pytest.mark.parametrize("limit", ["deadline", "turn_seconds", "max_turns"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True, "x", 1.5])
def test_limits_that_mean_nothing_are_refused(limit: str, value: Any) -> None:
    if limit != "max_turns" and value == 1.5 and value is not True:
        return
    arguments: dict[str, Any] = {limit: value}
    with pytest.raises(ValueError, match=f"{limit}=.*allowed are None and"):
        play_sync("TicTacToe-v0", ["first", "first"], **arguments)
    with pytest.raises(ValueError, match=f"{limit}="):
        asyncio.run(play("TicTacToe-v0", ["first", "first"], **arguments))


class Door(LiveGame):
    """Opens at the first action, and must be closed whatever happens."""

    players = 1
    closed: ClassVar[list[list[str]]] = []
    opened: list[str]

    @classmethod
    def initial(cls, rng: Random) -> "Door":
        return cls([])

    def to_act(self) -> tuple[Player, ...]:
        return () if len(self.opened) >= 2 else (0,)

    def rules(self, player: Player) -> str:
        return "Knock twice."

    def observation(self, player: Player) -> str:
        return "A door."

    def legal_actions(self, player: Player) -> tuple[Action, ...]:
        return ("knock",) if self.to_act() else ()

    def apply(self, actions: object) -> "Door":
        self.opened.append("knock")
        return self

    def returns(self) -> tuple[float, ...]:
        return (float(len(self.opened)) / 2,)

    def close(self) -> None:
        self.closed.append(self.opened)


class Stuck(Door):
    """Hangs when it is closed."""

    let_go = threading.Event()

    def close(self) -> None:
        Stuck.let_go.wait(60)


def test_a_live_game_is_closed_whatever_its_end() -> None:
    Door.closed.clear()
    for episode in (play_sync(Door, ["first"]), asyncio.run(play(Door, ["first"]))):
        assert (episode.outcome, episode.returns, episode.env) == ("terminated", (1.0,), "Door")
    play_sync(Door, [Broken()])
    asyncio.run(play(Door, [Broken()]))
    play_sync(Door, [Slow(30)], deadline=0.05)
    for _ in range(100):
        if len(Door.closed) == 5:
            break
        time.sleep(0.02)
    assert Door.closed == [["knock", "knock"]] * 2 + [[]] * 3


def test_the_deadline_covers_teardown_too() -> None:
    start = time.monotonic()
    episode = asyncio.run(play(Stuck, ["first"], deadline=0.1))
    assert time.monotonic() - start < 50, "who closes still hangs"
    assert episode.outcome == "void"
    Stuck.let_go.set()


def test_a_match_that_is_cancelled_is_cancelled() -> None:
    async def cancel() -> None:
        task = asyncio.create_task(play("TicTacToe-v0", [Slow(30), "first"]))
        await asyncio.sleep(0.05)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())


@pytest.mark.parametrize("error", [asyncio.CancelledError(), StopIteration()], ids=["cancelled", "stop"])
@pytest.mark.parametrize("blocking", [True, False])
def test_what_an_agent_raises_does_not_end_its_caller(error: BaseException, blocking: bool) -> None:
    class Raises(Agent):
        name = "raises"

        def act(self, view: View) -> Reply:
            raise error

    agent = Raises()
    agent.blocking = blocking
    assert play_sync("TicTacToe-v0", [agent, "first"]).outcome == "void"
    assert asyncio.run(play("TicTacToe-v0", [agent, "first"], deadline=5)).outcome == "void"
    assert asyncio.run(play("RockPaperScissors-v0", [agent, Slow()], deadline=5)).outcome == "void"
