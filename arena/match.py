"""The match loop, the only one there is: one episode between agents, thousands at once in one process."""

import asyncio
import os
import time
from collections.abc import Awaitable, Mapping, Sequence
from functools import lru_cache
from types import CoroutineType
from typing import TYPE_CHECKING, Any

import msgspec

from arena.agent import NO_INFO, Agent, AgentInfo, HouseAgent, Reply, View, cleaned
from arena.asking import (
    TIMED_OUT,
    Answer,
    act,
    cancelled,
    check_limits,
    checked,
    close_made,
    in_worker,
    no_loop_yet,
    prepared,
    reason_of,
    waits,
    within,
)
from arena.deal import Deal, deal_of
from arena.episode import Attempt, Episode, Outcome, Seat, Turn, joined, link
from arena.game import Action, Game, LiveGame, Player
from arena.penalty import Penalties
from arena.referee import Reading, Referee
from arena.registry import id_of, make_agent
from arena.text import clean, show
from arena.threads import in_thread, live_pool

if TYPE_CHECKING:
    from arena.workers import Call, Workers

__all__ = ["play", "play_sync"]

_LEGAL = Reading("legal")
_REFEREE = Referee()
_clock = time.perf_counter


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
    pool: "Workers | None" = None,
    group_id: str = "",
    match_id: str = "",
) -> Episode:
    """Play one match and record it.

    `agents`: one for each seat (or for each seat that is not the house's), objects or spec strings. `deadline`:
    seconds for the whole episode; then it is void. `turn_seconds`: for one answer; then a local agent has
    forfeited, and a served one makes the episode void. `max_turns`: plies; then the episode is truncated.
    Blocking agents are asked in `pool` (`arena.workers.Workers`), without one in a thread. Agents made here from spec
    strings are closed at the end.

    An agent that raises makes the episode void, with the reason in it. Raises ValueError for bad arguments only.
    """
    check_limits(deadline, turn_seconds, max_turns)
    held = [make_agent(agent) for agent in agents]
    try:
        match = _match(game, held, seed, options, referee)
        match.group_id, match.match_id = group_id, match_id
        match.turn_seconds, match.pool, match.in_loop = turn_seconds, pool, True
        if deadline is None and not match.deal.live:
            return await match.play(max_turns)
        return await _timed(match, max_turns, deadline)
    finally:
        await close_made(held, agents)


async def _timed(match: "_Match", max_turns: int | None, deadline: float | None) -> Episode:
    """The episode of a match that has a deadline, or a live game to close."""
    until = None if deadline is None else _clock() + deadline
    try:
        async with asyncio.timeout(deadline):
            episode = await match.play(max_turns, until)
            await match.close()
            return episode
    except TimeoutError:
        return match.late()
    finally:
        match.abandon()


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
    check_limits(deadline, turn_seconds, max_turns)
    held = [make_agent(agent) for agent in agents]
    timed = deadline is not None or turn_seconds is not None
    if timed or True in [waits(type(agent)) for agent in held]:
        no_loop_yet()
        limits = {"deadline": deadline, "turn_seconds": turn_seconds, "max_turns": max_turns}
        return asyncio.run(play(game, agents, seed, options, referee, **limits))  # type: ignore[arg-type]  # by name
    match = _match(game, held, seed, options, referee)
    coroutine = match.play(max_turns)
    try:
        coroutine.send(None)
    except StopIteration as stop:
        episode: Episode = stop.value
        return episode
    finally:
        match.abandon()
    coroutine.close()
    raise TypeError("an agent's act() returned an awaitable but is not `async def`; await arena.match.play instead")


def _match(
    game: str | type[Game],
    agents: list[Agent],
    seed: int,
    options: Mapping[str, Any] | None,
    referee: Referee | None,
) -> "_Match":
    if type(seed) is not int or not 0 <= seed < 1 << 64:
        raise ValueError(f"seed={seed!r}: allowed are 0 to 2**64 - 1")
    deal = deal_of(game, options or {})
    given = msgspec.json.decode(msgspec.json.encode(options)) if options else {}  # as the record will have them
    state = deal.first(seed)
    return _Match(id_of(game), deal, state, _seated(state, agents), seed, given, referee or _REFEREE)


def _seated(state: Game, agents: list[Agent]) -> list[Agent]:
    """An agent a seat; the house's seats are filled where agents were given for the others only."""
    if len(agents) == state.players:
        return agents
    if state.house and len(agents) == state.players - len(state.house):
        free = iter(agents)
        return [HouseAgent() if p in state.house else next(free) for p in range(state.players)]
    raise ValueError(f"{type(state).__name__} has {state.players} seats, {len(agents)} agents were given")


