"""Minimax: alpha-beta with iterative deepening on a budget of positions; exact where the budget reaches the end.

Knuth & Moore, "An Analysis of Alpha-Beta Pruning", Artificial Intelligence 6 (1975).
"""

from arena.agent import Agent, Reply, View
from arena.chance import Chance
from arena.game import Action, Game, Player

__all__ = ["MinimaxAgent"]

_SOON = 1e-3  # a win a ply sooner is worth this share more


class _OutOfNodesError(Exception):
    """The budget is used up in the middle of a search."""


class MinimaxAgent(Agent):
    """Looks ahead for the best move against the best reply, in zero-sum games of two with turns and nothing hidden.

    Beyond the horizon a position counts as even; among equally good moves one is drawn by lot.

    Options:
        nodes: positions looked at for a move, 1 or more
        depth: moves it looks ahead at most, 1 or more
    """

    name = "minimax"
    blocking = True

    def __init__(self, nodes: int = 20_000, depth: int = 64) -> None:
        if nodes < 1 or depth < 1:
            raise ValueError(f"nodes={nodes}, depth={depth}: both must be at least 1")
        self.nodes, self.depth = nodes, depth

    def act(self, view: View) -> Reply:
        """See `Agent.act`. Raises ValueError in a game it cannot play."""
        game = view.game
        if reason := _unfit(game):
            raise ValueError(f"minimax cannot play {type(game).__name__}: {reason}")
        legal = list(game.legal_actions(view.player) or ())
        view.rng.shuffle(legal)  # ties are broken by order
        search, best = _Search(self.nodes), legal[0]
        for depth in range(1, self.depth + 1):
            try:
                best, exact = search.root(game, legal, depth)
            except _OutOfNodesError:
                break
            if exact:
                break
            legal.sort(key=lambda action: action != best)  # the best of the last round first: more cuts
        return Reply(best)


def _unfit(game: Game) -> str:
    if game.players != 2 or not game.zero_sum:
        return "it needs two seats and zero-sum returns"
    if not game.perfect_information or any(isinstance(getattr(game, f), Chance) for f in game.__struct_fields__):
        return "it needs a game without hidden information or chance (try mcts)"
    acting = game.to_act()
    if len(acting) != 1 or game.legal_actions(acting[0]) is None:
        return "it needs one seat to act and a list of legal actions"
    return ""


class _Search:
    """Negamax over immutable positions; values are the mover's return, sooner wins a little higher."""

    def __init__(self, nodes: int) -> None:
        self.left = nodes
        self.table: dict[Game, tuple[float, float, float]] = {}
        self.cut = False

    def root(self, game: Game, legal: list[Action], depth: int) -> tuple[Action, bool]:
        """The best action at this depth, and whether every line was followed to its end."""
        (mover,) = game.to_act()
        self.table.clear()
        self.cut, best, value = False, legal[0], float("-inf")
        for action in legal:
            score = self._after(game, mover, action, 1, depth, value, float("inf"))
            if score > value:
                best, value = action, score
        return best, not self.cut

    def _after(
        self, game: Game, mover: Player, action: Action, ply: int, depth: int, alpha: float, beta: float
    ) -> float:
        """The value for `mover` of playing the action; the next mover may be the same seat (a pass)."""
        child = game.apply({mover: action})
        acting = child.to_act()
        if not acting:
            return child.returns()[mover] * (1 - _SOON * ply)
        if acting[0] == mover:
            return self._value(child, ply, depth, alpha, beta)
        return -self._value(child, ply, depth, -beta, -alpha)

    def _value(self, game: Game, ply: int, depth: int, alpha: float, beta: float) -> float:
        """The value for the seat to move, within (alpha, beta) exact, else a bound."""
        known = self.table.get(game)
        if known is not None and (known[0] == known[1] or known[0] >= beta or known[1] <= alpha):
            return known[0] if known[0] >= beta or known[0] == known[1] else known[1]
        self.left -= 1
        if self.left < 0:
            raise _OutOfNodesError
        (mover,) = game.to_act()
        if ply >= depth:
            self.cut = True
            return game.returns()[mover]
        best, floor = float("-inf"), alpha
        for action in game.legal_actions(mover) or ():
            best = max(best, self._after(game, mover, action, ply + 1, depth, max(alpha, best), beta))
            if best >= beta:
                break
        low = best if best > floor else float("-inf")
        high = best if best < beta else float("inf")
        self.table[game] = (low, high, best)
        return best
