"""Replayed: the positions of a trajectory's episode; of one that does not replay, whose record lacks what."""

from collections.abc import Iterator

from arena.adapters.datasets.tokens import Lacking
from arena.adapters.datasets.trajectory import Trajectory
from arena.episode import EpisodeError
from arena.game import LiveGame
from arena.registry import load
from arena.replaying import Position, positions

__all__ = ["replayed"]


def replayed(trajectory: Trajectory) -> Iterator[Position]:
    """The positions in which a ply was played, in order, checked against the record.

    Raises Lacking, with the episode and the seat, for a game that is not registered here, a live one and a record that
    is not what the game now gives.
    """
    episode, where = trajectory.episode, f"episode {trajectory.episode.id}, seat {trajectory.player}"
    try:
        live = issubclass(load(episode.env), LiveGame)
    except ValueError as error:
        raise Lacking(f"{where}: {error}") from error
    if live:
        raise Lacking(f"{where}: {episode.env} is a live game, which does not replay")
    try:
        yield from positions(episode)
    except EpisodeError as error:
        why = str(error).removeprefix(f"episode {episode.id or '?'}: ")
        raise Lacking(f"{where}: {why}") from error
