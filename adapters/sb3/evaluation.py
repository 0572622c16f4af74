"""How a policy does against a fixed opponent, and results as ratings take them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from arena.adapters.sb3.opponents import Record, Result
from arena.adapters.sb3.player import NetworkAgent
from arena.adapters.sb3.vecenv import ArenaVecEnv
from arena.agent import Agent
from arena.game import Game, Player
from arena.registry import make_game

__all__ = ["Row", "evaluate", "rows_of", "total"]

_AT_ONCE = 64


class Row(NamedTuple):
    """So many games of two players with one result: what a rating function is given."""

    first: str
    second: str
    outcome: str
    """ "first", "draw" or "second"."""
    games: int


def evaluate(
    agent: NetworkAgent,
    game: str | type[Game],
    opponent: str | Agent,
    games: int = 100,
    *,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Counter[tuple[Player, Result]]:
    """Games by (seat of the agent, "win", "draw" or "loss"), seats taken in turn; it plays by its `deterministic`.

    At most 64 at once, as many in every seat; `games` is rounded up so that each of these places plays as many, since
    the first to finish would be the short ones. `arguments` are those of `ArenaVecEnv`. The same seed gives the same
    games. Raises ValueError for `games` below 1 and for a game of one seat.
    """
    if type(games) is not int or games < 1:
        raise ValueError(f"games={games!r}: allowed are numbers from 1")
    first = make_game(game, 0, options)
    seats = [p for p in range(first.players) if p not in first.house]
    if len(seats) < 2:
        raise ValueError("a game of one seat has no opponents: evaluate its rewards")
    at_once = len(seats) * max(1, min(_AT_ONCE, games) // len(seats))
    env = ArenaVecEnv(game, at_once, opponents=opponent, seed=seed, **arguments, **(options or {}))
    left = [-(-games // at_once)] * at_once
    found: Counter[tuple[Player, Result]] = Counter()
    chances = np.random.default_rng(seed)
    seen = env.reset()
    while any(left):
        seen, _, dones, infos = env.step(agent.choose(seen, env.action_masks(), chances.random(at_once)))
        for i in np.flatnonzero(dones):
            if left[i]:
                left[i] -= 1
                found[infos[i]["seat"], Result.of(infos[i]["score"])] += 1
    if isinstance(opponent, str):  # it was made for this
        env.close()
    return found


def rows_of(player: str, counts: Mapping[tuple[str, Player, Result], int]) -> list[Row]:
    """The games of a player, counted by (opponent, the player's seat, result in the player's view), as rows.

    With more than two seats: one meeting with each kind of opponent; seat 0 counts as first.
    """
    rows = []
    for (opponent, seat, result), games in counts.items():
        won = {"win": "first", "draw": "draw", "loss": "second"} if seat == 0 else _TURNED
        first, second = (player, opponent) if seat == 0 else (opponent, player)
        rows.append(Row(first, second, won[result], games))
    return rows


_TURNED = {"win": "second", "draw": "draw", "loss": "first"}


def total(counts: Iterable[tuple[Result, int]]) -> Record:
    """Wins, draws and losses, seats together."""
    found: Counter[Result] = Counter()
    for result, games in counts:
        found[result] += games
    return Record(found[Result.WIN], found[Result.DRAW], found[Result.LOSS])
