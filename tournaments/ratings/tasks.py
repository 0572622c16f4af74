"""Ratings of agents that answer questions or solve tasks: the task is the opponent (`arena.tournaments.ratings.rasch`).

Scores are from 0 to 1; a fraction counts as that much of a success (quasi-likelihood), k successes of n trials are a
score of k / n with n trials. Tasks are what is drawn at random, so intervals are clustered by task. They hold where
all agents met the same tasks. Where they did not, the difference between tasks is told from that between agents only
by the tasks in common, and by the guess that who met which was chance: agents with few common tasks are flagged.

>>> rows = [("Sums", agent, task, float(task < good)) for agent, good in (("ann", 7), ("bob", 3)) for task in range(9)]
>>> table = rate_tasks(TaskResults.of(rows))
>>> [round(elo) for elo in table.elo], table.wins.tolist(), table.flags[0]
([1213, 787], [7, 3], ('few games',))
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.ratings import rasch
from arena.tournaments.ratings.anchors import Anchors, anchored, belief
from arena.tournaments.ratings.bootstrap import ENOUGH, root
from arena.tournaments.ratings.components import components
from arena.tournaments.ratings.davidson import Belief, Fit, square, times
from arena.tournaments.ratings.flags import FEW_GAMES, Flags
from arena.tournaments.ratings.intervals import covariance
from arena.tournaments.ratings.pairs import Method, Ratings
from arena.tournaments.ratings.rasch import Answers, TaskPrior, scores
from arena.tournaments.ratings.verdict import Tally, groups, rated, worths

__all__ = ["FEW_COMMON", "Row", "TaskFit", "TaskPrior", "TaskResults", "fit_tasks", "rate_tasks"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Row = tuple[str, str, object, float]
"""Game, agent, task, score from 0 to 1."""

FEW_COMMON = "few common tasks"
"""The flag of agents most of whose tasks were not met by half of the others who played the game."""

_COMMON = 0.5
_WHOLE = 1e-9
_LEAST = 0.1  # of 1 - leverage


class TaskResults(NamedTuple):
    """Answers in columns; numbers index `players` and `tasks`."""

    players: tuple[str, ...]
    games: tuple[str, ...]
    tasks: tuple[object, ...]
    family: Ints
    """Shape (tasks,): the game of each task."""
    agent: Ints
    task: Ints
    score: Floats
    """From 0 to 1; more answers of one agent to one task are trials of it."""
    trials: Floats | None = None
    """How many trials a score is the mean of; None: 1."""

    @classmethod
    def of(cls, rows: Iterable[Row], players: Sequence[str] = ()) -> "TaskResults":
        """From rows; `players`: those to list first, played or not. Raises ValueError for a score outside 0 to 1."""
        listed = list(rows)
        names = tuple(dict.fromkeys([*players, *[row[1] for row in listed]]))
        games = tuple(dict.fromkeys([row[0] for row in listed]))
        tasks = tuple(dict.fromkeys([(row[0], row[2]) for row in listed]))
        number, place, which = [{name: k for k, name in enumerate(table)} for table in (names, games, tasks)]
        return cls(
            names,
            games,
            tuple([task for _, task in tasks]),
            np.array([place[game] for game, _ in tasks], dtype=np.int64),
            np.array([number[row[1]] for row in listed], dtype=np.int64),
            np.array([which[row[0], row[2]] for row in listed], dtype=np.int64),
            np.array([row[3] for row in listed], dtype=np.float64),
        )


class TaskFit(NamedTuple):
    """A fit and its covariance, in natural units: strengths, then the families' mean difficulties and log spreads."""

    fit: Fit
    covariance: Floats
    method: str
    difficulty: Floats
    """Of each task, given its answers. Of a task that nobody met it is its family's mean."""
    deviation: Floats
    """Its standard deviation, strengths being known."""


