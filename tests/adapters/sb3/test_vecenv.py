"""A batch of games for Stable-Baselines3 plays what single environments play, and tells what it should."""

import pickle
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sb3_contrib")

import gymnasium
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecMonitor, VecNormalize

from arena.adapters.sb3 import ArenaVecEnv, NetworkAgent, Policy, sb3_env
from arena.agent import Agent, Reply, View
from arena.game import Game
from arena.numeric import finite_ids
from tests.toy_games import Take

LEAST = np.iinfo(np.int64).min


def pick(masks: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.intp]:
    """A random legal action for every row."""
    chosen: NDArray[np.intp] = np.where(masks, rng.random(masks.shape), -1).argmax(axis=1)
    return chosen


def side_by_side(game_id: str, steps: int, any_action: bool = False, **arguments: Any) -> int:
    """Play ours beside SB3's own vector of single environments, all compared; gives how many episodes ended."""
    ours = ArenaVecEnv(game_id, 3, **arguments)
    cut = arguments.pop("max_episode_steps", None)
    theirs: Any = DummyVecEnv(
        [lambda: gymnasium.make(f"arena/{game_id}", numeric=True, max_episode_steps=cut, **arguments)] * 3
    )
    ours.seed(7)
    theirs.seed(7)
    seen, expected = ours.reset(), theirs.reset()
    rng, ended = np.random.default_rng(1), 0
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    for _ in range(steps):
        assert seen.dtype == expected.dtype
        assert np.array_equal(seen, expected)
        masks = get_action_masks(ours)
        assert np.array_equal(masks, get_action_masks(theirs))
        actions = rng.integers(0, masks.shape[1], 3) if any_action else pick(masks, rng)
        seen, rewards, dones, infos = ours.step(actions)
        expected, paid, over, told = theirs.step(actions)
        assert np.array_equal(rewards, paid)
        assert rewards.dtype == paid.dtype
        assert np.array_equal(dones, over)
        for mine, info in zip(infos, told, strict=True):
            assert mine["TimeLimit.truncated"] == info["TimeLimit.truncated"]
            assert ("terminal_observation" in mine) == ("terminal_observation" in info)
            if "terminal_observation" in mine:
                assert np.array_equal(mine["terminal_observation"], info["terminal_observation"])
                ended += 1
    return ended


@pytest.mark.parametrize("seat", [0, "random"])
@pytest.mark.parametrize("game_id", finite_ids())
def test_it_plays_what_single_environments_play(game_id: str, seat: int | str) -> None:
    ended = side_by_side(game_id, 40, seat=seat)
    assert ended > 0 or game_id == "Chess-v0"


@pytest.mark.parametrize("illegal", ["forfeit", "random", "fallback"])
@pytest.mark.parametrize("game_id", ["ConnectFour-v0", "LeducPoker-v0", "Wordle-v0"])
def test_so_it_does_with_illegal_actions_and_retries(game_id: str, illegal: str) -> None:
    if illegal == "fallback" and game_id != "LeducPoker-v0":
        illegal = "random"
    assert side_by_side(game_id, 60, any_action=True, illegal=illegal, retries=1, seat="random") > 0


def test_so_it_does_with_more_seats_options_and_other_opponents() -> None:
    assert side_by_side("KuhnPoker-v0", 60, players=4, seat="random", opponents=["first", "random", "first"]) > 0
    assert side_by_side("TicTacToe-v0", 30, seat=1, opponents="minimax?depth=2") > 0
    assert side_by_side("RockPaperScissors-v0", 30, seat=1, opponents="first") > 0


def test_so_it_does_where_episodes_are_cut_off() -> None:
    assert side_by_side("ConnectFour-v0", 30, seat=0, max_episode_steps=2) >= 30


def test_so_it_does_on_the_bytes_of_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.games.board.tictactoe.TicTacToe.features", Game.features)
    assert side_by_side("TicTacToe-v0", 30, seat="random", history=2) > 0


class Late(Agent):
    """Answers awaitably."""

    name = "late"

    async def act(self, view: View) -> Reply:
        """See `Agent.act`."""
        assert view.legal_actions
        return Reply(view.legal_actions[view.draw(len(view.legal_actions))])


