"""Plays what the schedule lists and the store does not hold: one event loop, a bounded number of games at once."""

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from itertools import chain, product
from typing import TypeVar

from arena.agent import Agent
from arena.episode import Episode
from arena.match import play
from arena.tournaments.config import GameEntry, Tournament
from arena.tournaments.interrupts import Interrupts, collected_rarely
from arena.tournaments.preflight import probe
from arena.tournaments.recorder import Recorder
from arena.tournaments.schedule import Fixture, count, fixtures
from arena.tournaments.store import Store
from arena.tournaments.tally import Aborted, Refused, Tally
from arena.workers import Workers

__all__ = ["Aborted", "Refused", "Tally", "run"]

T = TypeVar("T")


_JUDGED = 20  # attempts before the share of void ones means anything


def run(
    tournament: Tournament,
    store: Store | Callable[[], Store],
    report: Callable[[Tally], None] = lambda tally: None,
    *,
    tick: float = 0.25,
    redo_void: bool = False,
) -> Tally:
    """Play all games that are not in the store yet; `report` is called every `tick` seconds and at the end.

    `store`: an open one, or what opens a new one once every agent has shown that it can play, so that a tournament
    that is refused leaves nothing behind.

    The first Ctrl-C lets the running games finish and starts no more; the second ends at once. Games that were void
    `void_retries + 1` times are left out, unless `redo_void`.

    Before anything is played, every agent prepares for every game (`Agent.prepare`) and is asked for one move in it,
    beside random ones. Raises Refused if it cannot, Aborted when too many attempts are void, and StoreError if a game
    cannot be stored.

    A person (the agent `human`) plays one game at a time, is not asked beforehand, and stops the run by leaving.
    """
    playing = _Run(tournament, store, redo_void)
    try:
        with collected_rarely():
            return asyncio.run(playing.play(report, tick))
    except KeyboardInterrupt:
        if not playing.tally.stopped:
            raise
        return playing.tally


