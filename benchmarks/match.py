"""A match with its record and hash chain beside the bare rules; ten thousand matches at once."""

from collections.abc import Callable
from itertools import count
from random import Random

from arena.agent import Agent, Reply, View
from arena.match import play_sync
from arena.registry import make_agent, make_game
from benchmarks import crowd, loops
from benchmarks.timing import Figure, Loop, differences, interleave, loop

__all__ = ["at_once", "over_rules"]

LONG = ("TicTacToe-v0", "ConnectFour-v0", "LiarsDice-v0", "IteratedPrisonersDilemma-v0", "Chess-v0")
"""Seven player actions and more."""
SHORT = ("KuhnPoker-v0", "LeducPoker-v0", "RockPaperScissors-v0")
POLICIES = ("random", "first")
MATCHES = 10_000


class Choice(Agent):
    """Random play as the bare loop does it: one generator for all, so that the difference is the match's alone."""

    name = "choice"

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def act(self, view: View) -> Reply:
        legal = view.legal_actions
        return Reply(self.rng.choice(legal) if legal is not None else view.sample_action(self.rng))


def over_rules(seconds: float) -> list[Figure]:
    """CPU microseconds a player action, of `play_sync` and of the bare rules under the same policy."""
    games = [*[(game, 6.0) for game in LONG], *[(game, 9.0) for game in SHORT]]
    return [_line(game, policy, goal, seconds) for game, goal in games for policy in POLICIES]


def _line(game: str, policy: str, goal: float, seconds: float) -> Figure:
    ours, bare = Random(), Random()
    spent, floor = interleave(
        [_same(ours, _matches(game, policy, ours)), _same(bare, loops.rules(game, policy, bare))], seconds
    )
    over = differences(spent, floor)
    return Figure(f"{game} {policy}", "us", min(spent), min(floor), over, goal, at_most=True)


def _same(rng: Random, episode: Callable[[], int]) -> Loop:
    """The same games in the same round on both sides, as far as each side comes."""
    rounds, run = count(), loop(episode)

    def begin(seconds: float) -> float:
        rng.seed(next(rounds))
        return run(seconds)

    return begin


def _matches(game: str, policy: str, rng: Random) -> Callable[[], int]:
    agent = Choice(rng) if policy == "random" else make_agent(policy)
    agents, seeds = [agent] * make_game(game).players, count()
    return lambda: len(play_sync(game, agents, next(seeds)).turns)


def at_once(seconds: float) -> list[Figure]:
    """In a process of its own: CPU microseconds a step, and peak memory a match with all episodes kept."""
    matches = MATCHES if seconds >= 1 else 200
    return [figure for game in ("TicTacToe-v0", "ConnectFour-v0") for figure in _crowd(game, matches)]


def _crowd(game: str, matches: int) -> list[Figure]:
    results = [crowd.measured(game, matches) for _ in range(3 if matches == MATCHES else 1)]
    best = min(results, key=lambda result: result.microseconds)
    memory = 10.0 if game == "TicTacToe-v0" else None
    return [
        Figure(f"{game} {matches} matches", "us", best.microseconds, None, crowd.spread(results, "microseconds"),
               12.0, at_most=True),
        Figure(f"{game} {matches} matches", "kB", best.kilobytes, None, crowd.spread(results, "kilobytes"),
               memory, at_most=True),
    ]  # fmt: skip