def test_so_it_does_with_opponents_that_wait() -> None:
    assert side_by_side("TicTacToe-v0", 12, seat="random", opponents=Late()) > 0


def untrained(game_id: str, deterministic: bool) -> NetworkAgent:
    model = MaskablePPO("MlpPolicy", sb3_env(game_id), n_steps=8, seed=5, device="cpu")
    return NetworkAgent(Policy.of(model), True, deterministic)


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("game_id", ["KuhnPoker-v0", "RockPaperScissors-v0", "TicTacToe-v0"])
def test_a_network_that_answers_all_games_at_once_plays_as_it_does_alone(game_id: str, deterministic: bool) -> None:
    assert side_by_side(game_id, 40, seat="random", opponents=untrained(game_id, deterministic)) > 0


class Counting(NetworkAgent):
    """Counts how many games it was asked for, call by call."""

    batches: list[int]

    def choose(self, observations: NDArray[Any], masks: Any, chances: Any) -> list[int]:
        """See `NetworkAgent.choose`."""
        self.batches.append(len(observations))
        assert masks.dtype == np.bool_
        return super().choose(observations, masks, chances)


def test_a_network_is_asked_once_a_round_for_all_games_that_wait() -> None:
    plain = untrained("ConnectFour-v0", False)
    agent = Counting(plain.policy, True)
    agent.batches = []
    env = ArenaVecEnv("ConnectFour-v0", 32, opponents=agent, seat="alternate", seed=1)
    env.reset()
    assert agent.batches == [16]  # every second game is begun by the opponent
    env.step(pick(get_action_masks(env), np.random.default_rng(1)))
    assert agent.batches == [16, 32]


@pytest.mark.parametrize("game_id", ["ConnectFour-v0", "LiarsDice-v0", "LeducPoker-v0", "Wordle-v0"])
def test_masks_are_the_lists_of_legal_actions(game_id: str) -> None:
    env = ArenaVecEnv(game_id, 4, seed=3)
    env.reset()
    rng = np.random.default_rng(3)
    table = env.codec.table
    for _ in range(60):
        masks = env.action_masks()
        games, seats = env.get_attr("game"), env.get_attr("seat")
        for row, game, seat in zip(masks, games, seats, strict=True):
            assert {table[i] for i in np.flatnonzero(row)} == set(game.legal_actions(seat))
        env.step(pick(masks, rng))


def finals(env: ArenaVecEnv, steps: int) -> list[tuple[float, dict[str, Any]]]:
    env.reset()
    rng, found = np.random.default_rng(2), []
    for _ in range(steps):
        _, rewards, dones, infos = env.step(pick(env.action_masks(), rng))
        found += [(float(r), info) for r, done, info in zip(rewards, dones, infos, strict=True) if done]
        assert not any("episode" in info for info, done in zip(infos, dones, strict=True) if not done)
    return found


def test_the_loser_is_paid_minus_one_and_the_winner_one() -> None:
    found = finals(ArenaVecEnv("ConnectFour-v0", 8, seed=4), 200)
    assert {reward for reward, _ in found} >= {1.0, -1.0}
    for reward, info in found:
        mine, theirs = np.split(info["terminal_observation"], 2)
        # Whoever moved last has won: a loss is the opponent's move, and yet it is paid to the learner at once.
        assert info["episode"]["r"] == reward
        assert info["score"] == (reward + 1) / 2
        if reward:
            moved_last = mine.sum() > theirs.sum() or (mine.sum() == theirs.sum() and info["seat"] == 1)
            assert (reward > 0) == moved_last


def test_seats_alternate_in_every_game() -> None:
    env = ArenaVecEnv("TicTacToe-v0", 2, seed=5)
    env.reset()
    assert env.get_attr("seat") == [0, 1]
    rng, seats = np.random.default_rng(2), [[0], [1]]
    for _ in range(60):
        _, _, dones, infos = env.step(pick(env.action_masks(), rng))
        for i in np.flatnonzero(dones):
            assert infos[i]["seat"] == seats[i][-1]
            seats[i].append(env.get_attr("seat")[i])
    assert all(a != b for own in seats for a, b in pairwise(own))
    assert min(map(len, seats)) > 8


