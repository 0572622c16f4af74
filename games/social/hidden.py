"""What is secret in Mafia: the nights, what a seat knows of the roles, and other deals that agree with all it knows."""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from arena.game import SEAT, Event, Player

__all__ = [
    "DETECTIVE",
    "DOCTOR",
    "MAFIA",
    "NONE",
    "UNASKED",
    "VILLAGER",
    "Facts",
    "Night",
    "deal",
    "leaders",
    "relive",
]

MAFIA, DOCTOR, DETECTIVE, VILLAGER = "Mafia", "Doctor", "Detective", "Villager"
NONE = -1
"""In the place of a seat: nobody."""
UNASKED = -2
"""The seat was not asked that night: a Villager, or no longer in the game."""


def who(seat: int) -> str:
    """`Player 3` or `nobody`."""
    return f"Player {seat}" if seat >= 0 else "nobody"


def leaders(names: Sequence[int]) -> list[int]:
    """Those named most often, in order; several on a tie.

    >>> leaders([3, 1, 3, 1, 2])
    [1, 3]
    """
    counts: dict[int, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    top = max(counts.values(), default=0)
    return sorted([name for name, count in counts.items() if count == top])


class Night(NamedTuple):
    """One night: who acted, and on whom."""

    day: int
    at: int
    """How many public events came before its outcome."""
    living: tuple[Player, ...]
    """At its beginning."""
    named: tuple[int, ...]
    """By seat: whom they named, `NONE` or `UNASKED`."""
    victim: int
    """Who died, or `NONE`."""

    def gang(self, roles: Sequence[str]) -> tuple[Player, ...]:
        """The Mafia who acted."""
        return tuple([p for p in self.living if roles[p] == MAFIA])

    def wanted(self, roles: Sequence[str]) -> list[int]:
        """Whom most of the Mafia named; several on a tie."""
        return leaders([self.named[p] for p in self.living if roles[p] == MAFIA and self.named[p] >= 0])

    def secrets(self, player: Player, roles: Sequence[str]) -> tuple[Event, ...]:
        """What the seat learned that nobody else, or only the Mafia, did."""
        named, role = self.named[player], roles[player]
        if named == UNASKED:
            return ()
        if role == MAFIA:
            gang = self.gang(roles)
            votes = ", ".join([f"Player {p} for {who(self.named[p])}" for p in gang])
            return (Event(f"Night {self.day}, the Mafia named: {votes}.", None, gang),)
        if role == DOCTOR:
            text = f"you protected {who(named)}"
        elif named == NONE:
            text = "you investigated nobody"
        else:
            text = f"Player {named} is {'' if roles[named] == MAFIA else 'not '}Mafia"
        return (Event(f"Night {self.day}: {text}.", None, SEAT[player]),)


class Facts(NamedTuple):
    """What one seat knows of the roles."""

    fixed: dict[Player, str]
    """Known roles."""
    guilty: frozenset[Player]
    """All who are known to be Mafia."""
    clean: frozenset[Player]
    """All who are known not to be Mafia."""

    @classmethod
    def of(cls, player: Player, roles: Sequence[str], nights: Sequence[Night], shown: Sequence[Player]) -> "Facts":
        """From its own role, its own nights, the public deaths, and the roles shown."""
        fixed = {p: roles[p] for p in (player, *shown)}
        found = {night.named[player] for night in nights} if roles[player] == DETECTIVE else set()
        if roles[player] == MAFIA:
            found = set(range(len(roles)))
            fixed |= {p: MAFIA for p in found if roles[p] == MAFIA}
        found = {p for p in found if p >= 0} | fixed.keys()
        victims = {night.victim for night in nights if night.victim >= 0}
        guilty = {p for p in found if roles[p] == MAFIA}
        return cls(fixed, frozenset(guilty), frozenset((found | victims) - guilty))


def deal(
    player: Player,
    rng: Random,
    roles: tuple[str, ...],
    nights: tuple[Night, ...],
    fallen: tuple[Player, ...],
    reveal: bool,
) -> tuple[str, ...]:
    """Roles drawn from all that agree with what the seat knows of a game still going on, each with the same chance."""
    facts = Facts.of(player, roles, nights, fallen if reveal else ())
    free = [p for p in range(len(roles)) if p not in facts.fixed and p not in facts.guilty]
    suspects = [p for p in free if p not in facts.clean]
    missing = roles.count(MAFIA) - len(facts.guilty)
    good = [role for role in (DOCTOR, DETECTIVE) if role not in facts.fixed.values()]
    good += [VILLAGER] * (len(free) - missing - len(good))
    drawn = list(roles)
    while True:  # the true roles are among those drawn, so it ends
        gang = set(rng.sample(suspects, missing))
        rng.shuffle(good)
        rest = iter(good)
        for p in facts.guilty:
            drawn[p] = MAFIA
        for p in free:
            drawn[p] = MAFIA if p in gang else next(rest)
        if (reveal or goes_on(drawn, fallen)) and (
            roles[player] != MAFIA or all(saved(night, player, drawn) for night in nights)
        ):
            return tuple(drawn)


def goes_on(roles: Sequence[str], fallen: Sequence[Player]) -> bool:
    """Whether no death in their order would have ended the game."""
    mafia, living = roles.count(MAFIA), len(roles)
    for p in fallen:
        mafia -= roles[p] == MAFIA
        living -= 1
        if not 0 < 2 * mafia < living:
            return False
    return True


def saved(night: Night, player: Player, roles: Sequence[str]) -> bool:
    """Whether the Doctor could have saved the victim the Mafia chose in vain, as a Mafia knows who was there."""
    if night.victim >= 0 or night.named[player] == UNASKED:
        return True
    wanted = night.wanted(roles)
    doctor = roles.index(DOCTOR)
    return not wanted or (doctor in night.living and any(p != doctor for p in wanted))


def relive(night: Night, player: Player, rng: Random, roles: Sequence[str]) -> Night:
    """The night as others may have spent it under new roles, with the same outcome and the same for the seat."""
    doctor = roles.index(DOCTOR)
    knows = night.named[player] != UNASKED
    named = [UNASKED] * len(roles)
    protected = _protected(night, player, rng, roles, knows)
    target = night.victim
    if target < 0 and protected >= 0 and roles[protected] != MAFIA:
        target = protected
    for p in night.living:
        if p == player or (knows and roles[player] == MAFIA == roles[p]):
            named[p] = night.named[p]
        elif roles[p] == MAFIA:
            named[p] = target
        elif p == doctor:
            named[p] = protected
        elif roles[p] == DETECTIVE:
            named[p] = rng.choice([q for q in night.living if q != p])
    return night._replace(named=tuple(named))


def _protected(night: Night, player: Player, rng: Random, roles: Sequence[str], knows: bool) -> int:
    """Whom the Doctor protected: what the seat knows of it, or anybody who fits the outcome."""
    doctor = roles.index(DOCTOR)
    if doctor not in night.living:
        return NONE
    if player == doctor:
        return night.named[player]
    others = [p for p in night.living if p not in (doctor, night.victim)]
    if night.victim < 0:
        if knows and roles[player] == MAFIA:
            wanted = [p for p in night.wanted(roles) if p != doctor]
            return rng.choice(wanted or others)
        others = [p for p in others if roles[p] != MAFIA]
    return rng.choice(others) if others else NONE
