"""Several samples of one deal; matches that go on from odd records, and with actions that are given."""

import asyncio
from typing import Any

import msgspec
import pytest

from arena.agent import Agent, AgentError, Reply, View, stream_seed
from arena.episode import EpisodeError
from arena.game import LiveGame
from arena.match import play, play_sync
from arena.referee import Referee
from arena.registry import make_game
from arena.replaying import positions
from tests.players import Later, Recalls, Says, essence, on, plies, sane
from tests.toy_games import Bazaar, Take

LONG = ("TicTacToe-v0", "LiarsDice-v0", "LeducPoker-v0", "IteratedPrisonersDilemma-v0", "SecretMafia-v0")


# Samples


def test_samples_of_a_deal_differ_in_what_agents_draw_only() -> None:
    for game in LONG:
        seats = ["random"] * make_game(game).players
        first, again, *others = [sane(play_sync(game, seats, 5, sample=n)) for n in (0, 0, 1, 2, 3)]
        assert essence(first) == essence(again) == essence(play_sync(game, seats, 5))
        assert len({episode.turns[-1].hash for episode in [first, *others]}) > 1
        assert len({episode.turns[0].observation for episode in [first, *others]}) == 1
        assert [episode.sample for episode in others] == [1, 2, 3]


def test_a_sample_changes_the_generator_and_the_cheap_draw() -> None:
    drawn: list[tuple[float, int]] = []

    class Draws(Agent):
        def act(self, view: View) -> Reply:
            drawn.append((view.rng.random(), view.draw(1 << 60)))
            return Reply(view.sample_action())

    for sample in (0, 1, 2, 1):
        play_sync("TicTacToe-v0", [Draws(), "first"], 3, sample=sample, max_turns=1)
    assert len({real for real, _ in drawn}) == len({number for _, number in drawn}) == 3
    assert drawn[1] == drawn[3]


def test_streams_are_the_deals_own_for_whole_first_samples_only() -> None:
    assert stream_seed(7) == 7
    other = {stream_seed(seed, sample, fork) for seed in (7, 8) for sample in range(3) for fork in (-1, 0, 1)}
    assert len(other) == 18
    assert all(0 <= seed < 1 << 64 for seed in other)


@pytest.mark.parametrize("sample", [-1, 1.0, True, "1", None])
def test_a_sample_that_is_none_is_refused(sample: Any) -> None:
    with pytest.raises(ValueError, match=r"sample=.*: allowed are numbers from 0"):
        play_sync("TicTacToe-v0", ["first", "first"], sample=sample)


# Whatever the parent is


def test_a_seat_that_had_forfeited_still_has() -> None:
    start = sane(play_sync("LiarsDice-v0", [Says("gibberish"), "random", "random", "random"], 3, {"players": 4}))
    assert start.forfeits == (0,)
    agent = Recalls()
    for ply in range(1, plies(start)):
        new = sane(on(start, [agent, "random", "random", "random"], ply, sample=ply))
        assert 0 in new.forfeits
        assert all(not turn.attempts for turn in new.turns[1:] if turn.seat == 0)
    fresh = sane(on(start, ["random"] * 4, 0))  # before it had
    assert fresh.forfeits == ()


@pytest.mark.parametrize("policy", ["random", "fallback"])
def test_substitutes_go_on_as_they_would_have(policy: Any) -> None:
    referee = Referee(illegal=policy)
    start = sane(play_sync("ConnectFour-v0", ["first", Says("x")], 3, referee=referee))
    for ply in range(plies(start)):
        assert essence(sane(on(start, ["first", Says("x")], ply))) == essence(start)


def test_a_truncated_match_goes_on_where_it_was_cut() -> None:
    whole = play_sync("TicTacToe-v0", ["first", "first"], 0)
    cut = play_sync("TicTacToe-v0", ["first", "first"], 0, max_turns=3)
    assert cut.outcome == "truncated"
    assert essence(sane(on(cut, ["first", "first"], 3))) == essence(whole)
    assert sane(on(cut, ["first", "first"], 3, max_turns=5)).reason == "5 plies were played"


def test_a_match_that_a_server_cut_goes_on_before_that_ply() -> None:
    class Ends(Recalls):
        def act(self, view: View) -> Reply:
            return Recalls.act(self, view) if view.ply < 2 else Reply("", ends="the server aborted the answer")

    cut = sane(play_sync("TicTacToe-v0", [Ends(), "first"], 0))
    assert cut.turns[-1].action is None
    assert essence(sane(on(cut, ["first"] * 2, 2)))["turns"][2]["action"] == "3"
    with pytest.raises(ValueError, match="ply=3: the episode ended at ply 2"):
        on(cut, ["first"] * 2, 3)


def test_a_void_match_goes_on_from_as_far_as_it_got() -> None:
    class Fails(Recalls):
        def act(self, view: View) -> Reply:
            if view.ply == 4:
                raise AgentError("the server is down")
            return Recalls.act(self, view)

    void = play_sync("TicTacToe-v0", [Fails(), "first"], 0)
    assert (void.outcome, plies(void)) == ("void", 4)
    new = sane(on(void, ["first", "first"], 4))
    assert new.outcome == "terminated"
    assert [turn.hash for turn in new.turns[:4]] == [turn.hash for turn in void.turns]


def test_what_could_not_be_recorded_of_the_parent_is_told() -> None:
    class Gap(Recalls):
        def act(self, view: View) -> Reply:
            return msgspec.structs.replace(Recalls.act(self, view), gaps=("tokens",))

    start = play_sync("TicTacToe-v0", [Gap(), "first"], 0)
    assert on(start, ["first", "first"], 1).gaps == ("tokens",)


