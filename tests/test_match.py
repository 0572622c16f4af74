"""The match loop: fair asking, forfeits, voids, truncation, thousands at once."""

import asyncio
from collections.abc import Awaitable
from random import Random
from typing import Any

import pytest

import arena
from arena.agent import Agent, Reply, View
from arena.episode import Episode
from arena.games.board.tictactoe import TicTacToe
from arena.match import play, play_sync
from arena.referee import Referee
from arena.registry import AGENTS, GAMES, make_agent, make_game
from arena.workers import Workers
from tests.players import Broken, Forgetful, Says, Slow, sane


@pytest.mark.parametrize("game_id", sorted(GAMES))
def test_every_game_is_played_and_replayed(game_id: str) -> None:
    players = make_game(game_id).players
    for seed in range(3):
        episode = sane(play_sync(game_id, ["random"] * players, seed))
        assert episode.outcome == "terminated", episode.reason
        assert episode.env == game_id
        assert [seat.agent for seat in episode.seats] == ["random"] * players


def test_the_same_seed_is_the_same_match() -> None:
    one, two, other = (play_sync("LiarsDice-v0", ["random", "random"], seed) for seed in (4, 4, 5))
    assert [turn.hash for turn in one.turns] == [turn.hash for turn in two.turns]
    assert one.turns[-1].hash != other.turns[-1].hash
    assert one.id != two.id


def test_a_win_is_paid_to_the_turns_that_earned_it() -> None:
    episode = sane(play_sync("TicTacToe-v0", [Says("1", "2", "3"), Says("4", "5")], 0))
    assert episode.returns == (1.0, -1.0)
    assert [turn.reward for turn in episode.turns] == [0, 0, 0, -1.0, 1.0]
    assert "X X X" in episode.final[0]


@pytest.mark.parametrize("wrong", ["nonsense", "", "5" * 1_000_000, "\ud800", "[4"])
def test_a_wrong_answer_forfeits_a_zero_sum_game_of_two(wrong: str) -> None:
    episode = sane(play_sync("TicTacToe-v0", ["first", Says(wrong)], 1))
    assert episode.outcome == "terminated"
    assert episode.forfeits == (1,)
    assert episode.returns == (1.0, -1.0)
    assert episode.turns[-1].action is None
    assert episode.turns[-1].attempts[0].verdict in ("illegal", "unreadable")


def test_retries_carry_the_reason_and_are_recorded() -> None:
    agent = Says("0", "[banana]", "3", "7", "8", "9")
    episode = sane(play_sync("TicTacToe-v0", [agent, "random"], 2, referee=Referee(retries=2)))
    first = episode.turns[0]
    assert [attempt.verdict for attempt in first.attempts] == ["illegal", "illegal", "legal"]
    assert first.action == "3"
    assert agent.notes[0] == ""
    assert agent.notes[1].startswith("[Not accepted: write the number of a free square")


@pytest.mark.parametrize("policy", ["random", "fallback"])
def test_a_substitute_is_played_and_recorded_as_the_action(policy: Any) -> None:
    referee = Referee(illegal=policy)
    episode = sane(play_sync("ConnectFour-v0", ["first", Says("x")], 3, referee=referee))
    assert episode.forfeits == ()
    assert all(turn.action in "1234567" for turn in episode.turns if turn.action)
    assert {turn.attempts[0].verdict for turn in episode.turns if turn.seat == 1} == {"illegal"}


def test_in_a_game_of_many_the_others_play_on_and_the_offender_ends_low() -> None:
    agents = [Says("gibberish"), *[make_agent("random")] * 3]
    episode = sane(play_sync("LiarsDice-v0", agents, 3, {"players": 4}))
    assert episode.forfeits == (0,)
    assert episode.returns is not None
    assert episode.returns[0] == make_game("LiarsDice-v0", 3, {"players": 4}).reward_range()[0]
    later = [turn for turn in episode.turns if turn.seat == 0][1:]
    assert all(turn.attempts == () for turn in later)
    assert len(episode.turns) > 4


def test_both_seats_of_a_simultaneous_game_can_forfeit() -> None:
    episode = sane(play_sync("RockPaperScissors-v0", [Says("gun"), Says("bomb")], 0))
    assert episode.forfeits == (0, 1)
    assert episode.returns == (-1.0, -1.0)


def test_a_cut_reply_is_the_players_fault() -> None:
    class Cut(Agent):
        def act(self, view: View) -> Reply:
            return Reply("5", truncated=True)

    episode = sane(play_sync("TicTacToe-v0", [Cut(), "first"], 0))
    assert episode.forfeits == (0,)
    assert episode.turns[0].attempts[0].verdict == "truncated"


def test_an_agent_that_fails_makes_the_episode_void_not_lost() -> None:
    episode = sane(play_sync("TicTacToe-v0", ["first", Broken()], 0))
    assert episode.outcome == "void"
    assert episode.returns is None
    assert "the server is down" in episode.reason


def test_what_is_no_reply_makes_it_void() -> None:
    class Odd(Agent):
        def act(self, view: View) -> Any:
            return "5"

    class Later(Agent):
        def act(self, view: View) -> Awaitable[Reply]:
            return asyncio.sleep(0, Reply("5"))

    class OddLater(Agent):
        async def act(self, view: View) -> Any:
            return None

    assert "must return a Reply, got str" in play_sync("TicTacToe-v0", [Odd(), "first"]).reason
    assert "must return a Reply, got NoneType" in play_sync("TicTacToe-v0", [OddLater(), "first"]).reason
    with pytest.raises(TypeError, match="await arena"):
        play_sync("TicTacToe-v0", [Later(), "first"])
    assert asyncio.run(play("TicTacToe-v0", [Says("1", "2", "3"), Says("4", "5")])).outcome == "terminated"


