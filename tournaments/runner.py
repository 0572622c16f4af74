"""Plays what the schedule lists and the store does not hold: one event loop, a bounded number of games at once."""

import asyncio
import gc
import inspect
import queue
import signal
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain, product
from types import FrameType
from typing import Self, TypeVar

import msgspec

from arena.agent import Agent, AgentError
from arena.episode import Episode
from arena.match import play
from arena.registry import make_game
from arena.tournaments.config import GameEntry, Tournament
from arena.tournaments.schedule import Fixture, count, fixtures, seats_of
from arena.tournaments.store import Store, StoreError
from arena.workers import Workers

__all__ = ["Aborted", "Refused", "Tally", "run"]

T = TypeVar("T")

_WAITING = 64  # finished games that may wait for the disk
_COLLECTED = 100_000  # objects more than before, until the garbage collector looks at the young ones
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
    """Finished before this run began, or by another run beside it."""
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
        with _collected_rarely():
            return asyncio.run(playing.play(report, tick))
    except KeyboardInterrupt:
        if not playing.tally.stopped:
            raise
        return playing.tally


@contextmanager
def _collected_rarely() -> Iterator[None]:
    """While a thousand games wait for models, the collector walks all they hold again and again: a fifth of the time.

    What a game leaves behind goes by reference counts; cycles wait a little longer.
    """
    before = gc.get_threshold()
    if 0 < before[0] < _COLLECTED:
        gc.set_threshold(_COLLECTED, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _Run:
    def __init__(self, tournament: Tournament, store: Store | Callable[[], Store], redo_void: bool) -> None:
        self.tournament, self.store = tournament, store
        self.finished = store.finished() if isinstance(store, Store) else set()
        self.spent = store.void_attempts() if isinstance(store, Store) and not redo_void else {}
        self.agents: list[Agent] = []
        self.tally = Tally(sum(count(tournament)))
        self.pending: Iterator[Fixture] = self._pending()
        self.tasks: list[asyncio.Task[None]] = []
        self.recorder: _Recorder | None = None
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
        with _Interrupts(self._interrupt, self.tournament.people), Workers(self.tournament.workers) as pool:
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
            await self._side_by_side(
                iter(probes), min(len(probes), at_once), lambda probe: self._probe(probe[0], probe[1], pool)
            )
            if self.tally.stopped:
                return
            store = self.store if isinstance(self.store, Store) else opened.enter_context(self.store())
            self.finished |= store.finished()  # another run of it may have begun
            recorder = self.recorder = opened.enter_context(_Recorder(store, self.tally))
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

    async def _probe(self, entry: GameEntry, agent: Agent, pool: Workers) -> None:
        """One move of one agent in one game; the other seats play at random, and cost nothing."""
        asked = self.tournament
        first = make_game(entry.id, asked.seed, entry.options)
        try:
            if (ready := agent.prepare(first, asked.referee)) is not None:
                await ready
        except (ValueError, AgentError) as error:
            raise Refused(f"agent {agent.name!r} cannot play {entry.label}: {error}") from error
        free = seats_of(entry)[1]
        seated: list[str | Agent] = ["random"] * len(free)
        acting = [p for p in first.to_act() if p in free]
        seated[free.index(acting[0]) if acting else 0] = agent
        for _ in range(asked.void_retries + 1):
            if self.tally.stopped:
                return
            tried = await play(
                entry.id, seated, asked.seed, entry.options, msgspec.structs.replace(asked.referee, retries=0),
                deadline=asked.deadline, turn_seconds=asked.turn_seconds, max_turns=1, pool=pool,
            )  # fmt: skip
            if tried.outcome != "void" and not _cut(tried):
                return
        raise Refused(f"agent {agent.name!r} cannot play {entry.label}: {tried.reason}")

    async def _game(self, fixture: Fixture, recorder: "_Recorder", pool: Workers) -> None:
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


def _cut(episode: Episode) -> bool:
    """Whether the agent's reply ended the game by nobody's fault: its context is too small, or an abort."""
    return episode.outcome == "truncated" and any(turn.action is None for turn in episode.turns)


async def _close(agent: Agent) -> None:
    closed = agent.close()
    if inspect.isawaitable(closed):
        await closed


async def _tick(report: Callable[[Tally], None], tally: Tally, seconds: float) -> None:
    while True:
        report(tally)
        await asyncio.sleep(seconds)


class _Interrupts:
    """Ctrl-C as a call in the loop, while the context lasts (in the main thread; elsewhere nothing is changed)."""

    def __init__(self, act: Callable[[int], None], at_once: bool) -> None:
        """`at_once`: interrupt what runs, too: a loop that waits for a line of input would not hear of it."""
        self.act, self.at_once, self.times = act, at_once, 0

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
        if self.at_once:
            self.act(1)
            raise KeyboardInterrupt
        self.loop.call_soon_threadsafe(self.act, self.times)


class _Recorder:
    """A thread that stores episodes, so that no game waits for the disk; a game counts once it is stored."""

    def __init__(self, store: Store, tally: Tally) -> None:
        self.store, self.tally = store, tally
        self.queue: queue.SimpleQueue[tuple[Fixture, Episode] | None] = queue.SimpleQueue()
        self.error: Exception | None = None
        self.looking = asyncio.Lock()
        self.thread = threading.Thread(target=self._work, name="recorder")

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.queue.put(None)
        self.thread.join()
        if kind is None:
            self.check()

    async def put(self, fixture: Fixture, episode: Episode) -> None:
        """Hand over an episode; waits only while many others do. Raises StoreError once one could not be kept."""
        self.check()
        self.queue.put((fixture, episode))
        await asyncio.sleep(0)
        if self.queue.qsize() > _WAITING:
            async with self.looking:  # one looks for all: a thousand that do would leave the thread no time
                await self._until_few_wait()

    async def _until_few_wait(self) -> None:
        while self.queue.qsize() > _WAITING:
            self.check()
            if not self.thread.is_alive():
                raise StoreError(f"{self.store.path} is not written any more: its thread has ended")
            await asyncio.sleep(0.002)

    def check(self) -> None:
        """Raise StoreError once an episode could not be kept."""
        if self.error is not None:
            said = f"{type(self.error).__name__}: {self.error}"
            raise StoreError(f"{self.store.path} cannot be written: {said[:500]}") from self.error

    def _work(self) -> None:
        while (item := self.queue.get()) is not None:
            if self.error is None:
                try:
                    self._keep(*item)
                except Exception as error:  # noqa: BLE001 - whatever it is, the run must not go on without a record
                    self.error = error

    def _keep(self, fixture: Fixture, episode: Episode) -> None:
        if episode.outcome == "void":
            self.store.add_void(fixture, episode)
        elif self.store.add(fixture, episode):
            self.tally.finished += 1
            self.tally.forfeits += bool(episode.forfeits)
            self.tally.truncated += episode.outcome == "truncated"
        else:
            self.tally.there += 1  # another run of the same tournament was quicker
