"""One seat is yours, agents hold the others: what `arena.env` and `arena.vector` are made of."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Iterable, Sequence
from functools import cache
from inspect import iscoroutinefunction
from random import Random
from typing import Any

from gymnasium.error import ResetNeeded

from arena.agent import Agent, AgentError, HouseAgent, Reply, View
from arena.game import Player
from arena.registry import make_agent
from arena.table import OVER, Setup, Table

__all__ = ["Opponents", "Solo", "play_on"]

Opponents = str | Agent | Sequence[str | Agent]


def _seat(setup: Setup, seat: Any) -> Player | None:
    """The seat, or None for a random one."""
    if seat == "random":
        return None
    if type(seat) is int and 0 <= seat < setup.players:
        return seat
    raise ValueError(f"seat={seat!r}: allowed are 0 to {setup.players - 1} and 'random'")


class Solo:
    """One episode of one seat. An agent that raises makes `act` (or `deal`) raise the same."""

    __slots__ = ("agents", "fixed", "given", "memories", "over", "paid", "plain", "seat", "setup", "table")

    agents: dict[Player, Agent]
    """Who holds each other seat."""
    seat: Player
    """Yours."""
    over: bool
    """Your episode is over, or none was begun."""

    def __init__(self, setup: Setup, seat: Any = 0, opponents: Opponents = "random") -> None:
        self.setup, self.table = setup, Table(setup)
        self.fixed = _seat(setup, seat)
        alone = isinstance(opponents, str | Agent)
        if not alone and not isinstance(opponents, list | tuple):
            raise ValueError(f"opponents={opponents!r:.60}: allowed are a spec string, an Agent, or a list of them")
        self.given: Agent | list[Agent] = (
            make_agent(opponents) if isinstance(opponents, str | Agent) else [make_agent(one) for one in opponents]
        )
        self._seat_agents(0 if self.fixed is None else self.fixed)
        self.over = True

    def _seat_agents(self, seat: Player) -> None:
        self.seat = seat
        house = self.setup.game.house
        others = [p for p in range(self.setup.players) if p != seat]
        free = [p for p in others if p not in house]
        given = self.given
        if isinstance(given, list):
            if len(given) not in (len(others), len(free)):
                raise ValueError(f"{len(given)} opponents were given: {self.setup.id} has {len(free)} other seats")
            seated = dict(zip(others if len(given) == len(others) else free, given, strict=True))
        else:
            seated = dict.fromkeys(free, given)
        self.agents = {p: seated.get(p) or HouseAgent() for p in others}
        self.plain = not any(iscoroutinefunction(agent.act) for agent in self.agents.values())

    def deal(self, seed: int) -> None:
        """Begin an episode and let the others move until it is your turn, which may never come."""
        self.begin(seed)
        play_on((self,))

    def begin(self, seed: int) -> None:
        """Begin an episode; the others have yet to move (`play_on`)."""
        if self.fixed is None:
            free = [p for p in range(self.setup.players) if p not in self.setup.game.house]
            self._seat_agents(free[Random((3 << 64) + seed).randrange(len(free))])
        self.table.deal(seed)
        self.memories: dict[Player, dict[str, Any]] = {p: {} for p in self.agents}
        self.paid = self.table.earned[self.seat]
        self.over = False

    def act(self, action: Any) -> tuple[float, bool]:
        """Your action, then the others' until it is your turn again. Gives your reward and whether it is over.

        Raises ResetNeeded once it is over, TypeError for an action of another type than the space's.
        """
        self.say(action)
        if self.plain:
            self._others()
        else:
            play_on((self,))
        return self.pay()

    def check(self, action: Any) -> None:
        """Raise TypeError for an action of another type than the space's, ValueError for a number out of range."""
        if self.table.asked == self.seat and not isinstance(self.table.action(action), str):
            raise TypeError(f"an action is a str, got {type(action).__name__}")

    def say(self, action: Any) -> None:
        """Your action; the others have yet to move (`play_on`)."""
        table = self.table
        if self.over:
            raise ResetNeeded("the episode is over, or none was begun: call reset()")
        if table.asked == self.seat:
            table.answer(action if self.setup.codec is None else table.action(action))
        elif table.asked != OVER:
            self.over = True
            raise ResetNeeded("an opponent failed in the last step: call reset()")

    def pay(self) -> tuple[float, bool]:
        """What you have earned since the last time, and whether it is over for you."""
        table, seat = self.table, self.seat
        if table.forfeits and seat in table.forfeits:
            earned, self.over = table.penalties.earned(table.state)[seat], True
        else:
            earned, self.over = table.earned[seat], table.asked == OVER
        reward, self.paid = earned - self.paid, earned
        return reward, self.over

    def waits(self) -> bool:
        """Whether others are to be asked before you are. After your forfeit nobody is: the rest is not yours."""
        asked = self.table.asked
        return asked != OVER and asked != self.seat and self.seat not in self.table.forfeits

    def _others(self) -> None:
        """Ask opponents that answer at once."""
        table, seat, agents = self.table, self.seat, self.agents
        while (player := table.asked) != seat and player != OVER:
            if table.forfeits and seat in table.forfeits:
                return
            reply = agents[player].act(self.view(player))
            if type(reply) is not Reply:
                reply = _settled([reply])[0]
            self.hear(reply)

    def view(self, player: Player) -> View:
        """What an opponent is asked with."""
        table = self.table
        state = table.state
        legal, note = (table.legal, table.note) if player == table.asked else (state.legal_actions(player), "")
        shown = legal if table.referee.show_legal else None
        return View(player, state.observation(player), shown, self.memories[player], note, table.ply, state, table.seed)

    def hear(self, reply: Reply) -> None:
        """The answer of the seat asked. Raises AgentError for one that ends the episode: a face cannot go on."""
        if reply.ends:
            raise AgentError(reply.ends)
        self.table.answer(reply.text, reply.truncated)

    def to_ask(self) -> list[Player]:
        """The opponents that can be asked at once: those of this ply who have yet to answer."""
        table = self.table
        waiting = table.acting[len(table.answers) :]
        return [p for p in waiting if p != self.seat and p not in table.forfeits]

    def close(self) -> None:
        """Let go of what the game and the agents hold."""
        self.table.close()
        closing = [agent.close() for agent in (self.given if isinstance(self.given, list) else [self.given])]
        if awaited := [done for done in closing if done is not None]:
            asyncio.run_coroutine_threadsafe(_all(awaited), _loop()).result()

    def observation(self) -> Any:
        """What you see."""
        return self.table.observation(self.seat)

    def info(self) -> dict[str, Any]:
        """What stands beside it."""
        return self.table.info(self.seat)


