"""One rating over many games: a joint fit in which every game has equal weight, and games are what is sampled.

What a game's own ratings (`Ratings` of any kind: pairs, ranked, teams, tasks) say is a vector y_g with covariance S_g,
known up to a constant: y_g = theta + delta_g + constant + noise, for the agents that play it. theta minimises the sum
of |y_g - theta - constant|^2 over games: each has the weight of every other for everybody who plays it, however many
results it has. (Weights by information were tried: who does unusually well in a game is known less well there, weighs
less, and the joint rating is biased.) One game gives its own ratings.

The deviations delta have the variance tau^2, found by moments over all games and agents (DerSimonian & Laird,
*Meta-analysis in clinical trials*, Controlled Clinical Trials 7, 1986); each game's own ratings shrink towards theta
accordingly (best linear unbiased prediction).

Intervals say how theta would be with other games of the kind. With 8 games or more they come from resampling games,
with the correction for their number and Student's t; with fewer from S_g and tau^2, which is pooled over agents, and t
of the degrees of freedom that tau^2 has; with one game they are its own.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.ratings.anchors import Anchors, anchored
from arena.tournaments.ratings.components import components
from arena.tournaments.ratings.davidson import ELO
from arena.tournaments.ratings.pairs import CENTER, Z95, Ratings, Seats, t_quantile
from arena.tournaments.ratings.standing import standing

__all__ = ["Overall", "overall"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_RESAMPLED = 8  # games from which on resampling them says enough
_OWN = ("anchor", "separate group")  # flags that are said of the whole, not of its parts
_NOTHING = 1e-9  # share of the largest eigenvalue below which a direction is not known


class Overall(NamedTuple):
    """The joint fit."""

    ratings: Ratings
    """Over all games; wins, draws and losses are sums."""
    spread: float
    """tau: Elo points by which an agent's rating in one game differs from its overall one, beyond chance."""
    games: dict[str, Floats]
    """By game: every player's rating there, shrunk towards the overall one, which is also that of who did not play."""


class _Part(NamedTuple):
    """What one game says of the players of one of its groups, about their mean."""

    game: int
    players: Ints
    mean: Floats
    covariance: Floats
    own: Floats
    """Takes the mean of the players from each."""


def overall(
    games: Mapping[str, Ratings], *, anchors: Anchors | None = None, resamples: int = 1000, seed: int = 0
) -> Overall:
    """Fit the ratings of several games, which list the same players in the same order.

    Raises ValueError where there is no game, or players differ.
    """
    names = list(games)
    if not names:
        raise ValueError("no game is rated: there is nothing to join")
    tables = [games[name] for name in names]
    players = tables[0].players
    for name, table in games.items():
        if table.players != players:
            raise ValueError(f"{name} has other players, or another order: {_few(table.players)}, not {_few(players)}")
    parts = [part for number, table in enumerate(tables) for part in _parts(number, table)]
    joint = _Joint(parts, len(players), len(tables))
    spread = joint.spread()
    fixed = anchored(players, anchors or {})
    center, origin = _scale(joint.groups, fixed)
    elo = origin + center @ joint.fit(np.ones(len(tables)))
    covariance = joint.covariance(spread, center, resamples, seed)
    shown = (covariance + covariance.T) / 2
    half = Z95 * np.sqrt(np.maximum(np.diag(shown), 0.0))
    seats: Seats = {game: worth for table in tables for game, worth in table.seats.items()}
    tally = [np.sum([getattr(table, what) for table in tables], axis=0) for what in ("wins", "draws", "losses")]
    wins, draws, losses = tally
    rated = Ratings(
        players, elo, half, wins, draws, losses, joint.groups, _flags(tables, joint.groups, fixed), shown, seats,
        joint.method(), standing(elo, shown, joint.groups),
    )  # fmt: skip
    return Overall(rated, spread, {name: joint.shrunk(k, elo, spread) for k, name in enumerate(names)})


def _scale(groups: Ints, fixed: Sequence[tuple[int, float, float]]) -> tuple[Floats, Floats]:
    """What is taken from ratings, and what is added: the anchors of a group, or all of it, keep their mean.

    Anchors, hard or soft, only shift the scale here: what lies between them is what the games say.
    """
    center, origin = np.eye(len(groups)), np.full(len(groups), CENTER)
    for group in np.unique(groups):
        mine = groups == group
        known = [(player, CENTER + ELO * strength) for player, strength, _ in fixed if mine[player]]
        of = [player for player, _ in known] or np.flatnonzero(mine).tolist()
        center[np.ix_(mine, of)] -= 1 / len(of)
        if known:
            origin[mine] = sum(elo for _, elo in known) / len(known)
    return center, origin


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def _parts(number: int, table: Ratings) -> list[_Part]:
    """The groups of a game in which at least two have played."""
    found = []
    for group in np.unique(table.groups):
        players = np.flatnonzero((table.groups == group) & (table.played > 0))
        if len(players) > 1:
            own = np.eye(len(players)) - 1 / len(players)
            covariance = own @ table.covariance[np.ix_(players, players)] @ own
            found.append(_Part(number, players, own @ table.elo[players], covariance, own))
    return found


