"""Opponents to learn against, how the next one is drawn, and what the games against each have told.

Samplers: fictitious play draws uniformly among all that the learner has been (Heinrich, Lanctot & Silver, *Fictitious
Self-Play in Extensive-Form Games*, 2015); prioritised draws those more often that it does not beat (Vinyals et al.,
*Grandmaster level in StarCraft II*, 2019: weight (1 - win rate) ** p).
"""

from bisect import insort
from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum
from math import exp, isfinite
from random import Random
from typing import Any, NamedTuple

from arena.agent import Agent
from arena.game import Player
from arena.registry import make_agent

__all__ = ["SAMPLERS", "Opponent", "OpponentPool", "Record", "Result"]

SAMPLERS = ("latest", "near", "prioritised", "uniform")
"""How a snapshot is drawn; whatever else stands in a mixture is the spec string of an agent."""
_PRIOR = 1.0  # games with a draw that every opponent begins with: an unknown one counts as even


class Result(StrEnum):
    """Of a game, in the learner's view."""

    LOSS = "loss"
    DRAW = "draw"
    WIN = "win"

    @classmethod
    def of(cls, score: float) -> "Result":
        """Of the score of a game: 1, 0.5 or 0."""
        return (cls.LOSS, cls.DRAW, cls.WIN)[int(2 * score)]


class Opponent(NamedTuple):
    """One of a pool. `step`: of the snapshot, None for an anchor."""

    key: str
    agent: Agent
    step: int | None = None


class Record(NamedTuple):
    """What the learner's games against one opponent told, in its view."""

    wins: int = 0
    draws: int = 0
    losses: int = 0

    @property
    def games(self) -> int:
        """All of them."""
        return self.wins + self.draws + self.losses

    @property
    def mean(self) -> float:
        """Wins and half the draws a game; 0 without games."""
        return (self.wins + self.draws / 2) / self.games if self.games else 0.0

    @property
    def score(self) -> float:
        """Wins and half the draws a game, drawn to 0.5 as by one game more."""
        return (self.wins + self.draws / 2 + _PRIOR / 2) / (self.games + _PRIOR)