def test_seats_of_the_house_are_left_to_it() -> None:
    class Housed(Take):
        house = (0,)

    env = ArenaVecEnv(Housed, 3)
    env.reset()
    assert env.get_attr("seat") == [1, 1, 1]


def test_a_game_for_one_has_no_score() -> None:
    found = finals(ArenaVecEnv("Wordle-v0", 4, seed=6), 20)
    assert found
    assert all(info["score"] is None for _, info in found)


def test_the_same_seed_plays_the_same_and_another_does_not() -> None:
    def played(seed: int) -> list[Any]:
        env = ArenaVecEnv("LeducPoker-v0", 4, seed=seed)
        rng, seen = np.random.default_rng(0), [env.reset()]
        for _ in range(30):
            seen.append(env.step(pick(env.action_masks(), rng))[0])
        return seen

    assert np.array_equal(played(1), played(1))
    assert not np.array_equal(played(1), played(2))


@pytest.mark.filterwarnings("ignore:The environment is already wrapped")
def test_its_statistics_are_what_a_monitor_counts() -> None:
    ours = ArenaVecEnv("IteratedPrisonersDilemma-v0", 4, rounds=3, seed=8)
    watched: Any = VecMonitor(ArenaVecEnv("IteratedPrisonersDilemma-v0", 4, rounds=3, seed=8))
    assert np.array_equal(ours.reset(), watched.reset())
    rng, ended = np.random.default_rng(2), 0
    for _ in range(20):
        actions = pick(ours.action_masks(), rng)
        told, counted = ours.step(actions)[3], watched.step(actions)[3]
        for mine, theirs in zip(told, counted, strict=True):
            assert ("episode" in mine) == ("episode" in theirs)
            if "episode" in mine:
                ended += 1
                assert mine["episode"]["l"] == theirs["episode"]["l"] == 3
                assert mine["episode"]["r"] == pytest.approx(theirs["episode"]["r"], abs=1e-5)
    assert ended == 24


def test_policies_are_evaluated_without_a_monitor(recwarn: pytest.WarningsRecorder) -> None:
    env = ArenaVecEnv("TicTacToe-v0", 4, seed=9)
    model = MaskablePPO("MlpPolicy", env, n_steps=16, device="cpu")
    told: Any = evaluate_policy(model, env, 10, return_episode_rewards=True, warn=True)
    assert [len(column) for column in told] == [10, 10]
    assert not [w for w in recwarn if "Monitor" in str(w.message)]


def test_a_seed_fixes_the_seats_too() -> None:
    env = ArenaVecEnv("KuhnPoker-v0", 3)
    dealt = []
    for _ in range(2):
        env.seed(5)
        seen, seats = env.reset(), env.get_attr("seat")
        assert seats == [0, 1, 0]
        dealt.append(seen)
        env.reset()
        assert env.get_attr("seat") == [1, 0, 1]
        env.reset()
    assert np.array_equal(dealt[0], dealt[1])


@pytest.mark.parametrize(("algorithm", "arguments"), [(PPO, {"n_steps": 16}), (A2C, {}), (DQN, {"learning_starts": 8})])
def test_algorithms_without_masks_run_and_log(algorithm: Any, arguments: dict[str, Any]) -> None:
    env = ArenaVecEnv("KuhnPoker-v0", 4, illegal="random", seed=1)
    model = algorithm("MlpPolicy", env, device="cpu", **arguments).learn(128)
    assert model.num_timesteps >= 128
    assert {episode["r"] for episode in model.ep_info_buffer} <= {-2, -1, 1, 2}


def test_wrappers_of_sb3_go_around_it() -> None:
    env: Any = VecNormalize(VecFrameStack(ArenaVecEnv("TicTacToe-v0", 4, seed=1), 2), norm_reward=False)
    assert env.reset().shape == (4, 36)
    assert is_masking_supported(env)
    MaskablePPO("MlpPolicy", env, n_steps=16, batch_size=16, device="cpu").learn(64)


def test_what_was_given_out_stays_as_it_was() -> None:
    env = ArenaVecEnv("TicTacToe-v0", 2, seed=1)
    first, masks, row = env.reset(), env.action_masks(), env.env_method("action_masks", indices=1)[0]
    kept = first.copy(), masks.copy(), row.copy()
    step = env.step(np.array([0, 0]) if masks[:, 0].all() else pick(masks, np.random.default_rng(0)))
    assert not np.array_equal(step[0], first)
    for now, before in zip((first, masks, row), kept, strict=True):
        assert np.array_equal(now, before)


