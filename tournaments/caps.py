"""How many games at once: of an agent, of a model's server, of the processes for searches."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from arena.agent import Agent
from arena.tournaments.config import Tournament
from arena.tournaments.tally import Refused

__all__ = ["Caps", "Key", "Need", "caps_of"]


class Need(NamedTuple):
    """What a game of an agent takes one of: the cap of its own, or one of the servers that may answer."""

    either: tuple[str, ...]
    """Names of resources."""


Key = tuple[Need, ...]
"""All that one game needs. Games with the same key may start, or may not, together."""


class Caps:
    """Counts what running games hold. A resource without a limit is never in the way."""

    def __init__(self, limits: dict[str, int], needs: Sequence[Sequence[Need]]) -> None:
        """`needs`: of every agent, by number."""
        self.limits, self.used = limits, Counter[str]()
        self.needs = [tuple(each) for each in needs]
        self.any = any(self.needs)
        self._keys: dict[tuple[int, ...], Key] = {}

    def key(self, agents: tuple[int, ...]) -> Key:
        """What a game between these agents needs; once each, however often an agent or a server sits in it."""
        if not self.any:
            return ()
        key = self._keys.get(agents)
        if key is None:
            needs = {need for agent in agents for need in self.needs[agent]}
            key = self._keys[agents] = tuple(sorted(needs, key=lambda need: (len(need.either), need)))
        return key

    def take(self, key: Key) -> tuple[str, ...] | Need:
        """The resources that are held from now on for one game; or, where there is no room, the need that lacks it."""
        held: list[str] = []
        for need in key:
            if not any(name in held for name in need.either):
                roomiest = max(need.either, key=self._room)
                if self._room(roomiest) <= 0:
                    return need
                held.append(roomiest)
        self.used.update(held)
        return tuple(held)

    def give(self, held: Iterable[str]) -> None:
        """The game has ended."""
        self.used.subtract(held)

    def _room(self, name: str) -> int:
        return self.limits[name] - self.used[name]


def caps_of(asked: Tournament, agents: Sequence[Agent], processes: int) -> Caps:
    """The caps of a tournament.

    An agent's own (`AgentEntry.concurrency`); `Tournament.endpoints` for agents that say which servers they ask (of
    several, each game is counted at the one with most room, and one without a cap always has); and, where games are
    timed, `processes` for searches: none must wait for a process until its game is void. Raises Refused for an endpoint
    that no agent asks.
    """
    known = {name for agent in agents for name in agent.endpoints}
    if unknown := sorted(asked.endpoints.keys() - known):
        raise Refused(f"no agent asks {unknown[0]}; endpoints of this tournament: {', '.join(sorted(known)) or 'none'}")
    limits, needs = {}, []
    for number, (entry, agent) in enumerate(zip(asked.agents, agents, strict=True)):
        mine: list[Need] = []
        if entry.concurrency is not None:
            limits[own := f"agent {number}"] = entry.concurrency
            mine.append(Need((own,)))
        if agent.endpoints and all(name in asked.endpoints for name in agent.endpoints):
            limits |= {f"endpoint {name}": asked.endpoints[name] for name in agent.endpoints}
            mine.append(Need(tuple([f"endpoint {name}" for name in agent.endpoints])))
        if agent.blocking and asked.deadline is not None:
            limits["processes"] = processes
            mine.append(Need(("processes",)))
        needs.append(mine)
    return Caps(limits, needs)
