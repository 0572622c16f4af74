"""Plays what the schedule lists and the store does not hold: one event loop, a bounded number of games at once."""

import asyncio
import queue
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import chain
from types import FrameType
from typing import Self

import sqlalchemy.exc

from arena.agent import Agent
from arena.episode import Episode
from arena.match import play
from arena.tournaments.config import GameEntry, Tournament
from arena.tournaments.schedule import Fixture, count, fixtures, seats_of
from arena.tournaments.store import Store, StoreError
from arena.workers import Workers

__all__ = ["Aborted", "Refused", "Tally", "run"]

_WAITING = 64  # finished games that may wait for the disk
_JUDGED = 20  # attempts before the share of void ones means anything


class Refused(ValueError):
    """An agent cannot play one of the games; nothing was played."""


class Aborted(RuntimeError):
    """The run gave up: too many attempts were void. What was finished is kept."""


@dataclass
class Tally:
    """How far a run is; kept up to date while it plays."""

    total: int
    there: int = 0
    """Finished before this run began."""
    finished: int = 0
    """Finished and stored by this run."""
    forfeits: int = 0
    truncated: int = 0
    voids: int = 0
    """Void attempts."""
    given_up: int = 0
    """Games left void after all retries, in this run or before."""
    stopped: bool = False
    """Asked to end before all was played."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Why attempts were void."""

    @property
    def done(self) -> int:
        """All that need not be played any more."""
        return self.there + self.finished

    @property
    def left(self) -> int:
        """Games still to be played."""
        return self.total - self.done - self.given_up


def run(
    tournament: Tournament,
    store: Store,
    report: Callable[[Tally], None] = lambda tally: None,
    *,
    tick: float = 0.25,
    redo_void: bool = False,
) -> Tally:
    """Play all games that are not in the store yet; `report` is called every `tick` seconds and at the end.

    The first Ctrl-C lets the running games finish and starts no more; the second ends at once. Games that were void
    `void_retries + 1` times are left out, unless `redo_void`.

    Before anything is played, every agent makes the first move of every game. Raises Refused if one cannot, Aborted
    when too many attempts are void, and StoreError if the disk refuses.
    """
    return asyncio.run(_Run(tournament, store, redo_void).play(report, tick))


class _Run:
    def __init__(self, tournament: Tournament, store: Store, redo_void: bool) -> None:
        self.tournament, self.store = tournament, store
        self.finished = store.finished()
        self.spent = {} if redo_void else store.void_attempts()
        self.agents: list[Agent] = tournament.make_agents()
        self.tally = Tally(sum(count(tournament)))
        self.pending: Iterator[Fixture] = self._pending()
        self.tasks: list[asyncio.Task[None]] = []
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
        with _Interrupts(self._interrupt), _Recorder(self.store, self.tally) as recorder, self._pool() as pool:
            ticker = asyncio.create_task(_tick(report, self.tally, tick))
            try:
                self.tasks = [asyncio.create_task(self._preflight(pool))]
                await self.tasks[0]
                workers = range(self._at_once(pool))
                self.tasks = [asyncio.create_task(self._worker(recorder, pool)) for _ in workers]
                await asyncio.gather(*self.tasks)
            except asyncio.CancelledError:
                if not self.tally.stopped:
                    raise
            finally:
                pool.shutdown(wait=False)  # a search that still runs belongs to no game any more
                ticker.cancel()
                for task in self.tasks:
                    task.cancel()
                for agent in self.agents:
                    agent.close()
        report(self.tally)
        if self.abort:
            raise Aborted(self.abort)
        return self.tally

    def _pool(self) -> Workers:
        return Workers(self.tournament.workers)

    def _at_once(self, pool: Workers) -> int:
        """Fewer where answers are timed: a search must not wait for a worker on its own clock."""
        timed = self.tournament.turn_seconds is not None or self.tournament.deadline is not None
        searches = any(agent.blocking for agent in self.agents)
        return min(self.tournament.concurrency, pool.count) if timed and searches else self.tournament.concurrency

    async def _preflight(self, pool: Executor) -> None:
        """One move of every agent in every game, unless all is played already."""
        first = next(self.pending, None)
        if first is None:
            return
        self.pending = chain([first], self.pending)
        for entry in self.tournament.games:
            seats = len(seats_of(entry)[1])
            for agent in self.agents:
                await self._probe(entry, agent, seats, pool)

    async def _probe(self, entry: GameEntry, agent: Agent, seats: int, pool: Executor) -> None:
        asked = self.tournament
        for _ in range(asked.void_retries + 1):
            if self.tally.stopped:
                return
            tried = await play(
                entry.id, [agent] * seats, asked.seed, entry.options, asked.referee,
                deadline=asked.deadline, turn_seconds=asked.turn_seconds, max_turns=1, pool=pool,
            )  # fmt: skip
            if tried.outcome != "void":
                return
        raise Refused(f"agent {agent.name!r} cannot play {entry.label}: {tried.reason}")

    async def _worker(self, recorder: "_Recorder", pool: Executor) -> None:
        for fixture in self.pending:
            await self._game(fixture, recorder, pool)

    async def _game(self, fixture: Fixture, recorder: "_Recorder", pool: Executor) -> None:
        """One game until it counts, or its retries are used up."""
        for _ in range(self.spent.get(fixture.id, 0), self.tournament.void_retries + 1):
            episode = await self._attempt(fixture, pool)
            await recorder.put(fixture, episode)
            if episode.outcome != "void":
                return
            self._judge(episode)
            if self.tally.stopped or self.abort:
                return
        self.tally.given_up += 1

    async def _attempt(self, fixture: Fixture, pool: Executor) -> Episode:
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


