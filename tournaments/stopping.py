"""When a tournament has told enough: intervals, ranks, a sequential test, budgets.

Intervals and ranks are the rating engine's, of all games as two-player results (`History.comparisons`), clustered by
block, around the tournament's anchors if it has any: for games of two players what the leaderboard shows over all of
them; for games of more, and for tasks, the pairwise comparisons of the same results, whose intervals come close to
those of the models that the leaderboard uses.

Who looks often and stops at the first good look sees intervals that are too narrow and ranks that are too certain. So
neither is believed before all agents have `LEAST` blocks and have met, if only through others, and a look waits until a
fiftieth of the games is new. The sequential test has its error rates however often one looks; it ends where it first
crosses a bound, in the order in which blocks ended.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.config import Tournament
from arena.tournaments.history import History, Result, scores
from arena.tournaments.ratings import Ratings, Results, rate
from arena.tournaments.schedule import Block
from arena.tournaments.sprt import Trial, trial
from arena.tournaments.terms import Sprt

__all__ = ["LEAST", "Spent", "Stopping"]

Ints = NDArray[np.int64]

LEAST = 12
"""Blocks of every agent before intervals and ranks are believed."""
_BEGIN = 10  # blocks before a sequential test has a verdict: the likeliest distribution of fewer is a guess
_LOOKS = 1000  # blocks from which on a sequential test looks at every second one, and so on
_FRESH = 50  # a look waits until a fiftieth of the games is new


class Spent(NamedTuple):
    """What a tournament has cost so far, void attempts too."""

    games: int = 0
    """Finished ones."""
    tokens: int = 0
    """Prompts and answers."""
    dollars: float = 0.0
    minutes: float = 0.0
    """Of this run."""


class Stopping:
    """The rules of one tournament; it remembers its last look, so that asking after every game is cheap."""

    def __init__(self, tournament: Tournament) -> None:
        self.asked = tournament
        self.far = ""
        """How far it is to the rules, in words, as of the last look."""
        self.ratings: Ratings | None = None
        """Of the last look."""
        self._looked = 0
        self._reason = ""
        self._test = _Test(tournament, tournament.stop.sprt) if tournament.stop.sprt else None

    @property
    def trial(self) -> Trial | None:
        """The sequential test as of the last game, if there is one."""
        return None if self._test is None else self._test.trial

    def reached(self, history: History, spent: Spent | None = None) -> str:
        """The rule that holds, in words; "": none. `spent`: None checks no budget."""
        return self._budget(spent) or self._sequential(history) or self._rated(history)

    def _budget(self, spent: Spent | None) -> str:
        stop = self.asked.stop
        for used, most, what in (
            (
                (spent.games, stop.games, "games"),
                (spent.tokens, stop.tokens, "tokens"),
                (spent.dollars, stop.dollars, "dollars"),
                (spent.minutes, stop.minutes, "minutes"),
            )
            if spent
            else ()
        ):
            if most is not None and used >= most:
                return f"budget: {used:,.10g} of {most:,.10g} {what} are spent"
        return ""

    def _sequential(self, history: History) -> str:
        if self._test is None:
            return ""
        told = self._test.look(history)
        self.far = f"log likelihood ratio {told.ratio:.2f} between {told.lower:.2f} and {told.upper:.2f}"
        if not told.verdict:
            return ""
        test, first, second = self._test.asked, *self._test.names
        elo = test.elo1 if told.verdict == "elo1" else test.elo0
        kind = "Elo" if test.model == "logistic" else "normalized Elo"
        return (
            f"sequential test: {first} is {elo:+g} {kind} to {second} rather than {_other(test, elo):+g} ({self.far})"
        )

    def _rated(self, history: History) -> str:
        """Intervals and ranks, at a look; between two looks what the last one found."""
        stop, fresh = self.asked.stop, history.finished - self._looked
        if (stop.interval is None and stop.ranks is None) or not history.finished:
            return ""
        if self._looked and fresh < max(1, history.finished / _FRESH):
            return self._reason
        self._looked = history.finished
        self._reason = self._look(history)
        return self._reason

    def _look(self, history: History) -> str:
        """Which rule holds now, once."""
        results, stop = history.comparisons(), self.asked.stop
        if not len(results.outcome):
            return ""
        start = self.ratings.parameters if self.ratings else None
        rated = self.ratings = rate(results, anchors=self.asked.anchors, start=start)
        blocks = int(_blocks_of_each(results).min())
        found = []
        if stop.interval is not None:
            widest = 2 * float(rated.half.max())
            found.append((f"widest interval {widest:.0f} of {stop.interval:g} Elo", widest <= stop.interval))
        if stop.ranks is not None:
            order = np.argsort(-rated.elo, kind="stable")
            surest = float(rated.standing.beats[order[:-1], order[1:]].min(initial=1.0))
            found.append((f"neighbours are told apart with {surest:.3f} of {stop.ranks:g}", surest >= stop.ranks))
        enough = blocks >= LEAST and len(np.unique(rated.groups)) == 1
        told = [] if self._test is None else [self.far]
        self.far = "; ".join([*told, *[text for text, _ in found], *[f"{blocks} of {LEAST} blocks"] * (blocks < LEAST)])
        return next((text for text, holds in found if holds and enough), "")


def _blocks_of_each(results: Results) -> Ints:
    """In how many clusters each player is."""
    clusters = 1 + int(results.cluster.max())
    seated = np.concatenate([results.first, results.second]) * clusters + np.tile(results.cluster, 2)
    return np.bincount(np.unique(seated) // clusters, minlength=len(results.players))


def _other(test: Sprt, elo: float) -> float:
    return test.elo0 if elo == test.elo1 else test.elo1


class _Test:
    """The blocks of two agents, counted by score as they end."""

    def __init__(self, tournament: Tournament, asked: Sprt) -> None:
        names = [agent.name for agent in tournament.agents]
        self.asked, self.names = asked, asked.agents or tuple(names[:2])
        self.first, self.second = [names.index(name) for name in self.names]
        self.blocks = [0] * (4 * tournament.repetitions + 1)
        self.games = [0, 0, 0]
        self.read = 0
        self.told: set[str] = set()
        self.trial = trial(asked, self.blocks, self.games)

    def look(self, history: History) -> Trial:
        """Take in the blocks that have ended since; one that is not over tells nothing yet."""
        for key in history.log[self.read :]:
            block = history.known[key]
            ours = sorted(block.table) == sorted([self.first, self.second])
            if ours and key not in self.told and not self.trial.verdict and history.over(block):
                self.told.add(key)
                self._count(history, block)
                if len(self.told) >= _BEGIN and len(self.told) % (1 + len(self.told) // _LOOKS) == 0:
                    self.trial = trial(self.asked, self.blocks, self.games)
        self.read = len(history.log)
        return self.trial

    def _count(self, history: History, block: Block) -> None:
        """A whole block by its score; of an incomplete one single games."""
        scored = [self._score(result) for result in history.results(block) if history.counts(result)]
        if len(scored) == history.maker.size(block):
            self.blocks[round(2 * sum(scored))] += 1
        else:
            for score in scored:
                self.games[round(2 * score)] += 1

    def _score(self, result: Result) -> float:
        return scores(result)[result.agents.index(self.first)]
