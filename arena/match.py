"""A match: one episode between agents, thousands at once in one process; from its deal, or on from a recorded one."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from arena.agent import Agent, HouseAgent
from arena.asking import check_limits, close_made, no_loop_yet, waits
from arena.deal import deal_of
from arena.episode import Episode
from arena.game import Action, Game, Player
from arena.loop import Match
from arena.referee import Referee
from arena.registry import id_of, make_agent
from arena.resuming import mark, resume

if TYPE_CHECKING:
    from arena.workers import Workers

__all__ = ["play", "play_sync"]

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
    sample: int = 0,
    start: Episode | None = None,
    ply: int = 0,
    actions: Mapping[Player, Action] | None = None,
) -> Episode:
    """Play one match and record it.

    `agents`: one for each seat (or for each seat that is not the house's), objects or spec strings. `deadline`:
    seconds for the whole episode; then it is void. `turn_seconds`: for one answer; then a local agent has
    forfeited, and a served one makes the episode void. `max_turns`: plies; then the episode is truncated.
    Blocking agents are asked in `pool` (`arena.workers.Workers`), without one in a thread. Agents made here from spec
    strings are closed at the end.

    `sample`: which of several matches of one deal this is; agents draw from other streams in each. `start`: an episode
    of this game, seed, options and referee (its own unless one is given) that is played on from before its ply `ply`;
    there seats named in `actions` do as these say, unasked (attempts with the reason "forced"). What is before stays
    as it is, and agents take it up (`Agent.recall`); the record names those who play on. Their streams are not those
    of `start`, while the game's own chance is: the same actions meet the same dice.

    An agent that raises makes the episode void, with the reason in it. Raises ValueError for bad arguments only.
    """
    check_limits(deadline, turn_seconds, max_turns)
    held = [make_agent(agent) for agent in agents]
    try:
        match = _match(game, held, seed, options, referee or (start.referee if start else None), sample)
        match.group_id, match.match_id = group_id, match_id
        match.turn_seconds, match.pool, match.in_loop = turn_seconds, pool, True
        if start is not None or ply or actions:
            _resume(match, game, start, ply, actions or {}, max_turns)
        if deadline is None and not match.deal.live:
            episode = await match.play(max_turns)
        else:
            episode = await _timed(match, max_turns, deadline)
        return mark(episode, actions) if actions else episode
    finally:
        await close_made(held, agents)


async def _timed(match: Match, max_turns: int | None, deadline: float | None) -> Episode:
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
    sample: int = 0,
    start: Episode | None = None,
    ply: int = 0,
    actions: Mapping[Player, Action] | None = None,
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
        limits: dict[str, Any] = {"deadline": deadline, "turn_seconds": turn_seconds, "max_turns": max_turns}
        how: dict[str, Any] = {"sample": sample, "start": start, "ply": ply, "actions": actions}
        return asyncio.run(play(game, agents, seed, options, referee, **limits, **how))
    match = _match(game, held, seed, options, referee or (start.referee if start else None), sample)
    if start is not None or ply or actions:
        _resume(match, game, start, ply, actions or {}, max_turns)
    coroutine = match.play(max_turns)
    try:
        coroutine.send(None)
    except StopIteration as stop:
        episode: Episode = stop.value
        return mark(episode, actions) if actions else episode
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
    sample: int,
) -> Match:
    if type(seed) is not int or not 0 <= seed < 1 << 64:
        raise ValueError(f"seed={seed!r}: allowed are 0 to 2**64 - 1")
    if type(sample) is not int or sample < 0:
        raise ValueError(f"sample={sample!r}: allowed are numbers from 0")
    deal = deal_of(game, options or {})
    given = msgspec.json.decode(msgspec.json.encode(options)) if options else {}  # as the record will have them
    state = deal.first(seed)
    return Match(id_of(game), deal, state, _seated(state, agents), seed, given, referee or _REFEREE, sample)


def _resume(
    match: Match,
    game: str | type[Game],
    start: Episode | None,
    ply: int,
    actions: Mapping[Player, Action],
    max_turns: int | None,
) -> None:
    if start is None:
        raise ValueError(f"ply={ply!r}, actions={actions!r}: these need start=, the episode that is played on")
    if max_turns is not None and max_turns <= ply:
        raise ValueError(f"max_turns={max_turns}: allowed are numbers above ply={ply}, from which it is played on")
    resume(match, start, ply, actions, game)


def _seated(state: Game, agents: list[Agent]) -> list[Agent]:
    """An agent a seat; the house's seats are filled where agents were given for the others only."""
    if len(agents) == state.players:
        return agents
    if state.house and len(agents) == state.players - len(state.house):
        free = iter(agents)
        return [HouseAgent() if p in state.house else next(free) for p in range(state.players)]
    raise ValueError(f"{type(state).__name__} has {state.players} seats, {len(agents)} agents were given")
