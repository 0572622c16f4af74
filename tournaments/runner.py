"""Plays what the schedule proposes and the store does not hold: one event loop, a bounded number of games at once."""

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import AsyncExitStack
from itertools import product
from typing import Any

from arena.agent import Agent
from arena.asking import reason_of
from arena.episode import Episode
from arena.match import play
from arena.tournaments.budget import Budget
from arena.tournaments.caps import Caps, caps_of
from arena.tournaments.config import GameEntry, Tournament
from arena.tournaments.dispatch import Dispatch
from arena.tournaments.interrupts import Interrupts, collected_rarely
from arena.tournaments.owners import new_owner
from arena.tournaments.preflight import probe
from arena.tournaments.recorder import Recorder
from arena.tournaments.schedule import Fixture
from arena.tournaments.stopping import Spent, Stopping
from arena.tournaments.store import Store
from arena.tournaments.supply import Supply
from arena.tournaments.tally import Aborted, Refused, Stalled, Tally
from arena.tournaments.terms import Stop
from arena.tournaments.watchdog import GAME, Watchdog, WatchedWorkers
from arena.workers import Workers

__all__ = ["Aborted", "Refused", "Stalled", "Tally", "run"]

_JUDGED = 20  # attempts before the share of void ones means anything
_GOODBYE = 2.0  # seconds for an agent to close, once the run is to end at once
_LEASE = 60.0
_LONGEST_LEASE = 1e8  # seconds: more than clocks of threads and databases take


def run(
    tournament: Tournament,
    store: Store | Callable[[], Store],
    report: Callable[[Tally], None] = lambda tally: None,
    *,
    tick: float = 0.25,
    redo_void: bool = False,
    lease: float = _LEASE,
) -> Tally:
    """Play all games that are not in the store yet; `report` is called every `tick` seconds and at the end.

    `store`: an open one, or what opens a new one once every agent has shown that it can play, so that a tournament
    that is refused leaves nothing behind.

    Several processes may run one tournament: each leases the games it plays for `lease` seconds, again and again; when
    one is killed, others take its games over. The first Ctrl-C lets the running games finish and starts no more; the
    second ends at once. Games that were void `void_retries + 1` times are left out, unless `redo_void`.

    Before anything is played, every agent prepares for every game (`Agent.prepare`) and is asked for one move in it,
    beside random ones. Raises Refused if it cannot, Aborted when too many attempts are void, Stalled when nothing has
    gone on for `Tournament.stalled` seconds, and StoreError if a game cannot be stored.

    A person (the agent `human`) plays one game at a time, is not asked beforehand, and stops the run by leaving.
    """
    if not 0 < lease <= _LONGEST_LEASE:  # not a number, too
        raise Refused(f"lease={lease}: allowed are seconds above 0, up to {_LONGEST_LEASE:.0f}")
    playing = _Run(tournament, store, redo_void, lease)
    try:
        with collected_rarely():
            return asyncio.run(playing.play(report, tick))
    except SystemExit as error:  # whose code would be told as this run's
        raise Aborted(f"an agent, or what it uses, called exit({error.code!r})") from error
    except KeyboardInterrupt:
        if playing.stalled:
            raise Stalled(playing.stalled) from None
        if not playing.tally.stopped:
            raise
        return playing.tally


