"""Matches that go on from the middle of a recorded one: what is kept, and how agents take it up."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

import pytest

from arena.agent import Agent, AgentError, Reply, View
from arena.episode import Turn
from arena.match import play_sync
from arena.referee import Referee
from arena.registry import GAMES, make_game
from tests.players import Fixed, Later, Recalls, Says, Slow, essence, on, plies, sane
from tests.toy_games import Bazaar

LONG = ("TicTacToe-v0", "LiarsDice-v0", "LeducPoker-v0", "IteratedPrisonersDilemma-v0", "SecretMafia-v0")


# Going on


@pytest.mark.parametrize("game", sorted(GAMES))
def test_every_game_goes_on_from_every_ply_as_it_went(game: str) -> None:
    """The same agents, who draw nothing: the whole record again, rewards, hashes and last views too."""
    seats = [Fixed()] * make_game(game).players
    start = sane(play_sync(game, seats, 2))
    count = plies(start)
    for ply in sorted({0, 1, count // 2, count - 1}):
        if ply < count:
            again = sane(on(start, seats, ply))
            assert essence(again) == essence(start)
            assert (again.parent, again.fork) == (start.id, ply)
            assert again.id != start.id


@pytest.mark.parametrize("game", LONG)
def test_others_go_on_from_the_middle_and_the_record_replays(game: str) -> None:
    seats = ["random"] * make_game(game).players
    for seed in range(4):
        start = sane(play_sync(game, seats, seed))
        before = essence(start)
        for ply in range(plies(start)):
            new = sane(on(start, seats, ply, sample=ply))
            kept = [turn for turn in start.turns if turn.ply < ply]
            head = new.turns[: len(kept)]
            assert [(t.hash, t.action, t.attempts) for t in head] == [(t.hash, t.action, t.attempts) for t in kept]
        assert essence(start) == before  # nothing of the parent was touched


def test_continuations_draw_from_streams_of_their_own() -> None:
    start = play_sync("LiarsDice-v0", ["random"] * 2, 8)
    ends = {on(start, ["random"] * 2, 0, sample=n).turns[-1].hash for n in range(4)} | {start.turns[-1].hash}
    assert len(ends) == 5


def test_the_same_actions_meet_the_same_dice() -> None:
    start = play_sync(Bazaar, [Says("say a")] * 3, 4)
    for ply in range(3):
        assert play_sync(Bazaar, [Says("say a")] * 3, 4, start=start, ply=ply, sample=ply).final == start.final


def test_rewards_of_the_prefix_are_what_the_new_episode_pays() -> None:
    start = sane(play_sync("TicTacToe-v0", [Says("1", "2", "3"), Says("4", "5")], 0))
    assert [turn.reward for turn in start.turns] == [0, 0, 0, -1.0, 1.0]
    new = sane(on(start, [Says("9"), Says("6")], 4))  # the first seat does not win now, the second does
    assert new.returns == (-1.0, 1.0)
    assert [turn.reward for turn in new.turns] == [0, 0, 0, 0, -1.0, 1.0]
    assert [turn.reward for turn in start.turns] == [0, 0, 0, -1.0, 1.0]


def test_a_continuation_goes_on_from_again() -> None:
    start = play_sync("LiarsDice-v0", ["random"] * 2, 6)
    one = on(start, ["random"] * 2, 1, sample=1)
    two = sane(on(one, ["random"] * 2, 2, sample=1))
    assert (two.parent, two.fork) == (one.id, 2)
    assert [turn.hash for turn in two.turns if turn.ply < 2] == [turn.hash for turn in one.turns if turn.ply < 2]


# Agents take up what was played


@pytest.mark.parametrize("kind", [Recalls, Later])
def test_agents_take_up_every_turn_of_their_seats(kind: type[Recalls]) -> None:
    start = play_sync("ConnectFour-v0", [Recalls(), Recalls()], 0)
    one, two = kind(), kind()
    new = sane(on(start, [one, two], 5))
    assert [(ply, seat, n, action) for ply, seat, n, _, action in one.seen] == [
        (turn.ply, 0, at, turn.action) for at, turn in enumerate([t for t in start.turns[:5] if t.seat == 0], 1)
    ]
    assert [ply for ply, *_ in two.seen] == [1, 3]
    assert new.turns[5].attempts[0].reasoning == "number 3"  # its memory goes on
    assert new.turns[6].attempts[0].reasoning == "number 4"


def test_every_attempt_is_taken_up_with_what_the_referee_said() -> None:
    referee = Referee(retries=1)
    start = play_sync("TicTacToe-v0", [Says("0", "3"), "first"], 2, referee=referee)
    agent = Recalls()
    new = sane(on(start, [agent, "first"], 2))
    assert [(ply, bool(note)) for ply, _, _, note, _ in agent.seen] == [(0, False), (0, True)]
    assert agent.seen[1][3].startswith("[Not accepted: write the number of a free square")
    assert new.referee == referee  # the episode's own, where none is given


def test_a_seat_that_acts_at_once_with_others_takes_up_its_own_only() -> None:
    start = play_sync(Bazaar, [Says("say a"), Says("tell 0 b"), Says("say c")], 4)
    agents = [Recalls() for _ in range(3)]
    sane_toy = play_sync(Bazaar, agents, 4, start=start, ply=2)
    assert [[(ply, seat, action) for ply, seat, _, _, action in agent.seen] for agent in agents] == [
        [(0, 0, "say a"), (1, 0, "say a")],
        [(0, 1, "tell 0 b"), (1, 1, "tell 0 b")],
        [(0, 2, "say c"), (1, 2, "say c")],
    ]
    assert [turn.action for turn in sane_toy.turns[6:]] == ["say so"] * 3


def test_views_taken_up_are_those_that_were_given() -> None:
    given: list[tuple[str, Sequence[Any], Sequence[Any]]] = []
    taken: list[tuple[str, Sequence[Any], Sequence[Any]]] = []

    class Keeps(Agent):
        name = "keeps"

        def act(self, view: View) -> Reply:
            given.append((view.observation, tuple(view.new_events), view.legal_actions or ()))
            return Reply(view.sample_action())

        def recall(self, views: Sequence[View], turn: Turn) -> None:
            taken.extend([(v.observation, tuple(v.new_events), v.legal_actions or ()) for v in views])

    for game in ("LeducPoker-v0", "SecretMafia-v0"):
        given.clear()
        taken.clear()
        start = play_sync(game, [Keeps()] * make_game(game).players, 3)
        whole, last = list(given), plies(start) - 1
        on(start, [Keeps()] * make_game(game).players, last)
        assert taken == whole[: len(taken)]
        assert len(taken) == sum(turn.ply < last for turn in start.turns)


def test_an_agent_that_cannot_take_it_up_makes_the_episode_void() -> None:
    class Cannot(Recalls):
        def recall(self, views: Sequence[View], turn: Turn) -> None:
            raise AgentError("the server is down")

    start = play_sync("TicTacToe-v0", ["first", "first"], 0)
    new = on(start, [Cannot(), "first"], 2)
    assert new.outcome == "void"
    assert new.reason == "AgentError: the server is down"
    assert len(new.turns) == 2


def test_a_deadline_holds_while_it_is_taken_up() -> None:
    class Hangs(Slow):
        async def hang(self) -> None:
            await asyncio.sleep(60)

        def recall(self, views: Sequence[View], turn: Turn) -> Awaitable[None]:
            return self.hang()

    start = play_sync("TicTacToe-v0", ["first", "first"], 0)
    new = on(start, [Hangs(), "first"], 2, deadline=0.05)
    assert (new.outcome, new.reason) == ("void", "the deadline passed at ply 2")
