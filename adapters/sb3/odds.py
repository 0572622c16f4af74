"""A network's policy as a table: how likely it plays each legal action wherever its seat can be asked."""

import numpy as np

from arena.adapters.sb3.player import NetworkAgent
from arena.exploitability import GameTree
from arena.text import transcript

__all__ = ["odds"]


def odds(agent: NetworkAgent, tree: GameTree) -> list[list[float]]:
    """Probabilities of the legal actions in every information state of the tree, all asked of the network at once.

    `tree.exploitability(odds(agent, tree))` is how much the best reply wins. Raises ValueError for a network that was
    not told what is legal, since it plays illegal actions too.
    """
    if not agent.masked:
        raise ValueError("the network was trained without masks: it plays illegal actions, which have no place here")
    codec = agent.codec(tree.states[0].game)
    seen = np.array(
        [
            codec.observation(game, player, transcript(game.events(player), game.observation(player)))
            for player, game, _ in tree.states
        ]
    )
    masks = np.array([codec.mask(legal) for *_, legal in tree.states]).view(np.bool_)
    numbers = [[codec.table.index(action) for action in legal] for *_, legal in tree.states]
    if agent.deterministic:
        chosen = agent.policy.choose(seen, masks)
        return [[float(at == one) for at in row] for row, one in zip(numbers, chosen, strict=True)]
    chances = agent.policy.probabilities(seen, masks)
    return [[float(chance[at]) for at in row] for row, chance in zip(numbers, chances, strict=True)]
