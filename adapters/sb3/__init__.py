"""Stable-Baselines3: environments its algorithms learn from, self-play, and an agent that plays what they have learnt.

Needs the extra `sb3`. Stable-Baselines3 knows no text, so all of this is the numeric face (`arena.numeric`).
"""

from typing import Any

import gymnasium

try:
    from stable_baselines3.common.monitor import Monitor
except ModuleNotFoundError as error:
    told = f"arena.adapters.sb3 needs {str(error.name).partition('.')[0]}: pip install 'gymnasium-arena[sb3]'"
    raise ModuleNotFoundError(told, name=error.name) from error

from arena.adapters.sb3.evaluation import evaluate
from arena.adapters.sb3.network import Policy
from arena.adapters.sb3.opponents import SAMPLERS, Opponent, OpponentPool
from arena.adapters.sb3.player import ALGORITHMS, NetworkAgent, SB3Agent
from arena.adapters.sb3.selfplay import SelfPlayCallback
from arena.adapters.sb3.trained import mark
from arena.adapters.sb3.vecenv import ArenaVecEnv
from arena.registry import canonical

__all__ = [
    "ALGORITHMS",
    "SAMPLERS",
    "ArenaVecEnv",
    "NetworkAgent",
    "Opponent",
    "OpponentPool",
    "Policy",
    "SB3Agent",
    "SelfPlayCallback",
    "evaluate",
    "sb3_env",
]


def sb3_env(game_id: str, **arguments: Any) -> Any:
    """The numeric face of an id in a `Monitor`; arguments are those of `arena.env.GameEnv`.

    `MaskablePPO("MlpPolicy", sb3_env("ConnectFour-v0"))` finds its masks by itself. Algorithms without masks (PPO,
    DQN) play illegal moves; with `illegal="random"` they are replaced instead of forfeited. Raises ValueError for an
    id of open text.
    """
    env: Any = gymnasium.make(f"arena/{canonical(game_id)}", numeric=True, **arguments)
    mark(env.observation_space, env.unwrapped.setup)
    return Monitor(env)
