"""What matches of one game share: the same first positions as `make_game`, whatever is remembered."""

from random import Random

import pytest

from arena.deal import deal_of
from arena.game import Action, IllegalAction, TurnGame
from arena.match import play_sync
from arena.registry import GAMES, load, make_game

DRAWN = {"Arithmetic-v0", "CalculatorTask-v0", "Countdown-v0", "KuhnPoker-v0", "LeducPoker-v0", "LiarsDice-v0"}


class Typed(TurnGame):
    """Tells which type of number its option had."""

    players = 1
    kind: str
    over: bool = False

    @classmethod
    def initial(cls, rng: Random, kind: object = None) -> "Typed":
        return cls(type(kind).__name__)

    def to_act(self) -> tuple[int, ...]:
        return () if self.over else (0,)

    def rules(self, player: int) -> str:
        return self.kind

    def observation(self, player: int) -> str:
        return self.kind

    def legal_actions(self, player: int) -> tuple[Action, ...]:
        return () if self.over else ("go",)

    def play(self, action: Action) -> "Typed":
        if action != "go":
            raise IllegalAction("go")
        return Typed(self.kind, over=True)

    def returns(self) -> tuple[float, ...]:
        return (0.0,)


@pytest.mark.parametrize("game_id", sorted(GAMES))
def test_it_deals_as_make_game_does(game_id: str) -> None:
    deal = deal_of(game_id, {})
    first = make_game(game_id, 0)
    assert deal.game is load(game_id)
    assert deal.rules == tuple(first.rules(p) for p in range(first.players))
    for seed in (0, 1, 2**63):
        assert deal.first(seed) == make_game(game_id, seed)
    if game_id in DRAWN:
        assert deal.only is None
        assert deal.first(1) != deal.first(2)


def test_what_is_never_drawn_is_made_once() -> None:
    deal = deal_of("TicTacToe-v0", {})
    assert deal.first(1) is deal.first(2)
    assert deal_of("Chess-v0", {}).only is not None
    assert deal_of("Chess-v0", {"chess960": True}).only is None
    assert deal_of("Chess-v0", {"chess960": True, "scharnagl": 518}).only is not None


def test_lists_become_tuples() -> None:
    options = {"rounds": 3, "payoffs": [5, 3, 1, 0]}
    deal = deal_of("IteratedPrisonersDilemma-v0", options)
    assert deal.first(4) == make_game("IteratedPrisonersDilemma-v0", 4, options)
    assert options["payoffs"] == [5, 3, 1, 0]


@pytest.mark.parametrize("order", [(1, 1.0, True), (True, 1.0, 1)])
def test_equal_numbers_of_other_types_are_other_options(order: tuple[object, ...]) -> None:
    kinds = [deal_of(Typed, {"kind": kind}).first(0).rules(0) for kind in order]
    assert kinds == [type(kind).__name__ for kind in order]
    assert [play_sync(Typed, ["first"], 0, {"kind": kind}).seats[0].rules for kind in order] == kinds


@pytest.mark.parametrize(
    ("game", "options", "said"),
    [
        ("Nim", {}, "unknown game"),
        ("TicTacToe-v0", {"size": 4}, "unknown option"),
        ("LiarsDice-v0", {"players": True}, "must be int"),
        ("LiarsDice-v0", {"players": 99}, "allowed"),
        ("LiarsDice-v0", {"players": object()}, "must survive JSON"),
    ],
)
def test_bad_options_are_refused_every_time(game: str, options: dict[str, object], said: str) -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match=said):
            deal_of(game, options)


def test_a_match_leaves_the_given_options_alone_and_records_them() -> None:
    options: dict[str, object] = {"columns": 5, "rows": 4}
    episode = play_sync("ConnectFour-v0", ["first", "first"], 0, options)
    options["columns"] = 6
    assert episode.options == {"columns": 5, "rows": 4}