def test_a_game_that_is_not_registered_goes_on_too() -> None:
    start = play_sync(Bazaar, ["random"] * 3, 4)
    new = play_sync(Bazaar, ["random"] * 3, 4, start=start, ply=1, sample=3)
    assert [turn.hash for turn in new.turns[:3]] == [turn.hash for turn in start.turns[:3]]
    assert len(list(positions(new, Bazaar))) == 3


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"ply": -1}, "allowed are plies from 0 on"),
        ({"ply": 1.0}, "allowed are plies from 0 on"),
        ({"ply": 99}, "ply=99: episode .* has no such ply to go on from"),
        ({"seed": 1}, "seed=1: the episode to be played on has 0"),
        ({"game": "ConnectFour-v0"}, "env='ConnectFour-v0': the episode to be played on has 'TicTacToe-v0'"),
        ({"referee": Referee(retries=3)}, "referee=.*: the episode to be played on has"),
        ({"max_turns": 1, "ply": 1}, "max_turns=1: allowed are numbers above ply=1"),
        ({"start": None, "ply": 1}, "these need start="),
        ({"start": None, "actions": {0: "1"}}, "these need start="),
        ({"actions": {1: "2"}, "ply": 2}, r"actions: seat 1 is not asked at ply 2; to act are \(0,\)"),
        ({"actions": {0: "1"}, "ply": 2}, 'actions: "1" is no action of seat 0 at ply 2: square 1 is taken'),
        ({"actions": {0: "[3]"}, "ply": 2}, "is no action of seat 0"),
        ({"actions": {0: 3}, "ply": 2}, 'actions: "3" is no action of seat 0'),
    ],
)
def test_what_cannot_be_is_refused(how: dict[str, Any], why: str) -> None:
    start = play_sync("TicTacToe-v0", ["first", "first"], 0)
    asked: dict[str, Any] = {"game": "TicTacToe-v0", "agents": ["first", "first"], "seed": 0, "start": start} | how
    with pytest.raises(ValueError, match=why):
        play_sync(**asked)
    with pytest.raises(ValueError, match=why):
        asyncio.run(play(**asked))


def test_the_end_is_no_ply_to_go_on_from() -> None:
    for start in (play_sync("TicTacToe-v0", ["first", Says(wrong)], 0) for wrong in ("4", "nonsense")):
        with pytest.raises(ValueError, match=r"has no such ply|the episode ended at ply"):
            on(start, ["first", "first"], plies(start))


def test_a_record_that_does_not_replay_is_refused() -> None:
    start = play_sync("TicTacToe-v0", ["first", "first"], 0)
    start.turns[1].observation = "something else"
    assert on(start, ["first", "first"], 1).outcome == "terminated"  # before it, all is well
    with pytest.raises(EpisodeError, match="turn 1: seat 1 now sees something else"):
        on(start, ["first", "first"], 2)


# Actions that are given


def test_a_given_action_is_played_unasked_and_marked() -> None:
    start = play_sync("TicTacToe-v0", ["first", "first"], 0)
    agent = Recalls()
    new = sane(on(start, [agent, "first"], 2, actions={0: "9"}))
    assert [turn.action for turn in new.turns[:4]] == ["1", "2", "9", "3"]
    forced = new.turns[2].attempts[0]
    assert (forced.raw, forced.verdict, forced.reason, forced.calls) == ("9", "legal", "forced", ())
    assert agent.seen[-1] == (2, 0, 2, "", "9")  # it takes the action up as its own
    assert new.turns[4].attempts[0].reasoning == "number 3"
    assert [seat.agent for seat in new.seats] == ["recalls", "first"]
    assert start.turns[2].attempts[0].reason == ""


@pytest.mark.parametrize("kind", [Recalls, Later])
def test_where_seats_act_at_once_the_others_are_asked(kind: type[Recalls]) -> None:
    start = play_sync(Bazaar, ["random"] * 3, 4)
    agents = [kind() for _ in range(3)]
    new = play_sync(Bazaar, agents, 4, start=start, ply=1, actions={2: "tell 0 hush"})
    assert [turn.action for turn in new.turns[3:6]] == ["say so", "say so", "tell 0 hush"]
    assert [turn.attempts[0].reason for turn in new.turns[3:6]] == ["", "", "forced"]
    assert [ply for ply, *_ in agents[2].seen] == [0, 1]


def test_a_seat_that_forfeited_is_given_nothing() -> None:
    start = play_sync("LiarsDice-v0", [Says("gibberish"), "random", "random", "random"], 3, {"players": 4})
    later = next(turn for turn in start.turns[1:] if turn.seat == 0)
    with pytest.raises(ValueError, match="seat 0 is not asked"):
        on(start, ["random"] * 4, later.ply, actions={0: later.action})


def test_agents_given_as_objects_stay_whose_they_are() -> None:
    """Nothing is left in the list of agents when an action was given, nor closed that is not ours."""
    start = play_sync("TicTacToe-v0", ["first", "first"], 0)
    agents: list[Agent] = [Recalls(), Recalls()]
    same = list(agents)
    for ply in range(3):
        on(start, agents, ply, actions={ply % 2: str(9 - ply)})
    assert agents == same


def test_a_live_game_is_refused() -> None:
    class Living(Take, LiveGame):
        def close(self) -> None:
            pass

    start = play_sync(Living, ["first", "first"], 1)
    assert start.outcome == "terminated"
    with pytest.raises(ValueError, match="drives something alive"):
        play_sync(Living, ["first", "first"], 1, start=start, ply=1)
