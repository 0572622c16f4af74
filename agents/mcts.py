"""Monte-Carlo tree search for every game of the contract.

UCT (Kocsis & Szepesvari 2006) over paths of joint actions: decoupled where seats act at once, and from a new
determinization at every simulation where anything is hidden or left to chance (information-set MCTS, Cowling,
Powley & Whitehouse 2012), so that nothing is read that the seat does not know.
"""

import math
import time
from random import Random

from arena.agent import Agent, Reply, View
from arena.game import Action, Game, IllegalAction, Player

__all__ = ["MCTSAgent"]

_CANDIDATES = 12  # sampled actions of a seat whose legal actions are open text


class MCTSAgent(Agent):
    """Monte-Carlo tree search: plays games out at random and follows what went well. It plays every game.

    Options:
        simulations: games played out for a move, 1 or more; ignored where seconds are given
        seconds: thinking time of a move, above 0 (then play is not repeatable); None: simulations count
        c: how much it explores what it has tried seldom, 0 or more, for returns scaled to 0 to 1
        plies: the longest game it plays out, 1 or more; one that is cut counts as it stands
    """

    name = "mcts"
    blocking = True

    def __init__(self, simulations: int = 200, seconds: float | None = None, c: float = 1.0, plies: int = 200) -> None:
        if simulations < 1 or plies < 1 or c < 0 or (seconds is not None and seconds <= 0):
            raise ValueError("simulations and plies must be at least 1, c at least 0 and seconds above 0")
        self.simulations, self.seconds, self.c, self.plies = simulations, seconds, c, plies

    def act(self, view: View) -> Reply:
        """See `Agent.act`."""
        legal = view.game.legal_actions(view.player)
        if legal is not None and len(legal) == 1:
            return Reply(legal[0])
        search = _Search(view.rng, self.c, self.plies, view.game.reward_range())
        root = _Node()
        until = None if self.seconds is None else time.monotonic() + self.seconds
        done = 0
        while done < self.simulations if until is None else time.monotonic() < until or not done:
            search.simulate(view.sample_state(view.rng), root)
            done += 1
        tried = root.seats[view.player]
        return Reply(max(tried, key=lambda action: tried[action].visits))


class _Arm:
    """One action of one seat in one node."""

    __slots__ = ("available", "total", "visits")

    def __init__(self) -> None:
        self.visits, self.available, self.total = 0, 0, 0.0


class _Node:
    """What is known after one path of joint actions: the arms of every seat that acted here."""

    __slots__ = ("children", "seats")

    def __init__(self) -> None:
        self.seats: dict[Player, dict[Action, _Arm]] = {}
        self.children: dict[tuple[Action, ...], _Node] = {}


class _Search:
    def __init__(self, rng: Random, c: float, plies: int, reward_range: tuple[float, float]) -> None:
        self.rng, self.c, self.plies = rng, c, plies
        self.low, high = reward_range
        self.span = (high - self.low) or 1.0

    def simulate(self, game: Game, root: _Node) -> None:
        """One playout: down the tree, one new node, random to the end, back up."""
        node, path, plies = root, [], 0
        while acting := game.to_act():
            arms = {player: self._choose(node, game, player) for player in acting}
            path += [(player, arm) for player, (_, arm) in arms.items()]
            actions = {player: action for player, (action, _) in arms.items()}
            game, plies = game.apply(actions), plies + 1
            joint = tuple(actions.values())
            if joint not in node.children:
                node.children[joint] = _Node()
                break
            node = node.children[joint]
        returns = self._play_out(game, plies)
        for player, arm in path:
            arm.visits += 1
            arm.total += (returns[player] - self.low) / self.span

    def _choose(self, node: _Node, game: Game, player: Player) -> tuple[Action, _Arm]:
        """An untried action at random, else the greatest upper confidence bound; availability counts as in ISMCTS."""
        arms = node.seats.setdefault(player, {})
        listed = game.legal_actions(player)
        legal = self._samples(arms, game, player) if listed is None else listed
        untried = []
        for action in legal:
            arm = arms.get(action)
            if arm is None:
                arm = arms[action] = _Arm()
            arm.available += 1
            if not arm.visits:
                untried.append(action)
        action = self.rng.choice(untried) if untried else max(legal, key=lambda a: self._bound(arms[a]))
        return action, arms[action]

    def _bound(self, arm: _Arm) -> float:
        return arm.total / arm.visits + self.c * math.sqrt(math.log(arm.available) / arm.visits)

    def _samples(self, arms: dict[Action, _Arm], game: Game, player: Player) -> tuple[Action, ...]:
        """Open text: what was tried before and is legal here, and one sample more while there are few."""
        known = [action for action in arms if _fits(game, player, action)]
        if len(known) < _CANDIDATES:
            known.append(game.sample_action(player, self.rng))
        return tuple(dict.fromkeys(known))

    def _play_out(self, game: Game, plies: int) -> tuple[float, ...]:
        rng = self.rng
        while plies < self.plies and (acting := game.to_act()):
            game = game.apply({player: game.sample_action(player, rng) for player in acting})
            plies += 1
        return game.returns()


def _fits(game: Game, player: Player, action: Action) -> bool:
    try:
        game.check(player, action)
    except IllegalAction:
        return False
    return True
