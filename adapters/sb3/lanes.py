"""The games of an `ArenaVecEnv`, and how they go on until each is the learner's turn again."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from arena.adapters.sb3.opponents import Opponent
from arena.adapters.sb3.player import NetworkAgent
from arena.agent import seat_rng
from arena.game import Player
from arena.numeric import Codec
from arena.solo import Opponents, Solo, play_on
from arena.table import OVER, Setup

__all__ = ["Lane", "play_lanes"]


class Lane(Solo):
    """One game after the other."""

    __slots__ = ("alternates", "first", "length", "networks", "number", "opponent", "total")

    def __init__(self, setup: Setup, seat: Any, opponents: Opponents, number: int) -> None:
        """`number`: of the lane; where seats alternate, its first seat."""
        self.number, self.opponent = number, None
        free = [p for p in range(setup.players) if p not in setup.game.house]
        turn = number % len(free)
        self.first: list[Player] = free[turn:] + free[:turn] if seat == "alternate" else []
        self.alternates = self.first
        if seat not in ("alternate", "random") and type(seat) is not int:
            raise ValueError(f"seat={seat!r}: allowed are 0 to {setup.players - 1}, 'random' and 'alternate'")
        super().__init__(setup, self.alternates[0] if self.alternates else seat, opponents)

    alternates: list[Player]
    """The seats of the episodes to come, where seats alternate."""
    opponent: Opponent | None
    """Who was drawn of a pool for this episode."""
    length: int
    """Steps of this episode."""
    total: float
    """What they paid."""

    def rewind(self) -> None:
        """Where seats alternate, the next episode is again that of the first seat."""
        self.alternates = self.first

    def begin(self, seed: int) -> None:
        """See `Solo.begin`; takes the next seat where seats alternate."""
        if self.alternates:
            self.fixed = self.alternates[0]
            self.alternates = [*self.alternates[1:], self.fixed]
        if self.fixed is not None:
            self._seat_agents(self.fixed)
        super().begin(seed)
        self.networks = self.plain and any(isinstance(agent, NetworkAgent) for agent in self.agents.values())
        self.length, self.total = 0, 0.0

    def pay(self) -> tuple[float, bool]:
        """See `Solo.pay`."""
        reward, over = super().pay()
        self.length += 1
        self.total += reward
        return reward, over

    def score(self) -> float | None:
        """1 for having earned more than the other players on average, 0.5 as much, 0 less; None without others."""
        house = self.setup.game.house
        earned = self.table.penalties.earned(self.table.state)
        others = [earned[p] for p in range(self.setup.players) if p != self.seat and p not in house]
        if not others:
            return None
        more = earned[self.seat] - sum(others) / len(others)
        return 0.5 if abs(more) < 1e-9 else float(more > 0)

    def waits_for(self) -> NetworkAgent | None:
        """Let the others answer until a network is to be asked, which is returned, or it is your turn."""
        table, seat, agents = self.table, self.seat, self.agents
        while (player := table.asked) != seat and player != OVER:
            if table.forfeits and seat in table.forfeits:
                return None
            agent = agents[player]
            if isinstance(agent, NetworkAgent):
                return agent
            reply: Any = agent.act(self.view(player))
            self.hear(reply)
        return None

    def chance(self) -> float:
        """What the seat that is asked draws next from its private generator."""
        player = self.table.asked
        memory = self.memories[player]
        if "rng" not in memory:
            memory["rng"] = seat_rng(self.table.seed, player)
        drawn: float = memory["rng"].random()
        return drawn


def play_lanes(lanes: Iterable[Lane]) -> None:
    """Let the others move until each game is the learner's turn again; a network answers for all that wait for it."""
    waiting: list[Lane] = []
    rest: list[Lane] = []
    for lane in lanes:
        (waiting if lane.networks else rest).append(lane)
    play_on(rest)
    while waiting:
        asked: dict[NetworkAgent, list[Lane]] = {}
        for lane in waiting:
            if (agent := lane.waits_for()) is not None:
                asked.setdefault(agent, []).append(lane)
        for agent, these in asked.items():
            _answer(agent, these)
        waiting = [lane for these in asked.values() for lane in these]


def _answer(agent: NetworkAgent, lanes: list[Lane]) -> None:
    codec = lanes[0].setup.codec
    assert codec is not None  # numeric
    seen = np.array([_seen(codec, lane) for lane in lanes])
    masks = np.array([codec.mask(lane.table.legal) for lane in lanes]).view(np.bool_)
    chances = np.array([0.0 if agent.deterministic else lane.chance() for lane in lanes])
    for lane, action in zip(lanes, agent.choose(seen, masks, chances), strict=True):
        lane.table.answer(codec.table[action])


def _seen(codec: Codec, lane: Lane) -> Any:
    player = lane.table.asked
    text = "" if codec.features is not None else lane.table.text(player)
    return codec.observation(lane.table.state, player, text)
