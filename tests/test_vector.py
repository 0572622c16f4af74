"""The vector face: equal to Gymnasium's own in every autoreset mode, with retries, limits and masks."""

from random import Random
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from arena.agent import Agent, Reply, View
from arena.env import GameEnv
from arena.vector import GameVectorEnv
from tests.test_env import Failing, Slow
from tests.test_faces_all_ids import _same
from tests.toy_games import Bazaar


def make(**arguments: Any) -> Any:
    return gymnasium.make_vec("arena/TicTacToe-v0", **arguments)


def test_make_vec_finds_it_and_the_mode_is_declared() -> None:
    env = make(num_envs=3)
    assert type(env) is GameVectorEnv
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert env.num_envs == 3
    seen, info = env.reset(seed=0)
    assert seen in env.observation_space
    assert list(info["legal_actions"]) == [tuple("123456789")] * 3
    assert env.action_space.sample() in env.action_space


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("numeric", [False, True])
def test_equal_to_sync_step_by_step(mode: AutoresetMode, numeric: bool) -> None:
    arguments: dict[str, Any] = {"retries": 1, "seat": "random", "numeric": numeric}
    own = GameVectorEnv("LeducPoker-v0", 4, autoreset_mode=mode, **arguments)
    sync: Any = SyncVectorEnv([lambda: GameEnv("LeducPoker-v0", **arguments)] * 4, autoreset_mode=mode)
    rng = Random(1)
    seeds = [3, 4, 5, 9]
    told = sync.reset(seed=seeds)
    assert _same(own.reset(seed=seeds), told)
    ends = 0
    for _ in range(60):
        if mode is AutoresetMode.DISABLED and ends and (over := told[2] | told[3]).any():
            told = sync.reset(options={"reset_mask": over.copy()})
            assert _same(own.reset(options={"reset_mask": over}), told)
        if numeric:
            actions: Any = np.array([rng.randrange(4) for _ in range(4)])
        else:
            actions = tuple([rng.choice(("fold", "call", "check", "raise", "bet", "x")) for _ in range(4)])
        told = sync.step(actions)
        assert _same(own.step(actions), told)
        ends += int(told[2].sum())
        assert _same(own.action_masks(), np.stack(sync.call("action_masks"))) if numeric else True
    assert ends > 10


def test_final_observations_in_same_step_mode() -> None:
    env = make(num_envs=2, autoreset_mode="SameStep", opponents="scripted:4|5|8")
    env.reset(seed=0)
    env.step(("1", "1"))
    env.step(("2", "2"))
    seen, rewards, terminated, _, info = env.step(("3", "7"))
    assert rewards.tolist() == [1.0, 0.0]
    assert terminated.tolist() == [True, False]
    assert "X X X" in info["final_obs"][0]
    assert info["final_obs"][1] is None
    assert info["final_info"]["legal_actions"][0] == ()
    assert "X" not in seen[0].partition("\n")[2]
    assert info["legal_actions"][0] == tuple("123456789")


def test_episodes_are_truncated_after_so_many_steps() -> None:
    env = make(num_envs=2, max_episode_steps=2, retries=9)
    sync: Any = make(num_envs=2, max_episode_steps=2, retries=9, vectorization_mode="sync")
    assert _same(env.reset(seed=4), sync.reset(seed=4))
    for actions in (("x", "1"), ("x", "2"), ("", ""), ("1", "x")):
        told = sync.step(actions)
        assert _same(env.step(actions), told)
    assert told[3].tolist() == [False, False]


def test_a_finished_episode_must_be_reset_where_autoreset_is_off() -> None:
    env = make(num_envs=2, autoreset_mode="Disabled")
    env.reset(seed=0)
    env.step(("nonsense", "1"))
    with pytest.raises(ValueError, match=r"episodes \[0\] are over"):
        env.step(("1", "2"))
    seen, info = env.reset(options={"reset_mask": np.array([True, False])})
    assert info["_rules"].tolist() == [True, False]
    assert "X" in seen[1].partition("\n")[2]
    env.step(("1", env.episodes[1].info()["legal_actions"][0]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "num_envs=0: allowed are numbers from 1"),
        ({"autoreset_mode": "never"}, "autoreset_mode='never': allowed are 'NextStep', 'SameStep', 'Disabled'"),
        ({"max_episode_steps": 0}, "max_episode_steps=0: allowed"),
        ({"opponent": "random"}, "unknown argument of TicTacToe-v0 'opponent'. Did you mean 'opponents'"),
    ],
)
def test_wrong_arguments_name_what_is_allowed(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**arguments)


