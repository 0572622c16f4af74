"""Agents that the tests of matches seat, and what must hold of every record."""

import asyncio
import time
from collections.abc import Awaitable, Sequence
from random import Random
from typing import Any

import msgspec
import pytest

from arena.agent import Agent, AgentError, Reply, View
from arena.episode import Episode, Turn, validate
from arena.match import play_sync
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


def essence(episode: Episode) -> dict[str, Any]:
    """All of a record but what no two records share, and where it came from."""
    kept = msgspec.to_builtins(episode)
    for name in ("id", "started", "ended", "parent", "fork"):
        kept.pop(name, None)
    for turn in kept["turns"]:
        for attempt in turn["attempts"]:
            attempt.pop("latency", None)
    return kept  # type: ignore[no-any-return]  # of a Struct, a dict comes


class Recalls(Agent):
    """Plays the first legal action; counts in its memory all that it played or took up."""

    name = "recalls"

    def __init__(self) -> None:
        self.seen: list[tuple[int, int, int, str, str | None]] = []

    def recall(self, views: Sequence[View], turn: Turn) -> None:
        for view in views:
            self.note(view)
            self.seen.append((turn.ply, view.player, view.memory["n"], view.note, turn.action))

    def act(self, view: View) -> Reply:
        self.note(view)
        return Reply((view.legal_actions or ("say so",))[0], reasoning=f"number {view.memory['n']}")

    @staticmethod
    def note(view: View) -> None:
        view.memory["n"] = view.memory.get("n", 0) + 1


class Later(Recalls):
    """Takes up and plays while others do."""

    async def wait(self, views: Sequence[View], turn: Turn) -> None:
        await asyncio.sleep(0)
        Recalls.recall(self, views, turn)

    def recall(self, views: Sequence[View], turn: Turn) -> Awaitable[None]:  # type: ignore[override]  # as Agent's
        return self.wait(views, turn)

    async def act(self, view: View) -> Reply:  # type: ignore[override]  # as Agent's
        await asyncio.sleep(0)
        return Recalls.act(self, view)


def plies(episode: Episode) -> int:
    return episode.turns[-1].ply + 1 if episode.turns else 0


def on(start: Episode, agents: Sequence[str | Agent], ply: int, **how: Any) -> Episode:
    return play_sync(start.env, agents, start.seed, start.options, start=start, ply=ply, **how)


class Fixed(Agent):
    """Draws nothing: the first legal action, of open text always the same."""

    name = "fixed"

    def act(self, view: View) -> Reply:
        return Reply(view.legal_actions[0] if view.legal_actions else view.sample_action(Random(view.ply)))
