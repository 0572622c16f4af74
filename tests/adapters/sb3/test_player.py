"""Stable-Baselines3 learns from the numeric face, and what it learnt plays matches."""

import re
import zipfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("sb3_contrib")

import torch
from sb3_contrib import MaskablePPO  # after importorskip: the extra may be missing
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv

from arena.adapters.sb3 import ArenaVecEnv, SB3Agent, sb3_env
from arena.adapters.sb3.trained import Training
from arena.agent import Agent, AgentError
from arena.env import GameEnv
from arena.game import Game
from arena.match import play_sync
from arena.numeric import finite_ids
from arena.referee import Referee
from arena.registry import make_agent, make_game
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


def test_contentof_a_text_are_food_for_a_policy_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Take, "features", Game.features)
    model = PPO("MlpPolicy", GameEnv(Take, numeric=True), n_steps=32, device="cpu").learn(32)
    assert model.num_timesteps == 32
    assert model.observation_space.dtype == np.uint8


def saved(path: Path, algorithm: Any = MaskablePPO, env: Any = None, **arguments: Any) -> str:
    """An untrained model of a game (TicTacToe by default) in a file."""
    short = {"n_steps": 8, "batch_size": 8} if algorithm in (PPO, MaskablePPO) else {}
    algorithm("MlpPolicy", env or ArenaVecEnv("TicTacToe-v0", 1), device="cpu", **short, **arguments).save(path)
    return str(path)


def test_a_model_of_another_game_is_refused_before_it_plays(tmp_path: Path) -> None:
    agent = SB3Agent(saved(tmp_path / "kuhn.zip", env=sb3_env("KuhnPoker-v0", players=3)))
    assert agent.training == Training("KuhnPoker-v0", {"players": 3}, "full")
    told = r"sb3: the model was trained on KuhnPoker-v0 \(players=3\)"
    with pytest.raises(AgentError, match=rf"{told}, not on TicTacToe-v0"):
        agent.prepare(make_game("TicTacToe-v0"), Referee())
    with pytest.raises(AgentError, match=rf"{told}; this game has other options"):
        agent.prepare(make_game("KuhnPoker-v0"), Referee())
    episode = play_sync("TicTacToe-v0", [agent, "random"], seed=0)
    assert episode.outcome == "void"
    assert "not on TicTacToe-v0" in episode.reason
    assert play_sync("KuhnPoker-v0", [agent, "random", "random"], options={"players": 3}).outcome == "terminated"


def test_options_that_no_space_shows_are_told_apart(tmp_path: Path) -> None:
    agent = SB3Agent(saved(tmp_path / "three.zip", env=ArenaVecEnv("ConnectFour-v0", 1, connect=3)))
    with pytest.raises(AgentError, match=r"ConnectFour-v0 \(connect=3\); this game has other options, so other rules"):
        agent.prepare(make_game("ConnectFour-v0"), Referee())
    agent.prepare(make_game("ConnectFour-v0", 7, {"connect": 3}), Referee())


def test_a_model_that_nobody_marked_is_judged_by_its_spaces(tmp_path: Path) -> None:
    agent = SB3Agent(saved(tmp_path / "plain.zip", env=gymnasium.make("arena/KuhnPoker-v0", numeric=True)))
    assert agent.training is None
    with pytest.raises(AgentError, match="trained on other spaces"):
        agent.prepare(make_game("TicTacToe-v0"), Referee())
    assert play_sync("TicTacToe-v0", [agent, "random"], seed=0).outcome == "void"
    assert play_sync("KuhnPoker-v0", [agent, "random"], seed=0).outcome == "terminated"


def test_what_saw_less_of_a_text_than_a_match_shows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.games.board.tictactoe.TicTacToe.features", Game.features)
    history: Any
    for history, fits in (("new", False), ("full", True)):
        agent = SB3Agent(saved(tmp_path / "m.zip", env=ArenaVecEnv("TicTacToe-v0", 1, history=history)))
        why = agent.training.differs(make_game("TicTacToe-v0")) if agent.training else "unmarked"
        assert (why == "") == fits
        assert fits or "history='new'" in why
    assert play_sync("TicTacToe-v0", [agent, "random"], seed=0).outcome == "terminated"


