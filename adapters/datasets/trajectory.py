"""Trajectory: one seat of one episode, which is what most trainers call a sample."""

from collections.abc import Mapping
from functools import cache, cached_property
from hashlib import blake2b
from typing import Any

import msgspec

from arena.agent import AgentInfo, Call
from arena.episode import Attempt, Episode, Seat, Turn
from arena.game import Game, Player
from arena.registry import frozen, load, options_of
from arena.resuming import FORCED

__all__ = ["Trajectory", "digest", "settled"]

_SAMPLED = frozenset(("generate", "chat"))  # kinds of calls that are answers, token by token


def digest(*parts: object) -> str:
    """16 hexadecimal digits that stand for these values (blake2b of their JSON, keys sorted)."""
    return blake2b(msgspec.json.encode(parts, order="deterministic"), digest_size=8).hexdigest()


def settled(episode: Episode) -> dict[str, Any]:
    """The options that make a difference, by name: without those that were given and say what holds anyway.

    Of a game that is not known here all that were given.
    """
    if not episode.options:
        return {}
    try:
        usual = _usual(load(episode.env))
    except ValueError:
        return dict(sorted(episode.options.items()))
    given = {key: frozen(value) for key, value in episode.options.items()}
    return {key: value for key, value in sorted(given.items()) if key not in usual or usual[key] != value}


@cache
def _usual(game: type[Game]) -> Mapping[str, Any]:
    """The defaults of a game's options."""
    return {name: frozen(option.default) for name, option in options_of(game).items()}


class Trajectory(msgspec.Struct, frozen=True, dict=True):
    """What one seat saw, said and earned. `dict`: what is worked out from it is kept."""

    episode: Episode
    player: Player
    advantage: float | None = None
    """By the choice of the export (`arena.rollouts.advantages`); None: none was asked for."""

    @property
    def id(self) -> str:
        """Of the episode and the seat."""
        return f"{self.episode.id}-{self.player}"

    @property
    def seat(self) -> Seat:
        """Who sat there."""
        return self.episode.seats[self.player]

    @property
    def agent(self) -> str:
        """The agent's name."""
        return self.seat.agent

    @property
    def policy(self) -> AgentInfo:
        """What the record says of the policy."""
        return self.seat.policy

    @property
    def role(self) -> str:
        """The seat's role in the game; the seat's number ("seat 0") where the game names none."""
        return self.seat.role or f"seat {self.player}"

    @property
    def opponents(self) -> tuple[str, ...]:
        """The names of the others, in the order of their seats."""
        return tuple([seat.agent for at, seat in enumerate(self.episode.seats) if at != self.player])

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """The seat's turns, in order."""
        return tuple([turn for turn in self.episode.turns if turn.seat == self.player])

    @cached_property
    def played(self) -> tuple[Turn, ...]:
        """The turns that were played in this episode: not those of the episode it was played on from."""
        return tuple([turn for turn in self.turns if turn.ply >= self.episode.fork])

    @property
    def attempts(self) -> tuple[tuple[Turn, Attempt], ...]:
        """Every reply of the seat, with its turn."""
        return tuple([(turn, attempt) for turn in self.turns for attempt in turn.attempts])

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every call of the seat, in order."""
        return tuple([call for _, attempt in self.attempts for call in attempt.calls])

    @property
    def reward(self) -> float:
        """The seat's return. Raises ValueError for a void episode, which earns nothing."""
        if self.episode.returns is None:
            raise ValueError(f"episode {self.episode.id} is void: it has no returns")
        return self.episode.returns[self.player]

    @property
    def trainable(self) -> bool:
        """Whether there is something to train: its policy may be, and a model answered for it in this episode.

        A search or a random player samples nothing; what the episode it was played on from holds is not its own.
        """
        asked = (call for turn in self.played for attempt in turn.attempts for call in attempt.calls)
        return self.policy.trainable and any(call.kind in _SAMPLED for call in asked)

    @property
    def truncated(self) -> bool:
        """Whether the episode was cut before its end."""
        return self.episode.outcome == "truncated"

    @property
    def forfeited(self) -> bool:
        """Whether the seat forfeited."""
        return self.player in self.episode.forfeits

    @property
    def legal(self) -> bool:
        """Whether every reply of the seat was a legal action."""
        return all(attempt.verdict == "legal" for _, attempt in self.attempts) and not self.forfeited

    @cached_property
    def task_id(self) -> str:
        """Of the game, its options and the seed: the same first position."""
        return digest(self.episode.env, settled(self.episode), self.episode.seed)

    @cached_property
    def group_id(self) -> str:
        """Of samples that may be compared: the same table, seat and role."""
        return digest(self.table_id, self.player, self.role)

    @cached_property
    def table_id(self) -> str:
        """Of the task, the referee and the agents all around: what episodes of a group have in common.

        An episode that was played on from another's middle has it in common with those that were played on from there
        by the same forced actions, if any.
        """
        names = [seat.agent for seat in self.episode.seats]
        return digest(self.task_id, names, self.episode.referee, *self._fork())

    def _fork(self) -> tuple[object, ...]:
        """Where an episode was played on from another's middle, and what was forced there."""
        episode = self.episode
        if not episode.parent:
            return ()
        there = [turn for turn in episode.turns if turn.ply == episode.fork and turn.attempts]
        forced = [(turn.seat, turn.attempts[-1].raw) for turn in there if turn.attempts[-1].reason == FORCED]
        return (episode.parent, episode.fork, forced)
