"""The Gymnasium face: arguments, rewards, retries, forfeits, history, opponents that wait or fail."""

import asyncio
from random import Random
from typing import Any, Self

import gymnasium
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.wrappers import FlattenObservation, RecordEpisodeStatistics, TimeLimit

from arena.agent import Agent, Reply, View
from arena.agents.simple import FirstAgent, RandomAgent, ScriptedAgent
from arena.env import GameEnv
from arena.game import LiveGame
from arena.match import play_sync
from arena.registry import make_game
from tests.faces import make_env
from tests.toy_games import Bazaar, Take


class Slow(Agent):
    """Answers later; counts how many wait at the same time."""

    waiting = most = 0

    async def act(self, view: View) -> Reply:
        type(self).waiting += 1
        type(self).most = max(type(self).most, type(self).waiting)
        await asyncio.sleep(0.01)
        type(self).waiting -= 1
        return Reply(view.sample_action())


class Later(Agent):
    """Not declared `async`, but answers with something to wait for."""

    def act(self, view: View) -> Any:
        async def answer() -> Reply:
            return Reply(view.sample_action())

        return answer()


class Failing(Agent):
    def act(self, view: View) -> Reply:
        raise ConnectionError("server down")


class Cut(Agent):
    def act(self, view: View) -> Reply:
        return Reply("1", truncated=True)


