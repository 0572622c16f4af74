"""What a tournament has come to so far, as schedules and stopping rules see it; it grows while games end."""

from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from arena.tournaments.config import Tournament
from arena.tournaments.schedule import Block, Fixture, Maker, rotations

if TYPE_CHECKING:  # numpy is loaded only by schedules and rules that rate
    from arena.tournaments.ratings import Results

__all__ = ["History", "Result", "scores"]


class Result(NamedTuple):
    """One finished game, agents as numbers of the tournament's list."""

    id: str
    block: str
    entry: int
    seed: int
    agents: tuple[int, ...]
    """In the seats that are not the house's."""
    returns: tuple[float, ...]
    """Of those seats."""
    forfeits: tuple[int, ...]
    """Positions in `agents`."""
    truncated: bool


def scores(result: Result) -> list[float]:
    """The share of the other seats that each seat beat, equal ones by half; alone: 0.

    A higher return wins; who forfeited is behind all who did not.

    >>> scores(Result("", "", 0, 0, (4, 7, 9), (1.0, -1.0, 1.0), (2,), False))
    [1.0, 0.5, 0.0]
    """
    return _beaten([(seat not in result.forfeits, earned) for seat, earned in enumerate(result.returns)])


def _beaten(keys: Sequence[Any]) -> list[float]:
    others = max(len(keys) - 1, 1)
    return [(sum((key > other) + 0.5 * (key == other) for other in keys) - 0.5) / others for key in keys]


class History:
    """The results by block. Schedules are functions of it: after a kill the same history gives the same games."""

    def __init__(self, tournament: Tournament) -> None:
        self.tournament, self.maker = tournament, Maker(tournament)
        self.blocks: defaultdict[str, dict[str, Result]] = defaultdict(dict)
        """By block and game."""
        self.left: set[str] = set()
        """Games that stay void: nobody waits for them."""
        self.known: dict[str, Block] = {}
        """Blocks of which a game is finished or stays void, by their keys."""
        self.log: list[str] = []
        """The key of the block of every game that has ended or stays void, in order."""
        self.finished = 0
        self._left: defaultdict[str, set[str]] = defaultdict(set)
        self._pairs = _Comparisons(len(tournament.agents))

    def add(self, result: Result) -> bool:
        """A game has ended; False if that was known."""
        games = self.blocks[result.block]
        if result.id in games:
            return False
        games[result.id] = result
        self.left.discard(result.id)
        self._left[result.block].discard(result.id)
        self._know(result.block, result.entry, result.seed, result.agents)
        self.finished += 1
        if self.counts(result):
            self._pairs.add(result)
        return True

    def leave(self, fixture: Fixture) -> None:
        """A game stays void."""
        self.left.add(fixture.id)
        self._left[fixture.block].add(fixture.id)
        self._know(fixture.block, fixture.entry, fixture.seed, fixture.agents)

    def _know(self, key: str, entry: int, seed: int, agents: tuple[int, ...]) -> None:
        self.log.append(key)
        if key not in self.known:
            self.known[key] = Block(entry, seed - self.tournament.seed, min(rotations(agents)))

    def counts(self, result: Result) -> bool:
        """Whether a game scores: truncated ones may be left out, as the tournament declares."""
        return not (result.truncated and self.tournament.truncated == "drop")

    def over(self, block: Block) -> bool:
        """Whether nothing of it is to be played any more."""
        key = self.maker.key(block)
        there, left = self.blocks.get(key, {}), self._left.get(key, set())
        if len(there) + len(left) < self.maker.size(block):
            return False
        return all(game.id in there or game.id in left for game in self.maker.games(block))

    def unfinished(self) -> Iterator[Block]:
        """Known blocks of which games are still to be played."""
        for block in list(self.known.values()):
            if not self.over(block):
                yield block

    def results(self, block: Block) -> list[Result]:
        """What is finished of a block."""
        return list(self.blocks.get(self.maker.key(block), {}).values())

    def given_up(self, block: Block) -> bool:
        """Whether it is over without a single result."""
        return not self.blocks.get(self.maker.key(block)) and self.over(block)

    def points(self, block: Block) -> dict[int, float]:
        """What a block is worth to each of its agents: the share of the others whose mean score is lower, ties half.

        {} where no game counts.
        """
        earned: defaultdict[int, list[float]] = defaultdict(list)
        for result in self.results(block):
            if self.counts(result):
                for agent, score in zip(result.agents, scores(result), strict=True):
                    earned[agent].append(score)
        means = {agent: round(sum(values) / len(values), 9) for agent, values in sorted(earned.items())}
        return dict(zip(means, _beaten(list(means.values())), strict=True))

    def comparisons(self) -> "Results":
        """All games that count as two-player results, clustered by block, for the rating engine.

        A game of k > 2 seats is the comparisons of all its pairs, 2/k each (k - 1 in all); a task compares every two
        of n agents on the same seed, 2/n each, with turns at being the first.
        """
        return self._pairs.results(self.tournament)


class _Comparisons:
    """Columns of two-player results that grow."""

    def __init__(self, agents: int) -> None:
        self.agents = agents
        self.columns = [array("q") for _ in range(5)]  # game, first, second, outcome, cluster
        self.weight = array("d")
        self.clusters: dict[object, int] = {}
        self.answers: defaultdict[tuple[int, int], dict[int, list[float]]] = defaultdict(dict)

    def add(self, result: Result) -> None:
        if len(result.agents) == 1:
            self._answer(result)
            return
        seated = zip(result.agents, scores(result), strict=True)
        for (one, score), (other, theirs) in combinations(seated, 2):
            if one != other:
                self._row(result.entry, one, other, score - theirs, result.block, 2 / len(result.agents))

    def _answer(self, result: Result) -> None:
        """Compare a task's result with those that others have on its seed."""
        (agent,), (value,) = result.agents, result.returns
        item = result.entry, result.seed
        there = self.answers[item]
        for other, theirs in [(other, value) for other, values in there.items() for value in values if other != agent]:
            if (agent < other) == (agent + other + result.seed) % 2:
                self._row(result.entry, agent, other, value - theirs, item, 2 / self.agents)
            else:
                self._row(result.entry, other, agent, theirs - value, item, 2 / self.agents)
        there.setdefault(agent, []).append(value)

    def _row(self, entry: int, first: int, second: int, lead: float, cluster: object, weight: float) -> None:
        number = self.clusters.setdefault(cluster, len(self.clusters))
        outcome = 1 if lead == 0 else 0 if lead > 0 else 2
        for column, value in zip(self.columns, (entry, first, second, outcome, number), strict=True):
            column.append(value)
        self.weight.append(weight)

    def results(self, tournament: Tournament) -> "Results":
        import numpy as np

        from arena.tournaments.ratings import Results

        names = tuple([agent.name for agent in tournament.agents])
        game, first, second, outcome, cluster = [np.array(column, dtype=np.int64) for column in self.columns]
        labels = tuple([entry.label for entry in tournament.games])
        return Results(names, labels, game, first, second, outcome, cluster, np.array(self.weight))