def test_misuse_is_refused_before_anything_is_played() -> None:
    env = make(num_envs=2)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="1 actions were given for 2"):
        env.step(("1",))
    with pytest.raises(TypeError, match="an action is a str, got int"):
        env.step(("1", 2))
    assert env.episodes[0].table.ply == 0
    for options in ({"reset_mask": [True, True]}, {"reset_mask": np.zeros(2, np.bool_)}, {"size": 3}):
        with pytest.raises(ValueError, match=r"reset_mask"):
            env.reset(options=options)
    with pytest.raises(ValueError, match="3 seeds were given for 2"):
        env.reset(seed=[1, 2, 3])


def test_seeds_none_int_and_list() -> None:
    env = GameVectorEnv("KuhnPoker-v0", 3)
    episodes = env.episodes
    env.reset(seed=7)
    assert [solo.table.seed for solo in episodes] == [7, 8, 9]
    env.reset(seed=[1, None, 3])
    assert [solo.table.seed for solo in episodes][::2] == [1, 3]
    env.reset()
    assert len({solo.table.seed for solo in episodes}) == 3


def test_opponents_that_wait_are_asked_in_all_episodes_at_once() -> None:
    Slow.most = 0
    env = GameVectorEnv(Bazaar, 5, seat=1, opponents=Slow())
    env.reset(seed=0)
    env.step(["say hi"] * 5)
    assert Slow.most == 10
    plain: Any = SyncVectorEnv([lambda: GameEnv(Bazaar, seat=1, opponents=Slow())] * 5)
    plain.reset(seed=0)
    plain.step(["say hi"] * 5)
    assert [e.game for e in plain.envs] == [solo.table.state for solo in env.episodes]


def test_an_opponent_that_fails_fails_the_step() -> None:
    env = GameVectorEnv("TicTacToe-v0", 2, opponents=Failing())
    env.reset(seed=0)
    with pytest.raises(ConnectionError):
        env.step(("1", "1"))


def test_closing_closes_the_agents_and_rendering_shows_all_tables(capsys: pytest.CaptureFixture[str]) -> None:
    class Closing(Agent):
        closed = 0

        def act(self, view: View) -> Reply:
            return Reply("9")

        def close(self) -> None:
            self.closed += 1

    agent = Closing()
    env = make(num_envs=2, render_mode="ansi", opponents=agent)
    env.reset(seed=0)
    env.step(("1", "2"))
    assert [picture == solo.table.state.render() for picture, solo in zip(env.render(), env.episodes, strict=True)]
    env.close()
    assert agent.closed
    human = make(num_envs=2, render_mode="human")
    human.reset(seed=0)
    human.step(("1", "2"))
    assert capsys.readouterr().out.count("X") > 1


def test_before_the_first_reset_everything_says_so() -> None:
    env = make(num_envs=2, render_mode="ansi")
    with pytest.raises(ResetNeeded, match=r"call reset\(\)"):
        env.render()
    with pytest.raises(ResetNeeded, match="without a mask first"):
        env.reset(options={"reset_mask": np.array([True, False])})
    env.reset(options={"reset_mask": np.array([True, True])})
    with pytest.raises(ResetNeeded):
        make(num_envs=2).step(("1", "1"))


def test_seeds_may_come_in_an_array() -> None:
    env, other = make(num_envs=2), make(num_envs=2)
    assert env.reset(seed=np.array([3, 4]))[0] == other.reset(seed=[3, 4])[0]
    with pytest.raises(ValueError, match="3 seeds were given for 2"):
        env.reset(seed=np.array([1, 2, 3]))
