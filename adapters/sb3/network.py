"""The network of a trained policy: a batch of views in, a preference for every action out.

Multilayer perceptrons, which is what `MlpPolicy` makes, are computed in numpy: one position takes microseconds, where
torch takes some hundred of them. Everything else is asked through torch. Both give the same numbers but for rounding.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box
from numpy.typing import NDArray
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import FlattenExtractor, MlpExtractor
from stable_baselines3.dqn.policies import DQNPolicy
from torch import nn

__all__ = ["Dense", "Policy", "Torch"]

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]
LEAST = np.float32(-1e8)
"""The preference for an illegal action, as in sb3-contrib."""


class Policy(ABC):
    """What a model has learnt, as it was when this was made: training goes on without it."""

    valued = False
    """Preferences are values of actions, as a DQN has them, and no log-odds."""

    @staticmethod
    def of(model: Any) -> "Policy":
        """The policy of a Stable-Baselines3 model: in numpy where it is a plain perceptron, else a copy in torch."""
        return Dense.read(model.policy) or Torch(model.policy)

    @abstractmethod
    def logits(self, observations: NDArray[Any]) -> Floats:
        """Preferences, shape (batch, actions), for observations of shape (batch, ...): log-odds, or values of a DQN."""

    def masked(self, observations: NDArray[Any], masks: Mask | None = None) -> Floats:
        """The same, illegal actions at the least."""
        logits = self.logits(observations)
        return logits if masks is None else np.where(masks, logits, LEAST)

    def probabilities(self, observations: NDArray[Any], masks: Mask | None = None) -> NDArray[np.float64]:
        """How often each action is played, shape (batch, actions); illegal ones never."""
        logits = self.masked(observations, masks).astype(np.float64)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        return np.asarray(weights, np.float64)

    def choose(
        self, observations: NDArray[Any], masks: Mask | None = None, chances: NDArray[np.float64] | None = None
    ) -> NDArray[np.intp]:
        """An action for every row: the likeliest, or, with `chances` in [0, 1), one a row, the one they draw."""
        if chances is None:
            return np.asarray(self.masked(observations, masks).argmax(axis=1), np.intp)
        heaps = self.probabilities(observations, masks).cumsum(axis=1)
        return np.asarray((heaps <= (chances * heaps[:, -1])[:, None]).sum(axis=1), np.intp)


class Dense(Policy):
    """A perceptron in numpy."""

    def __init__(self, layers: Iterable[tuple[Floats, Floats]], activation: Callable[[Floats], Floats]) -> None:
        """Layers: (weights of shape (inputs, outputs), biases); the activation stands between them."""
        self.layers, self.activation = list(layers), activation

    @classmethod
    def read(cls, policy: Any) -> "Dense | None":
        """The perceptron of a policy, or None: it is none, or one of another build."""
        parts = _parts(policy)
        if parts is None or not isinstance(policy.observation_space, Box) or len(policy.observation_space.shape) != 1:
            return None
        linear = [part for part in parts if type(part) is nn.Linear]
        between = [part for part in parts if type(part) is not nn.Linear]
        kinds = {type(part) for part in between}
        alternate = all(type(part) is nn.Linear for part in parts[::2]) and len(between) == len(linear) - 1
        if not alternate or not kinds <= _ACTIVATIONS.keys() or len(kinds) > 1:
            return None
        layers = [(_numbers(part.weight).T.copy(), _numbers(part.bias)) for part in linear]
        dense = cls(layers, _ACTIVATIONS[kinds.pop()] if kinds else _tanh)
        dense.valued = isinstance(policy, DQNPolicy)
        return dense

    def logits(self, observations: NDArray[Any]) -> Floats:
        """See `Policy.logits`."""
        x = np.asarray(observations, np.float32)
        *inner, (weights, biases) = self.layers
        for w, b in inner:
            x = self.activation(x @ w + b)
        return x @ weights + biases


class Torch(Policy):
    """Any policy of Stable-Baselines3 that has a distribution over actions or their values."""

    def __init__(self, policy: Any) -> None:
        self.policy, self.valued = deepcopy(policy).to("cpu"), isinstance(policy, DQNPolicy)
        self.policy.set_training_mode(False)

    def logits(self, observations: NDArray[Any]) -> Floats:
        """See `Policy.logits`."""
        with torch.no_grad():
            seen, _ = self.policy.obs_to_tensor(np.asarray(observations))
            if self.valued:
                return np.asarray(self.policy.q_net(seen).numpy(), np.float32)
            return np.asarray(self.policy.get_distribution(seen).distribution.logits.numpy(), np.float32)


def _parts(policy: Any) -> list[nn.Module] | None:
    """The modules that an observation passes through, or None: it is not one of the classes whose way is known."""
    if type(policy) in (ActorCriticPolicy, MaskableActorCriticPolicy):
        known = type(policy.mlp_extractor) is MlpExtractor and type(policy.pi_features_extractor) is FlattenExtractor
        return [*policy.mlp_extractor.policy_net, policy.action_net] if known else None
    if type(policy) is DQNPolicy and type(policy.q_net.features_extractor) is FlattenExtractor:
        return list(policy.q_net.q_net)
    return None


def _numbers(parameter: Any) -> Floats:
    return np.array(parameter.detach().cpu().numpy(), np.float32)


def _tanh(x: Floats) -> Floats:
    return np.tanh(x)


def _relu(x: Floats) -> Floats:
    return np.maximum(x, np.float32(0))


_ACTIVATIONS: dict[type[nn.Module], Callable[[Floats], Floats]] = {nn.ReLU: _relu, nn.Tanh: _tanh}