class _Match:
    """One match in progress."""

    __slots__ = (
        "agents", "chain", "closed", "deal", "earned", "ends", "env", "gaps", "group_id", "in_loop", "last", "match_id",
        "memories", "options", "penalties", "ply", "pool", "referee", "seed", "seen", "started", "state",
        "turn_seconds", "turns",
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
        self.penalties = Penalties(referee, seed, deal.ends)
        self.gaps: list[str] = []
        self.earned = state.returns()
        self.ply, self.chain, self.started = 0, "", time.time()
        self.turn_seconds: float | None = None
        self.pool: Workers | None = None
        self.in_loop = self.closed = False
        self.group_id = self.match_id = ""
        self.ends = ""
        """Why the episode ends at this ply, by nobody's fault."""

    async def play(self, max_turns: int | None, until: float | None = None) -> Episode:
        """Until it is over, cut, or void; `until`: the clock's time by which an agent must not have held us up."""
        live, penalties, forfeits = self.deal.live, self.penalties, self.penalties.forfeits
        try:
            while acting := self.state.to_act():
                if until is not None and _clock() > until:
                    return self.late()
                if self.ply == max_turns:
                    return self.episode("truncated", f"{max_turns} plies were played")
                if len(acting) == 1:
                    turns = [await self._turn(acting[0])]
                else:
                    turns = await self._turns(acting)
                actions = self._record(turns)
                if self.ends:
                    return self.episode("truncated", self.ends)
                if forfeits and penalties.ends:
                    self._pay(penalties.earned(self.state))
                    break
                self.state = await self._live_apply(actions) if live else self.state.apply(actions)
                returns = penalties.earned(self.state) if forfeits else self.state.returns()
                if returns != self.earned:
                    self._pay(returns)
                self.ply += 1
            return self.episode("terminated", "")
        except asyncio.CancelledError:
            if cancelled():
                raise
            return self.episode("void", "an agent was cancelled, the match was not")
        except Exception as error:  # noqa: BLE001 - whatever fails here is not the player's fault: void, and said
            return self.episode("void", reason_of(error))

    def late(self) -> Episode:
        """The record once the deadline has passed."""
        return self.episode("void", f"the deadline passed at ply {self.ply}")

    async def close(self) -> None:
        """Close a live game, in its thread."""
        if isinstance(self.state, LiveGame) and not self.closed:
            self.closed = True
            await asyncio.get_running_loop().run_in_executor(live_pool(), self.state.close)

    def abandon(self) -> None:
        """Close a live game that was not, without waiting for it."""
        if self.deal.live and isinstance(self.state, LiveGame) and not self.closed:
            self.closed = True
            live_pool().submit(self.state.close)

    async def _turns(self, acting: tuple[Player, ...]) -> list[Turn]:
        """The turns of seats that act at once; those that may wait are asked at once too."""
        if not self.in_loop or not any(agent.blocking or waits(type(agent)) for agent in self.agents):
            return [await self._turn(player) for player in acting]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._turn(player)) for player in acting]
        return [task.result() for task in tasks]

    def _record(self, turns: list[Turn]) -> dict[Player, Action]:
        """Settle what was wrong, in the order of the seats whoever answered first; link the ply into the chain."""
        actions = {}
        for turn in turns:
            if turn.action is None and not self.ends:
                settle = self.penalties.wrong if turn.attempts else self.penalties.substitute
                turn.action = settle(self.state, turn.seat)
            shown = joined(turn.events, turn.observation)
            turn.hash = self.chain = link(self.chain, turn.seat, shown, turn.action)
            self.last[turn.seat] = turn
            if turn.action is not None:
                actions[turn.seat] = turn.action
        self.turns += turns
        return actions

    async def _turn(self, player: Player) -> Turn:
        """One seat is asked; without an action where it gave none that counts."""
        state, since = self.state, self.seen[player]
        events = self._news(player) if self.deal.talks else ()
        observation, legal = state.observation(player), state.legal_actions(player)
        count = None if legal is None else len(legal)
        if player in self.penalties.forfeits:
            return Turn(self.ply, player, observation, None, (), count, events)
        shown = legal if self.referee.show_legal else None
        view = View(player, observation, shown, self.memories[player], "", self.ply, state, self.seed, since)
        call = await prepared(self.agents[player], view, self.pool) if self.pool is not None else None
        start = _clock()
        reply = self._ask(view, call)
        if type(reply) is CoroutineType and self.turn_seconds is None:
            reply = checked(await reply, self.agents[player])
        elif type(reply) is not Reply:
            reply = await within(reply, self.agents[player], self.turn_seconds)
        took = _clock() - start
        text = reply.text
        cut = reply.truncated or reply.ends
        if legal is not None and type(text) is str and text in legal and not cut and not self.turn_seconds:
            attempt = self._attempt(reply, _LEGAL, took)
            return Turn(self.ply, player, observation, text, (attempt,), count, events)
        played, attempts = await self._judged(view, reply, took)
        return Turn(self.ply, player, observation, played, attempts, count, events)

    def _attempt(self, reply: Reply, reading: Reading, took: float) -> Attempt:
        """The record of one reply; what a model wrote is cleaned, so that it can be stored."""
        text, thought, calls = reply.text, reply.reasoning, reply.calls
        if reading is not _LEGAL:
            text = clean(text)
        if thought or calls or reply.gaps:
            thought, calls = clean(thought or ""), tuple([cleaned(call) for call in calls])
            self.gaps += [clean(gap) for gap in reply.gaps if gap not in self.gaps]
        return Attempt(text, reading.verdict, reading.reason, thought, took, calls)

    def _ask(self, view: View, call: "Call[Answer] | None") -> Reply | Awaitable[Reply]:
        """`call`: where a worker is ready for it."""
        if call is not None:
            return in_worker(call, view)
        agent = self.agents[view.player]
        return in_thread(act, agent, view) if agent.blocking and self.in_loop else agent.act(view)

    async def _judged(self, view: View, reply: Reply, took: float) -> tuple[Action | None, tuple[Attempt, ...]]:
        """Read a reply; ask again while it is wrong and retries are left. No action: they are used up."""
        attempts: tuple[Attempt, ...] = ()
        for left in range(self.referee.retries, -1, -1):
            reading = self._read(view.player, reply, took)
            attempts = (*attempts, self._attempt(reply, reading, took))
            if reading.action is not None or not left or self.ends:
                return reading.action, attempts
            view.note = self.referee.note(self.state, view.player, reading)
            call = await prepared(self.agents[view.player], view, self.pool) if self.pool is not None else None
            start = _clock()
            reply = await within(self._ask(view, call), self.agents[view.player], self.turn_seconds)
            took = _clock() - start
        raise AssertionError("unreachable: the last round returns")

    def _read(self, player: Player, reply: Reply, took: float) -> Reading:
        late = reply is TIMED_OUT or (self.turn_seconds is not None and took > self.turn_seconds)
        if late and self.agents[player].served:
            raise TimeoutError(f"no answer within {self.turn_seconds} s")
        if late:
            return Reading("truncated", None, f"no answer within {self.turn_seconds} s")
        if reply.ends:
            self.ends = clean(reply.ends)[:500]
            return Reading("truncated", None, self.ends)
        if reply.truncated:
            return Reading("truncated", None, "the reply was cut off before it ended")
        return self.referee.read(self.state, player, reply.text)

    def _news(self, player: Player) -> tuple[str, ...]:
        events = self.state.events(player)
        since, self.seen[player] = self.seen[player], len(events)
        return tuple([show(event) for event in events[since:]]) if since < len(events) else ()

    async def _live_apply(self, actions: dict[Player, Action]) -> Game:
        if not self.in_loop:
            return self.state.apply(actions)
        return await asyncio.get_running_loop().run_in_executor(live_pool(), self.state.apply, actions)

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
        scores = tuple([dict(state.scores(p)) for p in seats]) if self.deal.scored and not void else ()
        final = [joined(self._news(p), state.observation(p)) for p in seats] if not void else []
        return Episode(
            id=os.urandom(8).hex(),
            env=self.env,
            seed=self.seed,
            outcome=outcome,
            returns=None if void else self.earned,
            seats=self._seats(void),
            turns=self.turns,
            options=self.options,
            referee=self.referee,
            reason=reason,
            forfeits=tuple(sorted(self.penalties.forfeits)),
            scores=scores if any(scores) else (),
            final=tuple(final),
            started=self.started,
            ended=time.time(),
            group_id=self.group_id,
            match_id=self.match_id,
            versions=self.deal.versions,
            gaps=tuple(self.gaps),
        )

    def _seats(self, void: bool) -> tuple[Seat, ...]:
        """Who sat where; of a void match no role is asked, since the game itself may have failed."""
        roles = [""] * len(self.agents) if void else [self.state.role(p) for p in range(len(self.agents))]
        told = zip(self.agents, roles, self.deal.rules, strict=True)
        return tuple([_seat(agent.name, role, rules, agent.info()) for agent, role, rules in told])


def _seat(name: str, role: str, rules: str, policy: AgentInfo) -> Seat:
    return _anonymous(name, role, rules) if policy is NO_INFO else Seat(clean(name), role, rules, policy)


@lru_cache(maxsize=4096)
def _anonymous(name: str, role: str, rules: str) -> Seat:
    """Records share the seat of an agent that says nothing more of itself."""
    return Seat(clean(name), role, rules)
