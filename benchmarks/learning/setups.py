"""Connect Four for a learner in three ways: ours, PettingZoo's with the opponent inside, and one policy for both seats.

All give the learner 84 numbers, its discs and the other's, and seven columns. `learner` makes the same MaskablePPO on
each of them.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo.classic import connect_four_v3
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from arena.adapters.sb3 import ArenaVecEnv, NetworkAgent, Policy

__all__ = [
    "GAME",
    "ROLLOUT",
    "BothSeats",
    "Nothing",
    "OpponentInside",
    "PlanesAgent",
    "both",
    "inside",
    "learner",
    "ours",
]

GAME = "ConnectFour-v0"
SIDE_BY_SIDE = 8
_STEPS = 256
ROLLOUT = SIDE_BY_SIDE * _STEPS
"""Agent steps between two updates of the network, as many as MaskablePPO takes of one environment."""
_PLAYERS = ("player_0", "player_1")
Seen = NDArray[np.float32]
Stepped = tuple[Seen, float, bool, bool, dict[str, Any]]


class _Classic(gymnasium.Env[Seen, np.int64]):
    """PettingZoo's classic game behind the interface of Gymnasium."""

    def __init__(self) -> None:
        self.game: Any = connect_four_v3.env()
        self.observation_space = spaces.Box(0.0, 1.0, (84,), np.float32)
        self.action_space = spaces.Discrete(7)
        self.seen: dict[str, NDArray[np.int8]] = {}

    def _look(self, player: str) -> Seen:
        self.seen = self.game.observe(player)
        return self.seen["observation"].reshape(-1).astype(np.float32)

    def action_masks(self) -> NDArray[np.int8]:
        """Which columns are open now; sb3-contrib asks for it by this name."""
        return self.seen["action_mask"]


class OpponentInside(_Classic):
    """A step is the learner's move and a random answer; seats alternate, and a loss pays -1."""

    def __init__(self, first: int = 0) -> None:
        super().__init__()
        self.seat = 1 - first  # of the episode before

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Seen, dict[str, Any]]:
        """See `gymnasium.Env.reset`."""
        super().reset(seed=seed)
        self.game.reset(seed=seed)
        self.seat = 1 - self.seat
        if self.seat == 1:
            self._answer()
        return self._look(_PLAYERS[self.seat]), {}

    def step(self, action: np.int64) -> Stepped:
        """See `gymnasium.Env.step`."""
        me = _PLAYERS[self.seat]
        self.game.step(action)
        if not self.game.terminations[me]:
            self._answer()
        return self._look(me), float(self.game.rewards[me]), self.game.terminations[me], False, {}

    def _answer(self) -> None:
        legal = np.flatnonzero(self.game.observe(_PLAYERS[1 - self.seat])["action_mask"])
        self.game.step(legal[self.np_random.integers(len(legal))])


class BothSeats(_Classic):
    """PettingZoo's tutorial for Stable-Baselines3, newer form: every move of either seat is a step of one policy.

    The reward is that of the seat that has moved, the observation that of the seat to move next; so nobody is ever paid
    -1. https://pettingzoo.farama.org/tutorials/sb3/connect_four/
    """

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Seen, dict[str, Any]]:
        """See `gymnasium.Env.reset`."""
        super().reset(seed=seed)
        self.game.reset(seed=seed)
        return self._look(self.game.agent_selection), {}

    def step(self, action: np.int64) -> Stepped:
        """See `gymnasium.Env.step`."""
        moved = self.game.agent_selection
        self.game.step(action)
        reward, over = float(self.game.rewards[moved]), self.game.terminations[moved]
        return self._look(self.game.agent_selection), reward, over, False, {}


class Nothing(VecEnv):
    """No game at all, at no cost: what is left is the network, its optimisation and the learner's own loop."""

    def __init__(self, games: int = SIDE_BY_SIDE, length: int = 10) -> None:
        """`length`: of an episode."""
        generator = np.random.default_rng(0)
        self._seen = (generator.random((games, 84)) < 0.2).astype(np.float32)
        self._rewards = generator.choice([-1.0, 1.0], games).astype(np.float32)
        self._masks = np.ones((games, 7), np.bool_)
        self.length, self._number = length, 0
        super().__init__(games, spaces.Box(0.0, 1.0, (84,), np.float32), spaces.Discrete(7))

    def reset(self) -> Any:
        """See `VecEnv`."""
        return self._seen

    def step_async(self, actions: Any) -> None:
        """See `VecEnv`."""
        self._number += 1

    def step_wait(self) -> Any:
        """See `VecEnv`."""
        over = self._number % self.length == 0
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        return self._seen, self._rewards * over, np.full(self.num_envs, over), infos

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """The masks."""
        return list(self._masks)

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """There are masks, and no pictures."""
        return [None if attr_name == "render_mode" else True] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """See `VecEnv`."""

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """See `VecEnv`."""
        return [False] * self.num_envs

    def close(self) -> None:
        """See `VecEnv`."""


class PlanesAgent(NetworkAgent):
    """Plays in our games by a network that has learnt PettingZoo's planes: rows from the top, the plane last."""

    name = "planes"
    ORDER = np.arange(84).reshape(2, 6, 7)[:, ::-1].transpose(1, 2, 0).reshape(-1)
    """Where each of PettingZoo's numbers stands among ours."""

    def choose(self, observations: NDArray[Any], masks: NDArray[np.bool_], chances: NDArray[np.float64]) -> list[int]:
        """See `NetworkAgent.choose`."""
        return super().choose(observations[:, self.ORDER], masks, chances)


def ours(seed: int, games: int = SIDE_BY_SIDE) -> VecEnv:
    """`ArenaVecEnv`: the opponent moves inside, seats alternate."""
    return ArenaVecEnv(GAME, games, opponents="random", seed=seed)


def inside(seed: int, games: int = SIDE_BY_SIDE) -> VecEnv:
    """The same on PettingZoo's game, one environment after the other in SB3's `DummyVecEnv`."""
    return _seeded([partial(OpponentInside, at % 2) for at in range(games)], seed)


def both(seed: int, games: int = SIDE_BY_SIDE) -> VecEnv:
    """The tutorial's way on as many environments."""
    return _seeded([BothSeats] * games, seed)


def _seeded(make: Sequence[Callable[[], _Classic]], seed: int) -> VecEnv:
    env = DummyVecEnv([*make])
    env.seed(seed)
    return env


def learner(env: VecEnv, seed: int, **settings: Any) -> Any:
    """MaskablePPO as it comes, with as many steps an update; one thread, since the network is small."""
    torch.set_num_threads(1)
    settings = {"n_steps": _STEPS, **settings}
    return MaskablePPO("MlpPolicy", env, seed=seed, device="cpu", **settings)


def player(model: Any, planes: bool) -> NetworkAgent:
    """The learner as it plays for points: by the likeliest action."""
    return (PlanesAgent if planes else NetworkAgent)(Policy.of(model), masked=True, deterministic=True)
