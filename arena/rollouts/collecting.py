"""Collecting: episodes in groups of one seed and seating, as trainers want them; thousands at once, and resumable."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from hashlib import blake2b
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

import msgspec

from arena.agent import Agent
from arena.asking import check_limits, no_loop_yet
from arena.deal import deal_of
from arena.episode import Episode
from arena.game import Game
from arena.match import play
from arena.referee import Referee
from arena.registry import id_of, make_agent
from arena.rollouts.kept import Kept
from arena.rollouts.progress import Following, Progress, following

if TYPE_CHECKING:
    from arena.workers import Workers

__all__ = ["Group", "collect", "collect_sync"]


class Group(msgspec.Struct, frozen=True):
    """Samples of one deal and one seating: what may be compared with one another."""

    key: str
    """Of game, options, referee, seed, who sits where, `max_turns` and `turn_seconds`: its episodes' `group_id`, in
    every run."""
    number: int
    """Its place in the order of seeds and rotations; groups come as they are complete."""
    seed: int
    rotation: int
    """Agent i sits at seat (i + rotation) modulo their number; 0: as they were given."""
    episodes: list[Episode]
    """Terminated and truncated, in the order of their `sample`."""
    void: list[Episode] = []
    """The last try of each sample that was void every time; its `reason` says why."""


async def collect(
    game: str | type[Game],
    agents: Sequence[str | Agent],
    seeds: Iterable[SupportsIndex],
    n_per_seed: int = 1,
    *,
    options: Mapping[str, Any] | None = None,
    referee: Referee | None = None,
    rotate: bool = False,
    out: str | Path | None = None,
    concurrency: int = 1024,
    progress: Following | bool | None = None,
    deadline: float | None = None,
    turn_seconds: float | None = None,
    max_turns: int | None = None,
    pool: "Workers | None" = None,
    void_retries: int = 2,
) -> AsyncGenerator[Group, None]:
    """`n_per_seed` episodes of every seed (samples 0, 1, ...: one deal, other draws of the agents), group by group.

    `agents`: one for each seat that is not the house's; each is made once and serves all matches. `seeds`: integers
    (NumPy's too), all different, without end if need be; a list is checked before anything is played. `rotate`: every
    rotation of the seats that seats them in another way is a group of its own. `concurrency`: matches at once; no more
    than twice as many, and one group, are played or complete without having been taken, so that memory is bounded and
    a slow reader slows play. `out`: a `.jsonl` file to which every episode is appended once it is over; what of this
    collection is there already is checked (`validate`) and given from there, not played again, so that a run that was
    killed goes on (use a file for each step of training: a file does not know what an agent has learned meanwhile).
    `void_retries`: how often a void match is played again before `Group.void` tells it; it is played anew in a later
    run. `progress`: called after each episode; True shows a bar. The other arguments are those of `arena.match.play`.

    Agents that need it are tried first (`Agent.prepare`). Nothing is left running when the iterator is closed or its
    task cancelled (leave a loop over it early within `contextlib.aclosing`). Raises ValueError for bad arguments,
    AgentError for an agent that cannot play at all, EpisodeError for a line of `out` that does not hold.
    """
    counts = {"n_per_seed": (n_per_seed, 1), "concurrency": (concurrency, 1), "void_retries": (void_retries, 0)}
    for name, (number, low) in counts.items():
        if type(number) is not int or number < low:
            raise ValueError(f"{name}={number!r}: allowed are numbers from {low}")
    check_limits(deadline, turn_seconds, max_turns)
    numbers = _numbers(seeds)
    how = {"deadline": deadline, "turn_seconds": turn_seconds, "max_turns": max_turns, "pool": pool}
    made: dict[str, Agent] = {}
    file: Kept | None = None
    try:
        seated = [_made(agent, made) for agent in agents]
        plan = _Plan(game, options, referee, seated, n_per_seed, how, rotate=rotate)
        file = Kept(out) if out is not None else None
        with following(progress) as told:
            await plan.prepare()
            run = _Run(plan, numbers, file, concurrency, void_retries, told)
            run.told = Progress(total=len(seeds) * plan.per_seed if isinstance(seeds, Sequence) else None)
            async with aclosing(run.groups()) as groups:
                async for group in groups:
                    yield group
    finally:
        if file is not None:
            file.close()
        for agent in made.values():
            if (closed := agent.close()) is not None:
                await closed


def collect_sync(
    game: str | type[Game],
    agents: Sequence[str | Agent],
    seeds: Iterable[SupportsIndex],
    n_per_seed: int = 1,
    **how: Any,
) -> list[Group]:
    """All groups of `collect`, whose arguments these are, from plain code and in the order of seeds and rotations.

    >>> groups = collect_sync("TicTacToe-v0", ["random", "first"], range(2), 3, rotate=True)
    >>> [(group.seed, group.rotation, len(group.episodes)) for group in groups]
    [(0, 0, 3), (0, 1, 3), (1, 0, 3), (1, 1, 3)]
    """
    no_loop_yet()

    async def all_of_them() -> list[Group]:
        async with aclosing(collect(game, agents, seeds, n_per_seed, **how)) as groups:
            return [group async for group in groups]

    return sorted(asyncio.run(all_of_them()), key=lambda group: group.number)


def _numbers(seeds: Iterable[SupportsIndex]) -> Iterator[int]:
    """The seeds as plain numbers. Raises ValueError for what is none or comes twice: of a list at once, else there."""
    numbers = _different(seeds)
    return iter(list(numbers)) if isinstance(seeds, Sequence) and not isinstance(seeds, range) else numbers


def _different(seeds: Iterable[SupportsIndex]) -> Iterator[int]:
    there = set[int]()
    for given in seeds:
        try:
            seed = -1 if isinstance(given, bool) else index(given)
        except TypeError:
            seed = -1
        if not 0 <= seed < 1 << 64:
            raise ValueError(f"seed={given!r}: allowed are 0 to 2**64 - 1")
        if seed in there:
            raise ValueError(f"seed={seed} is given twice: allowed are different ones (n_per_seed= plays one again)")
        there.add(seed)
        yield seed


def _made(agent: str | Agent, made: dict[str, Agent]) -> Agent:
    """The agent of a spec: one for all seats that name it."""
    if isinstance(agent, Agent):
        return agent
    if agent not in made:
        made[agent] = make_agent(agent)
    return made[agent]


class _Plan:
    """Which matches there are."""

    def __init__(
        self,
        game: str | type[Game],
        options: Mapping[str, Any] | None,
        referee: Referee | None,
        agents: Sequence[Agent],
        samples: int,
        how: Mapping[str, Any],
        *,
        rotate: bool,
    ) -> None:
        """`how`: the other arguments of `arena.match.play`."""
        self.game, self.options, self.referee, self.samples = game, options, referee or Referee(), samples
        self.how = how
        self.first = deal_of(game, options or {}).template
        count = len(agents)
        free = self.first.players - len(self.first.house)
        if count not in (self.first.players, free):
            raise ValueError(f"{id_of(game)} has {free} seats, {count} agents were given")
        seatings = [[agents[(seat - by) % count] for seat in range(count)] for by in range(count if rotate else 1)]
        distinct = {tuple(map(id, seating)): by for by, seating in reversed(list(enumerate(seatings)))}
        self.seatings = [(by, seatings[by]) for by in sorted(distinct.values())]
        self.per_seed = len(self.seatings) * samples

    async def prepare(self) -> None:
        """Have every agent show that it can play."""
        for agent in {id(agent): agent for _, seating in self.seatings for agent in seating}.values():
            if (waiting := agent.prepare(self.first, self.referee)) is not None:
                await waiting

    def key(self, seed: int, rotation: int, seating: Sequence[Agent]) -> str:
        """16 hexadecimal digits, the same in every run."""
        what = (id_of(self.game), self.options or {}, self.referee, seed, rotation, [a.name for a in seating])
        limits = self.limits()  # none: the key is that of files that were written before limits were in it
        told = msgspec.json.encode((*what, limits) if limits else what, order="deterministic")
        return blake2b(told, digest_size=8).hexdigest()

    def limits(self) -> dict[str, float]:
        """Those that change what is recorded; past a deadline a match is void, and none of these is kept."""
        found = {name: self.how[name] for name in ("max_turns", "turn_seconds") if self.how[name] is not None}
        return {name: float(limit) for name, limit in found.items()}  # 2 and 2.0 are one

    def groups(self, seeds: Iterator[int]) -> "Iterator[_Open]":
        """One after another, none held."""
        number = 0
        for seed in seeds:
            for rotation, seating in self.seatings:
                key = self.key(seed, rotation, seating)
                yield _Open(key, number, seed, rotation, seating, [None] * self.samples)
                number += 1


class _Open(NamedTuple):
    """A group that is not complete."""

    key: str
    number: int
    seed: int
    rotation: int
    seating: list[Agent]
    found: list[Episode | None]

    def closed(self) -> Group | None:
        """The group, once all its samples are there."""
        found = [episode for episode in self.found if episode is not None]
        if len(found) < len(self.found):
            return None
        void = [episode for episode in found if episode.outcome == "void"]
        sound = [episode for episode in found if episode.outcome != "void"]
        return Group(self.key, self.number, self.seed, self.rotation, sound, void)


class _Run:
    """One collection on its way: workers take the next match each, and put complete groups where they are taken."""

    def __init__(
        self,
        plan: _Plan,
        seeds: Iterator[int],
        file: Kept | None,
        workers: int,
        retries: int,
        follow: Following | None,
    ) -> None:
        self.plan, self.file, self.workers, self.retries, self.follow = plan, file, workers, retries, follow
        self.jobs = ((group, sample) for group in plan.groups(seeds) for sample in range(plan.samples))
        self.room = asyncio.Semaphore(2 * workers + plan.samples)
        self.ready: asyncio.Queue[Group | None] = asyncio.Queue()
        self.told = Progress()

    async def groups(self) -> AsyncGenerator[Group, None]:
        """As they are complete."""
        working = asyncio.create_task(self._work_all())
        try:
            while (group := await self.ready.get()) is not None:
                yield group
                for _ in range(self.plan.samples):
                    self.room.release()
            await working
        finally:
            working.cancel()
            await asyncio.wait([working])
            _ = working.cancelled() or working.exception()  # it has been raised, or nobody waits for it

    async def _work_all(self) -> None:
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(self.workers):
                    workers.create_task(self._work())
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None
        finally:
            self.ready.put_nowait(None)

    async def _work(self) -> None:
        while True:
            await self.room.acquire()
            job = next(self.jobs, None)
            if job is None:
                self.room.release()
                return
            opened, sample = job
            kept = self.file.get(opened.key, sample) if self.file is not None else None
            self._done(opened, sample, kept or await self._played(opened, sample), kept=kept is not None)
            await asyncio.sleep(0)  # plain agents wait for nothing: others get their turn, and Ctrl-C is heard

    async def _played(self, opened: _Open, sample: int) -> Episode:
        plan = self.plan
        for left in range(self.retries, -1, -1):
            episode = await play(
                plan.game,
                opened.seating,
                opened.seed,
                plan.options,
                plan.referee,
                group_id=opened.key,
                sample=sample,
                **plan.how,
            )
            if episode.outcome != "void" or not left:
                break
            self.told = self.told._replace(again=self.told.again + 1)
        if self.file is not None:
            self.file.add(episode)
        return episode

    def _done(self, opened: _Open, sample: int, episode: Episode, *, kept: bool) -> None:
        opened.found[sample] = episode
        group = opened.closed()
        if group is not None:
            self.ready.put_nowait(group)
        if self.follow is not None:
            now, void = self.told, episode.outcome == "void"
            counted = (now.episodes + 1, now.groups + (group is not None), now.void + void, now.again, now.kept + kept)
            self.told = Progress(*counted, now.total)
            self.follow(self.told)