def _inverse(matrix: Floats) -> Floats:
    """The pseudo-inverse of a symmetric matrix that is not negative."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    known = values > _NOTHING * max(float(values[-1]), 1e-300)
    inverse: Floats = (vectors[:, known] / values[known]) @ vectors[:, known].T
    return inverse


class _Joint:
    """The parts together."""

    def __init__(self, parts: list[_Part], players: int, games: int) -> None:
        self.parts, self.players, self.games = parts, players, games
        self.linear, self.quadratic = np.zeros((games, players)), np.zeros((games, players, players))
        met = np.zeros((players, players))
        for part in parts:
            self.linear[part.game, part.players] += part.own @ part.mean
            self.quadratic[part.game][np.ix_(part.players, part.players)] += part.own
            met[np.ix_(part.players, part.players)] = 1.0
        self.groups = components(met)
        self.rated = sorted({part.game for part in parts})

    def fit(self, times: Floats) -> Floats:
        """theta, with every game as often as `times` says; of mean 0 in each group."""
        theta: Floats = _inverse(np.tensordot(times, self.quadratic, 1)) @ (times @ self.linear)
        return theta

    def method(self) -> str:
        """How the intervals are made."""
        return "games resampled" if len(self.rated) >= _RESAMPLED else "games pooled"

    def spread(self) -> float:
        """tau, from the scatter of games about theta, less what chance explains of it."""
        if len(self.rated) < 2:
            return 0.0
        theta = self.fit(np.ones(self.games))
        inverse = _inverse(self.quadratic.sum(axis=0))
        seen = chance = space = 0.0
        for part in self.parts:
            own = part.own
            off = part.mean - own @ theta[part.players]
            left = own - own @ inverse[np.ix_(part.players, part.players)] @ own
            seen += float(off @ off)
            chance += float(np.trace(left @ part.covariance @ left.T))
            space += float(np.trace(left @ own @ left.T))
            for other in self.parts:
                if other is not part:
                    share = own @ inverse[np.ix_(part.players, other.players)] @ other.own
                    chance += float(np.trace(share @ other.covariance @ share.T))
                    space += float(np.trace(share @ share.T))
        return float(np.sqrt(max(seen - chance, 0.0) / space)) if space > 0 else 0.0

    def covariance(self, spread: float, center: Floats, resamples: int, seed: int) -> Floats:
        """Of the ratings as they are shown."""
        if len(self.rated) >= _RESAMPLED:
            return self._resampled(center, resamples, seed)
        inverse = _inverse(self.quadratic.sum(axis=0))
        meat = np.zeros((self.players, self.players))
        for part in self.parts:
            own = part.own
            scatter = part.covariance + spread**2 * own
            meat[np.ix_(part.players, part.players)] += own @ scatter @ own
        pooled: Floats = center @ inverse @ meat @ inverse @ center.T
        return pooled * self._student()

    def _student(self) -> float:
        """What t makes wider, squared: the deviations' variance is itself an estimate."""
        if len(self.rated) < 2:
            return 1.0
        known = sum(len(part.players) - 1 for part in self.parts)
        free = known - (self.players - len(np.unique(self.groups)))
        return (t_quantile(max(free, 1)) / Z95) ** 2

    def _resampled(self, center: Floats, resamples: int, seed: int) -> Floats:
        """The scatter over games drawn with replacement; a draw that leaves out who played few games is drawn again."""
        rng, count = np.random.default_rng(seed), len(self.rated)
        drawn = np.zeros((resamples, self.games))
        drawn[:, self.rated] = rng.multinomial(count, np.full(count, 1 / count), resamples)
        there = np.einsum("gii->gi", self.quadratic) > 0
        played = there.any(axis=0)
        for row in range(resamples):
            while not (drawn[row] @ there > 0)[played].all():
                drawn[row] = 0.0
                drawn[row, self.rated] = rng.multinomial(count, np.full(count, 1 / count))
        fits = np.array([center @ self.fit(times) for times in drawn])
        scale = count / (count - 1) * (t_quantile(count - 1) / Z95) ** 2
        covariance: Floats = np.cov(fits.T) * scale
        return covariance

    def shrunk(self, game: int, elo: Floats, spread: float) -> Floats:
        """One game's ratings: theirs where they are sure, the overall ones where they are not."""
        found = elo.copy()
        for part in self.parts:
            if part.game == game:
                own = part.own
                off = part.mean - own @ elo[part.players]
                trust = spread**2 * own @ _inverse(part.covariance + spread**2 * own)
                single = len(self.rated) < 2
                found[part.players] += off if single else trust @ off
        return found


def _flags(
    tables: list[Ratings], groups: Ints, fixed: Sequence[tuple[int, float, float]]
) -> tuple[tuple[str, ...], ...]:
    """What there is to say: of who has no game, what every game says of it, and who cannot be compared."""
    played = np.sum([table.played for table in tables], axis=0) > 0
    apart = len(np.unique(groups[played])) > 1
    found: list[tuple[str, ...]] = []
    for player in range(len(groups)):
        if not played[player]:
            found.append(("no games",))
            continue
        own = [table.flags[player] for table in tables if table.played[player]]
        common = [
            flag for flag in own[0] if all(flag in flags for flags in own) and flag not in ("anchor", "separate group")
        ]
        anchor = ["anchor"] if player in {at for at, _, _ in fixed} else []
        found.append((*common, *["separate group"] * apart, *anchor))
    return tuple(found)
