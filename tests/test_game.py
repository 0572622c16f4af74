"""The base classes of the contract: what they enforce, what they give for nothing."""

import copy
import json
import pickle
from collections.abc import Mapping
from random import Random

import msgspec
import pytest

from arena.chance import Chance
from arena.game import SEAT, Action, Actions, Event, Game, IllegalAction, LiveGame, Player, TurnGame, replace


class Count(TurnGame):
    """Two seats count up by one or two; whoever says `goal` wins. A die is thrown for show at every move."""

    zero_sum = True
    perfect_information = True
    players = 2

    goal: int
    chance: Chance
    total: int = 0
    ply: int = 0

    @classmethod
    def initial(cls, rng: Random, goal: int = 5) -> "Count":
        return cls(goal, Chance.of(rng))

    def to_act(self) -> tuple[Player, ...]:
        return () if self.total >= self.goal else SEAT[self.ply & 1]

    def rules(self, player: Player) -> str:
        return f"Say 1 or 2; reach {self.goal}."

    def observation(self, player: Player) -> str:
        return f"At {self.total}."

    def legal_actions(self, player: Player) -> tuple[Action, ...]:
        return ("1", "2") if player in self.to_act() else ()

    def play(self, action: Action) -> "Count":
        if action not in ("1", "2"):
            raise IllegalAction("say 1 or 2", self.ply & 1)
        _, chance = self.chance.integers(6)
        return replace(self, total=self.total + int(action), ply=self.ply + 1, chance=chance)

    def returns(self) -> tuple[float, ...]:
        if self.total < self.goal:
            return (0.0, 0.0)
        return (1.0, -1.0) if self.ply & 1 else (-1.0, 1.0)


class Hidden(Count):
    """The same, claiming secrets without saying how to redraw them."""

    perfect_information = False


START = Count.initial(Random(1))


def test_a_game_that_leaves_something_out_cannot_be_made() -> None:
    class Half(TurnGame):
        players = 2

        def to_act(self) -> tuple[Player, ...]:
            return ()

    with pytest.raises(TypeError, match="abstract"):
        Half()  # type: ignore[abstract]  # the point of the test


def test_a_position_is_a_frozen_value() -> None:
    after = START.play("2")
    assert START.total == 0
    assert after == START.play("2") != START.play("1")
    assert hash(after) == hash(START.play("2"))
    with pytest.raises(AttributeError):
        after.total = 9
    assert pickle.loads(pickle.dumps(after)) == copy.deepcopy(after) == after
    again = msgspec.json.decode(msgspec.json.encode(after), type=Count)
    assert again == after


@pytest.mark.parametrize(
    "actions", [{}, {1: "1"}, {0: "1", 1: "1"}, {5: "1"}], ids=["nobody", "another seat", "one too many", "no seat"]
)
def test_actions_of_the_wrong_seats_are_the_callers_bug(actions: Mapping[Player, Action]) -> None:
    with pytest.raises(ValueError, match="to act") as error:
        START.apply(actions)
    assert not isinstance(error.value, IllegalAction)


def test_after_the_end_nothing_can_be_applied() -> None:
    over = START.play("2").play("2").play("2")
    assert over.to_act() == ()
    for actions in ({}, {0: "1"}):
        with pytest.raises(ValueError, match="to act"):
            over.apply(actions)


def test_an_illegal_action_says_why_and_survives_a_process_border() -> None:
    with pytest.raises(IllegalAction) as caught:
        START.apply({0: "3"})
    error = pickle.loads(pickle.dumps(caught.value))
    assert (str(error), error.reason, error.player) == ("say 1 or 2", "say 1 or 2", 0)
    assert isinstance(error, ValueError)
    assert IllegalAction("no").player is None


def test_what_every_game_gets_for_nothing() -> None:
    assert START.events(0) == ()
    assert START.normalize(" x ", 0) == " x "
    assert START.fallback(0) is None
    assert START.reward_range() == (-1.0, 1.0)
    assert START.max_turns() is None
    assert START.max_length() == 1 << 16
    assert START.max_action() == 256
    assert START.scores(0) == {}
    assert START.role(0) == ""
    assert START.teams() is None
    assert START.action_table() is None
    assert START.features(0) is None
    assert START.house == ()
    assert START.render() == "[player 0]\nAt 0.\n\n[player 1]\nAt 0."
    START.check(0, "anything")


def test_sampling_needs_a_list() -> None:
    assert {START.sample_action(0, Random(seed)) for seed in range(20)} == {"1", "2"}
    with pytest.raises(ValueError, match="no list of actions"):
        START.sample_action(1, Random(0))


def test_determinize_of_an_open_game_reseeds_its_chance_and_nothing_else() -> None:
    other = START.determinize(0, Random(3))
    assert other.chance != START.chance
    assert replace(other, chance=START.chance) == START
    with pytest.raises(NotImplementedError, match="Hidden has hidden information"):
        Hidden.initial(Random(0)).determinize(0, Random(0))


def test_a_game_without_chance_is_its_own_determinization() -> None:
    from arena.games.board.tictactoe import TicTacToe

    assert TicTacToe().reseed(Random(1)) is not None
    start = TicTacToe()
    assert start.determinize(0, Random(1)) is start


def test_events_know_their_audience() -> None:
    assert Event("all").seen_by(7)
    whisper = Event("psst", 1, (1, 2))
    assert [whisper.seen_by(p) for p in range(4)] == [False, True, True, False]


def test_a_live_game_must_say_how_it_is_closed() -> None:
    assert LiveGame.__abstractmethods__ >= {"close", "apply", "initial"}
    assert issubclass(LiveGame, Game)


def test_long_lists_answer_membership_at_once_and_stay_tuples() -> None:
    words = Actions(str(n) for n in range(5000))
    assert words == tuple(str(n) for n in range(5000))
    assert "4999" in words
    assert "5000" not in words
    assert hash(words) == hash(tuple(words))
    again = pickle.loads(pickle.dumps(words))
    assert again == words
    assert type(again) is Actions
    assert "17" in again
    assert json.loads(json.dumps(words))[17] == "17"
    odd: list[object] = [None, 17, "5000"]
    assert not any(one in words for one in odd)
