"""Agents for tests: ones that break, wait or cheat."""

import asyncio
import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

from arena.agent import Agent, Call, Reply, View
from arena.game import Game, replace
from arena.referee import Referee


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


class Choosy(Agent):
    """Plays only where there is a list, and says so beforehand."""

    def __init__(self, sure: bool = False) -> None:
        self.sure = sure

    async def prepare(self, game: Game, referee: Referee) -> None:
        await asyncio.sleep(0)
        if game.legal_actions(game.to_act()[0]) is None:
            raise ValueError("there is no list of legal actions; leave this game out")

    def act(self, view: View) -> Reply:
        return Reply((view.legal_actions or ("",))[0])


class Suicidal(Agent):
    """Takes its worker process with it, from the second ply on."""

    blocking = True

    def act(self, view: View) -> Reply:
        if view.ply:
            os._exit(3)
        return Reply((view.legal_actions or ("",))[0])


class Mortal(Agent):
    """Takes its worker process with it once: whoever finds no file there makes it, and dies."""

    blocking = True

    def __init__(self, target: str) -> None:
        self.path = Path(target)

    def act(self, view: View) -> Reply:
        time.sleep(0.01)
        if view.ply:
            with suppress(FileExistsError):
                self.path.touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        return Reply((view.legal_actions or ("",))[0])


class Counted(Agent):
    """Counts how many were made, how many are open, and every ask."""

    made = open = asked = 0

    def __init__(self) -> None:
        Counted.made += 1
        Counted.open += 1

    def act(self, view: View) -> Reply:
        Counted.asked += 1
        return Reply((view.legal_actions or ("",))[0]) if view.legal_actions else Reply(view.sample_action())

    def close(self) -> None:
        Counted.open -= 1


class Leaving(Counted):
    """Takes its time to close."""

    async def close(self) -> None:  # type: ignore[override]  # a coroutine function gives an Awaitable[None]
        await asyncio.sleep(0.01)
        super().close()


class Failing(Counted):
    """Raises where it is told to: prepare or close."""

    def __init__(self, where: str = "close") -> None:
        super().__init__()
        self.where = where

    async def prepare(self, game: Game, referee: Referee) -> None:
        await asyncio.sleep(0)
        if self.where == "prepare":
            raise ConnectionError("nobody is there")

    async def close(self) -> None:  # type: ignore[override]  # a coroutine function gives an Awaitable[None]
        await asyncio.sleep(0)
        super().close()
        if self.where == "close":
            raise ConnectionError("the line is dead")


class Exiting(Agent):
    """Calls exit in every game of an odd seed, after the first ply."""

    def act(self, view: View) -> Reply:
        if view.ply and view._seed % 2:
            raise SystemExit(0)
        return Reply((view.legal_actions or ("",))[0])


class Remote(Agent):
    """Has the options of an agent that asks a server."""

    incidental = frozenset({"patience"})

    def __init__(
        self,
        target: str,
        base_url: str = "",
        host: str = "",
        port: int = 0,
        api_key_env: str = "",
        temperature: float = 1.0,
        patience: float = 10.0,
        client: object = object(),  # JSON cannot hold it
    ) -> None:
        raise NotImplementedError("it is only read")

    def act(self, view: View) -> Reply:
        raise NotImplementedError("it is only read")


class Dreamy(Agent):
    """Waits a random while, then plays what its seat's stream says."""

    async def act(self, view: View) -> Reply:
        await asyncio.sleep(random.SystemRandom().random() * 0.004)
        legal = view.legal_actions or ("",)
        return Reply(legal[view.draw(len(legal))])


class Watched(Agent):
    """Counts how many of its answers are under way at once."""

    now = most = 0

    async def act(self, view: View) -> Reply:
        Watched.now += 1
        Watched.most = max(Watched.most, Watched.now)
        await asyncio.sleep(0.002)
        Watched.now -= 1
        return Reply((view.legal_actions or ("",))[0])


class Modelled(Agent):
    """Answers as a model would whose first try is wrong in every turn: illegal, unreadable and cut by turns."""

    WRONG = (Reply("99"), Reply("well,\nlet me see"), Reply("1", truncated=True))

    def act(self, view: View) -> Reply:
        usage = {"prompt_tokens": 100.0, "cached_tokens": 75.0, "completion_tokens": 4.0, "seconds": 0.5, "cost": 0.25}
        call = Call("generate", usage=usage)
        if view.note:
            return Reply(view.sample_action(), "I take any.", calls=(call,))
        return replace(self.WRONG[view.ply // 2 % 3], calls=(call,))


_NAMES = (
    "choosy", "counted", "dreamy", "exiting", "failing", "flaky", "leaving", "modelled", "moody", "mortal", "remote",
    "slow", "stuck", "suicidal", "watched",
)  # fmt: skip
PLAYERS = {name: f"tests.tournaments.players:{name.title()}" for name in _NAMES}