class _Run:
    def __init__(self, asked: Tournament, store: Store | Callable[[], Store], redo_void: bool, lease: float) -> None:
        self.asked, self.store, self.redo_void, self.lease = asked, store, redo_void, lease
        self.tally = Tally(0)
        self.supply, self.budget = Supply(asked, self.tally), Budget(asked)
        self.stopping = Stopping(asked) if asked.stop != Stop() else None
        self.agents: list[Agent] = []
        self.names = [entry.name for entry in asked.agents]
        self.dog = Watchdog(asked.stalled, self._stall)
        self.dispatch: Dispatch | None = None
        self.recorder: Recorder | None = None
        self.main: asyncio.Task[None] | None = None
        self.hurry = False
        """It is to end at once."""
        self.abort = self.stalled = ""

    async def play(self, report: Callable[[Tally], None], tick: float) -> Tally:
        """All that is pending, with `report` told on the way."""
        with Interrupts(self._interrupt, self._held_up), self.dog:
            ticker = asyncio.create_task(self._tick(report, tick))
            self.main = asyncio.create_task(self._play_all())
            try:
                await self.main
            except asyncio.CancelledError:
                if not self.hurry:
                    raise
            finally:
                ticker.cancel()
        self._settle()
        report(self.tally)
        if self.stalled:
            raise Stalled(self.stalled)
        if self.recorder is not None:
            self.recorder.check()
        if self.abort:
            raise Aborted(self.abort)
        return self.tally

    def _settle(self) -> None:
        """What is known of the numbers only now."""
        tally, supply = self.tally, self.supply
        tally.running.clear()
        if tally.ended:
            tally.there = len(supply.finished) - (tally.finished if supply.remembers else 0)
        elif supply.dry and not supply.fixed and not (tally.stopped or self.abort or self.stalled):
            tally.total = tally.done + tally.given_up

    async def _play_all(self) -> None:
        """Make the agents, ask each for a move, open the store, play; unless all is played already."""
        async with AsyncExitStack() as opened:
            pool = opened.enter_context(WatchedWorkers(self.asked.workers, self.dog))
            opened.push_async_callback(self._ends, "ending the worker processes")
            marker, first = 0, []
            if isinstance(self.store, Store):
                marker = self._learn(self.store)
                first = await self._first()
                if not first and not self.supply.waits:
                    return
            if self.asked.people and not sys.stdin.isatty():
                raise Refused("agent 'human' needs a terminal, and standard input is none")
            self._make_agents(opened)
            caps = caps_of(self.asked, self.agents, pool.count)
            await self._ask_all(pool)
            if self.tally.stopped:
                return
            store = self.store if isinstance(self.store, Store) else opened.enter_context(self.store())
            if store is not self.store:
                marker = self._learn(store)
            self.recorder = Recorder(store, self.tally, new_owner(), self.lease)
            opened.push_async_callback(self._ends, "closing the agents")
            await opened.enter_async_context(self.recorder)
            opened.push_async_callback(self._ends, "storing what is finished")
            await self._dispatched(caps, self.recorder, pool, marker, first)

    async def _ends(self, what: str) -> None:
        """Something begins that may hang."""
        self.dog.now(what)

    def _learn(self, store: Store) -> int:
        """What the store holds; the marker after it."""
        with self.dog.doing("reading the store"):
            voids = store.void_attempts()
            if self.budget.counts:
                self.budget.base = Spent(*store.spent())
            if self.supply.remembers:
                results, marker = store.results()
                self.supply.learn((), results, voids, self.redo_void)
            else:
                marker = store.results(1 << 62)[1]
                self.supply.learn(store.finished(), (), voids, self.redo_void)
            return marker

    async def _first(self) -> list[Fixture]:
        """The first games that are to be played; [] if none is, or a stopping rule holds."""
        self.tally.ended = self._over()
        while not self.tally.ended and not self.tally.stopped and (games := self.supply.next()) is not None:
            if games:
                return games
            await asyncio.sleep(0)
        return []

    def _make_agents(self, opened: AsyncExitStack) -> None:
        for entry in self.asked.agents:
            with self.dog.doing(f"making agent {entry.name!r}"):
                agent = entry.make()
            opened.push_async_callback(self._close, agent)
            self.agents.append(agent)
            self.dog.watch(agent)

    async def _ask_all(self, pool: Workers) -> None:
        """Preflight: every agent in every game, a few at once; the first that cannot play ends it."""
        seated = zip(self.agents, self.asked.agents, strict=True)
        pairs = list(product(self.asked.games, [agent for agent, entry in seated if not entry.human]))
        timed = self.asked.deadline is not None and any(agent.blocking for agent in self.agents)
        places = asyncio.Semaphore(min(self.asked.concurrency, pool.count) if timed else self.asked.concurrency)

        async def ask(entry: GameEntry, agent: Agent) -> None:
            async with places:
                GAME.set(f"preflight in {entry.label}")
                if not self.tally.stopped:
                    with self.dog.doing(f"preflight of agent {agent.name!r} in {entry.label}"):
                        await probe(self.asked, entry, agent, pool, lambda: self.tally.stopped)

        await _all(ask(*pair) for pair in pairs)

    async def _dispatched(
        self, caps: Caps, recorder: Recorder, pool: Workers, marker: int, first: list[Fixture]
    ) -> None:
        async def game(fixture: Fixture) -> None:
            await self._game(fixture, recorder, pool)

        at_once = 1 if self.asked.people else self.asked.concurrency
        self.dispatch = Dispatch(self.supply, caps, self.budget, recorder, game, at_once, self._over)
        self.dispatch.marker = marker
        for fixture in first:
            self.dispatch.window.add(fixture)
        await self.dispatch.run()

    def _over(self) -> str:
        """The stopping rule that holds, in words; "": none."""
        if self.stopping is None:
            return ""
        reached = self.stopping.reached(self.supply.history, self.budget.spent)
        self.tally.distance = self.stopping.far
        return reached

    async def _game(self, fixture: Fixture, recorder: Recorder, pool: Workers) -> None:
        """One game until it counts, or its retries are used up."""
        if self.asked.stalled is not None:
            GAME.set(self._called(fixture))
        for _ in range(self.supply.spent.get(fixture.id, 0), self.asked.void_retries + 1):
            if self.tally.stopped or self.abort:
                return
            episode = await self._attempt(fixture, pool)
            self.dog.alive()
            if episode.outcome == "void" and any(self.asked.agents[at].human for at in fixture.agents):
                self._stop()  # nobody's failure, and no attempt that is spent: the person has left
                return
            self.budget.add(episode)
            await recorder.put(fixture, episode)
            if episode.outcome != "void":
                self.supply.played(fixture, episode)
                return
            self._judge(episode)
        self.supply.leave(fixture)
        recorder.tell(lambda store: store.release(recorder.owner, [fixture.id]))

    def _called(self, fixture: Fixture) -> str:
        seated = ", ".join([self.names[agent] for agent in fixture.agents])
        return f"game {fixture.id[:8]} ({self.asked.games[fixture.entry].label}, seed {fixture.seed}: {seated})"

    async def _attempt(self, fixture: Fixture, pool: Workers) -> Episode:
        asked, entry = self.asked, self.asked.games[fixture.entry]
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
        if attempts >= _JUDGED and tally.voids > self.asked.void_limit * attempts:
            common = tally.reasons.most_common(1)[0][0]
            share = f"{tally.voids} of {attempts} attempts were void (limit {self.asked.void_limit:.0%})"
            self.abort = f"{share}; most often: {common[:300]}"
            self._halt()

    def _held_up(self) -> bool:
        """Whether the loop may be held up: by a line of input that it waits for, or as the watchdog has found."""
        return self.asked.people or self.dog.biting

    def _interrupt(self, times: int) -> None:
        self._stop()
        if times > 1:
            self._end_now()

    def _stop(self) -> None:
        self.tally.stopped = True
        self._halt()

    def _halt(self) -> None:
        if self.dispatch is not None:
            self.dispatch.halt()

    def _stall(self, what: str) -> None:
        self.stalled = what
        self._end_now()

    def _end_now(self) -> None:
        self.hurry = True
        if self.main is not None:
            self.main.cancel()

    async def _close(self, agent: Agent) -> None:
        """Close it; one that fails to is told of once all are closed: it takes nothing from what was played."""
        with self.dog.doing(f"closing agent {agent.name!r}"):
            try:
                if inspect.isawaitable(closed := agent.close()):
                    await self._closed(closed)
            except Exception as error:  # noqa: BLE001 - whatever it is, the other agents are still to be closed
                self.abort = self.abort or f"agent {agent.name!r} failed to close: {reason_of(error)}"

    async def _closed(self, closed: Awaitable[None]) -> None:
        """Wait until it is, not for long if the run is to end at once."""
        try:
            async with asyncio.timeout(_GOODBYE if self.hurry else None):
                await closed
        except TimeoutError:
            if not self.hurry:
                raise

    async def _tick(self, report: Callable[[Tally], None], seconds: float) -> None:
        while True:
            if self.tally.stopped:  # `report` may ask for it
                self._halt()
            if self.dispatch is not None:
                self.tally.running = self.dispatch.seats(self.names)
                self.dog.patient = self.tally.waiting
            report(self.tally)
            await asyncio.sleep(seconds)


async def _all(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do them at the same time; the first error ends them all."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
