"""The match loop: fair asking, forfeits, time-outs, voids, truncation, thousands at once."""

import asyncio
import time
from collections.abc import Awaitable
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest

import arena
from arena.agent import LEAST, Agent, AgentError, AgentInfo, Call, Reply, View
from arena.episode import Episode, read, replay, validate, write
from arena.game import Action, LiveGame, Player
from arena.games.board.tictactoe import TicTacToe
from arena.match import play, play_sync
from arena.referee import Referee
from arena.registry import GAMES, make_agent, make_game
from arena.workers import Workers


class Says(Agent):
    """Gives its answers in turn, then keeps giving the last."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.name = answers, "says"
        self.notes: list[str] = []

    def act(self, view: View) -> Reply:
        at = view.memory["at"] = view.memory.get("at", -1) + 1
        self.notes.append(view.note)
        return Reply(self.answers[min(at, len(self.answers) - 1)])


class Slow(Agent):
    """Random play after a nap; counts how many of its kind are asked at once."""

    name = "slow"
    asked = most = 0

    def __init__(self, seconds: float = 0.01) -> None:
        self.seconds = seconds

    async def act(self, view: View) -> Reply:
        Slow.asked += 1
        Slow.most = max(Slow.most, Slow.asked)
        await asyncio.sleep(self.seconds)
        Slow.asked -= 1
        return Reply(view.sample_action())


class Served(Slow):
    served = True


class Forgetful(Agent):
    """Counts in its memory, and empties it again."""

    name = "forgetful"
    blocking = True

    def act(self, view: View) -> Reply:
        count = view.memory["n"] = view.memory.get("n", 0) + 1
        legal = view.legal_actions or ()
        if count == 2:
            view.memory.pop("n")
        return Reply(legal[count % len(legal)])


class Broken(Agent):
    name = "broken"

    def act(self, view: View) -> Reply:
        raise AgentError("the server is down")


def sane(episode: Episode) -> Episode:
    """The record holds together and repeats."""
    validate(episode)
    if episode.outcome != "void":
        replay(episode)
        assert episode.returns is not None
        for seat, earned in enumerate(episode.returns):
            turns = [turn for turn in episode.turns if turn.seat == seat]
            if turns:
                assert sum(turn.reward for turn in turns) == pytest.approx(earned, abs=1e-9)
    return episode


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


def test_thoughts_of_a_legal_reply_can_be_written() -> None:
    class Thinks(Agent):
        def act(self, view: View) -> Reply:
            return Reply("5" if "5" in (view.legal_actions or ()) else view.sample_action(), reasoning="so\ud800")

    episode = sane(play_sync("TicTacToe-v0", [Thinks(), "first"], 0))
    assert episode.turns[0].attempts[0].reasoning == "so\ufffd"
    assert msgspec.json.decode(msgspec.json.encode(episode), type=Episode) == episode


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


class Naps(Agent):
    """Holds everything up for a while, as a careless plain agent does."""

    name = "naps"

    def __init__(self, seconds: float, blocking: bool = False) -> None:
        self.seconds, self.blocking = seconds, blocking

    def act(self, view: View) -> Reply:
        time.sleep(self.seconds)
        return Reply(view.sample_action())


@pytest.mark.parametrize("agent", [Slow(30), Naps(30, blocking=True), Naps(0.2)], ids=["async", "blocking", "plain"])
def test_the_deadline_covers_everything(agent: Agent) -> None:
    start = time.monotonic()
    episode = play_sync("TicTacToe-v0", [agent, "random"], 0, deadline=0.1)
    assert time.monotonic() - start < 10
    assert episode.outcome == "void"
    assert "the deadline passed at ply" in episode.reason


@pytest.mark.parametrize("blocking", [True, False])
def test_a_plain_agent_out_of_time_has_given_a_wrong_answer(blocking: bool) -> None:
    agents = [Naps(0.3, blocking), make_agent("first")]
    episode = sane(play_sync("TicTacToe-v0", agents, 0, turn_seconds=0.05))
    assert (episode.outcome, episode.forfeits) == ("terminated", (0,))
    assert episode.turns[0].attempts[0].reason == "no answer within 0.05 s"


def test_out_of_time_is_a_local_agents_fault_and_a_servers_misfortune() -> None:
    local = sane(play_sync("TicTacToe-v0", [Slow(30), "random"], 0, turn_seconds=0.02))
    assert (local.outcome, local.forfeits) == ("terminated", (0,))
    assert local.turns[0].attempts[0].reason == "no answer within 0.02 s"
    served = play_sync("TicTacToe-v0", [Served(30), "random"], 0, turn_seconds=0.02)
    assert served.outcome == "void"
    assert "TimeoutError" in served.reason


def test_an_agents_own_timeout_is_not_the_turns() -> None:
    class TimesOut(Agent):
        async def act(self, view: View) -> Reply:
            raise TimeoutError("a database")

    for limit in (None, 5.0):
        episode = play_sync("TicTacToe-v0", [TimesOut(), "random"], 0, turn_seconds=limit)
        assert (episode.outcome, episode.reason) == ("void", "TimeoutError: a database")


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


@pytest.mark.parametrize("illegal", ["forfeit", "random", "fallback"])
@pytest.mark.parametrize("game_id", sorted(GAMES))
def test_every_kind_of_end_is_settled_and_replays(game_id: str, illegal: Any) -> None:
    class Slips(Agent):
        """Mostly legal, now and then not."""

        name = "slips"

        def act(self, view: View) -> Reply:
            return Reply("\x00 no such action" if view.draw(5) == 0 else view.sample_action())

    template = make_game(game_id)
    for seed in range(6):
        for limit in (1, 4, None):
            agents = [Slips()] * template.players
            episode = sane(play_sync(game_id, agents, seed, referee=Referee(illegal), max_turns=limit))
            assert episode.outcome in ("terminated", "truncated"), episode.reason
            assert episode.returns is not None
            assert all(episode.returns[seat] == template.reward_range()[0] for seat in episode.forfeits)


def test_what_a_model_wrote_can_always_be_stored(tmp_path: Path) -> None:
    class Odd(Agent):
        """Says things UTF-8 has no bytes for, everywhere."""

        name = "odd"

        def act(self, view: View) -> Reply:
            call = Call("generate", "\ud800", "\udfff!", finish_reason="\ud83d")
            return Reply(view.sample_action(), "thinking \ud800", calls=(call,), gaps=("logprobs",))

        def info(self) -> AgentInfo:
            return AgentInfo(model="odd-1", weight_version="7", sampling={"temperature": 0.5}, trainable=False)

    episode = sane(play_sync("TicTacToe-v0", [Odd(), "first"], 0))
    write(tmp_path / "odd.jsonl", [episode])
    (again,) = read(tmp_path / "odd.jsonl")
    attempt = again.turns[0].attempts[0]
    assert (attempt.reasoning, attempt.calls[0].received) == ("thinking \ufffd", "\ufffd!")
    assert again.gaps == ("logprobs",)
    assert again.seats[0].policy.model == "odd-1"
    assert again.seats[1].policy == AgentInfo()
    assert set(again.versions) == {"arena", "chess", "msgspec", "python"}


def test_numbers_and_texts_of_any_kind_can_be_stored(tmp_path: Path) -> None:
    class Numpy(Agent):
        """Answers with a subclass of str, infinite numbers and no reasoning at all."""

        name = "bad \ud800 name"

        def act(self, view: View) -> Reply:
            nothing: Any = None
            call = Call("g", completion_ids=(1, 2), logprobs=(float("-inf"), -0.5), usage={"a": float("nan"), "b": 2})
            return Reply(np.str_(view.sample_action()), nothing, calls=(call,))

    episode = sane(play_sync("TicTacToe-v0", [Numpy(), "first"], 0))
    assert episode.outcome == "terminated"
    write(tmp_path / "odd.jsonl", [episode])
    (again,) = read(tmp_path / "odd.jsonl")
    (call,) = again.turns[0].attempts[0].calls
    assert (call.logprobs, call.usage) == ((LEAST, -0.5), {"b": 2})
    assert again.seats[0].agent == "bad \ufffd name"
    assert again == episode


def test_an_error_without_bytes_in_utf8_is_recorded(tmp_path: Path) -> None:
    class Fails(Agent):
        name = "fails"

        def act(self, view: View) -> Reply:
            raise ValueError("bad \ud800")

    episode = play_sync("TicTacToe-v0", [Fails(), "first"])
    assert episode.reason == "ValueError: bad \ufffd"
    assert write(tmp_path / "void.jsonl", [episode]) == 1


def test_options_are_recorded_as_json_has_them(tmp_path: Path) -> None:
    episode = play_sync("IteratedPrisonersDilemma-v0", ["first", "first"], 0, {"payoffs": (3, 2, 1, 0)})
    write(tmp_path / "ipd.jsonl", [episode])
    assert list(read(tmp_path / "ipd.jsonl")) == [episode]


@pytest.mark.parametrize("error", [asyncio.CancelledError(), StopIteration()], ids=["cancelled", "stop"])
@pytest.mark.parametrize("blocking", [True, False])
def test_what_an_agent_raises_does_not_end_its_caller(error: BaseException, blocking: bool) -> None:
    class Raises(Agent):
        name = "raises"

        def act(self, view: View) -> Reply:
            raise error

    agent = Raises()
    agent.blocking = blocking
    assert play_sync("TicTacToe-v0", [agent, "first"]).outcome == "void"
    assert asyncio.run(play("TicTacToe-v0", [agent, "first"], deadline=5)).outcome == "void"
    assert asyncio.run(play("RockPaperScissors-v0", [agent, Slow()], deadline=5)).outcome == "void"


def test_a_match_that_is_cancelled_is_cancelled() -> None:
    async def cancel() -> None:
        task = asyncio.create_task(play("TicTacToe-v0", [Slow(30), "first"]))
        await asyncio.sleep(0.05)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())


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


@pytest.mark.parametrize("limit", ["deadline", "turn_seconds", "max_turns"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True, "x", 1.5])
def test_limits_that_mean_nothing_are_refused(limit: str, value: Any) -> None:
    if limit != "max_turns" and value == 1.5 and value is not True:
        return
    arguments: dict[str, Any] = {limit: value}
    with pytest.raises(ValueError, match=f"{limit}=.*allowed are None and"):
        play_sync("TicTacToe-v0", ["first", "first"], **arguments)
    with pytest.raises(ValueError, match=f"{limit}="):
        asyncio.run(play("TicTacToe-v0", ["first", "first"], **arguments))


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


def test_an_error_that_repeats_a_key_is_recorded_without_it() -> None:
    class Leaks(Agent):
        name = "leaks"

        def act(self, view: View) -> Reply:
            raise AgentError("401 for Authorization: Bearer sk-12345, api_key=abc, password: hunter2")

    reason = play_sync("TicTacToe-v0", [Leaks(), "first"]).reason
    assert "401" in reason
    assert not any(secret in reason for secret in ("12345", "abc", "hunter2"))


def test_a_view_says_what_is_new() -> None:
    heard: dict[int, list[str]] = {0: [], 1: []}

    class Listens(Agent):
        name = "listens"

        def act(self, view: View) -> Reply:
            heard[view.player] += [event.text for event in view.new_events]
            assert view.open_text == (view.legal_actions is None)
            return Reply(view.sample_action())

    episode = sane(play_sync("LiarsDice-v0", [Listens(), Listens()], 5))
    told = [event for turn in episode.turns if turn.seat == 0 for event in turn.events]
    assert heard[0] == told
    assert len(told) > 5


class Door(LiveGame):
    """Opens at the first action, and must be closed whatever happens."""

    players = 1
    closed: ClassVar[list[list[str]]] = []
    opened: list[str]

    @classmethod
    def initial(cls, rng: Random) -> "Door":
        return cls([])

    def to_act(self) -> tuple[Player, ...]:
        return () if len(self.opened) >= 2 else (0,)

    def rules(self, player: Player) -> str:
        return "Knock twice."

    def observation(self, player: Player) -> str:
        return "A door."

    def legal_actions(self, player: Player) -> tuple[Action, ...]:
        return ("knock",) if self.to_act() else ()

    def apply(self, actions: object) -> "Door":
        self.opened.append("knock")
        return self

    def returns(self) -> tuple[float, ...]:
        return (float(len(self.opened)) / 2,)

    def close(self) -> None:
        self.closed.append(self.opened)


class Stuck(Door):
    """Hangs when it is closed."""

    def close(self) -> None:
        time.sleep(5)


def test_a_live_game_is_closed_whatever_its_end() -> None:
    Door.closed.clear()
    for episode in (play_sync(Door, ["first"]), asyncio.run(play(Door, ["first"]))):
        assert (episode.outcome, episode.returns, episode.env) == ("terminated", (1.0,), "Door")
    play_sync(Door, [Broken()])
    asyncio.run(play(Door, [Broken()]))
    play_sync(Door, [Slow(30)], deadline=0.05)
    for _ in range(100):
        if len(Door.closed) == 5:
            break
        time.sleep(0.02)
    assert Door.closed == [["knock", "knock"]] * 2 + [[]] * 3


def test_the_deadline_covers_teardown_too() -> None:
    start = time.monotonic()
    episode = asyncio.run(play(Stuck, ["first"], deadline=0.1))
    assert time.monotonic() - start < 4
    assert episode.outcome == "void"


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
