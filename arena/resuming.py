"""Resuming: a match that goes on from the middle of a recorded one."""

from collections.abc import Awaitable, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from arena.agent import Agent, AgentInfo, Reply, View, stream_seed
from arena.episode import Attempt, Episode, EpisodeError, Turn, shown_to
from arena.game import Action, Game, Player
from arena.loop import Match
from arena.replaying import positions
from arena.text import quote

__all__ = ["FORCED", "mark", "resume"]

FORCED = "forced"
"""The reason of an attempt that was not the agent's own: the action was given (`arena.rollouts.branching`)."""

Recall = tuple[Agent, Sequence[View], Turn]


def resume(match: Match, start: Episode, ply: int, actions: Mapping[Player, Action], game: str | type[Game]) -> None:
    """Make a match that has not begun go on from before ply `ply` of `start`; `actions` are played there unasked.

    The record is replayed and checked that far; seats that had forfeited still have. Private streams are new ones, the
    game's chance goes on as it would have. Agents take up their seats' turns (`Agent.recall`) once the match is played.
    Raises ValueError where that cannot be.
    """
    _check_same(match, start, ply)
    match.parent, match.fork, match.streams = start.id, ply, stream_seed(match.seed, match.sample, ply)
    match.gaps, match.agents = [*start.gaps], [*match.agents]
    recalls: list[Recall] = []
    for position in positions(start, None if isinstance(game, str) else game):
        if match.ply == ply:
            break
        turns = [_unpaid(turn) for turn in position.turns]
        for turn, views in zip(turns, position.views, strict=True):
            if views:
                recalls.append((match.agents[turn.seat], [_own(match, view) for view in views], turn))
        _again(match, turns)
    if match.ply != ply or not match.state.to_act() or match.penalties.over:
        raise ValueError(f"ply={ply}: episode {start.id} has no such ply to go on from")
    recalls += [_force(match, player, action) for player, action in actions.items()]
    match.before = partial(_take_up, match, recalls)


def mark(episode: Episode, actions: Mapping[Player, Action]) -> Episode:
    """The episode that was played on, with the attempts marked that were given."""
    for turn in episode.turns:
        if turn.ply == episode.fork and turn.seat in actions:
            turn.attempts[-1].reason = FORCED
    return episode


def _check_same(match: Match, start: Episode, ply: int) -> None:
    if match.deal.live:
        raise ValueError(f"{match.env} drives something alive: it cannot be played on from a record")
    if type(ply) is not int or ply < 0 or not start.id:
        raise ValueError(f"ply={ply!r}, id={start.id!r}: allowed are plies from 0 on, of an episode that has an id")
    for name in ("env", "seed", "options", "referee"):
        asked, there = getattr(match, name), getattr(start, name)
        if asked != there:
            raise ValueError(f"{name}={asked!r}: the episode to be played on has {there!r}")


def _unpaid(turn: Turn) -> Turn:
    """A copy that has earned nothing yet."""
    t = turn
    return Turn(t.ply, t.seat, t.observation, t.action, t.attempts, t.legal, t.events, hash=t.hash)


def _own(match: Match, view: View) -> View:
    """What the seat was given, with its memory and streams in this match."""
    return replace(view, memory=match.memories[view.player], _seed=match.streams)


def _again(match: Match, turns: list[Turn]) -> None:
    """Play a recorded ply; what was substituted is drawn again, so that later substitutes are other ones."""
    for turn in turns:
        match.seen[turn.seat] += len(turn.events)
        match.last[turn.seat] = turn
        if not turn.attempts:
            match.penalties.substitute(match.state, turn.seat)
        elif turn.attempts[-1].verdict != "legal":
            match.penalties.wrong(match.state, turn.seat)
    actions = {turn.seat: turn.action for turn in turns if turn.action is not None}
    if len(actions) < len(turns):
        raise ValueError(f"ply={match.fork}: the episode ended at ply {match.ply}")
    match.turns += turns
    match.chain = turns[-1].hash
    try:
        match.state = match.state.apply(actions)
    except ValueError as error:
        raise EpisodeError(f"ply {match.ply}: the game refuses {actions}: {error}") from error
    returns = match.penalties.earned(match.state)
    if returns != match.earned:
        match.pay(returns)
    match.ply += 1


def _force(match: Match, player: Player, action: Action) -> Recall:
    """Have the action played for the seat; its agent takes it up as its own. Raises ValueError if it is none there."""
    state, acting = match.state, match.state.to_act()
    if player not in acting or player in match.penalties.forfeits:
        raise ValueError(f"actions: seat {player!r} is not asked at ply {match.ply}; to act are {acting}")
    reading = match.referee.read(state, player, action) if isinstance(action, str) else None
    if reading is None or reading.action != action:
        why = f": {reading.reason}" if reading is not None and reading.reason else ""
        raise ValueError(f"actions: {quote(str(action)[:80])} is no action of seat {player} at ply {match.ply}{why}")
    agent, since = match.agents[player], match.seen[player]
    events, observation = shown_to(state, player, since)
    legal = state.legal_actions(player)
    shown = legal if match.referee.show_legal else None
    view = View(player, observation, shown, match.memories[player], "", match.ply, state, match.streams, since)
    attempts = (Attempt(action, reason=FORCED),)
    turn = Turn(match.ply, player, observation, action, attempts, None if legal is None else len(legal), events)
    match.agents[player] = _Given(match, agent, action)
    return agent, [view], turn


class _Given(Agent):
    """Sits in for an agent until it has been asked once."""

    def __init__(self, match: Match, agent: Agent, action: Action) -> None:
        self.match, self.agent, self.action, self.name = match, agent, action, agent.name

    def act(self, view: View) -> Reply:
        """See `Agent.act`."""
        self.match.agents[view.player] = self.agent
        return Reply(self.action)

    def info(self) -> AgentInfo:
        """See `Agent.info`."""
        return self.agent.info()


async def _take_up(match: Match, recalls: list[Recall]) -> None:
    match.before = None
    for agent, views, turn in recalls:
        waiting: Awaitable[None] | None = agent.recall(views, turn)
        if waiting is not None:
            await waiting
