"""Adaptive pairing: each block goes to the pair whose games narrow the ratings most.

First everybody is connected: the smallest group of agents that met each other is joined to the largest. Then, by an
A-optimal design (Atkinson & Donev, *Optimum Experimental Designs* (1992)), the pair is chosen that lowers the trace of
the posterior covariance of the centred strengths most. For strengths with covariance S, the information w of a block on
the difference x = e_i - e_j and C, which takes the mean away, that is w |C S x|^2 / (1 + w x'S x): one rank-one update,
which is also how blocks that are proposed and not over yet are accounted for. A share of pairs is drawn uniformly, from
a generator of the tournament's seed and the number of blocks so far, so that proposals are a function of the history.

Several games take turns, so that each has the same share of its blocks at any time. Tables of more seats begin with the
best pair and add whoever lowers the trace most. An agent who joins a finished tournament is connected and then placed:
nothing is as uncertain as a newcomer. A pair whose blocks stay void twice is not asked again.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from random import Random

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.history import History
from arena.tournaments.ratings.davidson import Fit, fit
from arena.tournaments.schedule import Block, count, rotations
from arena.tournaments.schedules.fixed import tasks
from arena.tournaments.terms import Adaptive

__all__ = ["blocks"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FRESH = 50  # ratings are fitted anew when a fiftieth of the games is new
_TRIES = 2  # blocks of a pair that may stay void


def blocks(history: History) -> Iterator[Block | None]:
    """Tasks first, then pairs; None while as many blocks as the tournament has games at once are not over."""
    yield from tasks(history)
    planner = _Planner(history)
    while True:
        planner.look()
        if len(planner.pending) >= max(history.tournament.concurrency, 2):
            yield None
        elif (block := planner.choose()) is not None:
            yield block
        else:
            return


class _Planner:
    """What was proposed, and what the results say."""

    def __init__(self, history: History) -> None:
        asked = history.tournament
        self.history, self.asked = history, asked
        self.agents = len(asked.agents)
        self.entries = [entry for entry, seats in enumerate(history.maker.seats) if seats > 1]
        self.most = dict(enumerate(count(asked)))
        self.games = Counter[int]()  # of every entry, known or proposed
        self.seen: set[Block] = set()
        self.looked = 0
        self.pending: dict[str, Block] = {}
        self.void: Counter[tuple[int, tuple[int, ...]]] = Counter()
        self.next: Counter[tuple[int, tuple[int, ...]]] = Counter()
        self.link = list(range(self.agents))
        self.met = [0] * self.agents
        self.pairs: Ints = np.stack(np.triu_indices(self.agents, 1), axis=1).astype(np.int64)
        self.fitted: Fit | None = None
        self.told = -1
        self.spread = np.zeros((self.agents, self.agents))
        self.weights: dict[int, Floats] = {}

    def look(self) -> None:
        """Take in what has ended since."""
        for key in self.history.log[self.looked :]:
            block = self.history.known[key]
            if self.history.maker.seats[block.entry] == 1:
                continue
            if block not in self.seen:
                self._count(block)
                self.pending[key] = block
            if key in self.pending and self.history.over(self.pending[key]):
                done = self.pending.pop(key)
                self.void[done.entry, done.table] += self.history.given_up(done)
        self.looked = len(self.history.log)

    def _count(self, block: Block) -> None:
        self.seen.add(block)
        self.games[block.entry] += self.history.maker.size(block)
        for agent in set(block.table):
            self.met[agent] += 1
            self.link[self._root(agent)] = self._root(block.table[0])

    def _root(self, agent: int) -> int:
        while self.link[agent] != agent:
            agent = self.link[agent]
        return agent

    def choose(self) -> Block | None:
        """The next block; None: all that a round robin would have are known or proposed."""
        open_ = [entry for entry in self.entries if self.games[entry] < self.most[entry]]
        for entry in sorted(open_, key=lambda entry: self.games[entry] / self.most[entry]):
            seats = self.history.maker.seats[entry]
            if self.agents <= seats > 2:
                return self._propose(entry, tuple([seat % self.agents for seat in range(seats)]))
            if table := self._table(entry, seats):
                return self._propose(entry, table)
        return None

    def _propose(self, entry: int, table: tuple[int, ...]) -> Block:
        """The first block of this table that is new."""
        table = min(rotations(table))
        while True:
            block = Block(entry, self.next[entry, table], table)
            self.next[entry, table] += 1
            if block not in self.seen and not self.history.over(block):
                break
        self._count(block)
        self.pending[self.history.maker.key(block)] = block
        if self.told >= 0:
            self._expect(block)
        return block

    def _table(self, entry: int, seats: int) -> tuple[int, ...] | None:
        generator = Random(f"adaptive {self.asked.seed} {len(self.seen)}")
        schedule = self.asked.schedule
        assert isinstance(schedule, Adaptive)
        self._fit()
        if joined := self._joining(entry):
            return self._fill(entry, joined, seats)
        allowed = self._allowed(entry)
        if not len(allowed):
            return None
        if generator.random() < schedule.uniform:
            one, other = allowed[generator.randrange(len(allowed))].tolist()
            others = [agent for agent in range(self.agents) if agent not in (one, other)]
            return min(rotations(tuple(sorted([one, other, *generator.sample(others, seats - 2)]))))
        gains = np.round(self._gains(entry)[allowed[:, 0], allowed[:, 1]], 12)
        one, other = allowed[int(np.argmax(gains))].tolist()
        return self._fill(entry, (one, other), seats)

    def _allowed(self, entry: int) -> Ints:
        """All pairs, lower number first, but those whose blocks stay void; shape (pairs, 2)."""
        void = {pair for (of, pair), times in self.void.items() if of == entry and times >= _TRIES}
        if not void:
            return self.pairs
        return np.array([pair for pair in map(tuple, self.pairs.tolist()) if pair not in void], dtype=np.int64)

    def _joining(self, entry: int) -> tuple[int, int] | None:
        """A pair that joins the smallest group to the largest; None where all are joined, or none can be."""
        groups: dict[int, list[int]] = {}
        for agent in range(self.agents):
            groups.setdefault(self._root(agent), []).append(agent)
        if len(groups) == 1:
            return None
        ordered = sorted(groups.values(), key=len)
        small, large = ordered[0], ordered[-1]
        strengths = self._strengths()
        middle = float(np.median(strengths[large]))
        one = min(small, key=lambda agent: (self.met[agent], agent))
        placed = [agent for agent in large if self.met[agent] >= float(np.median([self.met[other] for other in large]))]
        other = min(placed, key=lambda agent: (abs(strengths[agent] - middle), self.met[agent], agent))
        return min(one, other), max(one, other)

    def _fill(self, entry: int, pair: tuple[int, int], seats: int) -> tuple[int, ...]:
        """Add those to a pair who lower the trace most with all who sit there."""
        table = list(pair)
        gains = self._gains(entry) if seats > 2 else np.zeros((0, 0))
        while len(table) < seats:
            others = [agent for agent in range(self.agents) if agent not in table]
            table.append(max(others, key=lambda agent: (round(float(gains[table, agent].sum()), 12), -agent)))
        return tuple(sorted(table))

    def _strengths(self) -> Floats:
        return np.zeros(self.agents) if self.fitted is None else self.fitted.parameters[: self.agents]

    def _fit(self) -> None:
        """The posterior of all results, if enough are new; then what is expected of pending blocks."""
        told = self.history.finished
        if self.told >= 0 and told - self.told < max(1, self.told / _FRESH):
            return
        results = self.history.comparisons()
        cells = results.cells()
        self.fitted = fit(cells, start=None if self.fitted is None else self.fitted.parameters)
        self.told = told
        covariance = np.asarray(np.linalg.inv(self.fitted.hessian), dtype=np.float64)
        self.spread = covariance[: self.agents, : self.agents]
        self.weights = {entry: self._information(entry) for entry in self.entries}
        for block in self.pending.values():
            self._expect(block)

    def _expect(self, block: Block) -> None:
        """What the covariance will be when the block is over."""
        known = self.history.results(block)
        share = 1 - len(known) / self.history.maker.size(block)  # what is finished is in the fit
        weights = self.weights[block.entry] * share
        for one, other in combinations(sorted(set(block.table)), 2):
            toward = self.spread[:, one] - self.spread[:, other]
            weight = float(weights[one, other])
            self.spread = self.spread - weight * np.outer(toward, toward) / (
                1 + weight * float(toward[one] - toward[other])
            )

    def _information(self, entry: int) -> Floats:
        """What a block of every pair tells of its difference, shape (agents, agents)."""
        assert self.fitted is not None
        x, n, games = self.fitted.parameters, self.agents, len(self.asked.games)
        seats = self.history.maker.seats[entry]
        seat, draw = x[n + entry], np.exp(x[n + games + entry])
        gap = x[:n, None] - x[None, :n]
        one, other = [_curvature(d, float(draw)) for d in (gap + seat, gap - seat)]
        return (one + other) / 2 * seats * self.asked.repetitions * (2 / seats)

    def _gains(self, entry: int) -> Floats:
        """By how much a block of every pair lowers the trace, shape (agents, agents)."""
        centred = self.spread - self.spread.mean(axis=0)
        gram = centred.T @ centred
        shift = np.diag(gram)[:, None] + np.diag(gram) - 2 * gram
        variance = np.diag(self.spread)[:, None] + np.diag(self.spread) - 2 * self.spread
        weight = self.weights[entry]
        gains: Floats = weight * shift / (1 + weight * np.maximum(variance, 0.0))
        return gains


def _curvature(gap: Floats, draw: float) -> Floats:
    """Fisher information of one game on the difference of two strengths, in Davidson's model."""
    half = np.abs(gap) / 2
    up, down = np.ones_like(half), np.exp(-2 * half)
    drawn = draw * np.exp(-half)
    total = up + down + drawn
    won, lost = up / total, down / total
    return np.asarray(0.25 * (won + lost - (won - lost) ** 2), dtype=np.float64)
