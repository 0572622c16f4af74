"""Credit: which advantage every trajectory of an export is given."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Literal, NamedTuple

import msgspec

from arena.rollouts.advantages import RoleBaseline, group_relative

__all__ = ["Credit", "Earned", "group_credit", "rae_credit"]


class Credit(msgspec.Struct, frozen=True):
    """The choice: none, RAE or group-relative.

    Counted is every finished seat that passes the filters of who played what (game, agent, seat, role, trainable,
    rating), also where what came of it (outcome, legal, truncated, reward) keeps it out of the export: a baseline over
    winners alone would say that winning is nothing.
    """

    kind: Literal["none", "rae", "group"] = "none"
    """"rae": return minus a running mean of the agent's returns in this role of this game (with these options), read
    before any return of the episode is counted; in the order in which episodes ended, of equal times in the order of
    the source (`arena.rollouts.advantages.RoleBaseline`). "group": return minus the mean of the group
    (`Trajectory.group_id`: same seed, role, seat, referee and agents); a group of one has 0."""
    decay: float = 0.95
    """Of "rae": what stays of a baseline when a return is counted."""
    scale: bool = False
    """Of "group": over the group's standard deviation."""

    def __post_init__(self) -> None:
        if self.kind not in (kinds := ("none", "rae", "group")):
            raise ValueError(f"advantage {self.kind!r}: allowed are {', '.join(kinds)}")
        RoleBaseline(self.decay)


class Earned(NamedTuple):
    """What a seat has earned; `episode` is its number in the order of the source."""

    episode: int
    seat: int
    group: str
    agent: str
    game: str
    role: str
    reward: float


def rae_credit(earned: Iterable[Earned], decay: float) -> Iterator[tuple[int, int, float]]:
    """(episode, seat, advantage) of each, in the order given: the seats of an episode follow each other.

    An agent's baselines are its own. Seats that have the same role in an episode (villagers) are judged by the same
    baseline, whatever their numbers.
    """
    baselines: dict[str, RoleBaseline] = {}
    for _, members in groupby(earned, lambda one: one.episode):
        seats = [(one, baselines.setdefault(one.agent, RoleBaseline(decay))) for one in members]
        found = [(one.episode, one.seat, one.reward - of.read(one.game, one.role)) for one, of in seats]
        for one, of in seats:
            of.count(one.game, one.role, one.reward)
        yield from found


def group_credit(earned: Iterable[Earned], scale: bool) -> Iterator[tuple[int, int, float]]:
    """(episode, seat, advantage) of each; those of one group come together."""
    for _, members in groupby(earned, lambda one: one.group):
        group = list(members)
        for one, advantage in zip(group, group_relative([one.reward for one in group], scale), strict=True):
            yield one.episode, one.seat, advantage