class OpponentPool:
    """Snapshots of the learner and fixed anchors. `draw` gives the opponent of the next episode.

    `mixture`: weights by sampler or spec string, such as `{"latest": 2, "uniform": 1, "minimax?depth=2": 1}`; a list
    gives all the same. Samplers draw snapshots: "latest"; "uniform"; "prioritised", by (1 - score) ** `power`;
    "near", by a bell curve of width `near` Elo around the learner's rating (unrated ones count as equal). Until there
    is a snapshot, samplers have nothing to draw: what else is in the mixture is played, else "random".

    `keep`: at most so many snapshots stay: the first, the last, and those between ever further apart with age.
    `seed`: of its own generator. Raises ValueError for an empty mixture, a weight that is not positive, an unknown
    agent.
    """

    def __init__(
        self,
        mixture: Mapping[str, float] | list[str] | tuple[str, ...] = ("latest", "uniform"),
        *,
        seed: int = 0,
        keep: int = 20,
        power: float = 2.0,
        near: float = 200.0,
    ) -> None:
        weights = dict(mixture) if isinstance(mixture, Mapping) else dict.fromkeys(mixture, 1.0)
        self.mixture = {str(name): _positive(f"weight of {name}", weight) for name, weight in weights.items()}
        if not self.mixture:
            raise ValueError(f"the mixture is empty: name samplers ({', '.join(SAMPLERS)}) or agents")
        if type(keep) is not int or keep < 2:
            raise ValueError(f"keep={keep!r}: allowed are numbers from 2")
        self.keep, self.power, self.near = keep, _positive("power", power), _positive("near", near)
        self.rng = Random(seed)
        self.anchors = {name: Opponent(name, make_agent(name)) for name in self.mixture if name not in SAMPLERS}
        self.snapshots: list[Opponent] = []
        """By step."""
        self.records: dict[str, Record] = {}
        """By key of the opponent."""
        self.ratings: dict[str, float] = {}
        """Elo by key, where a rating function gave any."""
        self.rating: float | None = None
        """The learner's."""
        self.recent: Counter[tuple[str, Player, Result]] = Counter()
        """Games by (opponent, the learner's seat, result) since `take`."""
        self._filler = Opponent("random", make_agent("random"))

    def draw(self) -> Opponent:
        """The opponent of the next episode."""
        names = [name for name in self.mixture if self.snapshots or name not in SAMPLERS]
        if not names:
            return self._filler
        name = self.rng.choices(names, [self.mixture[name] for name in names])[0]
        if name not in SAMPLERS:
            return self.anchors[name]
        return self.rng.choices(self.snapshots, self.weights(name))[0]

    def weights(self, sampler: str) -> list[float]:
        """How likely each snapshot is drawn, beside the others. Raises ValueError for an unknown sampler."""
        if sampler not in _WEIGHTS:
            raise ValueError(f"sampler={sampler!r}: allowed are {', '.join(SAMPLERS)}")
        return _WEIGHTS[sampler](self)

    def add(self, step: int, agent: Agent) -> list[Opponent]:
        """Put in a snapshot of the learner, taken at a step; what is thinned out is returned.

        Raises ValueError for a step that has one.
        """
        if any(known.step == step for known in self.snapshots):
            raise ValueError(f"there is a snapshot of step {step}")
        insort(self.snapshots, Opponent(f"step {step}", agent, step), key=lambda known: known.step or 0)
        gone = []
        while len(self.snapshots) > self.keep:
            gone.append(self.snapshots.pop(self._densest()))
            self.records.pop(gone[-1].key, None)
        return gone

    def _densest(self) -> int:
        """The snapshot that is missed least: with the smallest gap around it, measured by its age."""
        steps = [known.step or 0 for known in self.snapshots]
        gaps = [(steps[i + 1] - steps[i - 1]) / (steps[-1] - steps[i - 1]) for i in range(1, len(steps) - 1)]
        return 1 + gaps.index(min(gaps))

    def record(self, opponent: Opponent, seat: Player, score: float) -> None:
        """A game of the learner in a seat is over: 1 won, 0.5 drawn, 0 lost."""
        result = Result.of(score)
        self.recent[opponent.key, seat, result] += 1
        known = opponent.key in self.anchors or any(one.key == opponent.key for one in self.snapshots)
        if known:
            record = self.records.get(opponent.key, Record())
            self.records[opponent.key] = Record(*_add(record, result))

    def take(self) -> Counter[tuple[str, Player, Result]]:
        """The recent games, which are taken away."""
        taken, self.recent = self.recent, Counter()
        return taken

    def state(self) -> dict[str, Any]:
        """All but the agents, as JSON can hold it."""
        return {
            "snapshots": [known.step for known in self.snapshots],
            "records": {key: list(record) for key, record in self.records.items()},
            "ratings": self.ratings,
            "rating": self.rating,
            "recent": [[*key, count] for key, count in self.recent.items()],
            "rng": self.rng.getstate(),
        }

    def restore(self, state: Mapping[str, Any], snapshot: Callable[[int], Agent]) -> None:
        """Take up what `state` gave; `snapshot` gives the agent of a step."""
        steps = state["snapshots"]
        self.snapshots = [Opponent(f"step {step}", snapshot(step), step) for step in steps]
        self.records = {key: Record(*counts) for key, counts in state["records"].items()}
        self.ratings, self.rating = dict(state["ratings"]), state["rating"]
        self.recent = Counter({(key, seat, Result(result)): count for key, seat, result, count in state["recent"]})
        version, words, gauss = state["rng"]
        self.rng.setstate((version, tuple(words), gauss))


def _positive(what: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not (isfinite(value) and value > 0):
        raise ValueError(f"{what}: allowed are finite numbers above 0, got {value!r:.60}")
    return float(value)


def _add(record: Record, result: Result) -> tuple[int, int, int]:
    wins, draws, losses = record
    return wins + (result is Result.WIN), draws + (result is Result.DRAW), losses + (result is Result.LOSS)


def _latest(pool: OpponentPool) -> list[float]:
    return [float(known is pool.snapshots[-1]) for known in pool.snapshots]


def _uniform(pool: OpponentPool) -> list[float]:
    return [1.0] * len(pool.snapshots)


def _prioritised(pool: OpponentPool) -> list[float]:
    # The prior game keeps every score below 1, so that no weight is zero.
    return [(1 - pool.records.get(known.key, Record()).score) ** pool.power for known in pool.snapshots]


def _near(pool: OpponentPool) -> list[float]:
    gaps = [pool.ratings.get(known.key, pool.rating or 0.0) - (pool.rating or 0.0) for known in pool.snapshots]
    least = min([abs(gap) for gap in gaps], default=0.0)  # so that some weight is 1, however far away all are
    return [exp((least**2 - gap**2) / (2 * pool.near**2)) for gap in gaps]


_WEIGHTS: dict[str, Callable[[OpponentPool], list[float]]] = {
    "latest": _latest,
    "near": _near,
    "prioritised": _prioritised,
    "uniform": _uniform,
}