def rate_tasks(
    results: TaskResults, method: Method = "auto", prior: TaskPrior | None = None, *, anchors: Anchors | None = None
) -> Ratings:
    """Fit all answers at once; intervals and `anchors` as in `pairs.rate`, clusters being tasks.

    Raises ValueError if there are no answers.

    Wins are solved trials, losses those that scored nothing, draws the rest. A game's seat is its average task, and
    worth its difficulty for the average agent.
    """
    fixed = anchored(results.players, anchors or {})
    fitted = fit_tasks(results, method, prior, fixed)
    n = len(results.players)
    met = _met(results)
    group, counts = groups(met @ met.T), _tally(results)
    strength, covariance = fitted.fit.parameters[:n], fitted.covariance[:n, :n]
    said = _flags(results, met > 0, group, [player for player, _, _ in fixed])
    seats = {}
    for k, name in enumerate(results.games):
        term = np.zeros(len(fitted.covariance))
        term[:n], term[n + k] = -1 / n, 1.0
        seats[name] = worths(["average task"], term[None], fitted.fit.parameters, fitted.covariance)
    return rated(results.players, strength, covariance, counts, group, said, seats, fitted.method, fixed)


def fit_tasks(
    results: TaskResults,
    method: Method = "auto",
    prior: TaskPrior | None = None,
    fixed: Sequence[tuple[int, float, float]] = (),
    replicates: int = 400,
) -> TaskFit:
    """The fit that `rate_tasks` shows."""
    _check(results)
    solved, tried = _sums(results)
    every = np.column_stack([results.family, solved, tried])
    pattern, which, count = np.unique(every, axis=0, return_inverse=True, return_counts=True)
    n, families = len(results.players), len(results.games)
    family = pattern[:, 0].astype(np.int64)
    answers = Answers(pattern[:, 1 : n + 1], pattern[:, n + 1 :], family, count.astype(np.float64), families)
    met = _met(results)
    plain = rasch.belief(n, families, prior or TaskPrior())
    if fixed:
        plain.mean[n : n + families] += np.mean([strength for _, strength, _ in fixed])
    held = belief(components(met @ met.T), plain, fixed)
    found = rasch.fit(answers, held)
    shown, how = covariance(
        method,
        lambda: met.sum(axis=1),
        found.fit.inverse,
        lambda: _clustered(found.fit, answers),
        lambda: _bootstrap(found.fit, answers, held, replicates),
    )
    task = which.ravel()
    return TaskFit(found.fit, shown, how, found.difficulty[task], found.deviation[task])


def _clustered(fitted: Fit, answers: Answers) -> Floats:
    """The sandwich estimator over tasks, as in `sandwich`; a task tells of all who met it, so that its leverage in what
    it tells of one of them is that of one answer, the mean of all."""
    slope, bread = scores(answers, fitted.parameters), fitted.inverse()
    met, precision = float(answers.tasks @ (answers.tried > 0).sum(axis=1)), square(fitted.precision)
    free = float(np.count_nonzero(np.diag(bread)) - np.trace(bread @ precision))
    meat = (answers.tasks[:, None] * slope).T @ slope / max(1 - free / met, _LEAST)
    found = bread @ (meat + precision) @ bread
    return np.asarray((found + found.T) / 2, dtype=np.float64)


def _bootstrap(fitted: Fit, answers: Answers, held: Belief, replicates: int) -> Floats:
    """The covariance of replicates, made as in `arena.tournaments.ratings.bootstrap`."""
    rng, spread = np.random.default_rng(0), root(held.precision)
    off = np.empty((replicates, len(fitted.parameters)))
    for k in range(replicates):
        again = answers._replace(tasks=rng.poisson(answers.tasks).astype(np.float64))
        moved = held._replace(mean=held.mean + times(spread, rng.standard_normal(len(held.mean))))
        off[k] = rasch.fit(again, moved, fitted.parameters, ENOUGH).fit.parameters - fitted.parameters
    return np.asarray(np.cov(off, rowvar=False), dtype=np.float64)


