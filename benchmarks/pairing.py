"""What schedules save: seed blocks beside independent games, and adaptive pairing beside the other schedules.

Results are drawn from Davidson's model with a first-seat advantage of 30 Elo and a fifth to a quarter of draws between
equals; pairs come from the real schedules, intervals from the real rating engine. All lines: per cent of games saved at
the same width of the intervals, with the 95 % interval of a bootstrap over the repetitions as their spread.
"""

from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.config import Tournament, parse
from arena.tournaments.history import History, Result
from arena.tournaments.ratings import Results, rate
from arena.tournaments.schedule import Block, Fixture
from arena.tournaments.schedules import blocks
from benchmarks.timing import Figure, Spread

__all__ = ["Field", "against_other_schedules", "against_single_games", "savings"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ELO = 400 / np.log(10)
SEAT, DRAW = 30 / ELO, -0.7
MOST = 5000
SCHEDULES = {
    "adaptive": "adaptive",
    "random": "round-robin",
    "round robin": "round-robin",
    "Swiss": "swiss?rounds=10000",
    "gauntlet": "gauntlet",
}
_AT_ONCE = 12  # blocks
_BOOTSTRAPS = 2000


class Field(NamedTuple):
    """Who plays, and how narrow the mean interval is to be."""

    players: int = 24
    width: float = 200.0


def savings(seconds: float) -> list[Figure]:
    """Both tables; six repetitions for every second asked. Under a second: a few of small fields, as a trial."""
    if seconds < 1:
        return [*against_single_games(4), *against_other_schedules(3, Field(6, 400))]
    repetitions = round(6 * seconds)
    return [*against_single_games(4 * repetitions), *against_other_schedules(repetitions, Field())]


def against_single_games(repetitions: int) -> list[Figure]:
    """As many games of 8 players in blocks (one opening, both seats) and each with an opening of its own."""
    figures = []
    for luck, goal in ((0, None), (200, 15.0), (400, 30.0)):
        rng = np.random.default_rng(luck)
        widths = np.array([_widths(luck / ELO, rng) for _ in range(repetitions)])
        saved = _saved(widths[:, 0] ** 2, widths[:, 1] ** 2, luck)
        work = f"blocks, opening luck {luck} Elo, beside single games"
        ours, theirs = widths.mean(axis=0).tolist()
        figures.append(Figure(work, "% fewer", ours, theirs, saved, goal, note="columns: mean width"))
    return figures


def _widths(luck: float, rng: np.random.Generator) -> tuple[float, float]:
    """Mean widths of the intervals of as many games in blocks and alone."""
    players, each = 8, 40
    strengths = rng.normal(0, 200 / ELO, players)
    one, other = [np.repeat(side, each) for side in np.triu_indices(players, 1)]
    first, second = np.concatenate([one, other]), np.concatenate([other, one])
    shared = np.tile(rng.normal(0, luck, len(one)), 2)
    own = rng.normal(0, luck, len(first))
    found = []
    for opening, cluster in ((shared, np.tile(np.arange(len(one)), 2)), (own, np.arange(len(first)))):
        outcome = _outcomes(strengths[first] - strengths[second] + SEAT + opening, rng)
        names = tuple(map(str, range(players)))
        results = Results(names, ("game",), np.zeros(len(first), dtype=np.int64), first, second, outcome, cluster)
        found.append(2 * float(rate(results, "clustered").half.mean()))
    return found[0], found[1]


def _outcomes(gap: Floats, rng: np.random.Generator) -> Ints:
    """First won, draw, second won, as 0, 1, 2."""
    weights = np.exp(np.stack([gap / 2, np.full_like(gap, DRAW), -gap / 2]))
    u = rng.random(len(gap)) * weights.sum(axis=0)
    return np.asarray((u > weights[0]).astype(np.int64) + (u > weights[0] + weights[1]))


def against_other_schedules(repetitions: int, field: Field) -> list[Figure]:
    """Games until the mean interval is narrow enough; strengths are drawn anew for each repetition."""
    figures = []
    for sd, kind in ((400, "wide"), (200, "close")):
        games = {
            name: np.array([_games_needed(name, sd, seed, field) for seed in range(repetitions)]) for name in SCHEDULES
        }
        for name in list(SCHEDULES)[1:]:
            goal = 20.0 if (sd, name) == (400, "random") else None
            saved = _saved(games["adaptive"], games[name], sd)
            capped = int((games[name] >= MOST).sum())
            note = f"{capped} of {repetitions} still wider after {MOST} games" if capped else "columns: games"
            work = f"adaptive, {kind} field (sd {sd}), beside {name}"
            ours, theirs = float(games["adaptive"].mean()), float(games[name].mean())
            figures.append(Figure(work, "% fewer", ours, theirs, saved, goal, note=note))
    return figures


def _games_needed(name: str, sd: float, seed: int, field: Field) -> float:
    """Games of one tournament until the mean interval is narrow enough, interpolated between looks; at most MOST."""
    tournament = _tournament(SCHEDULES[name], seed, field.players)
    history = History(tournament)
    strengths = np.random.default_rng(seed).normal(0, sd / ELO, field.players)
    rng = np.random.default_rng([seed, 1])
    proposals = _random(seed, field.players) if name == "random" else blocks(history)
    look, before, width = 16 * field.players, 0, np.inf
    for block in _in_flight(proposals):
        for game in history.maker.games(block):
            history.add(_played(game, strengths, rng))
        if history.finished >= look:
            now = 2 * float(rate(history.comparisons()).half.mean())
            if now <= field.width and before:
                share = np.log(width / field.width) / np.log(width / now)
                return float(before * (history.finished / before) ** share)
            if now <= field.width:
                return float(history.finished)
            before, width, look = history.finished, now, history.finished + 40
        if history.finished >= MOST:
            break
    return float(MOST)


def _tournament(schedule: str, seed: int, players: int) -> Tournament:
    agents: list[Any] = [{"spec": f"mcts?simulations={k + 1}", "name": f"a{k}"} for k in range(players)]
    asked = {"games": ["TicTacToe"], "agents": agents, "seed": seed, "schedule": schedule, "concurrency": _AT_ONCE}
    return parse({**asked, "blocks": 1 if schedule.startswith("swiss") else 1000})


def _random(seed: int, players: int) -> Iterator[Block]:
    generator = Random(seed)
    for number in range(MOST):
        one, other = sorted(generator.sample(range(players), 2))
        yield Block(0, number, (one, other))


def _in_flight(proposals: Iterator[Block | None]) -> Iterator[Block]:
    """Blocks in the order in which they end: a dozen are always being played, and the oldest ends first."""
    open_: list[Block] = []
    while True:
        while len(open_) < _AT_ONCE and (block := next(proposals, None)) is not None:
            open_.append(block)
        if not open_:
            return
        yield open_.pop(0)


def _played(game: Fixture, strengths: Floats, rng: np.random.Generator) -> Result:
    one, other = game.agents
    outcome = int(_outcomes(np.array([strengths[one] - strengths[other] + SEAT]), rng)[0])
    returns = ((1.0, -1.0), (0.0, 0.0), (-1.0, 1.0))[outcome]
    return Result(game.id, game.block, game.entry, game.seed, game.agents, returns, (), False)


def _saved(ours: Floats, theirs: Floats, seed: int) -> Spread:
    """Per cent fewer on the mean of the repetitions, which are paired, and its 95 % interval."""
    drawn = np.random.default_rng(seed).integers(len(ours), size=(_BOOTSTRAPS, len(ours)))
    shares = 100 * (1 - ours[drawn].mean(axis=1) / theirs[drawn].mean(axis=1))
    low, high = np.quantile(shares, [0.025, 0.975])
    return Spread(100 * float(1 - ours.mean() / theirs.mean()), float(low), float(high))
