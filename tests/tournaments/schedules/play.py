"""Plays a schedule with made-up results, as a runner would: in order, at random, or broken off and begun anew."""

import math
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from arena.tournaments.config import Tournament, parse
from arena.tournaments.history import History, Result
from arena.tournaments.schedule import Block, Fixture
from arena.tournaments.schedules import blocks

__all__ = ["Outcome", "asked", "by_strength", "ended", "names", "play"]

Outcome = Callable[[Fixture], tuple[float, ...]]
"""The returns of a game."""


def names(agents: int) -> list[dict[str, Any]]:
    """So many agents of different kinds, called a0, a1, ..."""
    return [{"spec": f"mcts?simulations={number + 1}", "name": f"a{number}"} for number in range(agents)]


def asked(agents: int, **more: Any) -> Tournament:
    """A tournament of TicTacToe unless said otherwise."""
    return parse({"games": ["TicTacToe"], "agents": names(agents), "blocks": 1, **more})


def by_strength(strengths: Sequence[float], seed: int = 0, draw: float = 0.0) -> Outcome:
    """Logistic chances from strengths in Elo; the same game ends the same way every time. inf: the stronger wins."""

    def outcome(game: Fixture) -> tuple[float, ...]:
        generator = Random(f"{seed} {game.id}")
        if len(game.agents) != 2:
            noisy = [strengths[agent] + 100 * generator.gauss(0, 1) for agent in game.agents]
            return tuple(noisy)
        one, other = [strengths[agent] for agent in game.agents]
        if generator.random() < draw:
            return (0.0, 0.0)
        won = generator.random() < 1 / (1 + math.pow(10, max(min((other - one) / 400, 300), -300)))
        return (1.0, -1.0) if won else (-1.0, 1.0)

    return outcome


def ended(game: Fixture, returns: tuple[float, ...], truncated: bool = False) -> Result:
    """The result of a game."""
    return Result(game.id, game.block, game.entry, game.seed, game.agents, returns, (), truncated)


def play(
    history: History,
    outcome: Outcome,
    *,
    at_once: int = 1,
    seed: int | None = None,
    most: int = 10**9,
    void: Callable[[Fixture], bool] = lambda game: False,
) -> list[Block]:
    """Play what the schedule proposes; the blocks in their order.

    At most `at_once` blocks are open; they end in order, or at random by `seed`. After `most` games it is broken off.
    """
    generator, proposals = Random(seed), blocks(history)
    open_: list[list[Fixture]] = []
    played: list[Block] = []
    done = 0
    while True:
        waiting = _pull(history, proposals, open_, played, at_once)
        if not open_:
            assert not waiting, "the schedule waits, and nothing is being played"
            return played
        games = open_[generator.randrange(len(open_)) if seed is not None else 0]
        game = games.pop(0 if seed is None else generator.randrange(len(games)))
        if void(game):
            history.leave(game)
        else:
            assert history.add(ended(game, outcome(game)))
        open_ = [games for games in open_ if games]
        done += 1
        if done >= most:
            return played


def _pull(
    history: History, proposals: Iterator[Block | None], open_: list[list[Fixture]], played: list[Block], at_once: int
) -> bool:
    """Open blocks while there is room; whether the schedule waits."""
    while len(open_) < at_once:
        block = next(proposals, "end")
        if block == "end":
            return False
        if block is None:
            return True
        assert isinstance(block, Block)
        there = {result.id for result in history.results(block)}
        games = [g for g in history.maker.games(block) if g.id not in there and g.id not in history.left]
        played.append(block)
        if games:
            open_.append(games)
    return False