def test_render_shows_the_table_of_each() -> None:
    env = ArenaVecEnv("TicTacToe-v0", 2, seat=0)
    env.reset()
    assert env.env_method("render") == [game.render() for game in env.get_attr("game")]
    assert list(env.get_images()) == [None, None]


@pytest.mark.parametrize(
    ("actions", "error", "said"),
    [
        ([0], ValueError, r"shape \(1,\) were given for 2 games"),
        ([[0], [0]], ValueError, "shape"),
        ([0.0, 1.0], TypeError, "an integer, got float64"),
        ([True, False], TypeError, "an integer, got bool"),
        ([0, 9], ValueError, "0 to 9: allowed are 0 to 8"),
        ([-1, 0], ValueError, "allowed are 0 to 8"),
        ([LEAST, 0], ValueError, "allowed are 0 to 8"),
        (["a", "b"], TypeError, "an integer"),
    ],
)
def test_odd_actions_are_refused_before_anything_is_played(
    actions: Sequence[Any], error: type[Exception], said: str
) -> None:
    env = ArenaVecEnv("TicTacToe-v0", 2, seat=0, seed=1)
    before = env.reset()
    with pytest.raises(error, match=said):
        env.step(actions)
    assert np.array_equal(env._look(), before)
    env.step([0, 8])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"n_envs": 0}, "n_envs=0: allowed are numbers from 1"),
        ({"n_envs": 2.0}, "n_envs=2.0"),
        ({"max_episode_steps": 0}, "max_episode_steps=0"),
        ({"max_episode_steps": True}, "max_episode_steps=True"),
        ({"seat": 2}, "seat=2: allowed are 0 to 1"),
        ({"seat": "left"}, "seat='left': allowed are 0 to 1, 'random' and 'alternate'"),
        ({"opponents": ["random", "random"]}, "2 opponents were given"),
        ({"opponents": "nobody"}, "unknown agent 'nobody'"),
        ({"opponents": 3}, "opponents=3"),
        ({"seed": -1}, "seed=-1"),
        ({"illegal": "scold"}, "illegal"),
        ({"rows": 9}, "unknown argument of TicTacToe-v0 'rows'"),
    ],
)
def test_odd_arguments_name_what_is_allowed(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ArenaVecEnv("TicTacToe-v0", **arguments)


def test_a_game_of_open_text_names_those_that_have_numbers() -> None:
    with pytest.raises(ValueError, match=r"no action_table .* works for Chess-v0, ConnectFour-v0"):
        ArenaVecEnv("Negotiation-v0")


def test_what_cannot_be_done_says_so() -> None:
    env = ArenaVecEnv("TicTacToe-v0", 2)
    with pytest.raises(ValueError, match="call step_async"):
        env.step_wait()
    with pytest.raises(ResetNeeded):
        env.step([0, 0])
    with pytest.raises(AttributeError, match="allowed are action_masks, game, render_mode, seat"):
        env.get_attr("seed_of_the_deal")
    assert not env.has_attr("secret")
    with pytest.raises(AttributeError, match="cannot be set"):
        env.set_attr("seat", 1)
    with pytest.raises(AttributeError, match="allowed are action_masks and render"):
        env.env_method("close")
    with pytest.raises(ValueError, match="takes no options"):
        env.set_options({"rows": 3})
    with pytest.raises(ValueError, match="takes no options"):
        env.set_options([{}, {"rows": 3}])
    env.set_options({})
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(env)
    env.close()


class Failing(Agent):
    """Its server is gone."""

    def act(self, view: View) -> Reply:
        """See `Agent.act`."""
        raise ConnectionError("gone")


def test_an_opponent_that_fails_says_so_and_another_reset_begins_anew() -> None:
    env = ArenaVecEnv("TicTacToe-v0", 2, opponents=Failing(), seat=0)
    env.reset()
    with pytest.raises(ConnectionError, match="gone"):
        env.step([0, 0])
    env.reset()
    assert env.action_masks().all()
