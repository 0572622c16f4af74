"""Opponents to practise against: from one that errs always to one that never does."""

from arena.agent import Agent, Reply, View
from arena.agents.minimax import MinimaxAgent
from arena.game import Action, Game

__all__ = ["Remembering", "pool"]


class Remembering(Agent):
    """Minimax that looks every position up once for each of a few draws among equally good moves.

    Perfect play costs it next to nothing when a position comes again, as it does in thousands of games of practice.
    """

    name = "minimax-remembering"

    def __init__(self, draws: int = 8) -> None:
        if draws < 1:
            raise ValueError(f"draws={draws}: at least 1")
        self.draws, self._minimax = draws, MinimaxAgent()
        self._known: dict[tuple[Game, int], Action] = {}

    def act(self, view: View) -> Reply:
        """See `Agent.act`."""
        key = (view.game, view.draw(self.draws))
        if key not in self._known:
            alone = View(view.player, view.observation, view.legal_actions, {}, "", view.ply, view.game, key[1])
            self._known[key] = self._minimax.act(alone).text
        return Reply(self._known[key])


def pool() -> tuple[str | Agent, ...]:
    """Whom the model meets in practice, each as often as the others."""
    return ("random", "mcts?simulations=10", Remembering())
