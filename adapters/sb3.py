"""Stable-Baselines3: environments its algorithms can learn from, and an agent that plays what they have learnt.

Needs the extra `sb3`. Stable-Baselines3 knows no text, so all of this is the numeric face (`arena.numeric`).
"""

from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium
from stable_baselines3.common.monitor import Monitor

from arena.agent import Agent, AgentError, Reply, View
from arena.numeric import Codec
from arena.registry import canonical
from arena.text import transcript

__all__ = ["ALGORITHMS", "SB3Agent", "sb3_env"]

ALGORITHMS = {
    "A2C": "stable_baselines3",
    "DQN": "stable_baselines3",
    "MaskablePPO": "sb3_contrib",
    "PPO": "stable_baselines3",
}


def sb3_env(game_id: str, **arguments: Any) -> Any:
    """The numeric face of an id in a `Monitor`; arguments are those of `arena.env.GameEnv`.

    `MaskablePPO("MlpPolicy", sb3_env("ConnectFour-v0"))` finds its masks by itself. Algorithms without masks (PPO,
    DQN) play illegal moves; with `illegal="random"` they are replaced instead of forfeited. Raises ValueError for an
    id of open text.
    """
    return Monitor(gymnasium.make(f"arena/{canonical(game_id)}", numeric=True, **arguments))


class SB3Agent(Agent):
    """Plays a saved model: `sb3:path/to/model.zip?algorithm=MaskablePPO`.

    The model must have been trained on the numeric face of the same game with the same options, and `history="full"`
    where the game has no features. Raises ValueError for an unknown algorithm or a missing model.

    Options:
        target: the path of the saved model
        algorithm: the class that trained it, such as MaskablePPO or PPO
        deterministic: true or false; true: the likeliest action, false: one drawn from torch's generator
    """

    name = "sb3"

    def __init__(self, target: str, algorithm: str = "MaskablePPO", deterministic: bool = True) -> None:
        if algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm={algorithm!r}: allowed are {', '.join(ALGORITHMS)}")
        if not Path(target).is_file():
            raise ValueError(f"there is no model {target!r}")
        self.masked = algorithm == "MaskablePPO"
        self.deterministic = deterministic
        self.model: Any = getattr(import_module(ALGORITHMS[algorithm]), algorithm).load(target, device="cpu")

    def act(self, view: View) -> Reply:
        """See `Agent.act`."""
        codec: Codec | None = view.memory.get("codec")
        if codec is None:
            codec = view.memory["codec"] = Codec(type(view.game).__name__, view.game)
        text = transcript(view.events, view.observation)
        seen = codec.observation(view.game, view.player, f"{view.note}\n{text}" if view.note else text)
        if (codec.observation_space(), codec.action_space()) != (self.model.observation_space, self.model.action_space):
            raise AgentError(f"{self.name}: the model was trained on other spaces than those of this game")
        masks = {"action_masks": codec.mask(view.legal_actions).view(bool)} if self.masked else {}
        action, _ = self.model.predict(seen, deterministic=self.deterministic, **masks)
        return Reply(codec.action(action))
