"""The benchmarks of learning: the setups are what they say, small versions of all run, Kuhn poker is learnt."""

import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sb3_contrib")
pytest.importorskip("pygame")

from pettingzoo.classic import connect_four_v3
from stable_baselines3.common.env_checker import check_env

from arena.games.board.connectfour import ConnectFour
from benchmarks import __main__ as command
from benchmarks.learning import poker, setups, strength

pytestmark = pytest.mark.train


def test_pettingzoos_planes_are_ours_in_another_order() -> None:
    rng = Random(0)
    for _ in range(20):
        game, theirs = ConnectFour.initial(rng), connect_four_v3.env()
        theirs.reset()
        while game.to_act():
            (player,) = game.to_act()
            seen = theirs.observe(theirs.agent_selection)
            ours = np.array(game.features(player))
            assert (ours[setups.PlanesAgent.ORDER] == seen["observation"].reshape(-1)).all()
            legal = game.legal_actions(player)
            assert [str(column + 1) for column in np.flatnonzero(seen["action_mask"])] == list(legal)
            action = rng.choice(legal)
            game = game.play(action)
            theirs.step(int(action) - 1)
        if game.returns()[0]:
            assert list(game.returns()) == list(theirs.rewards.values())


def played(env: Any, seed: int) -> tuple[list[float], bool]:
    """Rewards of a random game, and whether the learner had the last word."""
    env.reset(seed=seed)
    rng, rewards, over = np.random.default_rng(seed), [], False
    while not over:
        _, reward, over, _, _ = env.step(rng.choice(np.flatnonzero(env.action_masks())))
        rewards.append(reward)
    return rewards, bool(env.game.rewards[env.game.possible_agents[getattr(env, "seat", 0)]] == 1)


def test_who_has_the_opponent_inside_is_paid_for_losses() -> None:
    env = setups.OpponentInside()
    ends, seats = set(), []
    for seed in range(60):
        rewards, won = played(env, seed)
        seats.append(env.seat)
        assert set(rewards[:-1]) <= {0.0}
        assert (rewards[-1] == 1.0) == won
        ends.add(rewards[-1])
    assert {1.0, -1.0} <= ends
    assert seats == [0, 1] * 30


def test_the_tutorials_way_never_pays_a_loss() -> None:
    env = setups.BothSeats()
    ends = {played(env, seed)[0][-1] for seed in range(60)}
    assert ends <= {0.0, 1.0}
    assert 1.0 in ends


@pytest.mark.parametrize("make", [setups.OpponentInside, setups.BothSeats])
def test_sb3_takes_the_environments(make: Any) -> None:
    check_env(make(), skip_render_check=True)


@pytest.mark.parametrize("make", [setups.ours, setups.inside, setups.both, lambda seed: setups.Nothing()])
def test_the_same_learner_learns_on_each(make: Any) -> None:
    env = make(0)
    model = setups.learner(env, 0, n_steps=8, n_epochs=1)
    model.learn(64)
    assert model.num_timesteps == 64
    assert env.observation_space.shape == (84,)
    assert env.action_space.n == 7


def test_equal_seeds_learn_the_same_on_pettingzoo() -> None:
    size = strength.Size.of(0.001)
    assert strength.learn("opponent inside", 3, size) == strength.learn("opponent inside", 3, size)


def test_sizes() -> None:
    assert strength.Size.of(2) == strength.Size.of(9) == ((20_480, 100_352), 5, 1.0)
    small = strength.Size.of(0.02)
    assert small.steps == (setups.ROLLOUT,)
    assert small.seeds == 2


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "sb3",
            ("environments alone, 64 games, beside opponent inside", "defaults (8 games, batches of 64, 10 epochs)"),
        ),
        ("sb3_strength", ("against random after 2,048 steps, beside tutorial", "against minimax?depth=4 after 2,048")),
        ("sb3_poker", ("KuhnPoker-v0 after 0 steps", "LeducPoker-v0 after 4,096 steps")),
    ],
)
def test_a_small_version_prints_its_table(
    name: str, lines: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command.main(["--only", name, "--secs", "0.01", "--json", str(tmp_path / "figures.json")])
    told = capsys.readouterr().out
    assert all(f"\n{line}" in told for line in lines)
    for figure in json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))["tables"][name]:
        assert figure["result"]["low"] <= figure["result"]["middle"] <= figure["result"]["high"]
        assert figure["ours"] >= 0


def test_kuhn_poker_is_learnt_by_self_play(scale: int) -> None:
    points = poker.learn("KuhnPoker-v0", 50_000 * max(1, scale // 5), 2_048, seed=1)
    assert points[0].last > 0.4
    assert points[0].average == points[0].last
    assert points[-1].average < 0.25
    assert min([point.last for point in points]) < 0.25
    assert points[-1].average < points[len(points) // 4].average