@pytest.mark.parametrize("algorithm", [A2C, DQN, MaskablePPO, PPO])
def test_a_file_tells_which_algorithm_made_it(tmp_path: Path, algorithm: Any) -> None:
    env = ArenaVecEnv("TicTacToe-v0", 1, illegal="random")
    path = saved(tmp_path / "model.zip", algorithm, env)
    agent = SB3Agent(path)
    assert type(agent.model) is algorithm
    assert type(SB3Agent(path, algorithm=algorithm.__name__).model) is algorithm
    assert agent.masked == (algorithm is MaskablePPO)
    episode = play_sync("TicTacToe-v0", [agent, "random"], seed=0)
    assert episode.forfeits == () or not agent.masked


def test_drawn_actions_come_from_the_seats_generator(tmp_path: Path) -> None:
    spec = f"sb3:{saved(tmp_path / 'model.zip', seed=1)}?deterministic=false"
    played = [play_sync("TicTacToe-v0", [spec, "first"], seed=seed) for seed in (1, 1, 2, 3, 4)]
    moves = [[turn.action for turn in episode.turns] for episode in played]
    assert moves[0] == moves[1]
    assert any(other != moves[0] for other in moves[2:])


def test_a_dqn_has_no_odds_to_draw_from(tmp_path: Path) -> None:
    path = saved(tmp_path / "dqn.zip", DQN, ArenaVecEnv("TicTacToe-v0", 1))
    with pytest.raises(ValueError, match="a DQN has values of actions, no odds"):
        SB3Agent(path, deterministic=False)


def test_loading_a_model_leaves_the_generators_of_the_process_alone(tmp_path: Path) -> None:
    path = saved(tmp_path / "model.zip", seed=3)
    np.random.seed(1)
    torch.manual_seed(1)
    expected = np.random.random(), torch.rand(1).item()
    np.random.seed(1)
    torch.manual_seed(1)
    SB3Agent(path)
    assert (np.random.random(), torch.rand(1).item()) == expected


def test_a_policy_in_a_tournament_plays_many_games(tmp_path: Path) -> None:
    agent = SB3Agent(saved(tmp_path / "model.zip"))
    options: Any
    for options in ({"columns": 4, "rows": 4, "connect": 3}, {}):
        other = SB3Agent(saved(tmp_path / "four.zip", env=ArenaVecEnv("ConnectFour-v0", 1, **options)))
        for seed in range(3):
            assert play_sync("ConnectFour-v0", [other, other], seed=seed, options=options).outcome == "terminated"
            assert play_sync("TicTacToe-v0", [agent, agent], seed=seed).outcome == "terminated"


def test_wrong_arguments_name_what_is_allowed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="algorithm='SARSA': allowed are A2C, DQN, MaskablePPO, PPO"):
        SB3Agent("model.zip", algorithm="SARSA")
    with pytest.raises(ValueError, match="there is no model"):
        SB3Agent(str(tmp_path / "nothing.zip"))
    (tmp_path / "text.zip").write_text("not a zip")
    with pytest.raises(ValueError, match=r"text\.zip is no model of Stable-Baselines3"):
        SB3Agent(str(tmp_path / "text.zip"))
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("readme", "hello")
    with pytest.raises(ValueError, match="does not tell which algorithm"):
        SB3Agent(str(tmp_path / "other.zip"))
    with pytest.raises(ValueError, match="unknown game 'Tic'"):
        sb3_env("Tic")
    with pytest.raises(ValueError, match="no action_table"):
        sb3_env("Negotiation-v0")


@pytest.mark.parametrize("query", ["", "?algorithm=DQN", "?algorithm=MaskablePPO"])
@pytest.mark.parametrize("part", ["data", "policy.pth", "all"])
@pytest.mark.parametrize("content", [None, b"", b"garbage", b'{"policy_class": 5}'])
def test_a_broken_file_is_refused_in_one_line(tmp_path: Path, query: str, part: str, content: bytes | None) -> None:
    whole = saved(tmp_path / "whole.zip", MaskablePPO, ArenaVecEnv("TicTacToe-v0", 1))
    path = tmp_path / "broken.zip"
    with zipfile.ZipFile(whole) as read, zipfile.ZipFile(path, "w") as written:
        for name in read.namelist():
            if part in (name, "all"):
                if content is not None:
                    written.writestr(name, content)
            else:
                written.writestr(name, read.read(name))
    with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
        make_agent(f"sb3:{path}{query}")
    assert "\n" not in str(caught.value)
