"""Plackett-Luce rankings with ties (the Davidson-Luce model), of sides that are one player or several.

A ranking is a row of choices: who comes first of all, who then of the rest. Where r remain, with worths w = e^value,
they are shared first by a set of t with weight e^c (product of its worths)^(1/t); c = 0 for t = 1, and otherwise it is
a parameter of the table, of r and of t. Only ties that a table has shown can happen there, and between two always, as
in Davidson's model, which this is for two sides. A tie of all who remain tells nothing but that: of games with one
winner and losers alike the model says who wins, and no more.

Plackett, *The analysis of permutations*, Applied Statistics 24 (1975). Firth, Kosmidis & Turner, *Davidson-Luce model
for multi-item choice with ties* (2019). Turner, van Etten, Firth & Kosmidis, *Modelling rankings in R: the PlackettLuce
package*, Computational Statistics 35 (2020), where c does not depend on r.
"""

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.tournaments.ratings.davidson import ELO, Prior
from arena.tournaments.ratings.likelihood import Block

__all__ = ["Layout", "Rankings", "blocks", "dense", "layout"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Order = tuple[int, int, int]

_WAYS = 20_000  # in which a tie may be formed
_CELLS = 2_000_000  # rows times alternatives worked on at once


class Rankings(NamedTuple):
    """Games with the same number of sides, k, of at most q players each."""

    table: Ints
    """Shape (rows,): games of one number have ties, and the worth of seats, in common."""
    members: Ints
    """Shape (rows, k, q): players; -1 where a side has fewer."""
    term: Ints
    """Shape (rows, k): the number of each side's seat term."""
    ranks: Ints
    """Shape (rows, k): the lowest is best, equal ranks are ties."""
    cluster: Ints
    weight: Floats
    times: Floats


class Layout(NamedTuple):
    """Where parameters stand: strengths of players, seat terms, tie parameters."""

    players: int
    terms: int
    ties: tuple[Order, ...]
    """Table, how many remain, how many share."""
    mean: Floats
    precision: Floats


def dense(keys: Floats) -> Ints:
    """Ranks from 0 in every row, equal keys alike; the lowest key is best.

    >>> dense(np.array([[-3.0, -1.0, -3.0, 0.0]])).tolist()
    [[0, 1, 0, 2]]
    """
    order = np.argsort(keys, axis=1, kind="stable")
    ordered = np.take_along_axis(keys, order, axis=1)
    steps = np.zeros(keys.shape, dtype=np.int64)
    steps[:, 1:] = np.cumsum(ordered[:, 1:] != ordered[:, :-1], axis=1)
    ranks = np.empty_like(steps)
    np.put_along_axis(ranks, order, steps, axis=1)
    return ranks


def layout(players: int, terms: int, rankings: Sequence[Rankings], prior: Prior) -> Layout:
    """Count the parameters and say what is known of them before.

    Two seats of a table differ by the prior's seat term. Ties of any size are as frequent among equals, before anything
    is seen, as draws are.
    """
    ties = tuple(sorted({tie for ranking in rankings for tie in _ties(ranking)}))
    usual = [prior.draw_mean + np.log(remain / 2 / comb(remain, share)) for _, remain, share in ties]
    sizes = (players, terms, len(ties))
    precision = np.repeat([(prior.strength / ELO) ** -2, 2 * (prior.seat / ELO) ** -2, prior.draw**-2], sizes)
    return Layout(players, terms, ties, np.concatenate([np.zeros(players + terms), np.array(usual)]), precision)


def blocks(plan: Layout, rankings: Sequence[Rankings]) -> list[Block]:
    """The choices that rankings are made of."""
    return [block for ranking in rankings for block in _blocks(plan, ranking)]


def _sorted(ranking: Rankings) -> tuple[Ints, Ints]:
    """Sides from best to worst, and how many share each place that a group begins at, or 0."""
    order = np.argsort(ranking.ranks, axis=1, kind="stable")
    ranks = np.take_along_axis(ranking.ranks, order, axis=1)
    same = (ranks[:, :, None] == ranks[:, None, :]).sum(axis=2)
    begins = np.ones(ranks.shape, dtype=np.bool_)
    begins[:, 1:] = ranks[:, 1:] != ranks[:, :-1]
    return order, np.where(begins, same, 0)


def _ties(ranking: Rankings) -> set[Order]:
    _, shares = _sorted(ranking)
    size = shares.shape[1]
    found = {(int(table), 2, 2) for table in np.unique(ranking.table)} if size == 2 else set()
    for place in range(size - 1):
        tied = shares[:, place] > 1
        pairs = np.unique(np.stack([ranking.table[tied], shares[tied, place]]), axis=1)
        found |= {(int(table), size - place, int(share)) for table, share in pairs.T}
    return found


def _blocks(plan: Layout, ranking: Rankings) -> list[Block]:
    order, shares = _sorted(ranking)
    nobody = len(plan.mean)
    parts = np.where(ranking.members < 0, nobody, ranking.members)
    parts = np.concatenate([parts, plan.players + ranking.term[:, :, None]], axis=2)
    parts = np.take_along_axis(parts, order[:, :, None], axis=1)
    made = []
    for table in np.unique(ranking.table):
        for place in range(order.shape[1] - 1):
            rows = np.flatnonzero((ranking.table == table) & (shares[:, place] > 0))
            remain = order.shape[1] - place
            own = [number for number, tie in enumerate(plan.ties) if tie[:2] == (int(table), remain)]
            features = _features(remain, [plan.ties[number][2] for number in own])
            ties = np.full((len(own), parts.shape[2]), nobody)
            ties[:, 0] = plan.players + plan.terms + np.array(own, dtype=np.int64)
            for some in np.array_split(rows, 1 + len(rows) * len(features) // _CELLS) if len(rows) else ():
                index = np.concatenate([parts[some, place:], np.broadcast_to(ties, (len(some), *ties.shape))], axis=1)
                share = shares[some, place]
                seen = (np.arange(remain) < share[:, None]) / share[:, None]
                which = np.array([plan.ties[number][2] for number in own], dtype=np.int64) == share[:, None]
                columns = ranking.cluster[some], ranking.weight[some], ranking.times[some]
                made.append(Block(features, index, np.concatenate([seen, which], axis=1), *columns))
    return made


def _features(remain: int, shares: Sequence[int]) -> Floats:
    """Of every set that may come first: its players' shares, and which tie it is."""
    for share in shares:
        if comb(remain, share) > _WAYS:
            raise ValueError(f"a tie of {share} among {remain} can be formed in over {_WAYS} ways: rate sides as teams")
    sets = [chosen for share in (1, *shares) for chosen in combinations(range(remain), share)]
    features = np.zeros((len(sets), remain + len(shares)))
    for row, chosen in enumerate(sets):
        features[row, list(chosen)] = 1 / len(chosen)
        if len(chosen) > 1:
            features[row, remain + shares.index(len(chosen))] = 1.0
    return features
