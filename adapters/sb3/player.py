"""Agents that play by a network: models saved by Stable-Baselines3, and snapshots taken while they learn."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.save_util import load_from_zip_file
from stable_baselines3.dqn.policies import DQNPolicy

from arena.adapters.sb3.network import Policy
from arena.adapters.sb3.trained import Training, training_of
from arena.agent import Agent, AgentError, Reply, View
from arena.game import Game
from arena.numeric import Codec
from arena.referee import Referee
from arena.text import transcript

__all__ = ["ALGORITHMS", "NetworkAgent", "SB3Agent", "algorithm_class", "is_masked", "load_model"]

ALGORITHMS = {
    "A2C": "stable_baselines3",
    "DQN": "stable_baselines3",
    "MaskablePPO": "sb3_contrib",
    "PPO": "stable_baselines3",
}


def algorithm_class(name: str) -> Any:
    """The class of an algorithm. Raises ValueError for one that is not in `ALGORITHMS`."""
    if name not in ALGORITHMS:
        raise ValueError(f"algorithm={name!r}: allowed are {', '.join(ALGORITHMS)}")
    return getattr(import_module(ALGORITHMS[name]), name)


def is_masked(model: Any) -> bool:
    """Whether the model was told what is legal while it learnt."""
    return isinstance(model.policy, MaskableActorCriticPolicy)


class NetworkAgent(Agent):
    """Plays by a network. `ArenaVecEnv` asks it for all waiting games at once, matches for one.

    `deterministic`: the likeliest action; else one drawn from the seat's private generator, so that the same seed
    gives the same game. Raises ValueError where a network of values, a DQN's, is to be drawn from.
    """

    name = "network"

    def __init__(self, policy: Policy, masked: bool, deterministic: bool = False) -> None:
        if policy.valued and not deterministic:
            raise ValueError("deterministic=false: a DQN has values of actions, no odds to draw from")
        self.policy, self.masked, self.deterministic = policy, masked, deterministic

    def choose(self, observations: NDArray[Any], masks: NDArray[np.bool_], chances: NDArray[np.float64]) -> list[int]:
        """Actions for observations of shape (batch, ...), masks (batch, actions) and chances in [0, 1) (batch,)."""
        drawn = None if self.deterministic else chances
        actions: list[int] = self.policy.choose(observations, masks if self.masked else None, drawn).tolist()
        return actions

    def codec(self, game: Game) -> Codec:
        """Numbers for this game; made once an episode."""
        return Codec(type(game).__name__, game)

    def act(self, view: View) -> Reply:
        """See `Agent.act`."""
        codec: Codec | None = view.memory.get("codec")
        if codec is None:
            codec = view.memory["codec"] = self.codec(view.game)
        text = ""
        if codec.features is None:
            text = transcript(view.events, view.observation)
            text = f"{view.note}\n{text}" if view.note else text
        seen = codec.observation(view.game, view.player, text)[None]
        masks = codec.mask(view.legal_actions).view(np.bool_)[None]
        chance = np.zeros(1) if self.deterministic else np.array([view.rng.random()])
        return Reply(codec.action(self.choose(seen, masks, chance)[0]))


class SB3Agent(NetworkAgent):
    """Plays a saved model: `sb3:path/to/model.zip`.

    The model must have been trained on the numeric face of the same game with the same options, and `history="full"`
    where the game has no features. What was trained on `ArenaVecEnv` or `sb3_env` knows its game, and refuses another
    before the first move. Raises ValueError for an unknown algorithm or a missing model. Loading runs code that the
    file holds: load none that you do not trust.

    Options:
        target: the path of the saved model
        algorithm: the class that trained it, such as MaskablePPO or PPO; without it, the file tells
        deterministic: true or false; true: the likeliest action, false: one drawn from the seat's generator
    """

    name = "sb3"

    def __init__(self, target: str, algorithm: str = "", deterministic: bool = True) -> None:
        self.model = load_model(target, algorithm)
        self.training: Training | None = training_of(self.model.observation_space)
        super().__init__(Policy.of(self.model), is_masked(self.model), deterministic)

    def prepare(self, game: Game, referee: Referee) -> None:
        """See `Agent.prepare`: the game must be the one that was learnt."""
        self.codec(game)

    def codec(self, game: Game) -> Codec:
        """See `NetworkAgent.codec`. Raises AgentError for another game than the one that was learnt."""
        if why := self.training.differs(game) if self.training else "":
            raise AgentError(f"{self.name}: {why}")
        codec = super().codec(game)
        if (codec.observation_space(), codec.action_space()) != (self.model.observation_space, self.model.action_space):
            raise AgentError(f"{self.name}: the model was trained on other spaces than those of this game")
        return codec


def load_model(path: str | Path, algorithm: str = "", **arguments: Any) -> Any:
    """A saved model on the CPU; `arguments` as for `load` of its class.

    It unpickles what the file holds, which may run any code. Raises ValueError for an unknown algorithm, a missing file
    or one that holds no model of the algorithm.
    """
    if algorithm:
        algorithm_class(algorithm)
    if not Path(path).is_file():
        raise ValueError(f"there is no model {str(path)!r}")
    if not algorithm:
        algorithm = _algorithm_of(path)
    # Loading draws weights that are then replaced, and a seed would begin the generators of the whole process anew.
    with torch.random.fork_rng(devices=[]):
        try:
            return algorithm_class(algorithm).load(path, device="cpu", **{"seed": None, **arguments})
        except Exception as error:  # bytes that are no model can raise anything
            raise ValueError(f"{path} is no model of {algorithm}: {_line(error)}") from error


def _algorithm_of(path: str | Path) -> str:
    try:
        data, _, _ = load_from_zip_file(path, device="cpu")
    except Exception as error:  # as above
        raise ValueError(f"{path} is no model of Stable-Baselines3: {_line(error)}") from error
    data = data or {}
    policy = data.get("policy_class")
    if isinstance(policy, type) and issubclass(policy, MaskableActorCriticPolicy):
        return "MaskablePPO"
    if isinstance(policy, type) and issubclass(policy, ActorCriticPolicy):
        return "PPO" if "clip_range" in data else "A2C"
    if isinstance(policy, type) and issubclass(policy, DQNPolicy):
        return "DQN"
    raise ValueError(f"{path} does not tell which algorithm made it: write algorithm=, one of {', '.join(ALGORITHMS)}")


def _line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__
