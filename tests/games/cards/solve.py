"""The value of a two-player zero-sum game by linear programming in sequence form.

Source: D. Koller, N. Megiddo & B. von Stengel, "Fast algorithms for finding randomized strategies in game trees",
STOC 1994. An information set is what the seat to act observes, so a game whose observation says too much or too
little has another value than the published one.
"""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from arena.game import TurnGame

Matrix = NDArray[np.float64]
Sequence = tuple[str, str] | None  # the last information set and action of a seat


class _Plan:
    """Sequences and information sets of one seat, and the constraints that tie them."""

    def __init__(self) -> None:
        self.sequences: dict[Sequence, int] = {None: 0}
        self.parents: dict[str, Sequence] = {}
        self.choices: dict[str, tuple[str, ...]] = {}

    def meet(self, view: str, parent: Sequence, legal: tuple[str, ...]) -> None:
        assert self.parents.setdefault(view, parent) == parent, "no perfect recall"
        assert self.choices.setdefault(view, legal) == legal
        for action in legal:
            self.sequences.setdefault((view, action), len(self.sequences))

    def constraints(self) -> tuple[Matrix, Matrix]:
        entries = [(0, 0, 1.0)]
        for row, (view, parent) in enumerate(self.parents.items(), 1):
            entries.append((row, self.sequences[parent], -1.0))
            entries += [(row, self.sequences[view, action], 1.0) for action in self.choices[view]]
        right = np.zeros(len(self.parents) + 1)
        right[0] = 1.0
        return _matrix(entries, len(right), len(self.sequences)), right


def _matrix(entries: Iterable[tuple[int, int, float]], rows: int, columns: int) -> Matrix:
    matrix = np.zeros((rows, columns))
    for row, column, value in entries:
        matrix[row, column] = value
    return matrix


def game_value(deals: list[TurnGame]) -> float:
    """What Player 0 gets on average when both play best; every deal is equally likely."""
    plans = (_Plan(), _Plan())
    payoff: dict[tuple[int, int], float] = defaultdict(float)

    def walk(game: TurnGame, last: tuple[Sequence, Sequence]) -> None:
        if not game.to_act():
            at = plans[0].sequences[last[0]], plans[1].sequences[last[1]]
            payoff[at] += game.returns()[0] / len(deals)
            return
        (seat,) = game.to_act()
        view, legal = game.observation(seat), game.legal_actions(seat)
        assert legal
        plans[seat].meet(view, last[seat], legal)
        for action in legal:
            step: Sequence = (view, action)
            walk(game.play(action), (step, last[1]) if seat == 0 else (last[0], step))

    for deal in deals:
        walk(deal, (None, None))
    (mine, mine_right), (theirs, theirs_right) = plans[0].constraints(), plans[1].constraints()
    gain = _matrix(((i, j, v) for (i, j), v in payoff.items()), mine.shape[1], theirs.shape[1])
    goal = np.concatenate([np.zeros(mine.shape[1]), -theirs_right])
    best = linprog(
        goal,
        A_ub=np.hstack([-gain.T, theirs.T]),
        b_ub=np.zeros(theirs.shape[1]),
        A_eq=np.hstack([mine, np.zeros((mine.shape[0], theirs.shape[0]))]),
        b_eq=mine_right,
        bounds=[(0, None)] * mine.shape[1] + [(None, None)] * theirs.shape[0],
    )
    assert best.fun is not None
    return -best.fun