class NoReply(Agent):
    def act(self, view: View) -> Any:
        return "1"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seat": 2}, r"seat=2: allowed are 0 to 1 and 'random'"),
        ({"seat": True}, r"seat=True: allowed are 0 to 1"),
        ({"seat": "first"}, r"seat='first': allowed"),
        ({"opponents": "rando"}, r"unknown agent 'rando'. Did you mean 'random'\?"),
        ({"opponents": ["random", "random"]}, r"2 opponents were given: TicTacToe-v0 has 1 other seats"),
        ({"opponents": 3}, r"opponents=3: allowed are a spec string, an Agent, or a list"),
        ({"illegal": "lose"}, r"illegal='lose': allowed are forfeit, random, fallback"),
        ({"retries": -1}, r"retries=-1: allowed are 0 to 100"),
        ({"show_legal": 1}, r"show_legal=1: allowed are True and False"),
        ({"history": "all"}, r"history='all': allowed are 'full', 'new' or a number"),
        ({"history": -1}, r"history=-1: allowed"),
        ({"history": True}, r"history=True: allowed"),
        ({"render_mode": "rgb"}, r"render_mode='rgb': allowed are None, 'ansi' and 'human'"),
        ({"numeric": "yes"}, r"numeric='yes': allowed are True and False"),
        ({"seats": 0}, r"unknown argument of TicTacToe-v0 'seats'. Did you mean 'seat'\?"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_wrong_arguments_name_what_is_allowed(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        gymnasium.make("arena/TicTacToe-v0", **arguments)
    assert "\n" not in str(caught.value)


def test_options_are_checked_by_the_game() -> None:
    with pytest.raises(ValueError, match="most=0"):
        GameEnv(Take, most=0)
    with pytest.raises(ValueError, match="allowed"):
        gymnasium.make("arena/LiarsDice-v0", players=99)

    class Greedy(Take):
        @classmethod
        def initial(cls, rng: Random, most: int = 7, takes: tuple[int, ...] = (1, 2), retries: int = 0) -> Self:
            return super().initial(rng, most, takes)

    with pytest.raises(ValueError, match="option 'retries' of Greedy is the name of an argument"):
        GameEnv(Greedy)


def test_info_tells_what_it_should_and_no_more() -> None:
    env = make_env("TicTacToe-v0", opponents="first", retries=1)
    seen, info = env.reset(seed=1)
    assert info["rules"] == env.game.rules(0)
    del info["rules"]
    nine = tuple("123456789")
    assert info == {"legal_actions": nine, "player": 0, "turn": 0, "verdict": "", "retries_left": 1}
    seen, reward, terminated, truncated, info = env.step("5")
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert info == {
        "legal_actions": tuple("2346789"), "player": 0, "turn": 1, "verdict": "legal", "retries_left": 1,
    }  # fmt: skip
    assert seen == env.game.observation(0)


def test_the_reward_is_what_you_win_and_what_others_do_to_you() -> None:
    env = make_env("TicTacToe-v0", opponents="scripted:1|2|3", seat=1)
    env.reset(seed=0)
    assert env.step("7")[1:3] == (0.0, False)
    _, reward, terminated, _, info = env.step("8")  # and the other completes the row
    assert (reward, terminated, info["legal_actions"]) == (-1.0, True, ())
    env = make_env("TicTacToe-v0", opponents="scripted:4|5")
    env.reset(seed=0)
    env.step("1")
    env.step("2")
    assert env.step("3")[1:3] == (1.0, True)


def test_a_retry_is_a_step_with_the_same_observation_headed_by_the_reason() -> None:
    env = make_env("TicTacToe-v0", opponents="first", retries=2)
    before, _ = env.reset(seed=0)
    seen, reward, terminated, _, info = env.step("17")
    assert (reward, terminated, info["verdict"], info["retries_left"]) == (0.0, False, "illegal", 1)
    assert "free square" in info["reason"]
    note, _, rest = seen.partition("\n")
    assert rest == before
    assert note.startswith("[Not accepted: ")
    assert "Legal: 1, 2, 3" in note
    assert env.step("no\nmove")[4]["verdict"] == "unreadable"
    seen, _, terminated, _, info = env.step("1")
    assert (terminated, info["retries_left"], "Not accepted" in seen) == (False, 2, False)
    assert "reason" not in info
    env.step("17")
    env.step("17")
    _, reward, terminated, _, info = env.step("17")
    assert (reward, terminated, info["verdict"]) == (-1.0, True, "illegal")


def test_a_time_limit_counts_retries() -> None:
    env = gymnasium.make("arena/TicTacToe-v0", retries=9, max_episode_steps=3)
    assert isinstance(env, TimeLimit)
    env.reset(seed=0)
    assert [env.step("x")[3] for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize("illegal", ["random", "fallback"])
def test_a_wrong_action_can_be_replaced(illegal: str) -> None:
    env = make_env("TicTacToe-v0", illegal=illegal, opponents="first")
    env.reset(seed=3)
    _, reward, terminated, _, info = env.step("nonsense")
    assert (reward, terminated, info["verdict"], info["turn"]) == (0.0, False, "illegal", 1)
    assert len(info["legal_actions"]) == 7


def test_show_legal_hides_the_list_from_everybody() -> None:
    seen: list[Any] = []

    class Looking(FirstAgent):
        def act(self, view: View) -> Reply:
            seen.append(view.legal_actions)
            return Reply(view.sample_action())

    env = make_env("TicTacToe-v0", show_legal=False, retries=1, opponents=Looking())
    assert env.reset(seed=0)[1]["legal_actions"] is None
    text, *_, info = env.step("x")
    assert "Legal" not in text.partition("\n")[0]
    assert info["legal_actions"] is None
    env.step("5")
    assert seen == [None]


def test_the_forfeit_of_the_other_of_two_is_your_win() -> None:
    for opponent in ("scripted:nonsense", Cut()):
        env = make_env("TicTacToe-v0", opponents=opponent)
        env.reset(seed=0)
        assert env.step("1")[1:3] == (1.0, True)


def test_your_forfeit_among_many_ends_your_episode_at_the_least() -> None:
    env = GameEnv(Bazaar, seat=1)
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step("shout")
    assert (reward, terminated, info["verdict"]) == (-1.0, True, "illegal")
    assert info["reason"].startswith("write `say TEXT`")
    with pytest.raises(ResetNeeded):
        env.step("say hello")


def test_others_who_forfeit_among_many_are_played_for() -> None:
    env = GameEnv(Bazaar, seat=1, opponents=["scripted:shout", "random"])
    env.reset(seed=5)
    rewards = [env.step("say hi")[1:3] for _ in range(3)]
    assert [over for _, over in rewards] == [False, False, True]
    assert env.solo.table.forfeits == [0]
    assert env.solo.table.earned[0] == -1.0
    assert rewards[-1][0] == env.game.returns()[1]


def test_after_the_end_and_before_the_beginning_a_reset_is_due() -> None:
    env = make_env("TicTacToe-v0")
    for early in (lambda: env.step("1"), env.render, lambda: env.game):
        with pytest.raises(ResetNeeded, match="call reset"):
            early()
    env.reset(seed=0)
    env.step("nonsense")
    with pytest.raises(ResetNeeded, match="the episode is over"):
        env.step("1")


def test_reset_takes_seeds_from_its_range_and_no_options() -> None:
    env = make_env("TicTacToe-v0")
    env.reset(seed=2**64 - 1, options={})
    with pytest.raises(ValueError, match=r"seed=18446744073709551616: allowed are 0 to 2\*\*64 - 1"):
        env.reset(seed=2**64)
    with pytest.raises(ValueError, match="seed=-1"):
        env.reset(seed=-1)
    with pytest.raises(ValueError, match=r"reset takes no options \(got size\)"):
        env.reset(options={"size": 4})


def test_without_a_seed_the_last_one_fixes_what_comes() -> None:
    def deals(env: Any) -> list[int]:
        env.reset(seed=9)
        return [env.solo.table.seed for _ in range(3) if env.reset()]

    assert deals(make_env("KuhnPoker-v0")) == deals(make_env("KuhnPoker-v0"))
    assert len({*deals(make_env("KuhnPoker-v0")), 9}) == 4


def test_a_seat_at_random_is_drawn_from_the_seed_and_leaves_the_deal_alone() -> None:
    env = make_env("LiarsDice-v0", seat="random", players=5)
    seats = [env.reset(seed=seed)[1]["player"] for seed in range(60)]
    assert set(seats) == set(range(5))
    assert seats == [env.reset(seed=seed)[1]["player"] for seed in range(60)]
    fixed = make_env("LiarsDice-v0", seat=0, players=5)
    env.reset(seed=7)
    fixed.reset(seed=7)
    deal = make_game("LiarsDice-v0", 7, {"players": 5})
    assert env.solo.table.setup.deal(7) == fixed.solo.table.setup.deal(7) == deal


def test_a_game_without_a_deal_is_dealt_once() -> None:
    env = make_env("TicTacToe-v0")
    assert env.setup.deal(1) is env.setup.deal(2)
    poker = make_env("KuhnPoker-v0")
    assert poker.setup.deal(1) is not poker.setup.deal(1)
    assert poker.setup.deal(1) == make_game("KuhnPoker-v0", 1)


def test_history_full_new_or_so_many() -> None:
    def texts(history: Any) -> list[str]:
        env = GameEnv(Bazaar, seat=0, opponents="scripted:say one|say two|say three", history=history)
        return [env.reset(seed=1)[0], *[env.step(f"say {n}")[0] for n in "abc"]]

    full, new, two, none = texts("full"), texts("new"), texts(2), texts(0)
    assert none == [text.splitlines()[-1] for text in full]
    assert full[2].splitlines()[:-1] == [
        'Player 0: "a"', 'Player 1: "one"', 'Player 2: "one"', 'Player 0: "b"', 'Player 1: "two"', 'Player 2: "two"',
    ]  # fmt: skip
    assert full[3].startswith(full[2].rpartition("\n")[0])
    assert new[2].splitlines()[:-1] == full[2].splitlines()[3:-1]
    assert [text.splitlines()[:-1] for text in two] == [text.splitlines()[:-1][-2:] for text in full]


def test_a_retry_shows_the_same_news() -> None:
    env = GameEnv(Bazaar, seat=0, opponents="scripted:say one", history="new", retries=2)
    env.reset(seed=1)
    seen = env.step("say a")[0]
    assert env.step("shout")[0].partition("\n")[2] == seen
    assert env.step("shout")[0].partition("\n")[2] == seen


def test_opponents_as_objects_in_order_of_seats() -> None:
    env = GameEnv(Bazaar, seat=1, opponents=(ScriptedAgent("say zero"), RandomAgent()))
    env.reset(seed=0)
    env.step("say hi")
    assert [event.text for event in env.game.events(0)][:2] == ["zero", "hi"]


def test_the_house_plays_its_own_seats() -> None:
    class Casino(Bazaar):
        house = (2,)

    env = GameEnv(Casino, seat=0, opponents=["scripted:say one"])
    env.reset(seed=0)
    env.step("say zero")
    assert [event.text for event in env.game.events(0)][:3] == ["zero", "one", ""]  # the fallback
    assert set(GameEnv(Casino, seat=0, opponents=["first", "first"]).solo.agents) == {1, 2}
    anywhere = GameEnv(Casino, seat="random", opponents="first")
    assert {anywhere.reset(seed=seed)[1]["player"] for seed in range(30)} == {0, 1}


def test_a_live_game_is_closed_and_dealt_anew() -> None:
    closed: list[int] = []

    class Living(Take, LiveGame):
        @classmethod
        def initial(cls, rng: Random, most: int = 7, takes: tuple[int, ...] = (1, 2)) -> Self:
            return cls(3, takes, most)

        def close(self) -> None:
            closed.append(self.stones)

    env = GameEnv(Living, opponents="first")
    env.reset(seed=0)
    assert env.setup.deal(0) is not env.setup.deal(0)
    env.step("1")
    env.reset(seed=0)
    assert closed == [1]
    env.close()
    assert closed == [1, 3]


@pytest.mark.parametrize("agent", [Slow(), Later()])
def test_opponents_that_wait_wait_together(agent: Agent) -> None:
    Slow.most = 0
    env = GameEnv(Bazaar, seat=1, opponents=agent)
    env.reset(seed=2)
    told = [env.step("say hi")[1:3] for _ in range(3)]
    if isinstance(agent, Slow):
        assert Slow.most == 2

    async def within_a_loop() -> list[Any]:
        env.reset(seed=2)
        return [env.step("say hi")[1:3] for _ in range(3)]

    assert asyncio.run(within_a_loop()) == told
    agents = [agent, ScriptedAgent("say hi"), agent]
    if isinstance(agent, Slow):
        assert play_sync(Bazaar, agents, seed=2).returns == env.solo.table.earned


def test_an_opponent_that_fails_fails_the_step_and_a_reset_is_due() -> None:
    env = make_env("TicTacToe-v0", opponents=Failing())
    env.reset(seed=0)
    with pytest.raises(ConnectionError, match="server down"):
        env.step("1")
    with pytest.raises(ResetNeeded, match="an opponent failed"):
        env.step("2")
    env.reset(seed=0)
    env = make_env("TicTacToe-v0", opponents=NoReply())
    env.reset(seed=0)
    with pytest.raises(TypeError, match="must return a Reply, got str"):
        env.step("1")


def test_a_reset_may_land_on_a_finished_game() -> None:
    env = GameEnv(Take, seat=1, opponents="scripted:1", most=1)
    _, info = env.reset(seed=0)
    assert info["legal_actions"] == ()
    _, reward, terminated, _, _ = env.step("whatever")
    assert (reward, terminated) == (-1.0, True)


def test_rendering(capsys: pytest.CaptureFixture[str]) -> None:
    env = make_env("TicTacToe-v0", render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == env.game.render()
    assert make_env("TicTacToe-v0").render_mode is None
    quiet = make_env("TicTacToe-v0")
    quiet.reset()
    assert quiet.render() is None
    assert capsys.readouterr().out == ""
    human = make_env("TicTacToe-v0", render_mode="human", opponents="first")
    human.reset(seed=0)
    human.step("5")
    assert "X" in capsys.readouterr().out


def test_wrappers_of_gymnasium_take_it() -> None:
    env = RecordEpisodeStatistics(gymnasium.make("arena/TicTacToe-v0", opponents="scripted:4|5"))
    env.reset(seed=0)
    for action in "123":
        *_, info = env.step(action)
    assert (info["episode"]["r"], info["episode"]["l"]) == (1.0, 3)
    flat = FlattenObservation(gymnasium.make("arena/TicTacToe-v0"))
    seen, _ = flat.reset(seed=0)
    assert seen in flat.observation_space


def test_closing_closes_the_opponents() -> None:
    closed: list[str] = []

    class Closing(FirstAgent):
        def close(self) -> None:
            closed.append(self.name)

    make_env("TicTacToe-v0", opponents=Closing()).close()
    assert closed == ["first"]
