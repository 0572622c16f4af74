"""The match loop, the only one there is: one episode between agents, thousands at once in one process."""

import asyncio
import os
import time
from collections.abc import Awaitable, Mapping, Sequence
from concurrent.futures import Executor
from functools import lru_cache
from inspect import iscoroutinefunction
from platform import python_version
from random import Random
from types import CoroutineType
from typing import Any

from arena.agent import Agent, Reply, View
from arena.deal import Deal, deal_of
from arena.episode import Attempt, Episode, Outcome, Seat, Turn, link
from arena.game import Action, Game, IllegalAction, Player
from arena.referee import Reading, Referee
from arena.registry import id_of, make_agent
from arena.text import clean, show
from arena.version import __version__

__all__ = ["VERSIONS", "HouseAgent", "play", "play_sync"]

VERSIONS = {"arena": __version__, "python": python_version()}
_TIMED_OUT = Reply("", truncated=True)
_REFEREE = Referee()
_clock = time.perf_counter


class HouseAgent(Agent):
    """Holds a seat of the house: plays the game's `fallback`, else a sample."""

    name = "house"

    def act(self, view: View) -> Reply:
        """See `Agent.act`."""
        action = view.fallback()
        return Reply(view.sample_action() if action is None else action)


async def play(
    game: str | type[Game],
    agents: Sequence[str | Agent],
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    referee: Referee | None = None,
    *,
    deadline: float | None = None,
    turn_seconds: float | None = None,
    max_turns: int | None = None,
    pool: Executor | None = None,
    group_id: str = "",
    match_id: str = "",
) -> Episode:
    """Play one match and record it.

    `agents`: one for each seat (or for each seat that is not the house's), objects or spec strings. `deadline`:
    seconds for the whole episode; then it is void. `turn_seconds`: for one answer; then a local agent has
    forfeited, and a served one makes the episode void. `max_turns`: plies; then the episode is truncated.
    Blocking agents are asked in `pool` (a process pool), without one in a thread.

    An agent that raises makes the episode void, with the reason in it. Raises ValueError for bad arguments only.
    """
    table = _table(game, [make_agent(agent) for agent in agents], seed, options, referee)
    table.group_id, table.match_id = group_id, match_id
    table.turn_seconds, table.pool, table.in_loop = turn_seconds, pool, True
    if deadline is None:
        return await table.play(max_turns)
    try:
        async with asyncio.timeout(deadline):
            return await table.play(max_turns)
    except TimeoutError:
        return table.episode("void", f"deadline of {deadline} s passed at ply {table.ply}")


def play_sync(
    game: str | type[Game],
    agents: Sequence[str | Agent],
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    referee: Referee | None = None,
    *,
    deadline: float | None = None,
    turn_seconds: float | None = None,
    max_turns: int | None = None,
) -> Episode:
    """Play one match from plain code; the arguments are those of `play`.

    Plain agents are asked directly, without an event loop; `async` agents and time limits bring one.

    >>> play_sync("TicTacToe-v0", ["first", "first"]).returns
    (1.0, -1.0)
    """
    held = [make_agent(agent) for agent in agents]
    timed = deadline is not None or turn_seconds is not None
    if timed or True in [_waits(type(agent)) for agent in held]:
        limits = {"deadline": deadline, "turn_seconds": turn_seconds, "max_turns": max_turns}
        return asyncio.run(play(game, held, seed, options, referee, **limits))  # type: ignore[arg-type]  # by name
    coroutine = _table(game, held, seed, options, referee).play(max_turns)
    try:
        coroutine.send(None)
    except StopIteration as stop:
        episode: Episode = stop.value
        return episode
    coroutine.close()
    raise TypeError("an agent's act() returned an awaitable but is not `async def`; await arena.match.play instead")


def _table(
    game: str | type[Game],
    agents: list[Agent],
    seed: int,
    options: Mapping[str, Any] | None,
    referee: Referee | None,
) -> "_Table":
    if type(seed) is not int or not 0 <= seed < 1 << 64:
        raise ValueError(f"seed={seed!r}: allowed are 0 to 2**64 - 1")
    given = dict(options or {})
    deal = deal_of(game, given)
    state = deal.first(seed)
    return _Table(id_of(game), deal, state, _seated(state, agents), seed, given, referee or _REFEREE)


def _seated(state: Game, agents: list[Agent]) -> list[Agent]:
    """An agent a seat; the house's seats are filled where agents were given for the others only."""
    if len(agents) == state.players:
        return agents
    if state.house and len(agents) == state.players - len(state.house):
        free = iter(agents)
        return [HouseAgent() if p in state.house else next(free) for p in range(state.players)]
    raise ValueError(f"{type(state).__name__} has {state.players} seats, {len(agents)} agents were given")


