"""A network's policy as a table, against what the same network plays."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sb3_contrib")

from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO

from arena.adapters.sb3 import ArenaVecEnv, NetworkAgent, Policy
from arena.adapters.sb3.odds import odds
from arena.exploitability import GameTree
from arena.game import Game, Player
from arena.games.cards.kuhn import KuhnPoker
from arena.numeric import tokens
from arena.text import transcript


def network(game: str | type[Game], deterministic: bool = False) -> tuple[MaskablePPO, NetworkAgent]:
    model = MaskablePPO("MlpPolicy", ArenaVecEnv(game, 1), seed=4, device="cpu")
    return model, NetworkAgent(Policy.of(model), True, deterministic)


@pytest.mark.parametrize("game", ["KuhnPoker-v0", "LeducPoker-v0"])
def test_odds_are_those_of_the_model(game: str) -> None:
    model, agent = network(game)
    tree = GameTree(game)
    table = odds(agent, tree)
    actions = tree.states[0].game.action_table()
    assert actions
    for own, state in list(zip(table, tree.states, strict=True))[::7]:
        numbers = [actions.index(action) for action in state.legal]
        mask = np.isin(np.arange(len(actions)), numbers)
        seen = np.array(state.game.features(state.player), np.float32)[None]
        theirs: Any = model.policy.get_distribution(model.policy.obs_to_tensor(seen)[0], mask[None]).distribution
        expected = theirs.probs.detach().numpy()[0]
        assert own == pytest.approx(expected[numbers].tolist(), abs=1e-5)
        assert sum(own) == pytest.approx(1)
    assert tree.exploitability(table) > 0.1  # it knows nothing yet


def test_the_likeliest_action_alone_where_that_is_played() -> None:
    (_, drawing), tree = network("KuhnPoker-v0"), GameTree("KuhnPoker-v0")
    sharp = odds(NetworkAgent(drawing.policy, True, True), tree)
    for own, chances in zip(sharp, odds(drawing, tree), strict=True):
        assert sorted(own) == [0.0, 1.0]
        assert own.index(1.0) == chances.index(max(chances))


def test_a_network_that_plays_illegal_moves_is_refused() -> None:
    model = PPO("MlpPolicy", ArenaVecEnv("KuhnPoker-v0", 1), device="cpu")
    with pytest.raises(ValueError, match="trained without masks"):
        odds(NetworkAgent(Policy.of(model), masked=False), GameTree("KuhnPoker-v0"))


class Spoken(KuhnPoker):
    """Kuhn poker that has no features: a network reads its text."""

    def features(self, player: Player) -> None:  # type: ignore[override]  # narrower: there are none
        """None."""


def test_games_without_features_are_seen_as_text() -> None:
    model, agent = network(Spoken)
    tree = GameTree(Spoken)
    for own, state in zip(odds(agent, tree), tree.states, strict=True):
        mask = agent.codec(state.game).mask(state.legal).view(np.bool_)[None]
        text = transcript(state.game.events(state.player), state.game.observation(state.player))
        expected = Policy.of(model).probabilities(tokens(text)[None], mask)[0]
        assert own == pytest.approx(expected[mask[0]].tolist())
