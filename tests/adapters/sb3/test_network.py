"""A perceptron in numpy computes what torch computes; anything else is asked through torch."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sb3_contrib")

import torch
from sb3_contrib import MaskablePPO
from stable_baselines3 import A2C, DQN, PPO
from torch import nn

from arena.adapters.sb3 import ArenaVecEnv, Policy
from arena.adapters.sb3.network import Dense, Torch

GAME = "LeducPoker-v0"
SHAPES: list[dict[str, Any]] = [
    {},
    {"net_arch": [16]},
    {"net_arch": []},
    {"net_arch": {"pi": [8, 8, 8], "vf": [4]}, "activation_fn": nn.ReLU},
    {"share_features_extractor": False},
]


def made(algorithm: Any, **policy: Any) -> Any:
    env = ArenaVecEnv(GAME, 2, illegal="random")
    short = {"n_steps": 8, "batch_size": 16} if algorithm in (PPO, MaskablePPO) else {}
    model = algorithm("MlpPolicy", env, seed=1, device="cpu", policy_kwargs=policy, **short)
    with torch.no_grad():  # fresh heads are all but zero: everything would be equally likely
        for parameter in model.policy.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def seen(model: Any, n: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(2).uniform(-1, 1, (n, *model.observation_space.shape)).astype(np.float32)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("algorithm", [MaskablePPO, PPO, A2C])
def test_numpy_computes_what_torch_computes(algorithm: Any, shape: dict[str, Any]) -> None:
    model = made(algorithm, **shape)
    dense = Dense.read(model.policy)
    assert dense is not None
    observations = seen(model, 20)
    assert dense.logits(observations).shape == (20, model.action_space.n)
    numpy, through_torch = dense.probabilities(observations), Torch(model.policy).probabilities(observations)
    assert numpy == pytest.approx(through_torch, abs=1e-5)
    assert numpy.max() > 1.2 / model.action_space.n
    assert dense.choose(observations).tolist() == model.predict(observations, deterministic=True)[0].tolist()


@pytest.mark.parametrize("shape", SHAPES[:2])
def test_so_it_does_for_the_values_of_a_dqn(shape: dict[str, Any]) -> None:
    model = made(DQN, **shape)
    dense, observations = Dense.read(model.policy), seen(model, 20)
    assert dense is not None
    assert dense.logits(observations) == pytest.approx(Torch(model.policy).logits(observations), abs=1e-5)
    assert dense.choose(observations).tolist() == model.predict(observations, deterministic=True)[0].tolist()


def test_masks_are_kept_and_chances_draw_what_is_likely() -> None:
    model = made(MaskablePPO)
    policy, rng = Policy.of(model), np.random.default_rng(3)
    observations = np.repeat(seen(model, 1), 4000, axis=0)
    masks = np.repeat([[True, False, True, True]], 4000, axis=0)
    odds = policy.probabilities(observations[:1], masks[:1])[0]
    assert odds[1] == 0
    assert odds.sum() == pytest.approx(1)
    drawn = np.bincount(policy.choose(observations, masks, rng.random(4000)), minlength=4) / 4000
    assert drawn == pytest.approx(odds, abs=0.03)
    for chance in (0.0, 1 - 2**-53):
        assert set(policy.choose(observations[:5], masks[:5], np.full(5, chance)).tolist()) <= {0, 2, 3}
    torch_odds = model.policy.get_distribution(torch.tensor(observations[:1]), masks[:1]).distribution.probs
    assert odds == pytest.approx(torch_odds.detach().numpy()[0], abs=1e-5)


@pytest.mark.parametrize("policy", [{"activation_fn": nn.ELU}, {"squash_output": False, "activation_fn": nn.GELU}])
def test_what_numpy_does_not_know_is_asked_through_torch(policy: dict[str, Any]) -> None:
    model = made(PPO, **policy)
    assert Dense.read(model.policy) is None
    asked = Policy.of(model)
    assert isinstance(asked, Torch)
    observations = seen(model, 7)
    assert asked.choose(observations).tolist() == model.predict(observations, deterministic=True)[0].tolist()


class Louder(nn.Tanh):
    """Looks like a known one."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002 - torch's name
        """See `nn.Module`."""
        return 2 * super().forward(input)


def test_an_activation_that_only_inherits_from_a_known_one_is_unknown() -> None:
    assert Dense.read(made(PPO, activation_fn=Louder).policy) is None


@pytest.mark.parametrize("activation", [nn.Tanh, nn.ELU])
def test_a_copy_stays_as_it_was(activation: Any) -> None:
    model = made(PPO, activation_fn=activation)
    observations = seen(model, 5)
    policy = Policy.of(model)
    before = policy.logits(observations)
    with torch.no_grad():
        for parameter in model.policy.parameters():
            parameter.zero_()
    assert np.array_equal(policy.logits(observations), before)
