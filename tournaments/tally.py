"""How far a run is, and the errors with which one ends."""

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Aborted", "Refused", "Stalled", "Tally"]


class Refused(ValueError):
    """An agent cannot play one of the games; nothing was played."""


class Aborted(RuntimeError):
    """The run gave up: too many attempts were void. What was finished is kept."""


class Stalled(Aborted):
    """The run gave up: nothing went on for too long. What was finished is kept."""


@dataclass
class Tally:
    """How far a run is; kept up to date while it plays."""

    total: int
    """Games; at most, while `open_ended`."""
    there: int = 0
    """Finished before this run began, or by another run beside it."""
    finished: int = 0
    """Finished and stored by this run."""
    forfeits: int = 0
    truncated: int = 0
    voids: int = 0
    """Void attempts."""
    given_up: int = 0
    """Games left void after all retries, in this run or before."""
    stopped: bool = False
    """Asked to end before all was played."""
    ended: str = ""
    """The stopping rule that holds, in words: nothing is left to play then."""
    open_ended: bool = False
    """How many games there will be depends on results."""
    elsewhere: int = 0
    """Games that another process plays, as far as is known."""
    waiting: bool = False
    """All that is left is played by others."""
    distance: str = ""
    """How far it is to the stopping rule, in words."""
    running: Counter[str] = field(default_factory=Counter)
    """Games in which every agent sits just now, by name."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Why attempts were void."""

    @property
    def done(self) -> int:
        """All that need not be played any more."""
        return self.there + self.finished

    @property
    def left(self) -> int:
        """Games still to be played."""
        return 0 if self.ended else self.total - self.done - self.given_up