def test_too_many_plies_truncate() -> None:
    episode = sane(play_sync("Chess-v0", ["random", "random"], 0, max_turns=6))
    assert (episode.outcome, episode.returns, len(episode.turns)) == ("truncated", (0.0, 0.0), 6)
    assert episode.reason == "6 plies were played"
    assert all(episode.final)


def test_seats_that_act_at_once_are_asked_at_once() -> None:
    Slow.asked = Slow.most = 0
    episode = sane(asyncio.run(play("RockPaperScissors-v0", [Slow(), Slow()], 1)))
    assert episode.outcome == "terminated"
    assert Slow.most == 2


def test_one_that_fails_beside_others_is_named() -> None:
    episode = asyncio.run(play("RockPaperScissors-v0", [Slow(), Broken()], 1))
    assert episode.reason == "AgentError: the server is down"


def test_a_thousand_matches_at_once() -> None:
    async def many() -> list[Episode]:
        return await asyncio.gather(*(play("ConnectFour-v0", [Slow(0), "random"], seed) for seed in range(1000)))

    episodes = asyncio.run(many())
    assert all(episode.outcome == "terminated" for episode in episodes)
    assert [episode.seed for episode in episodes] == list(range(1000))
    alone = asyncio.run(play("ConnectFour-v0", [Slow(0), "random"], 777))
    assert alone.turns[-1].hash == episodes[777].turns[-1].hash


def test_blocking_agents_play_the_same_in_a_pool_a_thread_and_plain_code() -> None:
    agents = [make_agent("mcts?simulations=20"), make_agent("minimax?nodes=200")]
    plain = play_sync("TicTacToe-v0", agents, 5)
    threaded = asyncio.run(play("TicTacToe-v0", agents, 5))
    with Workers(1) as pool:
        pooled = asyncio.run(play("TicTacToe-v0", agents, 5, pool=pool))
    assert plain.turns[-1].hash == threaded.turns[-1].hash == pooled.turns[-1].hash


def test_a_hidden_list_is_not_in_the_view() -> None:
    seen = []

    class Looks(Agent):
        def act(self, view: View) -> Reply:
            seen.append(view.legal_actions)
            return Reply(view.sample_action())

    play_sync("TicTacToe-v0", [Looks(), Looks()], 0, referee=Referee(show_legal=False))
    assert set(seen) == {None}


def test_substitutes_do_not_depend_on_who_answers_first() -> None:
    class Hasty(Agent):
        """Wrong now and then by seed, seat and ply; how long it takes is chance."""

        name = "hasty"

        async def act(self, view: View) -> Reply:
            wrong = view.draw(3) == 0
            await asyncio.sleep(Random().random() / 300)
            return Reply("\x00" if wrong else view.sample_action(Random(view.draw(1 << 60))))

    agents = [Hasty()] * 7
    referee = Referee("random")
    hashes = {play_sync("SecretMafia-v0", agents, 5, referee=referee).turns[-1].hash for _ in range(4)}
    assert len(hashes) == 1


def test_memory_in_a_pool_is_what_the_agent_left() -> None:
    with Workers(1) as pool:
        pooled = asyncio.run(play("TicTacToe-v0", [Forgetful(), "first"], 0, pool=pool))
    assert pooled.turns[-1].hash == asyncio.run(play("TicTacToe-v0", [Forgetful(), "first"], 0)).turns[-1].hash


def test_plain_play_in_a_running_loop_names_the_other() -> None:
    async def notebook() -> None:
        play_sync("TicTacToe-v0", [Slow(), "first"])

    with pytest.raises(RuntimeError, match=r"await arena\.match\.play"):
        asyncio.run(notebook())


def test_a_game_that_breaks_makes_the_match_void(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("a bug of the game")

    monkeypatch.setattr(TicTacToe, "role", broken)
    episode = play_sync("TicTacToe-v0", ["first", "first"])
    assert (episode.outcome, episode.reason) == ("void", "ZeroDivisionError: a bug of the game")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"game": "Nim"}, "unknown game"),
        ({"agents": ["random"]}, "has 2 seats, 1 agents"),
        ({"agents": ["random", "rnd"]}, "unknown agent"),
        ({"seed": -1}, "allowed are 0"),
        ({"seed": 1.5}, "allowed are 0"),
        ({"options": {"size": 4}}, "unknown option"),
    ],
)
def test_bad_arguments_are_refused_before_play(arguments: dict[str, Any], said: str) -> None:
    good: dict[str, Any] = {"game": "TicTacToe-v0", "agents": ["random", "random"], "seed": 0}
    with pytest.raises(ValueError, match=said):
        play_sync(**{**good, **arguments})


def test_arena_play_is_the_same_function() -> None:
    assert arena.play is play_sync


class Closing(Agent):
    """Counts how often one of its kind is closed; made through the registry as `closing`."""

    closed = 0

    async def act(self, view: View) -> Reply:
        return Reply(view.sample_action())

    async def close(self) -> None:
        Closing.closed += 1


def test_agents_made_for_a_match_are_closed_with_it_and_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AGENTS, "closing", "tests.test_match:Closing")
    Closing.closed = 0
    play_sync("TicTacToe-v0", ["closing", "first"])
    assert Closing.closed == 1
    play_sync("TicTacToe-v0", [Closing(), "first"])
    assert Closing.closed == 1
    with pytest.raises(ValueError, match="2 seats, 1 agents"):
        asyncio.run(play("TicTacToe-v0", ["closing"]))
    assert Closing.closed == 2