def play_on(episodes: Iterable[Solo]) -> None:
    """Let the others move in all episodes until each is yours again; those who wait for a server wait together."""
    waiting = []
    for solo in episodes:
        if solo.plain:
            solo._others()
        else:
            waiting.append(solo)
    heard: dict[tuple[Solo, Player], Reply] = {}
    while waiting := [solo for solo in waiting if solo.waits()]:
        asked = [(solo, p) for solo in waiting if (solo, solo.table.asked) not in heard for p in solo.to_ask()]
        asked = [key for key in asked if key not in heard]
        replies = _settled([solo.agents[p].act(solo.view(p)) for solo, p in asked])
        heard.update(zip(asked, replies, strict=True))
        for solo in waiting:
            while solo.waits() and (reply := heard.pop((solo, solo.table.asked), None)) is not None:
                solo.hear(reply)


def _settled(answers: list[Any]) -> list[Reply]:
    """The replies, once all that are awaited are there."""
    awaited = [answer for answer in answers if isinstance(answer, Awaitable)]
    if awaited:
        done = iter(asyncio.run_coroutine_threadsafe(_all(awaited), _loop()).result())
        answers = [next(done) if isinstance(answer, Awaitable) else answer for answer in answers]
    for answer in answers:
        if not isinstance(answer, Reply):
            raise TypeError(f"an agent must return a Reply, got {type(answer).__name__}")
    return answers


async def _all(awaited: list[Awaitable[Any]]) -> list[Any]:
    return await asyncio.gather(*awaited)


_starting = threading.Lock()


def _loop() -> asyncio.AbstractEventLoop:
    with _starting:
        return _loop_of(os.getpid())


@cache
def _loop_of(process: int) -> asyncio.AbstractEventLoop:
    """The event loop of agents that wait, in a thread of its own: a notebook has a loop running already."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="arena-opponents", daemon=True).start()
    return loop
