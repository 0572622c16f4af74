"""The PettingZoo face for turns: order, rewards, retries, vacated seats, truncation."""

from typing import Any

import pettingzoo
import pytest

from arena.aec import GameAECEnv
from arena.seated import Observation
from tests.faces import make_aec
from tests.toy_games import Bazaar, Take


def played(env: Any, actions: str | list[str], seed: int = 0) -> None:
    env.reset(seed=seed)
    for action in actions:
        env.step(action)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"illegal": "lose"}, r"illegal='lose': allowed are forfeit, random, fallback"),
        ({"max_cycles": 0}, r"max_cycles=0: allowed are None and numbers from 1"),
        ({"render_mode": "rgb_array"}, r"render_mode='rgb_array': allowed are None, 'ansi' and 'human'"),
        ({"seat": 0}, r"unknown argument of TicTacToe-v0 'seat'"),
    ],
)
def test_wrong_arguments_name_what_is_allowed(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_aec("TicTacToe-v0", **arguments)


def test_names_and_spaces() -> None:
    env = make_aec("LiarsDice-v0", players=3)
    assert isinstance(env, pettingzoo.AECEnv)
    assert env.possible_agents == ["player_0", "player_1", "player_2"]
    assert (env.agents, str(env)) == ([], "LiarsDice-v0")
    assert env.action_space("player_1") is env.action_space("player_1")
    assert env.action_space("player_1") is not env.action_space("player_2")
    assert env.observation_space("player_1") == env.observation_space("player_2")


def test_the_winner_gets_one_and_the_loser_minus_one() -> None:
    env = make_aec("TicTacToe-v0")
    played(env, "1425")
    assert env.rewards == {"player_0": 0.0, "player_1": 0.0}
    assert env.agent_selection == "player_0"
    env.step("3")
    assert env.rewards == {"player_0": 1.0, "player_1": -1.0}
    assert env.terminations == {"player_0": True, "player_1": True}
    told = {}
    for agent in env.agent_iter():
        _, reward, terminated, truncated, info = env.last()
        assert (terminated, truncated, info["legal_actions"], info["verdict"]) == (True, False, (), "legal")
        told[agent] = reward
        env.step(None)
    assert told == {"player_0": 1.0, "player_1": -1.0}
    assert env.agents == []
    assert env.rewards == env.infos == env.terminations == {}


def test_info_is_fresh_for_the_agent_selected() -> None:
    env = make_aec("TicTacToe-v0", retries=1)
    env.reset(seed=0)
    seen, _, _, _, info = env.last()
    assert type(seen) is Observation
    assert (seen, seen.dtype) == (env.game.observation(0), str)
    assert env.last(observe=False)[0] is None
    assert info == {
        "legal_actions": tuple("123456789"), "player": 0, "turn": 0, "verdict": "", "retries_left": 1,
        "rules": env.game.rules(0),
    }  # fmt: skip
    env.step("1")
    other = env.last()[4]
    assert (other["legal_actions"], other["player"]) == (tuple("23456789"), 1)
    env.step("2")
    assert env.last()[4] is not info
    assert env.last()[4]["turn"] == 1


def test_after_a_wrong_action_with_retries_left_the_same_agent_is_asked_again() -> None:
    env = make_aec("TicTacToe-v0", retries=1)
    played(env, ["1", "1"])
    assert env.agent_selection == "player_1"
    seen, reward, terminated, _, info = env.last()
    assert seen.startswith("[Not accepted: square 1 is taken. Legal: 2, 3")
    assert (reward, terminated, info["verdict"], info["retries_left"], info["turn"]) == (0.0, False, "illegal", 0, 0)
    assert not env.observe("player_0").startswith("[Not")
    env.step("1")
    assert env.rewards == {"player_0": 1.0, "player_1": -1.0}


def test_seats_that_move_at_once_are_asked_in_order_and_see_nothing_of_each_other() -> None:
    env = GameAECEnv(Bazaar)
    env.reset(seed=0)
    for seat, text in enumerate(("say a", "say b", "say c")):
        assert env.agent_selection == f"player_{seat}"
        assert "Player" not in env.last()[0]
        env.step(text)
    assert env.last()[0].splitlines()[:3] == ['Player 0: "a"', 'Player 1: "b"', 'Player 2: "c"']


def test_who_forfeits_among_many_is_played_for_and_paid_at_once() -> None:
    env = GameAECEnv(Bazaar)
    played(env, ["say a", "shout"], seed=2)
    assert env.agent_selection == "player_2"
    env.step("say c")
    assert env.rewards == {"player_0": 0.0, "player_1": -1.0, "player_2": 0.0}
    assert env.agents == env.possible_agents
    asked = []
    while not any(env.terminations.values()):
        asked.append(env.agent_selection)
        env.step("say x")
    assert asked == ["player_0", "player_2"] * 2
    assert [event.text for event in env.game.events(1) if event.sender == 1] == ["", "", ""]  # the fallback
    final = {}
    for agent in env.agent_iter():
        final[agent] = env.last()[1]
        env.step(None)
    assert final["player_1"] == -1.0
    assert final["player_0"] == env.game.returns()[0]


def test_all_who_forfeit_leave_the_game_to_end_by_itself() -> None:
    env = GameAECEnv(Bazaar)
    played(env, ["shout"] * 3)
    assert all(env.terminations.values())
    assert env.table.earned == (-1.0, -1.0, -1.0)


def test_max_cycles_truncates_all() -> None:
    env = make_aec("TicTacToe-v0", max_cycles=2)
    played(env, "12")
    assert env.truncations == {"player_0": True, "player_1": True}
    assert not any(env.terminations.values())
    assert env.last()[4]["legal_actions"] == ()
    env.step(None)
    env.step(None)
    assert env.agents == []


def test_where_a_reset_is_due_it_says_so() -> None:
    env = make_aec("TicTacToe-v0")
    for early in (lambda: env.step("1"), env.last, lambda: env.observe("player_0"), env.render, lambda: env.game):
        with pytest.raises(RuntimeError, match="call reset"):
            early()
    played(env, ["1", "nonsense", None, None])  # type: ignore[list-item]  # None is how an agent leaves
    with pytest.raises(RuntimeError, match="call reset"):
        env.step("1")


def test_misuse_is_refused() -> None:
    env = make_aec("TicTacToe-v0")
    played(env, ["nonsense"])
    with pytest.raises(ValueError, match="the only action is None"):
        env.step("1")
    env.reset(seed=0)
    with pytest.raises(ValueError, match="agent 'player_2': allowed are player_0, player_1"):
        env.observe("player_2")
    with pytest.raises(ValueError, match="seed=-1"):
        env.reset(seed=-1)
    with pytest.raises(TypeError, match="an action is a str, got NoneType"):
        env.step(None)


def test_seeds_are_fixed_by_the_last_one_given() -> None:
    def deals(env: Any) -> list[int]:
        env.reset(seed=9)
        told = []
        for _ in range(3):
            env.reset(options={"ignored": 1})
            told.append(env.table.seed)
        return told

    assert deals(make_aec("KuhnPoker-v0")) == deals(make_aec("KuhnPoker-v0"))
    free = [make_aec("KuhnPoker-v0") for _ in range(2)]
    for env in free:
        env.reset()
    assert free[0].table.seed != free[1].table.seed


def test_a_deal_that_is_over_terminates_at_once() -> None:
    class Dull(Take):
        def to_act(self) -> tuple[int, ...]:
            return ()

    env = GameAECEnv(Dull)
    env.reset(seed=0)
    assert all(env.terminations.values())
    env.step(None)
    env.step(None)
    assert env.agents == []


def test_rendering(capsys: pytest.CaptureFixture[str]) -> None:
    env = make_aec("TicTacToe-v0", render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == env.game.render()
    human = make_aec("TicTacToe-v0", render_mode="human")
    played(human, "5")
    assert "X" in capsys.readouterr().out
    human.close()
