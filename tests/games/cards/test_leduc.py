from random import Random

import pytest

from arena.game import IllegalAction
from arena.games.cards.leduc import DEALS, WINNER, LeducPoker, tree
from tests.games.cards.solve import game_value
from tests.games.hidden import assert_hostile_text_is_refused, assert_nothing_leaks, assert_sound, play_out


def play(game: LeducPoker, *actions: str) -> LeducPoker:
    for action in actions:
        game = game.play(action)
    return game


def test_value_is_the_known_one() -> None:
    """-0.0856 chips for the first player, which counterfactual regret minimisation in OpenSpiel approaches too."""
    assert game_value([LeducPoker(2, deal) for deal in DEALS]) == pytest.approx(-0.085606424, abs=1e-7)


def test_all_deals_come() -> None:
    rng = Random(1)
    drawn = [LeducPoker.initial(rng).deal for _ in range(6000)]
    assert len(DEALS) == 120
    for deal in set(DEALS):
        assert drawn.count(deal) / 6000 == pytest.approx(DEALS.count(deal) / 120, abs=0.02)


@pytest.mark.parametrize(
    ("deal", "winner"), [("KQJ", 0), ("QKJ", 1), ("JKJ", 0), ("KJJ", 1), ("QQK", None), ("JQQ", 1), ("KKJ", None)]
)
def test_showdown(deal: str, winner: int | None) -> None:
    assert WINNER[deal] == winner
    end = play(LeducPoker(2, deal), "check", "check", "check", "check")
    assert end.returns() == {0: (1.0, -1.0), 1: (-1.0, 1.0), None: (0.0, 0.0)}[winner]


@pytest.mark.parametrize(
    ("actions", "gain"),
    [
        (("raise", "fold"), 1),
        (("check", "raise", "fold"), -1),
        (("raise", "raise", "fold"), -3),
        (("raise", "raise", "call", "check", "check"), 5),
        (("raise", "call", "raise", "fold"), 3),
        (("raise", "call", "check", "raise", "raise", "fold"), 7),
        (("raise", "raise", "call", "raise", "raise", "call"), 13),
        (("raise", "raise", "call", "check", "raise", "raise", "fold"), 9),
    ],
)
def test_chips(actions: tuple[str, ...], gain: int) -> None:
    assert play(LeducPoker(2, "KQJ"), *actions).returns() == (gain, -gain)


def test_whole_tree_is_sound() -> None:
    rng = Random(5)
    for deal in sorted(set(DEALS)):
        for line, node in tree(2).items():
            game = LeducPoker(2, deal, line)
            for drawn in assert_nothing_leaks(game, rng, 2):
                assert isinstance(drawn, LeducPoker)
                assert drawn.deal in WINNER
            assert sum(game.returns()) == 0.0
            if node.legal:
                assert game.returns() == (0.0, 0.0)


@pytest.mark.parametrize("raises", range(1, 9))
def test_random_games_are_sound(raises: int) -> None:
    rng = Random(raises)
    for _ in range(20):
        assert_sound(play_out(LeducPoker.initial(rng, raises), rng))


@pytest.mark.parametrize("raises", [1, 2, 8])
def test_bounds_are_reached(raises: int) -> None:
    game = LeducPoker(raises, "KQJ")
    longest = ("check", *["raise"] * raises, "call") * 2
    end = play(game, *longest)
    assert end.to_act() == ()
    assert len(longest) == game.max_turns()
    assert end.returns()[0] == game.reward_range()[1]
    assert len(end.observation(0)) <= game.max_length()


def test_determinize_draws_what_is_hidden() -> None:
    rng = Random(3)
    start = LeducPoker(2, "KQJ")
    drawn = {start.determinize(0, rng).deal for _ in range(300)}
    assert drawn == {deal for deal in WINNER if deal[0] == "K"}
    opened = play(start, "check", "check")
    assert {opened.determinize(1, rng).deal for _ in range(200)} == {"JQJ", "QQJ", "KQJ"}
    shown = play(opened, "check", "check")
    assert {shown.determinize(1, rng).deal for _ in range(50)} == {"KQJ"}
    folded = play(start, "raise", "fold")
    assert len({folded.determinize(1, rng).deal for _ in range(300)}) == 8


def test_cards_are_shown_in_time() -> None:
    start = LeducPoker(2, "KQJ")
    assert start.observation(0) == (
        "You are Player 0. Your card: K. Board card: hidden.\nBetting: none yet.\n"
        "In the pot: 1 of Player 0, 1 of Player 1.\nYour turn: check or raise."
    )
    folded = play(start, "raise", "fold").observation(0)
    assert "Board card: hidden" in folded
    assert "Q" not in folded
    assert folded.endswith("The hand is over. Player 0 takes the pot.")
    end = play(start, "check", "check", "raise", "call")
    assert "Board card: J" in end.observation(1)
    assert end.observation(1).endswith("Showdown: Player 0 K, Player 1 Q. Player 0 takes the pot.")
    assert "shared" in play(LeducPoker(2, "KKJ"), "check", "check", "check", "check").observation(0)


def test_rules_state_the_options() -> None:
    game = LeducPoker.initial(Random(0), raises=3)
    rules = game.rules(1)
    for fact in (
        "you are Player 1",
        "both players together: 3",
        "at most 19",
        "antes 1",
        "is 2 chips",
        "4 in round 2",
    ):
        assert fact in rules
    assert rules.split("For example: ")[1].split("\n")[0] in game.legal_actions(0)


@pytest.mark.parametrize("raises", [0, 9, True, "2", 2.0])
def test_bad_options(raises: int) -> None:
    with pytest.raises(ValueError, match=f"raises={raises!r}: allowed are 1 to 8"):
        LeducPoker.initial(Random(0), raises)


def test_hostile_text_is_refused() -> None:
    start = LeducPoker.initial(Random(0))
    assert_hostile_text_is_refused(start)
    assert_hostile_text_is_refused(start.play("raise"))
    with pytest.raises(IllegalAction, match="write fold or call"):
        play(start, "raise", "raise", "raise")


def test_features_tell_information_sets_apart() -> None:
    seen: dict[tuple[float, ...], str] = {}
    for deal in set(DEALS):
        for line, node in tree(2).items():
            if node.legal:
                game = LeducPoker(2, deal, line)
                (seat,) = game.to_act()
                assert seen.setdefault(game.features(seat), game.observation(seat)) == game.observation(seat)
    assert len(seen) == 288  # 936 in OpenSpiel, which tells suits apart
