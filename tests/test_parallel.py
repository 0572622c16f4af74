"""The PettingZoo face for all at once."""

from typing import Any

import pettingzoo
import pytest
from gymnasium import spaces

from arena.parallel import GameParallelEnv
from tests.faces import make_parallel
from tests.toy_games import Bazaar, Take


def test_actions_of_those_not_to_act_are_not_looked_at() -> None:
    env = make_parallel("TicTacToe-v0")
    assert isinstance(env, pettingzoo.ParallelEnv)
    seen, infos = env.reset(seed=0)
    assert infos["player_0"]["legal_actions"] == tuple("123456789")
    assert infos["player_1"]["legal_actions"] == ()
    assert infos["player_1"]["rules"] == env.game.rules(1)
    env.step({"player_0": "1", "player_1": 77})
    seen, rewards, terminated, truncated, infos = env.step({"player_1": "4"})
    assert seen == {agent: env.game.observation(seat) for seat, agent in enumerate(env.agents)}
    assert (set(rewards.values()), set(terminated.values()), set(truncated.values())) == ({0.0}, {False}, {False})
    assert infos["player_0"]["turn"] == infos["player_1"]["turn"] == 1


def test_the_end_pays_and_empties_the_table() -> None:
    env = make_parallel("RockPaperScissors-v0", rounds=1)
    env.reset(seed=0)
    _, rewards, terminated, _, infos = env.step({"player_0": "rock", "player_1": "scissors"})
    assert rewards == {"player_0": 1.0, "player_1": -1.0}
    assert all(terminated.values())
    assert env.agents == []
    assert {info["legal_actions"] for info in infos.values()} == {()}
    with pytest.raises(RuntimeError, match="call reset"):
        env.step({})


def test_a_missing_action_and_one_of_another_type_change_nothing() -> None:
    env = GameParallelEnv(Bazaar)
    env.reset(seed=0)
    before = env.game
    with pytest.raises(ValueError, match="an action of player_1 is missing"):
        env.step({"player_0": "say a", "player_2": "say c"})
    with pytest.raises(TypeError, match="an action is a str, got int"):
        env.step({"player_0": "say a", "player_1": "say b", "player_2": 3})
    assert env.game is before
    env.step({"player_0": "say a", "player_1": "say b", "player_2": "say c"})
    assert [event.sender for event in env.game.events(0)] == [0, 1, 2]


def test_who_forfeits_is_played_for_without_a_retry() -> None:
    with pytest.raises(ValueError, match="has no retries"):
        GameParallelEnv(Bazaar, retries=1)
    env = GameParallelEnv(Bazaar)
    env.reset(seed=3)
    _, rewards, _, _, infos = env.step({"player_0": "shout", "player_1": "say b", "player_2": "say c"})
    assert rewards == {"player_0": -1.0, "player_1": 0.0, "player_2": 0.0}
    assert (infos["player_0"]["verdict"], infos["player_0"]["legal_actions"]) == ("illegal", ())
    others = {"player_1": "say b", "player_2": "say c"}
    env.step(others)
    _, rewards, terminated, _, _ = env.step(others)
    assert all(terminated.values())
    assert rewards["player_0"] == 0.0
    assert env.table.earned[0] == -1.0


def test_both_wrong_in_a_game_of_two_both_end_at_the_least() -> None:
    env = make_parallel("RockPaperScissors-v0")
    env.reset(seed=0)
    _, rewards, terminated, _, _ = env.step(dict.fromkeys(env.agents, "well"))
    assert rewards == {"player_0": -1.0, "player_1": -1.0}
    assert all(terminated.values())


def test_news_are_what_the_last_step_brought() -> None:
    env = GameParallelEnv(Bazaar, history="new")
    env.reset(seed=0)
    for letter in "ab":
        seen: Any = env.step(dict.fromkeys(env.agents, f"say {letter}"))[0]
        assert seen["player_2"].splitlines()[:-1] == [f'Player {p}: "{letter}"' for p in range(3)]


def test_max_cycles_truncates() -> None:
    env = GameParallelEnv(Bazaar, max_cycles=1)
    env.reset(seed=0)
    _, _, terminated, truncated, infos = env.step(dict.fromkeys(env.agents, "say a"))
    assert not any(terminated.values())
    assert all(truncated.values())
    assert env.agents == []
    assert infos["player_0"]["legal_actions"] == ()


def test_before_the_first_reset_and_wrong_arguments() -> None:
    env = make_parallel("TicTacToe-v0", render_mode="ansi")
    for early in (lambda: env.step({}), env.render, lambda: env.game):
        with pytest.raises(RuntimeError, match="call reset"):
            early()
    env.reset(seed=0)
    assert env.render() == env.game.render()
    with pytest.raises(ValueError, match="unknown argument of TicTacToe-v0 'sise'"):
        make_parallel("TicTacToe-v0", sise=3)
    env.close()


def test_masks_of_those_who_wait_are_not_empty() -> None:
    env = GameParallelEnv(Take, numeric=True)
    seen, infos = env.reset(seed=5)
    assert infos["player_1"]["action_mask"].tolist() == [1, 1]
    assert seen["player_0"] in env.observation_space("player_0")
    seen, *_ = env.step({"player_0": 0})
    assert env.observation_space("player_0") is env.observation_space("player_0")
    assert env.action_space("player_0") == spaces.Discrete(2)


def test_human_rendering_prints(capsys: pytest.CaptureFixture[str]) -> None:
    env = make_parallel("TicTacToe-v0", render_mode="human")
    env.reset(seed=0)
    env.step({"player_0": "5"})
    assert "X" in capsys.readouterr().out