class _Table:
    """One match in progress."""

    __slots__ = (
        "agents", "chain", "deal", "earned", "env", "forfeits", "group_id", "in_loop", "last", "match_id", "memories",
        "options", "ply", "pool", "referee", "seed", "seen", "spare", "started", "state", "turn_seconds",
        "turns",
    )  # fmt: skip

    def __init__(
        self,
        env: str,
        deal: Deal,
        state: Game,
        agents: list[Agent],
        seed: int,
        options: dict[str, Any],
        referee: Referee,
    ) -> None:
        seats = len(agents)
        self.env, self.deal, self.state, self.agents, self.seed = env, deal, state, agents, seed
        self.options, self.referee = options, referee
        self.turns: list[Turn] = []
        self.last: list[Turn | None] = [None] * seats
        self.memories: list[dict[str, Any]] = [{} for _ in range(seats)]
        self.seen = [0] * seats
        self.forfeits: list[Player] = []
        self.spare: Random | None = None
        self.earned = state.returns()
        self.ply, self.chain, self.started = 0, "", time.time()
        self.turn_seconds: float | None = None
        self.pool: Executor | None = None
        self.in_loop = False
        self.group_id = self.match_id = ""

    async def play(self, max_turns: int | None) -> Episode:
        """Until it is over, cut, or void."""
        try:
            while acting := self.state.to_act():
                if self.ply == max_turns:
                    return self.episode("truncated", f"{max_turns} plies were played")
                if len(acting) == 1:
                    turns = [await self._turn(acting[0])]
                else:
                    turns = await self._turns(acting)
                actions = self._record(turns)
                if self.forfeits and self.referee.ends(self.state):
                    break
                self.state = await self._live_apply(actions) if self.deal.live else self.state.apply(actions)
                returns = self.state.returns()
                if returns != self.earned:
                    self._pay(returns)
                self.ply += 1
            if self.forfeits:
                self._pay(self.referee.settle(self.state, self.forfeits))
            return self.episode("terminated", "")
        except Exception as error:  # noqa: BLE001 - whatever fails here is not the player's fault: void, and said
            return self.episode("void", _reason(error))
        finally:
            if self.deal.live:
                self.state.close()  # type: ignore[attr-defined]  # live: it is a LiveGame

    async def _turns(self, acting: tuple[Player, ...]) -> list[Turn]:
        """The turns of seats that act at once; those that may wait are asked at once too."""
        if not self.in_loop or not any(agent.blocking or _waits(type(agent)) for agent in self.agents):
            return [await self._turn(player) for player in acting]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._turn(player)) for player in acting]
        return [task.result() for task in tasks]

    def _record(self, turns: list[Turn]) -> dict[Player, Action]:
        """Link the turns of one ply into the chain; their actions."""
        actions = {}
        for turn in turns:
            shown = _joined(turn.events, turn.observation) if turn.events else turn.observation
            turn.hash = self.chain = link(self.chain, turn.seat, shown, turn.action)
            self.last[turn.seat] = turn
            if turn.action is not None:
                actions[turn.seat] = turn.action
        self.turns += turns
        return actions

    async def _turn(self, player: Player) -> Turn:
        state = self.state
        events = self._news(player) if self.deal.talks else ()
        observation, legal = state.observation(player), state.legal_actions(player)
        count = None if legal is None else len(legal)
        if player in self.forfeits:
            return Turn(self.ply, player, observation, self._substitute(player), (), count, events)
        shown = legal if self.referee.show_legal else None
        view = View(player, observation, shown, self.memories[player], "", self.ply, state, self.seed)
        start = _clock()
        reply = self._ask(view)
        if type(reply) is CoroutineType and self.turn_seconds is None:
            reply = _checked(await reply, self.agents[player])
        elif type(reply) is not Reply:
            reply = await self._waited(reply, view)
        took = _clock() - start
        text = reply.text
        if legal is not None and text in legal and not reply.truncated:
            thought = reply.reasoning and clean(reply.reasoning)
            attempts: tuple[Attempt, ...] = (Attempt(text, "legal", "", thought, took, reply.calls),)
            return Turn(self.ply, player, observation, text, attempts, count, events)
        action, attempts = await self._judged(view, reply, took)
        if action is None:
            action = self._wrong(player)
        return Turn(self.ply, player, observation, action, attempts, count, events)

    def _ask(self, view: View) -> Reply | Awaitable[Reply]:
        agent = self.agents[view.player]
        return self._in_worker(agent, view) if agent.blocking and self.in_loop else agent.act(view)

    async def _judged(self, view: View, reply: Reply, took: float) -> tuple[Action | None, tuple[Attempt, ...]]:
        """Read a reply; ask again while it is wrong and retries are left. No action: they are used up."""
        attempts: tuple[Attempt, ...] = ()
        for left in range(self.referee.retries, -1, -1):
            reading = self._read(view.player, reply)
            raw, thought = clean(reply.text), clean(reply.reasoning)
            attempts = (*attempts, Attempt(raw, reading.verdict, reading.reason, thought, took, reply.calls))
            if reading.action is not None or not left:
                return reading.action, attempts
            view.note = self.referee.note(self.state, view.player, reading)
            start, asked = _clock(), self._ask(view)
            reply = asked if isinstance(asked, Reply) else await self._waited(asked, view)
            took = _clock() - start
        raise AssertionError("unreachable: the last round returns")

    def _read(self, player: Player, reply: Reply) -> Reading:
        if reply is _TIMED_OUT:
            return Reading("truncated", None, f"no answer within {self.turn_seconds} s")
        if reply.truncated:
            return Reading("truncated", None, "the reply was cut off before it ended")
        return self.referee.read(self.state, player, reply.text)

    async def _waited(self, reply: Reply | Awaitable[Reply], view: View) -> Reply:
        """The awaited reply. Out of time: a local agent has given a wrong answer, a served one raises."""
        agent = self.agents[view.player]
        if not isinstance(reply, Awaitable):
            raise TypeError(f"agent {agent.name!r} must return a Reply, got {type(reply).__name__}")
        try:
            if self.turn_seconds is None:
                return _checked(await reply, agent)
            async with asyncio.timeout(self.turn_seconds) as timer:
                return _checked(await reply, agent)
        except TimeoutError:
            if agent.served or self.turn_seconds is None or not timer.expired():
                raise
            return _TIMED_OUT

    async def _in_worker(self, agent: Agent, view: View) -> Reply:
        """In the pool, where memory (the generator in it too) travels there and back; else in a thread."""
        if self.pool is None:
            answer = await asyncio.to_thread(agent.act, view)
            return answer if isinstance(answer, Reply) else await answer
        view.rng  # noqa: B018 - made here, so that the stream goes on from turn to turn
        reply, memory = await asyncio.get_running_loop().run_in_executor(self.pool, _act, agent, view)
        view.memory.update(memory)
        return reply

    def _wrong(self, player: Player) -> Action | None:
        """What is played after the last wrong try; None: the game ends here."""
        if self.referee.illegal == "forfeit":
            self.forfeits.append(player)
            if self.referee.ends(self.state):
                return None
        return self._substitute(player)

    def _substitute(self, player: Player) -> Action:
        if self.spare is None:
            self.spare = Random((2 << 64) + self.seed)
        return self.referee.substitute(self.state, player, self.spare)

    def _news(self, player: Player) -> tuple[str, ...]:
        events = self.state.events(player)
        since, self.seen[player] = self.seen[player], len(events)
        return tuple([show(event) for event in events[since:]]) if since < len(events) else ()

    async def _live_apply(self, actions: dict[Player, Action]) -> Game:
        return await asyncio.to_thread(self.state.apply, actions) if self.in_loop else self.state.apply(actions)

    def _pay(self, returns: tuple[float, ...]) -> None:
        """Credit what changed to each seat's last turn."""
        for turn, now, before in zip(self.last, returns, self.earned, strict=True):
            if turn is not None:
                turn.reward += now - before
        self.earned = returns

    def episode(self, outcome: Outcome, reason: str) -> Episode:
        """The record as it stands."""
        state, seats = self.state, range(self.state.players)
        void = outcome == "void"
        scores = tuple([dict(state.scores(p)) for p in seats]) if self.deal.scored else ()
        final = [_joined(self._news(p), state.observation(p)) for p in seats] if not void else []
        return Episode(
            id=os.urandom(8).hex(),
            env=self.env,
            seed=self.seed,
            outcome=outcome,
            returns=None if void else self.earned,
            seats=self._seats(),
            turns=self.turns,
            options=self.options,
            referee=self.referee,
            reason=reason,
            forfeits=tuple(sorted(self.forfeits)) if self.forfeits else (),
            scores=scores if any(scores) else (),
            final=tuple(final),
            started=self.started,
            ended=time.time(),
            group_id=self.group_id,
            match_id=self.match_id,
            versions=VERSIONS,
        )

    def _seats(self) -> tuple[Seat, ...]:
        state, rules = self.state, self.deal.rules
        return tuple([Seat(agent.name, state.role(p), rules[p]) for p, agent in enumerate(self.agents)])


def _checked(reply: object, agent: Agent) -> Reply:
    if not isinstance(reply, Reply):
        raise TypeError(f"agent {agent.name!r} must return a Reply, got {type(reply).__name__}")
    return reply


@lru_cache(maxsize=1024)
def _waits(agent: type[Agent]) -> bool:
    return iscoroutinefunction(agent.act)


def _joined(events: tuple[str, ...], observation: str) -> str:
    return "\n".join((*events, observation))


def _act(agent: Agent, view: View) -> tuple[Reply, dict[str, Any]]:
    """In a worker process: the answer, and the seat's memory as it is now."""
    reply = agent.act(view)
    if not isinstance(reply, Reply):
        raise TypeError(f"blocking agent {agent.name!r} must return a Reply at once")
    return reply, view.memory


def _reason(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return _reason(error.exceptions[0])
    if isinstance(error, IllegalAction):
        return f"the game refused an action it had listed: {error}"
    return f"{type(error).__name__}: {error}"[:2000]