class _Run:
    def __init__(self, tournament: Tournament, store: Store | Callable[[], Store], redo_void: bool) -> None:
        self.tournament, self.store = tournament, store
        self.finished = store.finished() if isinstance(store, Store) else set()
        self.spent = store.void_attempts() if isinstance(store, Store) and not redo_void else {}
        self.agents: list[Agent] = []
        self.tally = Tally(sum(count(tournament)))
        self.pending: Iterator[Fixture] = self._pending()
        self.tasks: list[asyncio.Task[None]] = []
        self.recorder: Recorder | None = None
        self.abort = ""

    def _pending(self) -> Iterator[Fixture]:
        for fixture in fixtures(self.tournament):
            if self.tally.stopped or self.abort:
                return
            if fixture.id in self.finished:
                self.tally.there += 1
            elif self.spent.get(fixture.id, 0) > self.tournament.void_retries:
                self.tally.given_up += 1
            else:
                yield fixture

    async def play(self, report: Callable[[Tally], None], tick: float) -> Tally:
        """All that is pending, with `report` told on the way."""
        with Interrupts(self._interrupt, self.tournament.people), Workers(self.tournament.workers) as pool:
            ticker = asyncio.create_task(_tick(report, self.tally, tick))
            try:
                await self._play_all(pool)
            except asyncio.CancelledError:
                if not self.tally.stopped:
                    raise
            finally:
                ticker.cancel()
        report(self.tally)
        if self.recorder is not None:
            self.recorder.check()
        if self.abort:
            raise Aborted(self.abort)
        return self.tally

    async def _play_all(self, pool: Workers) -> None:
        """Make the agents, ask each for a move, open the store, play; unless all is played already."""
        first = next(self.pending, None)
        if first is None:
            return
        if self.tournament.people and not sys.stdin.isatty():
            raise Refused("agent 'human' needs a terminal, and standard input is none")
        self.pending = chain([first], self.pending)
        async with AsyncExitStack() as opened:
            for entry in self.tournament.agents:
                agent = entry.make()
                opened.push_async_callback(_close, agent)
                self.agents.append(agent)
            seated = zip(self.agents, self.tournament.agents, strict=True)
            asked = [agent for agent, entry in seated if not entry.human]
            probes = list(product(self.tournament.games, asked))
            at_once = self._at_once(pool)

            async def ask(pair: tuple[GameEntry, Agent]) -> None:
                await probe(self.tournament, *pair, pool, lambda: self.tally.stopped)

            await self._side_by_side(iter(probes), min(len(probes), at_once), ask)
            if self.tally.stopped:
                return
            store = self.store if isinstance(self.store, Store) else opened.enter_context(self.store())
            self.finished |= store.finished()  # another run of it may have begun
            recorder = self.recorder = opened.enter_context(Recorder(store, self.tally))
            left = max(self.tally.total - len(self.finished), 1)
            await self._side_by_side(
                self.pending, min(left, at_once), lambda fixture: self._game(fixture, recorder, pool)
            )

    async def _side_by_side(self, jobs: Iterator[T], at_once: int, work: Callable[[T], Awaitable[None]]) -> None:
        """Work on all jobs, a few at once; the first error ends them all."""

        async def worker() -> None:
            for job in jobs:
                await work(job)

        self.tasks = [asyncio.create_task(worker()) for _ in range(at_once)]
        try:
            await asyncio.gather(*self.tasks)
        finally:
            for task in self.tasks:
                task.cancel()
            await asyncio.gather(*self.tasks, return_exceptions=True)

    def _at_once(self, pool: Workers) -> int:
        """Fewer where games are timed: a search must not wait for a worker until its game is void."""
        asked = self.tournament
        if asked.people:
            return 1
        searches = asked.deadline is not None and any(agent.blocking for agent in self.agents)
        return min(asked.concurrency, pool.count) if searches else asked.concurrency

    async def _game(self, fixture: Fixture, recorder: "Recorder", pool: Workers) -> None:
        """One game until it counts, or its retries are used up."""
        for _ in range(self.spent.get(fixture.id, 0), self.tournament.void_retries + 1):
            if self.tally.stopped or self.abort:
                return
            episode = await self._attempt(fixture, pool)
            if episode.outcome == "void" and any(self.tournament.agents[at].human for at in fixture.agents):
                self.tally.stopped = True  # nobody's failure, and no attempt that is spent: the person has left
                return
            await recorder.put(fixture, episode)
            if episode.outcome != "void":
                return
            self._judge(episode)
        self.tally.given_up += 1

    async def _attempt(self, fixture: Fixture, pool: Workers) -> Episode:
        asked, entry = self.tournament, self.tournament.games[fixture.entry]
        return await play(
            entry.id,
            [self.agents[agent] for agent in fixture.agents],
            fixture.seed,
            entry.options,
            asked.referee,
            deadline=asked.deadline,
            turn_seconds=asked.turn_seconds,
            max_turns=asked.max_turns,
            pool=pool,
            group_id=fixture.block,
            match_id=fixture.id,
        )

    def _judge(self, episode: Episode) -> None:
        """Give up where the share of void attempts is past the limit."""
        tally = self.tally
        tally.voids += 1
        tally.reasons[episode.reason] += 1
        attempts = tally.voids + tally.finished
        if attempts >= _JUDGED and tally.voids > self.tournament.void_limit * attempts:
            common = tally.reasons.most_common(1)[0][0]
            share = f"{tally.voids} of {attempts} attempts were void (limit {self.tournament.void_limit:.0%})"
            self.abort = f"{share}; most often: {common[:300]}"

    def _interrupt(self, times: int) -> None:
        self.tally.stopped = True
        if times > 1:
            for task in self.tasks:
                task.cancel()


async def _close(agent: Agent) -> None:
    closed = agent.close()
    if inspect.isawaitable(closed):
        await closed


async def _tick(report: Callable[[Tally], None], tally: Tally, seconds: float) -> None:
    while True:
        report(tally)
        await asyncio.sleep(seconds)