def _check(results: TaskResults) -> None:
    rows = {len(results.agent), len(results.task), len(results.score)}
    if len(rows) > 1 or (results.trials is not None and {len(results.trials)} != rows):
        raise ValueError("columns differ in length")
    if not len(results.score):
        raise ValueError("nobody played: there is nothing to rate")
    if not ((results.score >= 0) & (results.score <= 1)).all():
        raise ValueError("a score is outside 0 to 1")
    if results.trials is not None and not (np.isfinite(results.trials) & (results.trials > 0)).all():
        raise ValueError("trials must be above 0")
    if len(results.family) != len(results.tasks):
        raise ValueError(f"{len(results.tasks)} tasks and {len(results.family)} families: there must be as many")
    for name, column, size in (
        ("agent", results.agent, len(results.players)),
        ("task", results.task, len(results.tasks)),
        ("family", results.family, len(results.games)),
    ):
        if not 0 <= column.min() <= column.max() < size:
            raise ValueError(f"a number of {name} is outside 0 to {size - 1}")


def _trials(results: TaskResults) -> Floats:
    return np.ones(len(results.score)) if results.trials is None else results.trials


def _sums(results: TaskResults) -> tuple[Floats, Floats]:
    """Successes and trials, each of shape (tasks, players)."""
    tasks, n = len(results.tasks), len(results.players)
    place, trials = results.task * n + results.agent, _trials(results)
    solved = np.bincount(place, results.score * trials, tasks * n).astype(np.float64)
    return solved.reshape(tasks, n), np.bincount(place, trials, tasks * n).astype(np.float64).reshape(tasks, n)


def _met(results: TaskResults) -> Floats:
    """Shape (players, tasks): 1 where an agent met a task."""
    met = np.zeros((len(results.players), len(results.tasks)))
    met[results.agent, results.task] = 1.0
    return met


def _tally(results: TaskResults) -> Tally:
    trials = _trials(results)
    solved = results.score * trials
    whole = (np.abs(solved - np.rint(solved)) < _WHOLE) & (np.abs(trials - np.rint(trials)) < _WHOLE)
    n = len(results.players)
    wins, draws, losses = [
        np.rint(np.bincount(results.agent, weight, n)).astype(np.int64)
        for weight in (whole * solved, ~whole * trials, whole * (trials - solved))
    ]
    return wins, draws, losses


def _flags(results: TaskResults, met: NDArray[np.bool_], group: Ints, anchors: Sequence[int]) -> Flags:
    played = met.sum(axis=1) > 0
    few = met.sum(axis=1) < FEW_GAMES
    n = len(results.players)
    apart = len(np.unique(group[played])) > 1
    thin = _thin(results, met)
    score = np.bincount(results.agent, results.score, n)
    answers = np.bincount(results.agent, minlength=n)
    said: list[tuple[str, ...]] = []
    for k in range(n):
        anchor = ["anchor"] * (k in anchors)
        if not played[k]:
            said.append(("no games", *anchor))
            continue
        words = ["all solved"] * bool(score[k] == answers[k]) + ["none solved"] * bool(score[k] == 0)
        said.append(
            (*words, *[FEW_COMMON] * bool(thin[k]), *["few games"] * bool(few[k]), *["separate group"] * apart, *anchor)
        )
    return tuple(said)


def _thin(results: TaskResults, met: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether under half of an agent's tasks were met by half of the others who met any of that game."""
    common = np.zeros(met.shape, dtype=np.bool_)
    for family in range(len(results.games)):
        own = results.family == family
        part = met[:, own]
        others = part.any(axis=1).sum() - 1
        common[:, own] = part.sum(axis=0) - part >= max(_COMMON * others, 0.5)
    share = (met & common).sum(axis=1) / np.maximum(met.sum(axis=1), 1)
    thin: NDArray[np.bool_] = (share < _COMMON) & met.any(axis=1) & (met.any(axis=1).sum() > 1)
    return thin
