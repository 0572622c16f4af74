"""The match loop, the only one there is: seats are asked, the referee reads, the game moves on, all is recorded."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from functools import lru_cache
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from arena.agent import NO_INFO, Agent, AgentInfo, Reply, View, cleaned, stream_seed
from arena.asking import TIMED_OUT, Answer, act, cancelled, checked, in_worker, prepared, reason_of, waits, within
from arena.deal import Deal
from arena.episode import Attempt, Episode, Outcome, Seat, Turn, joined, link
from arena.game import Action, Game, LiveGame, Player, replace
from arena.penalty import Penalties
from arena.referee import Reading, Referee
from arena.text import clean, show
from arena.threads import in_thread, live_pool

if TYPE_CHECKING:
    from arena.workers import Call, Workers

__all__ = ["Match"]

_LEGAL = Reading("legal")
_clock = time.perf_counter


class Match:
    """One match in progress."""

    __slots__ = (
        "agents", "before", "chain", "closed", "deal", "earned", "ends", "env", "fork", "gaps", "group_id", "in_loop",
        "last", "match_id", "memories", "options", "parent", "penalties", "ply", "pool", "referee", "sample", "seed",
        "seen", "started", "state", "streams", "turn_seconds", "turns",
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
        sample: int = 0,
    ) -> None:
        seats = len(agents)
        self.env, self.deal, self.state, self.agents, self.seed = env, deal, state, agents, seed
        self.options, self.referee, self.sample, self.streams = options, referee, sample, stream_seed(seed, sample)
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
        self.group_id = self.match_id = self.parent = ""
        self.fork = 0
        self.before: Callable[[], Awaitable[None]] | None = None
        """What comes first: agents take up what was played before (`arena.resuming`)."""
        self.ends = ""
        """Why the episode ends at this ply, by nobody's fault."""

    async def play(self, max_turns: int | None, until: float | None = None) -> Episode:
        """Until it is over, cut, or void; `until`: the clock's time by which an agent must not have held us up."""
        live, penalties, forfeits = self.deal.live, self.penalties, self.penalties.forfeits
        try:
            if self.before is not None:
                await self.before()
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
                    self.pay(penalties.earned(self.state))
                    break
                self.state = await self._live_apply(actions) if live else self.state.apply(actions)
                returns = penalties.earned(self.state) if forfeits else self.state.returns()
                if returns != self.earned:
                    self.pay(returns)
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
        view = View(player, observation, shown, self.memories[player], "", self.ply, state, self.streams, since)
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

    def pay(self, returns: tuple[float, ...]) -> None:
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
            sample=self.sample,
            parent=self.parent,
            fork=self.fork,
            versions=self.deal.versions,
            gaps=tuple(self.gaps),
        )

    def _seats(self, void: bool) -> tuple[Seat, ...]:
        """Who sat where; of a void match no role is asked, since the game itself may have failed."""
        roles = [""] * len(self.agents) if void else [self.state.role(p) for p in range(len(self.agents))]
        told = zip(self.agents, roles, self.deal.rules, strict=True)
        return tuple(
            [_seat(agent.name, role, rules, _as_asked(agent.info(), last))
             for (agent, role, rules), last in zip(told, self.last, strict=True)]
        )  # fmt: skip


def _as_asked(policy: AgentInfo, last: Turn | None) -> AgentInfo:
    """With the weights that answered the seat last: another match may have seen newer ones since."""
    calls = last.attempts[-1].calls if last is not None and last.attempts else ()
    version = calls[-1].weight_versions[-1][1] if calls and calls[-1].weight_versions else ""
    return replace(policy, weight_version=version) if version and version != policy.weight_version else policy


def _seat(name: str, role: str, rules: str, policy: AgentInfo) -> Seat:
    return _anonymous(name, role, rules) if policy is NO_INFO else Seat(clean(name), role, rules, policy)


@lru_cache(maxsize=4096)
def _anonymous(name: str, role: str, rules: str) -> Seat:
    """Records share the seat of an agent that says nothing more of itself."""
    return Seat(clean(name), role, rules)