async def _tick(report: Callable[[Tally], None], tally: Tally, seconds: float) -> None:
    while True:
        report(tally)
        await asyncio.sleep(seconds)


class _Interrupts:
    """Ctrl-C as a call in the loop, while the context lasts (in the main thread; elsewhere nothing is changed)."""

    def __init__(self, act: Callable[[int], None]) -> None:
        self.act, self.times = act, 0

    def __enter__(self) -> Self:
        self.loop = asyncio.get_running_loop()
        self.main = threading.current_thread() is threading.main_thread()
        if self.main:
            self.before = signal.signal(signal.SIGINT, self._caught)
        return self

    def __exit__(self, *_: object) -> None:
        if self.main:
            signal.signal(signal.SIGINT, self.before)

    def _caught(self, number: int, frame: FrameType | None) -> None:
        self.times += 1
        self.loop.call_soon_threadsafe(self.act, self.times)


class _Recorder:
    """A thread that stores episodes, so that no game waits for the disk; a game counts once it is stored."""

    def __init__(self, store: Store, tally: Tally) -> None:
        self.store, self.tally = store, tally
        self.queue: queue.SimpleQueue[tuple[Fixture, Episode] | None] = queue.SimpleQueue()
        self.error: Exception | None = None
        self.thread = threading.Thread(target=self._work, name="recorder")

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.queue.put(None)
        self.thread.join()
        if kind is None:
            self._check()

    async def put(self, fixture: Fixture, episode: Episode) -> None:
        """Hand over an episode; waits only while many others do."""
        self._check()
        self.queue.put((fixture, episode))
        await asyncio.sleep(0)
        while self.queue.qsize() > _WAITING:
            await asyncio.sleep(0.002)

    def _check(self) -> None:
        if self.error is not None:
            raise StoreError(f"{self.store.path} cannot be written: {self.error}") from self.error

    def _work(self) -> None:
        while (item := self.queue.get()) is not None:
            if self.error is None:
                try:
                    self._keep(*item)
                except sqlalchemy.exc.SQLAlchemyError as error:
                    self.error = error

    def _keep(self, fixture: Fixture, episode: Episode) -> None:
        if episode.outcome == "void":
            self.store.add_void(fixture, episode)
        elif self.store.add(fixture, episode):
            self.tally.finished += 1
            self.tally.forfeits += bool(episode.forfeits)
            self.tally.truncated += episode.outcome == "truncated"
