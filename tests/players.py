"""Agents that the tests of matches seat, and what must hold of every record."""

import asyncio
import time

import pytest

from arena.agent import Agent, AgentError, Reply, View
from arena.episode import Episode, validate
from arena.replaying import replay


class Says(Agent):
    """Gives its answers in turn, then keeps giving the last."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.name = answers, "says"
        self.notes: list[str] = []

    def act(self, view: View) -> Reply:
        at = view.memory["at"] = view.memory.get("at", -1) + 1
        self.notes.append(view.note)
        return Reply(self.answers[min(at, len(self.answers) - 1)])


class Slow(Agent):
    """Random play after a nap; counts how many of its kind are asked at once."""

    name = "slow"
    asked = most = 0

    def __init__(self, seconds: float = 0.01) -> None:
        self.seconds = seconds

    async def act(self, view: View) -> Reply:
        Slow.asked += 1
        Slow.most = max(Slow.most, Slow.asked)
        await asyncio.sleep(self.seconds)
        Slow.asked -= 1
        return Reply(view.sample_action())


class Served(Slow):
    served = True


class Forgetful(Agent):
    """Counts in its memory, and empties it again."""

    name = "forgetful"
    blocking = True

    def act(self, view: View) -> Reply:
        count = view.memory["n"] = view.memory.get("n", 0) + 1
        legal = view.legal_actions or ()
        if count == 2:
            view.memory.pop("n")
        return Reply(legal[count % len(legal)])


class Broken(Agent):
    name = "broken"

    def act(self, view: View) -> Reply:
        raise AgentError("the server is down")


class Naps(Agent):
    """Holds everything up for a while, as a careless plain agent does."""

    name = "naps"

    def __init__(self, seconds: float, blocking: bool = False) -> None:
        self.seconds, self.blocking = seconds, blocking

    def act(self, view: View) -> Reply:
        time.sleep(self.seconds)
        return Reply(view.sample_action())


def sane(episode: Episode) -> Episode:
    """The record holds together and repeats."""
    validate(episode)
    if episode.outcome != "void":
        replay(episode)
        assert episode.returns is not None
        for seat, earned in enumerate(episode.returns):
            turns = [turn for turn in episode.turns if turn.seat == seat]
            if turns:
                assert sum(turn.reward for turn in turns) == pytest.approx(earned, abs=1e-9)
    return episode
