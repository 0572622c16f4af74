"""The learner meets what it has been, learns from it, and is rated while it does."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sb3_contrib")

import torch
from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN
from stable_baselines3.common.logger import Logger

from arena.adapters.sb3 import ArenaVecEnv, NetworkAgent, OpponentPool, Policy, SB3Agent, SelfPlayCallback, evaluate
from arena.adapters.sb3.evaluation import Row, rows_of, total
from arena.adapters.sb3.opponents import Record, Result
from arena.cli.train import elo
from arena.match import play_sync

GAME = "TicTacToe-v0"


def learner(pool: OpponentPool, n_envs: int = 4, game: str = GAME, seed: int = 1) -> Any:
    env = ArenaVecEnv(game, n_envs, opponents=pool)
    return MaskablePPO("MlpPolicy", env, n_steps=64 // n_envs, batch_size=64, seed=seed, device="cpu")


def agent_of(model: Any, deterministic: bool = True) -> NetworkAgent:
    return NetworkAgent(Policy.of(model), True, deterministic)


def test_maskable_ppo_learns_tictactoe_in_a_few_seconds() -> None:
    env = ArenaVecEnv(GAME, 16, opponents="random")
    model: Any = MaskablePPO(
        "MlpPolicy", env, n_steps=64, batch_size=256, learning_rate=1e-3, seed=0, device="cpu",
        policy_kwargs={"optimizer_kwargs": {"eps": 1e-5, "fused": True}},
    )  # fmt: skip
    before = total([(r, n) for (_, r), n in evaluate(agent_of(model), GAME, "random", 256).items()])
    model.learn(12 * 1024)
    counts = evaluate(agent_of(model), GAME, "random", 256)
    after = total([(r, n) for (_, r), n in counts.items()])
    assert sum(counts.values()) == before.games == after.games == 256
    # Random against itself scores 0.5; 256 games have a standard error of 0.03.
    assert after.mean > 0.72
    assert after.mean > before.mean + 0.05
    for seat in (0, 1):
        assert sum(n for (where, _), n in counts.items() if where == seat) == 128
    assert len(model.ep_info_buffer) == 100  # ep_rew_mean is logged
    assert {episode["r"] for episode in model.ep_info_buffer} <= {-1.0, 0.0, 1.0}


def test_snapshots_join_the_pool_and_are_met(tmp_path: Path) -> None:
    pool = OpponentPool(["uniform"], seed=2)
    model = learner(pool)
    callback = SelfPlayCallback(pool, 100, folder=tmp_path / "deep" / "pool")
    model.learn(512, callback)
    assert [known.step for known in pool.snapshots] == [0, 100, 200, 300, 400, 500]
    met = {row.first for row in callback.rows} | {row.second for row in callback.rows}
    assert {"random", "step 0", "step 100", "step 200", "step 300", "step 500"} <= met
    played = sum(row.games for row in callback.rows) + sum(pool.recent.values())
    assert sum(record.games for record in pool.records.values()) > 0.6 * played
    # What is on disk is what is in memory, and plays.
    seen = np.random.default_rng(1).random((5, 18)).astype(np.float32)
    for known in pool.snapshots:
        on_disk = SB3Agent(str(callback.file(known.step or 0)))
        assert isinstance(known.agent, NetworkAgent)
        assert np.array_equal(on_disk.policy.logits(seen), known.agent.policy.logits(seen))
    assert play_sync(GAME, [f"sb3:{callback.file(500)}", "random"], seed=1).outcome == "terminated"
    first, last = (pool.snapshots[i].agent for i in (0, -1))
    assert isinstance(first, NetworkAgent)
    assert isinstance(last, NetworkAgent)
    assert not np.array_equal(first.policy.logits(seen), last.policy.logits(seen))


def test_files_of_thinned_snapshots_go(tmp_path: Path) -> None:
    pool = OpponentPool(["latest"], keep=3)
    learner(pool).learn(512, SelfPlayCallback(pool, 64, folder=tmp_path))
    assert len(pool.snapshots) == 3
    kept = {f"step-{known.step}.zip" for known in pool.snapshots}
    assert {path.name for path in tmp_path.iterdir()} == kept


def test_a_gate_keeps_out_who_does_not_win() -> None:
    pool = OpponentPool(["latest"])
    learner(pool).learn(512, SelfPlayCallback(pool, 100, gate=1.0, gate_games=1))
    assert [known.step for known in pool.snapshots] == [0]
    pool = OpponentPool(["latest"])
    learner(pool).learn(512, SelfPlayCallback(pool, 200, gate=0.01, gate_games=5))
    assert [known.step for known in pool.snapshots] == [0, 200, 400]
    pool = OpponentPool(["latest"])
    learner(pool).learn(512, SelfPlayCallback(pool, 200, gate=0.01, gate_games=500))
    assert [known.step for known in pool.snapshots] == [0]


def test_a_gate_counts_games_until_they_are_enough() -> None:
    pool = OpponentPool(["latest"])
    callback = SelfPlayCallback(pool, 100, gate=0.01, gate_games=40)  # a hundred steps are some thirty games
    learner(pool).learn(512, callback)
    assert [known.step for known in pool.snapshots] == [0, 200, 400]
    assert callback.proven.games > 0
    assert callback.state()["proven"] == list(callback.proven)


def test_a_pool_that_is_ahead_of_the_model_is_refused() -> None:
    pool = OpponentPool(["latest"])
    model, callback = learner(pool), SelfPlayCallback(pool, 100)
    model.learn(256, callback)
    with pytest.raises(ValueError, match=r"the pool holds step 200, the model is at step 0: to go on"):
        model.learn(256, callback)
    model.num_timesteps = 256
    model.learn(128, callback, reset_num_timesteps=False)
    assert [known.step for known in pool.snapshots] == [0, 100, 200, 300]


@pytest.mark.parametrize("net", [{}, {"activation_fn": torch.nn.ELU}])
def test_snapshots_of_a_dqn_play_what_they_value_most(net: dict[str, Any], tmp_path: Path) -> None:
    pool = OpponentPool(["latest"])
    env = ArenaVecEnv(GAME, 4, opponents=pool, illegal="random")
    model: Any = DQN("MlpPolicy", env, learning_starts=32, buffer_size=256, seed=1, device="cpu", policy_kwargs=net)
    callback = SelfPlayCallback(pool, 64, folder=tmp_path)
    model.learn(160, callback)
    taken = [known.agent for known in pool.snapshots]
    callback.restore(callback.state())
    for agent in [*taken, *[known.agent for known in pool.snapshots]]:
        assert isinstance(agent, NetworkAgent)
        assert agent.policy.valued
        assert agent.deterministic
    with pytest.raises(ValueError, match="a DQN has values of actions, no odds"):
        NetworkAgent(Policy.of(model), masked=False)


def test_ratings_are_logged_and_given_to_the_pool(tmp_path: Path) -> None:
    pool = OpponentPool({"near": 1, "random": 1})
    model = learner(pool)
    asked: list[int] = []

    def rate(rows: Sequence[Row]) -> dict[str, float]:
        asked.append(sum(row.games for row in rows))
        return elo(rows)

    logger = Logger(None, [])
    model.set_logger(logger)
    model.learn(512, SelfPlayCallback(pool, 128, rate=rate, log=tmp_path / "new" / "ratings.jsonl"))
    lines = [json.loads(line) for line in (tmp_path / "new" / "ratings.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [128, 256, 384, 512]
    assert sum(line["games"] for line in lines) == asked[-1] > 80
    assert asked == sorted(asked)
    assert all(line["ratings"]["random"] == 1000.0 for line in lines)
    assert pool.ratings == lines[-1]["ratings"]
    assert pool.rating == lines[-1]["rating"] == pool.ratings["step 512"]
    assert {"random", "step 0", "step 128"} <= pool.ratings.keys()
    assert all(0 <= line["score"] <= 1 and line["joined"] for line in lines)


def test_the_games_of_more_than_two_seats_count_too() -> None:
    pool = OpponentPool(["uniform"])
    callback = SelfPlayCallback(pool, 64, rate=elo)
    learner(pool, game="KuhnPoker-v0").learn(256, callback)
    assert pool.rating is not None
    env = ArenaVecEnv("KuhnPoker-v0", 6, players=3, opponents=OpponentPool(["first"]), seed=1)
    env.reset()
    rng, seats = np.random.default_rng(0), set()
    for _ in range(30):
        masks = env.action_masks()
        _, _, dones, infos = env.step(np.where(masks, rng.random(masks.shape), -1).argmax(axis=1))
        seats |= {infos[i]["seat"] for i in np.flatnonzero(dones)}
    assert seats == {0, 1, 2}
    assert env.pool is not None
    assert env.pool.records["first"].games > 20


def test_a_game_for_one_learns_without_opponents() -> None:
    pool = OpponentPool(["latest"])
    callback = SelfPlayCallback(pool, 64)
    learner(pool, game="Wordle-v0").learn(64, callback)
    assert callback.rows == []
    with pytest.raises(ValueError, match="a game of one seat has no opponents"):
        evaluate(pool.snapshots[0].agent, "Wordle-v0", "random", 3)  # type: ignore[arg-type]  # it is a NetworkAgent


def test_rows_say_who_sat_first_and_who_won() -> None:
    counts = {
        ("bob", 0, Result.WIN): 3,
        ("bob", 1, Result.WIN): 4,
        ("ann", 1, Result.LOSS): 5,
        ("ann", 0, Result.DRAW): 6,
    }
    assert rows_of("me", counts) == [
        Row("me", "bob", "first", 3),
        Row("bob", "me", "second", 4),
        Row("ann", "me", "first", 5),
        Row("me", "ann", "draw", 6),
    ]
    assert total([(Result.WIN, 3), (Result.WIN, 4), (Result.LOSS, 5), (Result.DRAW, 6)]) == Record(7, 6, 5)


def test_the_stronger_one_is_rated_higher_from_either_seat() -> None:
    rated = elo([Row("random", "me", "second", 8), Row("me", "random", "first", 8), Row("me", "random", "second", 2)])
    assert rated["random"] == 1000.0
    assert rated["me"] > 1100
    assert elo([Row("a", "b", "first", 5)])["a"] > 1000 > elo([Row("a", "b", "first", 5)])["b"]


def test_evaluations_are_the_same_for_the_same_seed_and_short_games_are_not_preferred() -> None:
    model = learner(OpponentPool(["first"]))
    drawn = [evaluate(agent_of(model, False), GAME, "random", 30, seed=seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert sum(drawn[0].values()) == 30
    assert sum(evaluate(agent_of(model), GAME, "random", 1).values()) == 2
    assert sum(evaluate(agent_of(model), GAME, "random", 100).values()) == 128  # two for each of 64 places
    with pytest.raises(ValueError, match="games=0: allowed are numbers from 1"):
        evaluate(agent_of(model), GAME, "random", 0)


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    pool = OpponentPool({"prioritised": 1, "random": 1}, seed=4)
    model = learner(pool)
    callback = SelfPlayCallback(pool, 100, folder=tmp_path, rate=elo)
    model.learn(256, callback)
    state = json.loads(json.dumps(callback.state()))
    again = OpponentPool({"prioritised": 1, "random": 1}, seed=0)
    other = SelfPlayCallback(again, 100, folder=tmp_path, rate=elo)
    other.restore(state)
    assert (other.rows, other.next, again.records) == (callback.rows, 300, pool.records)
    assert again.weights("prioritised") == pool.weights("prioritised")
    next(tmp_path.glob("step-100.zip")).unlink()
    with pytest.raises(ValueError, match="there is no model"):
        SelfPlayCallback(again, 100, folder=tmp_path).restore(state)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"every": 0}, "every=0: allowed are numbers from 1"),
        ({"every": 1e4}, "every=10000.0"),
        ({"gate": 1.5}, "gate=1.5: allowed are 0 to 1"),
        ({"gate": True}, "gate=True"),
        ({"gate_games": 0}, "gate_games=0"),
    ],
)
def test_odd_arguments_name_what_is_allowed(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        SelfPlayCallback(OpponentPool(), **arguments)
    with pytest.raises(ValueError, match="which needs ratings: give SelfPlayCallback a rate="):
        SelfPlayCallback(OpponentPool(["near"]))
    with pytest.raises(ValueError, match="snapshots are not saved"):
        SelfPlayCallback(OpponentPool()).file(3)
