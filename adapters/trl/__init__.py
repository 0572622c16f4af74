"""TRL's GRPOTrainer learns games: `rollout_func` plays whole games for it, `environment_factory` gives them as tools.

Read from trl 1.16.0 (trainer/grpo_trainer.py); both of its interfaces are called experimental there. Needs the extra
`train`.
"""

from arena.adapters.trl.environments import environment_factory
from arena.adapters.trl.rollouts import Rollouts, rollout_func
from arena.adapters.trl.rows import dataset, game_reward

__all__ = ["Rollouts", "dataset", "environment_factory", "game_reward", "rollout_func"]
