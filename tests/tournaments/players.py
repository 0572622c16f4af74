"""Agents for tests: ones that break, wait or cheat."""

import asyncio
import os
import time

from arena.agent import Agent, Reply, View


class Flaky(Agent):
    """Raises at the first `times` asks of this process, then plays the first legal action."""

    asked = 0

    def __init__(self, times: int = 1) -> None:
        self.times = times

    def act(self, view: View) -> Reply:
        Flaky.asked += 1
        if Flaky.asked <= self.times:
            raise ConnectionError("the line is dead")
        return Reply((view.legal_actions or ("",))[0])


class Moody(Agent):
    """Breaks in every game of an odd seed, after the first ply."""

    def act(self, view: View) -> Reply:
        if view.ply and view._seed % 2:
            raise ConnectionError("not today")
        return Reply((view.legal_actions or ("",))[-1])


class Slow(Agent):
    """Waits before it plays the first legal action."""

    def __init__(self, seconds: float = 0.05) -> None:
        self.seconds = seconds

    async def act(self, view: View) -> Reply:
        await asyncio.sleep(self.seconds)
        return Reply((view.legal_actions or ("",))[0])


class Stuck(Agent):
    """A search that never ends, from the second ply on."""

    blocking = True

    def act(self, view: View) -> Reply:
        if view.ply:
            time.sleep(3600)
        return Reply((view.legal_actions or ("",))[0])


class Suicidal(Agent):
    """Takes its worker process with it, from the second ply on."""

    blocking = True

    def act(self, view: View) -> Reply:
        if view.ply:
            os._exit(3)
        return Reply((view.legal_actions or ("",))[0])


class Watched(Agent):
    """Counts how many of its answers are under way at once."""

    now = most = 0

    async def act(self, view: View) -> Reply:
        Watched.now += 1
        Watched.most = max(Watched.most, Watched.now)
        await asyncio.sleep(0.002)
        Watched.now -= 1
        return Reply((view.legal_actions or ("",))[0])


PLAYERS = {name: f"tests.tournaments.players:{name.title()}" for name in
           ("flaky", "moody", "slow", "stuck", "suicidal", "watched")}  # fmt: skip
