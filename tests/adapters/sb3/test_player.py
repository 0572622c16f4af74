"""Stable-Baselines3 learns from the numeric face, and what it learnt plays matches."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sb3_contrib")

from sb3_contrib import MaskablePPO  # after importorskip: the extra may be missing
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv

from arena.adapters.sb3 import SB3Agent, sb3_env
from arena.agent import Agent
from arena.env import GameEnv
from arena.game import Game
from arena.match import play_sync
from arena.numeric import finite_ids
from arena.registry import make_agent
from tests.toy_games import Take


@pytest.mark.parametrize("game_id", finite_ids())
def test_its_checker_takes_every_finite_id(game_id: str) -> None:
    check_env(sb3_env(game_id), warn=False)


def test_maskable_ppo_learns_and_plays_legal_moves(tmp_path: Path) -> None:
    env = sb3_env("TicTacToe-v0", seat="random")
    assert is_masking_supported(env)
    assert get_action_masks(env).all()
    model = MaskablePPO("MlpPolicy", env, n_steps=256, batch_size=64, seed=1, device="cpu")
    model.learn(2048)
    model.save(tmp_path / "model.zip")
    agent = make_agent(f"sb3:{tmp_path / 'model.zip'}")
    returns = []
    for seed in range(20):
        for seat in (0, 1):
            agents: list[str | Agent] = ["random", "random"]
            agents[seat] = agent
            episode = play_sync("TicTacToe-v0", agents, seed=seed)
            assert episode.outcome == "terminated", episode.reason
            assert episode.forfeits == ()
            assert episode.returns is not None
            returns.append(episode.returns[seat])
    assert sum(returns) > 0  # better than random after a few seconds
    again = play_sync("TicTacToe-v0", [agent, "random"], seed=3)
    assert again.returns == play_sync("TicTacToe-v0", [agent, "random"], seed=3).returns


def test_masks_through_vectorised_environments() -> None:
    envs = make_vec_env(lambda: sb3_env("ConnectFour-v0"), n_envs=3, seed=0)
    assert isinstance(envs, DummyVecEnv)
    assert get_action_masks(envs).shape == (3, 7)
    MaskablePPO("MlpPolicy", envs, n_steps=32, batch_size=32, device="cpu").learn(192)


@pytest.mark.parametrize(("algorithm", "arguments"), [(PPO, {"n_steps": 64}), (DQN, {"learning_starts": 32})])
@pytest.mark.parametrize("game_id", ["KuhnPoker-v0", "Wordle-v0"])
def test_algorithms_without_masks_run(algorithm: Any, arguments: dict[str, Any], game_id: str) -> None:
    model = algorithm("MlpPolicy", sb3_env(game_id, illegal="random"), device="cpu", **arguments)
    model.learn(128)
    assert model.num_timesteps >= 128
    action, _ = model.predict(model.observation_space.sample())
    assert model.action_space.contains(action.item())


def test_bytes_of_a_text_are_food_for_a_policy_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Take, "features", Game.features)
    model = PPO("MlpPolicy", GameEnv(Take, numeric=True), n_steps=32, device="cpu").learn(32)
    assert model.num_timesteps == 32
    assert model.observation_space.dtype == np.uint8


def test_a_model_of_another_game_makes_the_match_void(tmp_path: Path) -> None:
    model = MaskablePPO("MlpPolicy", sb3_env("KuhnPoker-v0"), device="cpu")
    model.save(tmp_path / "kuhn.zip")
    episode = play_sync("TicTacToe-v0", [SB3Agent(str(tmp_path / "kuhn.zip")), "random"], seed=0)
    assert episode.outcome == "void"
    assert "trained on other spaces" in episode.reason


def test_wrong_arguments_name_what_is_allowed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="algorithm='SARSA': allowed are A2C, DQN, MaskablePPO, PPO"):
        SB3Agent("model.zip", algorithm="SARSA")
    with pytest.raises(ValueError, match="there is no model"):
        SB3Agent(str(tmp_path / "nothing.zip"))
    with pytest.raises(ValueError, match="unknown game 'Tic'"):
        sb3_env("Tic")
    with pytest.raises(ValueError, match="no action_table"):
        sb3_env("Negotiation-v0")
